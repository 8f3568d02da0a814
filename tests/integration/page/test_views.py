"""Every view of the page: accessible, pictured in each size and theme, and deaf to markup in any text.

`make pictures` and `make test-all` write pictures to `build/pictures`, for people. The tests compare texts
and boxes.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from support.servers.browser import LOOKS, visiting

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from support.servers.browser import Visitor
    from support.servers.edge import EdgeClient

pytestmark = [
    pytest.mark.asyncio(loop_scope="package"),
    pytest.mark.slow(reason="a browser"),
]

STORY: dict[str, Any] = json.loads(Path("examples/story.json").read_text(encoding="utf-8"))
EXECUTES = Path("tests/data/page/executes.txt").read_text(encoding="utf-8").splitlines()
DESCRIPTION = Path("examples/description.txt").read_text(encoding="utf-8")
CHANGES = {
    "only write files below /srv/assistant.": "only write files below /srv/assistant and /srv/shared.",
    "Forms must not be submitted without asking.": "",
}
"""Changes of the text of the policy, for its second version."""
TELLING = [
    ("accepted", {"attempt_id": "a", "request_id": "r", "input": "I look for Beta.", "turn": 1}),
    (
        "roll",
        {
            "roll": {"kind": "notice", "target": "beta", "difficulty": 12, "value": 17, "success": True},
            "turn": 1,
        },
    ),
    ("roll", {"roll": {"kind": "persuade", "target": "beta", "difficulty": 15, "value": 6}, "turn": 1}),
    ("narrative_chunk", {"text": "This was wrong.", "turn": 1}),
    ("narrative_retracted", {"reason": "it contradicts the record", "turn": 1}),
    ("narrative_chunk", {"text": "The room is quiet.\n\n“I never had the key.”", "turn": 1}),
    ("dialogue", {"entity_id": "beta", "utterance": "I never had the key.", "turn": 1}),
    ("narrative_chunk", {"text": " A chair moves. Gamma says “Nor did I”.", "turn": 1}),
    ("dialogue", {"entity_id": "gamma", "utterance": "Nor did I", "turn": 1}),
    ("dialogue", {"entity_id": "delta", "utterance": "Then who has it?", "turn": 1}),
    ("degraded", {"reason": "NARRATOR_TIMEOUT", "message": "the narrator took too long", "turn": 1}),
]


@dataclass(frozen=True)
class Games:
    """Addresses of games and of what is behind them.

    Attributes:
        running: a game in progress.
        ended: a game that has ended.
        watched: a link to the game in progress.
        scenario: their scenario.
        policy: a compiled policy with two versions.
        run: a run of generated tests.
    """

    running: str
    ended: str
    watched: str
    scenario: str
    policy: str
    run: str


async def _play(edge: EdgeClient, session_id: str, turns: int = 100) -> None:
    """Play turns, or a game to its end."""
    for number in range(turns):
        _, session = await edge.get(f"/sessions/{session_id}")
        legal = session.get("legal_actions")
        if not legal:
            return
        actions = [{"action_id": legal[number % len(legal)]["action_id"]}]
        async for event in edge.events(f"/sessions/{session_id}/turns", {"actions": actions}):
            assert event.name != "error", event.data


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def policy(edge: EdgeClient) -> str:
    """The id of a policy with two versions."""
    return await _compile_policy(edge)


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def games(edge: EdgeClient, policy: str) -> Games:
    """One game in progress, one that has ended, and what the other views show."""
    status, spec = await edge.post("/scenarios/generate", {"description": DESCRIPTION, "seed": 3})
    assert status == 200, spec
    status, compiled = await edge.post(f"/scenarios/{spec['id']}/compile")
    assert status == 200, compiled
    scenario = compiled["scenario_id"]
    sessions = []
    for seed in (3, 4):
        _, session = await edge.post("/sessions", {"scenario_id": scenario, "seed": seed})
        sessions.append(session["session_id"])
    running, ended = sessions
    await _play(edge, running, 2)
    await _play(edge, ended)
    _, link = await edge.post(f"/sessions/{running}/links", {})
    return Games(
        running,
        ended,
        link["token"],
        scenario,
        policy,
        await _generate_tests(edge, scenario),
    )


async def _compile_policy(edge: EdgeClient) -> str:
    """Compile two versions of a policy, and return its id."""
    folder = Path("examples/policies/office")
    text = (folder / "constitution.md").read_text(encoding="utf-8")
    changed = text
    for old, new in CHANGES.items():
        assert old in changed
        changed = changed.replace(old, new)
    policy_id = ""
    for constitution in (text, changed):
        body = {
            "policy_id": policy_id,
            "constitution": constitution,
            "tools": json.loads((folder / "tools.json").read_bytes()),
            "foundation": json.loads((folder / "foundation.json").read_bytes()),
            "options": {"mutation": False, "directed": False},
        }
        async for event in edge.events("/rpc/PolicyService/CompilePolicy", body):
            if "compiled" in event.data:
                policy_id = event.data["compiled"]["policy"]["policy_id"]
    assert policy_id
    return policy_id


async def _generate_tests(edge: EdgeClient, scenario: str) -> str:
    body = {
        "task_id": "Actions",
        "task_description": "What the actions do",
        "context": "scenario",
        "subject": {"scenario_id": scenario},
        "config": {"max_total_rounds": 1, "enable_global_refinement": False},
    }
    run = ""
    async for event in edge.events("/rpc/TestGenService/GenerateTests", body):
        if event.name == "message":
            run = event.data["event"]["run_id"]
    return run


def _views(games: Games) -> dict[str, tuple[str, str]]:
    """Return address and a selector of complete content for each view."""
    return {
        "home": ("", ".cards .card"),
        "play": (f"#/play/{games.running}", "#turn-2:not(.open)"),
        "ending": (f"#/play/{games.ended}", ".ending .deciding-changes"),
        "watch": (f"#/watch/{games.watched}", "#turn-2:not(.open)"),
        "rules": (f"#/inspect/{games.scenario}", ".graph svg"),
        "players": (f"#/inspect/{games.scenario}", ".tab"),
        "specification": (f"#/inspect/{games.scenario}", ".tab"),
        "policies": ("#/policies", ".cards .card"),
        "policy": (f"#/policies/{games.policy}", ".changed-rule"),
        "comparison": (f"#/policies/{games.policy}", ".changed-rule"),
        "approvals": ("#/policies/approvals", "#point-address"),
        "task": ("#/tests", "form .button.primary"),
        "tests": (f"#/tests/{games.run}", ".figures-row > :nth-child(5)"),
        "usage": ("#/usage", ".provider"),
    }


_TABS = {"players": "Players", "specification": "Specification"}


async def _show(visitor: Visitor, name: str, games: Games) -> None:
    address, selector = _views(games)[name]
    await visitor.open(address)
    await visitor.page.wait_for_selector(selector)
    await visitor.page.wait_for_selector("article.turn.open", state="detached")
    if name == "comparison":
        await _scroll_to_comparison(visitor)
    if name in _TABS:
        await visitor.page.get_by_role("tab", name=_TABS[name]).click()
        await visitor.page.wait_for_selector(
            ".editor-state .good-text" if name == "specification" else ".bars"
        )


async def _scroll_to_comparison(visitor: Visitor) -> None:
    comparison = visitor.page.locator("section:has(> .compare-choices)")
    await comparison.evaluate("(element) => element.scrollIntoView()")


async def test_a_task_of_the_server_is_chosen_and_its_tests_arrive(
    browser: Browser, edge: EdgeClient
) -> None:
    async with visiting(browser, edge.url) as visitor:
        await visitor.open("#/tests")
        choice = visitor.page.locator("select[name=subject]")
        await choice.wait_for()
        assert "random" in await choice.locator("option").evaluate_all("all => all.map(one => one.value)")
        await choice.select_option("task:ranges")
        await visitor.page.get_by_role("button", name="Generate tests").click()
        await visitor.page.wait_for_selector(".test-card")
        environment = visitor.page.get_by_text("Environment with")
        await environment.click()
        assert await visitor.page.get_by_text("task.md").count() == 1


@pytest.mark.timeout(600)
async def test_every_view_fits_and_is_accessible(browser: Browser, edge: EdgeClient, games: Games) -> None:
    found: list[str] = []
    async with visiting(browser, edge.url) as visitor:
        for size, theme in LOOKS:
            await visitor.put_on(size, theme)
            for name in _views(games):
                await _show(visitor, name, games)
                found += await visitor.find_flaws(f"{name}-{size}-{theme}")
    assert not found


async def test_versions_of_a_policy_differ_by_calls(browser: Browser, edge: EdgeClient, policy: str) -> None:
    async with visiting(browser, edge.url) as visitor:
        await visitor.open(f"#/policies/{policy}")
        page = visitor.page
        await page.locator(".changed-rule").first.wait_for()
        assert await page.locator(".verdict").inner_text() == "2 calls are decided differently"
        rows = await page.locator(".changed-calls li").all_inner_texts()
        assert any("/srv/shared" in row and row.index("deny") < row.index("allow") for row in rows)
        assert any("web/submit_form" in row and row.index("escalate") < row.index("deny") for row in rows)
        rules = page.locator(".changed-rule")
        assert await rules.count() == 3
        assert all("→" in text for text in await rules.all_inner_texts())
        # The other direction takes away what this one allows.
        before, after = page.get_by_label("Before"), page.get_by_label("After")
        newest, oldest = await after.input_value(), await before.input_value()
        await before.select_option(newest)
        await page.get_by_text("Both decide every call the same.").wait_for()
        assert await rules.count() == 0
        await after.select_option(oldest)
        await page.locator(".changed-rule.add", has_text="web.7.escalate").wait_for()


async def test_a_policy_has_its_name_and_decides_a_call(
    browser: Browser, edge: EdgeClient, policy: str
) -> None:
    async with visiting(browser, edge.url) as visitor:
        page = visitor.page
        await visitor.open("#/policies")
        await page.get_by_role("link", name="What the assistant may do").click()
        followed = re.compile(r"^(\d+) of \1 sentences have rules\. Figures of the rules as they stand:$")
        await page.get_by_text(followed).wait_for()
        call = page.get_by_label("A call as JSON")
        decided = page.locator("form [role=status]")
        for path, decision in (("/srv/assistant/a", "allow"), ("/etc/a", "deny")):
            request = {"server_name": "files", "tool_name": "read_file", "arguments": {"path": path}}
            await call.fill(json.dumps(request))
            await page.get_by_role("button", name="Decide").click()
            await decided.locator("strong", has_text=decision).wait_for()
        await page.get_by_text("This path is protected.").wait_for()
        await call.fill('{"server_name": ')
        await call.press("Tab")
        await page.keyboard.press("Enter")
        await page.locator(".problem").wait_for()
        assert not await decided.inner_text()
        assert policy in page.url


async def test_a_language_from_right_to_left_turns_the_page_round(
    browser: Browser, edge: EdgeClient, games: Games
) -> None:
    options = {"viewport": {"width": 1440, "height": 900}, "locale": "ar"}
    async with visiting(browser, edge.url, **options) as visitor:
        await _show(visitor, "play", games)
        page = visitor.page
        assert await page.evaluate("document.documentElement.dir") == "rtl"
        actions = await page.locator(".side-actions").bounding_box()
        standing = await page.locator(".side-standing").bounding_box()
        assert actions
        assert standing
        assert actions["x"] < standing["x"]
        # The story is English, whatever the language of the page.
        prose = page.locator("#turn-1 .prose p").first
        assert await prose.evaluate("(element) => getComputedStyle(element).direction") == "ltr"
        assert not await visitor.find_violations()
        await visitor.take_picture("play-desktop-rtl")
        # The choice of the reader wins over that of the browser.
        await page.locator("header select").last.select_option("en")
        await page.get_by_role("link", name="Inspect").first.wait_for()
        assert await page.evaluate("document.documentElement.dir") == "ltr"


async def test_every_view_can_be_read_from_right_to_left(
    browser: Browser, edge: EdgeClient, games: Games
) -> None:
    options = {"viewport": {"width": 1024, "height": 768}, "locale": "ar", "color_scheme": "dark"}
    tabs = {"players": "اللاعبون", "specification": "المواصفة"}
    found: list[str] = []
    async with visiting(browser, edge.url, **options) as visitor:
        for name, (address, selector) in _views(games).items():
            await visitor.open(address)
            await visitor.page.wait_for_selector(selector)
            if name in tabs:
                await visitor.page.get_by_role("tab", name=tabs[name]).click()
            if name == "comparison":
                await _scroll_to_comparison(visitor)
            await visitor.take_picture(f"{name}-tablet-rtl")
            assert await visitor.page.evaluate("document.documentElement.dir") == "rtl"
            wide = await visitor.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            if wide > 0:
                found.append(f"{name}: {wide} pixels wider than the window")
    assert not found


async def test_a_run_of_tests_shows_its_state(browser: Browser, edge: EdgeClient, games: Games) -> None:
    _, got = await edge.post("/rpc/TestGenService/GetTestRun", {"run_id": games.run})
    stats = got["run"]["stats"]
    async with visiting(browser, edge.url) as visitor:
        await _show(visitor, "tests", games)
        page = visitor.page
        await page.get_by_text("of all model calls, in and out").wait_for()
        assert "Complete" in await page.locator("header [role=status]").inner_text()
        figures = await page.locator(".figures-row").inner_text()
        for name in ("Measured: faults caught", "The run\u2019s own opinion", "Rounds", "Tokens"):
            assert name in figures
        assert await page.locator(".test-card").count() == stats["total_tests"]
        categories = page.locator(".categories li")
        assert await categories.count() >= len(stats["category_rounds"]) >= 1
        first, rounds = next(iter(stats["category_rounds"].items()))
        shown = await categories.filter(has_text=first.replace("_", " ").capitalize()).first.inner_text()
        assert f"{rounds} round" in shown
        # Conditions are in words, as in the rules.
        cards = page.locator(".test-card")
        assert await cards.get_by_text("It would fail after this change:").count() >= 1
        assert "{'" not in "".join(await cards.all_inner_texts())
        steps = cards.locator("details", has_text="what is expected").first
        await steps.locator("summary").click()
        assert "status = ongoing" in await steps.locator("li").first.inner_text()


async def test_speech_dice_and_failures_are_told_apart(browser: Browser, edge: EdgeClient) -> None:
    body = "".join(
        f"id: {n}.a\nevent: {name}\ndata: {json.dumps(data)}\n\n" for n, (name, data) in enumerate(TELLING, 1)
    )
    session_id = await edge.start_session(STORY)
    async with visiting(browser, edge.url) as visitor:
        page = visitor.page
        served: list[str] = []

        async def answer(route: Any) -> None:
            served.append(route.request.url)
            if len(served) == 1:
                await route.fulfill(status=200, content_type="text/event-stream", body=body)
            else:
                await route.abort()

        await page.route("**/events?*", answer)
        await visitor.open(f"#/play/{session_id}?pov=me")
        turn = page.locator("#turn-1")
        await turn.locator(".roll").nth(1).wait_for()
        assert await turn.locator(".roll.success").inner_text() == "17\nNotice, Beta 17 against 12: success"
        assert "6 against 15: failure" in await turn.locator(".roll.failure").inner_text()
        prose = await turn.locator(".prose").inner_text()
        assert "wrong" not in prose
        # A speaker is named only where the prose does not name it.
        assert "Beta“I never had the key.”" in prose.replace("\n", "")
        assert "Gamma says “Nor did I”" in prose
        assert "DeltaThen who has it?" in prose.replace("\n", "")
        assert "the narrator took too long" in await turn.locator(".note").last.inner_text()
        assert await turn.locator(".said").inner_text() == "I look for Beta."
        await page.get_by_text("Connection lost").wait_for()
        await visitor.take_picture("telling-desktop-light")
        visitor.complaints[:] = [one for one in visitor.complaints if "ERR_FAILED" not in one]


async def test_no_text_of_a_scenario_is_executed(browser: Browser, edge: EdgeClient) -> None:
    text = " ".join(EXECUTES)
    spec = copy.deepcopy(STORY)
    spec |= {
        "id": "hostile",
        "name": text[:200],
        "opening": text,
        "labels": {"state.time": {"name": EXECUTES[0], "unit": EXECUTES[1][:30]}},
    }
    spec["premise"]["text"] = text
    for place, entity in zip(EXECUTES, spec["entities"], strict=False):
        entity |= {"name": place, "description": text}
    for end in (*spec["loss_conditions"], *spec["win_conditions"]):
        end["message"] = text
    for action in (*spec["actions"], *spec["random_events"]):
        action["name"] = EXECUTES[len(action["id"]) % len(EXECUTES)]
    spec["epilogues"] = {"late": text}
    status, compiled = await edge.post("/scenarios/hostile/compile", spec)
    assert status == 200, compiled
    async with visiting(browser, edge.url) as visitor:
        page = visitor.page
        await visitor.open()
        await page.locator("textarea").fill(text)
        await page.get_by_role("button", name="Write the scenario").click()
        await page.locator(".begin-box, .problem").first.wait_for()
        await visitor.check_harmless()
        await visitor.open()
        await page.locator(".card", has_text=EXECUTES[0]).first.wait_for()
        await visitor.check_harmless()
        _, session = await edge.post("/sessions", {"scenario_id": compiled["scenario_id"], "pov": "me"})
        await visitor.open(f"#/play/{session['session_id']}")
        await page.wait_for_selector(".action-button[aria-disabled=false]")
        await page.locator(".words textarea").fill(text[:2000])
        await page.keyboard.press("Enter")
        await page.locator("article.turn, .refused").first.wait_for()
        while not await page.locator(".ending").count():
            await page.get_by_role("button", name="Wait a turn").click()
            await page.wait_for_selector(".words .mode[aria-disabled=false], .ending")
        assert EXECUTES[0] in await page.locator(".ending").inner_text()
        await visitor.check_harmless()
        await visitor.open(f"#/inspect/{compiled['scenario_id']}")
        await page.wait_for_selector(".graph svg")
        await visitor.check_harmless()

"""The page in a browser: a game with a branch, a spectator, a broken connection, and the keyboard alone."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from support.repo.repository import ROOT
from support.servers.browser import CuttingProxy, visiting

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from support.servers.browser import Visitor
    from support.servers.edge import EdgeClient

pytestmark = [
    pytest.mark.asyncio(loop_scope="package"),
    pytest.mark.slow(reason="a browser"),
]

DESCRIPTION = "Alpha and beta share a small reserve, and it has to last until gamma arrives."


async def _begin(visitor: Visitor, description: str = DESCRIPTION) -> str:
    """Describe a situation, wait until it is written, begin, and return the id of the session."""
    page = visitor.page
    await visitor.open()
    await page.get_by_label("Description of the situation").fill(description)
    await page.get_by_role("button", name="Write the scenario").click()
    await page.get_by_role("button", name="Begin").click()
    await page.wait_for_selector(".action-button[aria-disabled=false]")
    return page.url.partition("#/play/")[2].partition("?")[0]


async def test_a_description_becomes_a_game_with_branches_and_a_spectator(
    browser: Browser, edge: EdgeClient
) -> None:
    async with visiting(browser, edge.url) as player, visiting(browser, edge.url) as guest:
        session_id = await _begin(player)
        page = player.page
        # The spectator sees the same game live, from the same point of view.
        await page.get_by_role("button", name="Share", exact=True).click()
        await page.get_by_role("button", name="Link to the point of view \u201cYou\u201d").click()
        link = await page.get_by_role("textbox", name="You", exact=True).input_value()
        await page.keyboard.press("Escape")
        await guest.open(link.removeprefix(f"{edge.url}/"))
        for turn in range(10):
            await player.act(turn % 2)
            if await page.locator(".ending").count():
                break
        _, session = await edge.get(f"/sessions/{session_id}")
        assert session["turn"] == await page.locator("article.turn").count() >= 3
        last = session["turn"]
        await guest.page.wait_for_selector(f"#turn-{last}:not(.open)")
        told = await page.locator(f"#turn-{last} .prose").inner_text()
        assert await guest.page.locator(f"#turn-{last} .prose").inner_text() == told
        assert await guest.page.locator(".action-button, .words").count() == 0
        # A question costs no turn.
        if not await page.locator(".ending").count():
            await page.get_by_role("button", name="Ask", exact=True).click()
            await page.get_by_label("Ask about the game").fill("what happened in turn 2?")
            await page.keyboard.press("Enter")
            await page.wait_for_selector(".answer a")
        # A branch leaves the game as it is; undo changes it, for the spectator as well.
        await page.locator("#turn-2").get_by_role("button", name="Branch").first.click()
        await page.wait_for_url(lambda url: session_id not in url)
        await page.wait_for_selector("#turn-2:not(.open)")
        assert await page.locator("article.turn").count() == 2
        await page.wait_for_selector(".branches a[aria-current=page]")
        await page.locator(".branches a").first.click()
        await page.wait_for_selector(f"#turn-{last}:not(.open)")
        await page.get_by_role("button", name="Undo", exact=True).click()
        await page.wait_for_selector(f"#turn-{last}", state="detached")
        await guest.page.wait_for_selector(f"#turn-{last}", state="detached")
        # The first view lists both games.
        await page.get_by_role("link", name="Peripety").click()
        await page.wait_for_selector(f".card-link[href='#/play/{session_id}']")
        assert await page.get_by_text("branch", exact=True).count() >= 1


async def test_a_table_of_two_seats_plays_in_turn(browser: Browser, edge: EdgeClient) -> None:
    spec = json.loads((ROOT / "examples" / "story.json").read_text(encoding="utf-8"))
    spec["id"] = "table"
    spec["entities"][1]["playable"] = True
    _, compiled = await edge.post("/scenarios/table/compile", spec)
    seats = [{"seat_id": "s1", "entity_id": "me"}, {"seat_id": "s2", "entity_id": "beta"}]
    body = {"scenario_id": compiled["scenario_id"], "seats": {"seats": seats, "order": "rotating"}}
    _, session = await edge.post("/sessions", body)
    async with (
        visiting(browser, edge.url) as owner,
        visiting(browser, edge.url) as one,
        visiting(browser, edge.url) as two,
    ):
        await owner.open(f"#/play/{session['session_id']}")
        await owner.page.get_by_text("It is the turn of You.").wait_for()
        await owner.page.get_by_role("button", name="Share", exact=True).click()
        for player, name in ((one, "You"), (two, "Beta")):
            await owner.page.get_by_role("button", name=f"Seat of {name}").click()
            link = await owner.page.get_by_role("textbox", name=name, exact=True).input_value()
            await player.open(link.removeprefix(f"{edge.url}/"))
        await two.page.get_by_text("It is the turn of You.").wait_for()
        assert await two.page.locator(".action-button, .words").count() == 0
        await one.page.get_by_role("button", name="Wait a turn").click()
        await two.page.get_by_role("button", name="Wait a turn").wait_for()
        await one.page.get_by_text("It is the turn of Beta.").wait_for()
        await two.page.get_by_role("button", name="Wait a turn").click()
        for player in (owner, one, two):
            await player.page.wait_for_selector("#turn-2:not(.open)")
        # No id is shown.
        for player in (owner, one, two):
            assert not {"s1", "s2"} & set((await player.page.locator("#main").inner_text()).split())


async def test_a_clue_appears_with_its_text_and_without_its_id(browser: Browser, edge: EdgeClient) -> None:
    spec = json.loads((ROOT / "examples" / "story.json").read_text(encoding="utf-8"))
    session_id = await edge.start_session(spec)
    for action in ({"action_id": "go", "params": {"to": "middle"}}, {"action_id": "read"}):
        body = {"actions": [action]}
        events = [event async for event in edge.events(f"/sessions/{session_id}/turns", body)]
        assert events[-1].name == "diff"
    async with visiting(browser, edge.url) as visitor:
        await visitor.open(f"#/play/{session_id}")
        clue = visitor.page.locator(".fact.clue")
        assert await clue.locator("dt").inner_text() == "Clue"
        assert (await clue.locator("dd").inner_text()).endswith("was the last to sign the list.")


async def test_the_keyboard_alone_plays_a_game(browser: Browser, edge: EdgeClient) -> None:
    async with visiting(browser, edge.url) as visitor:
        page = visitor.page
        await visitor.open()
        await _tab_to(visitor, "Description of the situation")
        await page.keyboard.type(DESCRIPTION)
        await page.keyboard.press("Control+Enter")
        await page.wait_for_selector(".begin-box button.primary:focus")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".action-button[aria-disabled=false]")
        await _tab_to(visitor, "Say what you do")
        await page.keyboard.type("I look around.")
        await page.keyboard.press("Enter")
        await visitor.wait_for_turn(1)
        name = await page.locator(".action:not(:has([aria-expanded])) .action-name").first.inner_text()
        await _tab_to(visitor, name)
        await page.keyboard.press("Enter")
        await visitor.wait_for_turn(2)
        # The focus stays with the actions, though their buttons have changed.
        await page.wait_for_selector(".action-button:focus")
        # The turn is read out once, as a whole.
        spoken = await page.locator("div.hidden[aria-live=polite]").inner_text()
        assert spoken.startswith("Turn 2.")


async def _tab_to(visitor: Visitor, name: str) -> None:
    """Press Tab until the element with a name has the focus."""
    focused = "(document.activeElement?.labels?.[0] ?? document.activeElement)?.innerText ?? ''"
    for _ in range(60):
        await visitor.page.keyboard.press("Tab")
        if name in await visitor.page.evaluate(focused):
            return
    raise AssertionError(name)


async def test_a_connection_that_breaks_anywhere_loses_and_repeats_nothing(
    browser: Browser, edge: EdgeClient
) -> None:
    async with visiting(browser, edge.url) as visitor:
        session_id = await _begin(visitor, "Gamma keeps a delta from running out.")
        for _ in range(3):
            await visitor.act()
        expected = await visitor.page.locator(".prose").all_inner_texts()
    drawn = random.Random(7)
    limits = [drawn.randrange(1, 4000) for _ in range(8)]
    proxy = CuttingProxy(int(edge.url.rpartition(":")[2]), limits)
    async with proxy.serving() as port, visiting(browser, f"http://127.0.0.1:{port}") as visitor:
        visitor.page.set_default_timeout(60_000)
        await visitor.open(f"#/play/{session_id}")
        await visitor.wait_for_turn(3)
        assert await visitor.page.locator(".prose").all_inner_texts() == expected
        await visitor.act()
        _, session = await edge.get(f"/sessions/{session_id}")
        assert session["turn"] == 4
        assert proxy.cuts >= 3
        visitor.complaints[:] = [one for one in visitor.complaints if "ERR_INCOMPLETE_CHUNKED" not in one]


async def test_text_that_streams_moves_nothing(browser: Browser, edge: EdgeClient) -> None:
    async with visiting(browser, edge.url) as visitor:
        await _begin(visitor)
        await visitor.page.evaluate(
            "window.moved = 0; new PerformanceObserver((list) => { for (const one of list.getEntries())"
            " if (!one.hadRecentInput) window.moved += one.value; }).observe({ type: 'layout-shift' })"
        )
        for _ in range(3):
            await visitor.act()
        assert await visitor.page.evaluate("window.moved") < 0.05

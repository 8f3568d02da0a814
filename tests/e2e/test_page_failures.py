"""The page against `peripety serve` with the scripted LLM, which fails in many ways."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.files import script_from_document
from peripety.llmsim.script.types import Fault
from support.engine.specs import playable
from support.llmsim.simulator import served
from support.servers.browser import running_browser, visiting
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.llmsim.simulator import Served
    from support.servers.browser import Visitor

pytestmark = pytest.mark.slow(reason="a browser and a server process")

EXECUTES = Path("tests/data/page/executes.txt").read_text(encoding="utf-8").splitlines()
HOSTILE = " ".join(EXECUTES) + " \u001b[31mred\u001b[0m \u202egnp.exe\u2066."
WORDS = "I read the sign aloud."
TOLD = "The level rises a little, and it is quiet again."
FAULTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rate_limit", {"retry_after": 0.1}),
    ("overloaded", {}),
    ("stream_cut", {"after_chunks": 2}),
    ("malformed_json", {}),
    ("html_error", {}),
    ("empty_body", {}),
    ("connection_reset", {}),
    ("error_in_200", {}),
)


def _answer(narrative: str) -> dict[str, Any]:
    return {"json": {"narrative": narrative, "state_changes": []}}


@asynccontextmanager
async def _page(tmp_path: Path, script: dict[str, Any]) -> AsyncIterator[tuple[Visitor, Served]]:
    with served(script_from_document(script)) as simulator:
        settings = {
            "MODEL_PROVIDER": "scripted",
            "SCRIPTED_API_BASE": simulator.url,
            "PERIPETY_BREAKER_FAILURES": "50",
        }
        with ServerProcess(tmp_path / "server", settings=settings) as server:
            assert server.process.stdout is not None
            url = server.process.stdout.readline().strip().rpartition(" ")[2].rstrip("/")
            async with running_browser() as browser, visiting(browser, url) as visitor:
                yield visitor, simulator
            assert server.stop() == 0
        assert "Traceback" not in server.log


async def _begin(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.open()
    await page.get_by_label("Description of the situation").fill("Alpha must not run out.")
    await page.get_by_role("button", name="Write the scenario").click()
    await page.get_by_role("button", name="Begin").click()
    await page.wait_for_selector(".action-button[aria-disabled=false]")


@pytest.mark.timeout(300)
async def test_a_game_goes_on_through_hostile_words_and_every_failure_of_the_model(tmp_path: Path) -> None:
    script = {
        "responses": [
            {"pattern": {"type": "any"}, "response": playable().decode(), "max_matches": 1},
            {"pattern": {"type": "contains", "text": WORDS}, "response": _answer(HOSTILE)},
            {"pattern": {"type": "any"}, "response": _answer(TOLD)},
        ]
    }
    async with _page(tmp_path, script) as (visitor, simulator):
        page = visitor.page
        await _begin(visitor)
        for turn, (kind, settings) in enumerate(FAULTS, 1):
            defaults = KINDS[kind].default_settings
            simulator.simulator.inject(Fault(kind, {**defaults, **settings}, 1))
            await visitor.act()
            told = await page.locator(f"#turn-{turn}").inner_text()
            # A whole answer after a repetition, or a text of the server with the reason.
            assert TOLD in told or "Told by the server" in told, kind
        assert await page.locator("article.turn").count() == len(FAULTS)
        # Every failure is in the capture log, which is live: a turn adds a call to it.
        await visitor.open("#/usage")
        await page.locator(".captured-call").first.wait_for()
        log = page.locator(".captured")
        for kind, _ in FAULTS:
            name = kind.replace("_", " ")
            await log.get_by_text(name, exact=True).first.wait_for()
        assert "Available" in await page.locator(".provider").inner_text()
        count = await page.locator(".captured-call").count()
        session = (await (await page.request.get(f"{visitor.url}/openapi.json")).json())["info"]["title"]
        assert session == "Peripety"
        await page.go_back()
        await page.wait_for_selector(".action-button[aria-disabled=false]")
        # No narration is executed.
        await page.locator(".words textarea").fill(WORDS)
        await page.keyboard.press("Enter")
        last = len(FAULTS) + 1
        await visitor.wait_for_turn(last)
        assert "window.executed" in await page.locator(f"#turn-{last}").inner_text()
        await visitor.check_harmless()
        await visitor.open("#/usage")
        await page.locator(".captured-call").nth(count).wait_for()
        for call in await page.locator(".captured-call", has_text="Answered").locator("summary").all():
            await call.click()
        await visitor.check_harmless()
        assert "window.executed" in await page.locator(".captured").inner_text()
        assert not await visitor.find_violations()

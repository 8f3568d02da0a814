"""First words on screen, memory of a server with followers, and scores of Lighthouse.

`make bench-page`, or `PYTHONPATH=tests python -m bench.page [LIGHTHOUSE]` with the folder of its package. It
prints figures and asserts none. It needs Chromium, and Node.js for Lighthouse.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from peripety.api.session.v1 import session_pb2 as pb
from peripety.core import logging_setup
from peripety.core.config import Config, LogLevel
from peripety.session.service import SessionServicer
from support.repo.repository import ROOT
from support.servers.browser import running_browser, visiting
from support.servers.edge import EdgeClient, serving_edge
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TURNS = 20
WATCHERS = 200
WATCHED_TURNS = 100
MEASURED_EVERY = 20
ROUNDS = 5
CATEGORIES = ("performance", "accessibility")
# Seconds since 1970 of the frame in which a turn has its first words. Both clocks are those of this machine.
RECORDER = """
window.firstWords = {};
new MutationObserver(() => {
  for (const turn of document.querySelectorAll("article.turn")) {
    const id = turn.id;
    if (id in window.firstWords || !turn.querySelector(".prose")?.textContent.trim()) continue;
    window.firstWords[id] = 0;
    requestAnimationFrame(() => {
      window.firstWords[id] = (performance.timeOrigin + performance.now()) / 1000;
    });
  }
}).observe(document, { childList: true, subtree: true, characterData: true });
"""


def _record_departures() -> dict[int, float]:
    """Record when the first words of each turn leave the session service, in seconds since 1970."""
    left: dict[int, float] = {}
    watch = SessionServicer.WatchSession

    async def recorded(
        self: SessionServicer, request: pb.WatchSessionRequest, context: Any
    ) -> AsyncIterator[bytes]:
        async for message in watch(self, request, context):
            event = pb.WatchSessionResponse.FromString(message).turn_event
            if event.WhichOneof("event") == "narrative_chunk":
                left.setdefault(event.turn, time.time())
            yield message

    SessionServicer.WatchSession = recorded  # type: ignore[assignment, method-assign]
    return left


async def _measure_first_words(edge: EdgeClient, session_id: str, left: dict[int, float]) -> list[float]:
    """Play turns in a browser, and return the milliseconds of the first words of each."""
    async with running_browser() as browser, visiting(browser, edge.url) as visitor:
        await visitor.page.add_init_script(RECORDER)
        await visitor.open(f"#/play/{session_id}")
        await visitor.page.wait_for_selector(".action-button[aria-disabled=false]")
        for turn in range(1, TURNS + 1):
            if await visitor.page.locator(".ending").count():
                break
            await visitor.act(turn % 2)
        seen: dict[str, float] = await visitor.page.evaluate("window.firstWords")
    turns = {int(name.removeprefix("turn-")): moment for name, moment in seen.items() if moment}
    return [(moment - left[turn]) * 1000 for turn, moment in turns.items() if turn in left]


def _long_spec() -> dict[str, Any]:
    """Return a specification that chance ends, as it must, and the watched turns do not."""
    spec: dict[str, Any] = json.loads((ROOT / "examples" / "scenario.json").read_text(encoding="utf-8"))
    for number, ending in enumerate(spec["loss_conditions"], 1):
        ending["when"] = {">=": [{"var": "state.progress"}, number]}
    return spec | {
        "win_conditions": [],
        "negativity_budget": {"min_fail_rate": 0.01, "max_fail_rate": 1},
        "horizon": 2 * WATCHED_TURNS,
    }


async def _measure_watchers(folder: Path) -> list[tuple[str, float]]:
    """Return the memory of a server in MiB while many readers follow a session turn by turn."""
    sizes: list[tuple[str, float]] = []
    with ServerProcess(folder) as server:
        assert server.process.stdout is not None
        url = server.process.stdout.readline().strip().rpartition(" ")[2].rstrip("/")
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            edge = EdgeClient(url, http)
            session_id = await edge.start_session(_long_spec())
            sizes.append(("at the start", _resident_mib(server)))
            arrived = asyncio.Semaphore(0)
            watchers = [asyncio.ensure_future(_watch(edge, session_id, arrived)) for _ in range(WATCHERS)]
            for turn in range(1, WATCHED_TURNS + 1):
                await _gather(edge, session_id)
                for _ in watchers:
                    await arrived.acquire()
                if turn == 1 or turn % MEASURED_EVERY == 0:
                    sizes.append((f"turn {turn}", _resident_mib(server)))
            for watcher in watchers:
                watcher.cancel()
            await asyncio.gather(*watchers, return_exceptions=True)
            await _gather(edge, session_id)
            sizes.append(("without them", _resident_mib(server)))
        server.stop()
    return sizes


async def _watch(edge: EdgeClient, session_id: str, arrived: asyncio.Semaphore) -> None:
    async for event in edge.events(f"/sessions/{session_id}/events", method="GET"):
        if event.name == "diff":
            arrived.release()


async def _gather(edge: EdgeClient, session_id: str) -> None:
    body = {"actions": [{"action_id": "gather"}]}
    names = [event.name async for event in edge.events(f"/sessions/{session_id}/turns", body)]
    assert names[-1] == "diff"


def _resident_mib(server: ServerProcess) -> float:
    status = Path(f"/proc/{server.process.pid}/statm").read_text(encoding="ascii")
    return int(status.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def _run_lighthouse(package: Path, url: str, folder: Path) -> dict[str, list[float]]:
    """Return the scores of each category, one for each round."""
    scores: dict[str, list[float]] = {name: [] for name in CATEGORIES}
    browser = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for number in range(ROUNDS):
        report = folder / f"{number}.json"
        process = await asyncio.create_subprocess_exec(
            "node",
            str(package / "cli" / "index.js"),
            url,
            "--quiet",
            "--output=json",
            f"--output-path={report}",
            f"--only-categories={','.join(CATEGORIES)}",
            "--chrome-flags=--headless=new --no-sandbox",
            env=os.environ | {"CHROME_PATH": browser},
        )
        if await process.wait():
            raise SystemExit("Lighthouse failed; its output is above")
        categories = json.loads(report.read_bytes())["categories"]
        for name in CATEGORIES:
            scores[name].append(categories[name]["score"] * 100)
    return scores


async def main(lighthouse: Path | None) -> None:
    """Measure and print."""
    logging_setup.configure(Config(log_level=LogLevel.ERROR))
    left = _record_departures()
    spec = json.loads((ROOT / "examples" / "scenario.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with serving_edge(folder) as edge:
            session_id = await edge.start_session(spec)
            milliseconds = await _measure_first_words(edge, session_id, left)
            sys.stdout.write(
                f"first words on screen after they left the session service, {len(milliseconds)} turns:"
                f" median {statistics.median(milliseconds):.0f} ms, maximum {max(milliseconds):.0f} ms"
                " (aim: 50 ms)\n"
            )
            sizes = await _measure_watchers(folder / "watched")
            text = ", ".join(f"{moment} {size:.0f}" for moment, size in sizes)
            sys.stdout.write(f"memory of the server with {WATCHERS} followers of a session, MiB: {text}\n")
            if lighthouse is None or not (lighthouse / "package.json").exists():
                sys.stdout.write("*** Lighthouse is not installed: no scores ***\n")
                return
            for view, path in (("first view", ""), ("game", f"#/play/{session_id}")):
                scores = await _run_lighthouse(lighthouse, f"{edge.url}/{path}", folder)
                for category, values in scores.items():
                    text = ", ".join(f"{value:.0f}" for value in values)
                    median = statistics.median(values)
                    sys.stdout.write(
                        f"Lighthouse, {view}, {category}: median {median:.0f} of {text} (aim: 95)\n"
                    )


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))

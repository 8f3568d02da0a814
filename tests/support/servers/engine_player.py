"""Programs of game engines that play one turn of an existing session, and what they have to print.

A program reads the address of the edge from `PERIPETY_URL`, the session from `PERIPETY_SESSION`, and the
action from `PERIPETY_ACTION`. It plays the action with the text `I listen.` and prints a line for each event:
`SEQUENCE NAME TEXT`, with the text as JSON. Then it prints `turn NUMBER STATUS CHAIN_HASH`, or for an error
`error CODE STATUS` and `violation FIELD` for each invalid field.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.repo.programs import run
from support.repo.repository import ROOT
from support.servers.misbehaving_proxy import MisbehavingProxy

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CUTS = 20
"""Number of cut offsets in a test."""


@dataclass(frozen=True)
class Edge:
    """Address of an edge, and the id of a compiled scenario."""

    url: str
    scenario_id: str

    def new_session(self) -> str:
        """Return the id of a new session. Every session begins with the same state."""
        made = post(self.url + "/sessions", {"scenario_id": self.scenario_id, "seed": 7})
        return str(made["session_id"])

    def read(self, path: str) -> Any:
        """Return a document."""
        with urllib.request.urlopen(self.url + path) as response:  # noqa: S310 - our own server
            return json.load(response)


def compiled_edge(url: str) -> Edge:
    """Compile the scenario of the samples."""
    spec = json.loads((ROOT / "clients" / "samples" / "scenario.json").read_bytes())
    return Edge(url, post(f"{url}/scenarios/{spec['id']}/compile", spec)["scenario_id"])


def post(url: str, body: Any) -> Any:
    """Return the answer to a document."""
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - our own server
    with urllib.request.urlopen(request) as response:  # noqa: S310
        return json.load(response)


@dataclass(frozen=True)
class EnginePlayer:
    """A program of an engine.

    Attributes:
        command: the program and its arguments.
        folder: the working directory.
        settings: further environment variables.
        received: bytes of the answers, or less; cuts are within them.
    """

    command: tuple[str | Path, ...]
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    received: int = 4000

    def play(self, url: str, session_id: str, action: str = "tend") -> list[str]:
        """Return the lines that the program prints, without those of the engine itself."""
        output = run(
            *self.command,
            folder=self.folder,
            PERIPETY_URL=url,
            PERIPETY_SESSION=session_id,
            PERIPETY_ACTION=action,
            **self.settings,
        )
        lines = [line.rstrip() for line in output.splitlines()]
        own = [line for line in lines if re.match(r"\d+ |turn |error |reason |violation ", line)]
        assert own, output
        return own

    async def check_cuts(self, edge: Edge) -> None:
        """Cut the connection at seeded offsets; each event of a good connection is counted once."""
        expected = self.play(edge.url, edge.new_session())
        assert [line.split()[1] for line in expected[:-1]] == [
            *("accepted", "action", "world", "narrative_chunk", "narrative_chunk", "diff")
        ], expected
        assert re.fullmatch(r"turn 1 ongoing [0-9a-f]{64}", expected[-1])
        assert json.loads(expected[3].split(maxsplit=2)[2]) == "There is only the wind."
        for fault, offset in _cuts(self.received):
            async with MisbehavingProxy(
                edge.url.removeprefix("http://"), has_frames=False
            ).listening() as proxy:
                session_id = edge.new_session()
                proxy.arm(fault, offset)
                lines = await asyncio.to_thread(self.play, f"http://{proxy.address}", session_id)
                assert counted(lines) == expected, (fault, offset)
                assert not proxy.is_armed, (fault, offset)
                assert edge.read(f"/sessions/{session_id}")["turn"] == 1

    def check_errors(self, edge: Edge) -> None:
        """An unknown session and an unknown action are errors with their reasons."""
        assert self.play(edge.url, "unknown")[0] == "error UNKNOWN_SESSION 404"
        lines = self.play(edge.url, edge.new_session(), "unknown")
        assert lines[0] == "error INVALID_ARGUMENT 400"
        assert lines[-1] == "violation actions[0].action_id"

    async def check_lost_server(self, edge: Edge) -> None:
        """A server that does not answer is an error without a reason."""
        async with MisbehavingProxy(edge.url.removeprefix("http://"), has_frames=False).listening() as gone:
            address = gone.address
        lines = await asyncio.to_thread(self.play, f"http://{address}", edge.new_session())
        assert lines[0].split() == ["error", "0"]


def counted(lines: list[str]) -> list[str]:
    """Return the lines of the attempt that counts: the last `accepted` and those after it."""
    starts = [index for index, line in enumerate(lines) if re.match(r"\d+ accepted\b", line)]
    return lines[starts[-1] :] if starts else lines


def _cuts(received: int) -> Iterable[tuple[str, int]]:
    random_offsets = random.Random(7)
    for number in range(CUTS):
        is_request = number % 5 == 0
        yield (
            "cut_request" if is_request else "cut",
            random_offsets.randrange(500 if is_request else received),
        )

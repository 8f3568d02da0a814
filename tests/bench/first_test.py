"""Latency of a generated test from the model's socket to a gRPC client.

`PYTHONPATH=tests python -m bench.first_test`: a real HTTP server writes tests as calls of a tool, each in
pieces, and records when the last byte of each has left; a client records when the test arrives. In between,
the test is parsed, compared with the others, and written to the database. A run before warms the server up.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench.serving import serving
from peripety.api.testgen.v1 import testgen_pb2 as pb
from support.gateway.fake_server import DONE, Reply, Request, finish
from support.servers.apps import new_id
from support.testgen.fake_run import TestRuns

if TYPE_CHECKING:
    from collections.abc import Sequence


LIMIT_MS = 5.0
_PAUSE_SECONDS = 0.05
_PIECES = 8


@dataclass(frozen=True)
class Figures:
    """Milliseconds from the last byte of a test at the model to the test at the client.

    Attributes:
        first: those of the first test of each run.
        all: those of every test.
    """

    first: Sequence[float]
    all: Sequence[float]

    @property
    def median_first(self) -> float:
        """Return the median latency of the first test of a run."""
        return statistics.median(self.first)

    @property
    def holds(self) -> bool:
        """Return True if the median is within the limit."""
        return self.median_first <= LIMIT_MS


@dataclass
class Writer:
    """A model that writes some tests in each answer, a piece at a time."""

    tests: int
    left: list[float] = field(default_factory=list)

    async def answer(self, request: Request, reply: Reply) -> None:
        asked = json.loads(request.body["messages"][-1]["content"])
        await reply.start()
        for number in range(self.tests if asked.get("question") == "tests" else 0):
            await asyncio.sleep(_PAUSE_SECONDS)
            given = f"{asked['category']} {asked['round']} {number} " + "some words " * number
            test = {"id": f"t{number}", "input": given, "expected_output": "so", "reasoning": "why"}
            text = json.dumps({**test, "confidence": 0.9})
            size = -(-len(text) // _PIECES)
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            for piece in pieces[:-1]:
                await reply.send(_call(number, piece, is_first=piece is pieces[0]))
                await asyncio.sleep(0)
            self.left.append(time.perf_counter())
            await reply.send(_call(number, pieces[-1]))
        await asyncio.sleep(_PAUSE_SECONDS)
        await reply.send(finish() + DONE)
        await reply.end()


async def measured(runs: int = 10, tests: int = 4) -> Figures:
    """Measure some runs, each of one answer with some tests."""
    first: list[float] = []
    every: list[float] = []
    writer = Writer(tests)
    async with serving(writer.answer) as address, TestRuns.connected(address) as client:
        await _arrived(client, 0)
        for number in range(1, runs + 1):
            writer.left.clear()
            arrived = await _arrived(client, number)
            gaps = [(end - start) * 1000 for start, end in zip(writer.left, arrived, strict=True)]
            first.append(gaps[0])
            every += gaps
    return Figures(first, every)


def measure(runs: int = 10) -> Figures:
    """Measure synchronously, for callers without an event loop."""
    return asyncio.run(measured(runs))


def report(figures: Figures) -> str:
    """Lines of figures, and how busy the machine was meanwhile."""
    lines = _line("first test of a run", figures.first), _line("any test", figures.all)
    return f"{''.join(lines)}load of the machine: {os.getloadavg()[0]:.1f}, on {os.cpu_count()} cores\n"


def main() -> None:
    """Measure and print the figures."""
    sys.stdout.write("\nlast byte of a test at the model to the test at the client\n" + report(measure()))


async def _arrived(client: TestRuns, number: int) -> list[float]:
    """When each test of a run arrives."""
    request = pb.GenerateTestsRequest(
        request_id=new_id(),
        task_description=f"work number {number}",
        config=pb.TestGenConfig(max_total_rounds=1, enable_global_refinement=False),
    )
    responses = client.stub.GenerateTests(request)
    return [time.perf_counter() async for response in responses if response.event.HasField("test")]


def _call(number: int, text: str, *, is_first: bool = False) -> bytes:
    """A piece of a call of the tool."""
    called: dict[str, Any] = {"index": number, "function": {"arguments": text}}
    if is_first:
        called |= {"id": f"call_{number}", "type": "function"}
        called["function"]["name"] = "generate_test"
    choice = {"index": 0, "delta": {"tool_calls": [called]}}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def _line(name: str, gaps: Sequence[float]) -> str:
    least, middle, most = min(gaps), statistics.median(gaps), max(gaps)
    return (
        f"{name:<22} least {least:6.2f} ms   median {middle:6.2f} ms   worst of {len(gaps)} {most:6.2f} ms\n"
    )


if __name__ == "__main__":
    main()

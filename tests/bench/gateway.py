"""Benchmark of this gateway and others: added latency, throughput and memory.

`make bench-gateway` and `make soak-gateway`. All run in front of the same provider, which answers at once
(`bench.instant`). The same client (`bench.dialogue`) sends them the same questions in turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench import gateway_sides
from bench.dialogue import Heard, converse
from bench.gateway_sides import Question
from bench.instant import answering_at_once
from bench.load import cpu_seconds

if TYPE_CHECKING:
    from bench.gateway_sides import Side

IN_FLIGHT = (1, 32)
ROUNDS = 3
SOAK_IN_FLIGHT = 32
SHORT_SOAK = 5_000
MIB = 1024 * 1024


@dataclass(frozen=True)
class Task:
    """A workload of the benchmark.

    Attributes:
        name: its title.
        question: length and form of the answer.
        requests: maximum number of requests of a round.
        each: maximum number of requests of each connection.
    """

    name: str
    question: Question
    requests: int
    each: int


ASK = Task("an answer of one token", Question(1), 320, 320)
TASKS = (
    ASK,
    Task("a stream of 100 tokens, written at once", Question(100, stream=True), 64, 64),
    Task("a stream of 100 tokens, one every 2 ms", Question(100, stream=True, slowly=True), 64, 16),
)


@dataclass
class Figures:
    """Of one side under one load: all waits, and the best round."""

    waits: list[float] = field(default_factory=list)
    requests_per_second: float = 0.0
    cpu: float = float("inf")
    hung_up: int = 0

    def add(self, heard: Heard, cpu: float) -> None:
        """Count a round in."""
        self.waits += heard.waits
        self.hung_up += heard.hung_up
        self.requests_per_second = max(self.requests_per_second, len(heard.waits) / heard.seconds)
        self.cpu = min(self.cpu, cpu / len(heard.waits))

    def wait(self, share: float) -> float:
        """Milliseconds that so large a share of the answers took at most."""
        return sorted(self.waits)[int((len(self.waits) - 1) * share)] * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--litellm", type=Path, help="LiteLLM's program")
    parser.add_argument("--soak", type=int, metavar="REQUESTS", help="only soak this gateway")
    arguments = parser.parse_args()
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        provider, port = opened.enter_context(answering_at_once())
        sides = [opened.enter_context(gateway_sides.peripety(folder, port))]
        if arguments.soak is not None:
            _report_held(sides)
            _soak(sides[0], arguments.soak)
            return
        sides += _others(opened, arguments.litellm, folder, port)
        _report_held(sides)
        compared = [gateway_sides.direct(provider, port), *sides]
        for task in TASKS:
            for in_flight in IN_FLIGHT:
                _report(task, in_flight, _compare(compared, task, in_flight))
        sys.stdout.write("\n")
        for side in sides:
            _soak(side, SHORT_SOAK)


def _report_held(sides: list[Side]) -> None:
    held = ", ".join(f"{side.name} {side.resident / MIB:.1f} MiB" for side in sides)
    sys.stdout.write(f"\nmemory held when it has started: {held}\n")


def _others(opened: ExitStack, litellm: Path | None, folder: Path, port: int) -> list[Side]:
    sides = []
    if litellm is not None and litellm.exists():
        sides.append(opened.enter_context(gateway_sides.litellm(litellm.absolute(), folder, port)))
    else:
        sys.stdout.write("\n*** LiteLLM is not installed: not compared ***\n")
    bifrost = gateway_sides.found("bifrost-http")
    if bifrost is not None:
        sides.append(opened.enter_context(gateway_sides.bifrost(bifrost, folder, port)))
    else:
        sys.stdout.write("\n*** bifrost-http is not on PATH: not compared ***\n")
    return sides


def _compare(sides: list[Side], task: Task, in_flight: int) -> dict[str, Figures]:
    figures = {side.name: Figures() for side in sides}
    requests = min(task.requests, task.each * in_flight) + in_flight
    for _ in range(ROUNDS):
        for side in sides:
            figures[side.name].add(*_measured(side, task.question, in_flight, requests))
    return figures


def _measured(side: Side, question: Question, in_flight: int, requests: int) -> tuple[Heard, float]:
    questions = [side.ask(number, question) for number in range(requests)]
    before = cpu_seconds(side.pid)
    heard = converse(side.port, side.speaker, in_flight, questions, question.tokens)
    return heard, cpu_seconds(side.pid) - before


def _report(task: Task, in_flight: int, figures: dict[str, Figures]) -> None:
    sys.stdout.write(f"\n{task.name}, {in_flight} in flight\n")
    floor = figures["direct"]
    for name, found in figures.items():
        added = "".join(f"  added p{share} {_added(found, floor, share):8.2f} ms" for share in (50, 99))
        per_second = found.requests_per_second
        sys.stdout.write(
            f"  {name:<9}{added}  {per_second:7,.0f} requests/s"
            f"  {per_second * task.question.tokens:9,.0f} deltas/s  CPU {found.cpu * 1e3:6.2f} ms a request"
            f"{f'  hung up {found.hung_up} times' if found.hung_up else ''}\n",
        )


def _added(found: Figures, floor: Figures, percent: int) -> float:
    return found.wait(percent / 100) - floor.wait(percent / 100)


def _soak(side: Side, requests: int) -> None:
    """Send many requests, and print the memory in use after each tenth of them."""
    held = []
    for _ in range(10):
        _measured(side, ASK.question, SOAK_IN_FLIGHT, requests // 10)
        held.append(side.resident)
    told = " ".join(f"{each / MIB:.1f}" for each in held)
    growth = held[-1] / held[0] - 1
    sys.stdout.write(
        f"{side.name}, {requests:,} requests: {told} MiB after each tenth, {growth:+.2%} since the first\n",
    )


if __name__ == "__main__":
    main()

"""Benchmark of the scripted LLM and aimock, its best-known peer: requests, CPU time, and pace of streams.

`make bench-simulator`, or `PYTHONPATH=tests python -m bench.simulator [AIMOCK]` with its folder. Both
serve the same rules. The same client sends both the same questions, in turns; the best round counts.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.load import TOKEN, ask, cpu_seconds, question, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RULES = (10, 10_000)
REQUESTS = 1_000
ROUNDS = 15
CONNECTIONS = 16
TOKENS = 300
PER_SECOND = 100
STREAMS = (1, 100)


@dataclass(frozen=True)
class Server:
    """A server under way."""

    pid: int
    port: int


@dataclass(frozen=True)
class Cost:
    """Cost of a request: wall time including the client, and CPU time of the server."""

    per_second: float
    microseconds: float


def main(aimock: Path | None) -> None:
    """Measure and print."""
    sides: dict[str, Callable[[Path, int], list[str]]] = {"peripety": _peripety}
    if aimock is not None and (aimock / "package.json").exists():
        sides["aimock"] = lambda folder, rules: _aimock(aimock, folder, rules)
    else:
        sys.stdout.write("\n*** aimock is not installed: there is nothing to compare with ***\n")
    with tempfile.TemporaryDirectory() as folder:
        for rules in RULES:
            with _serving(sides, Path(folder), rules) as servers:
                _report_costs(rules, _costs(servers, rules))
        with _serving(sides, Path(folder), RULES[0]) as servers:
            for streams in STREAMS:
                for name, server in servers.items():
                    _report_pace(name, streams, server)


# ---- the servers


@contextmanager
def _serving(
    sides: dict[str, Callable[[Path, int], list[str]]],
    folder: Path,
    rules: int,
) -> Iterator[dict[str, Server]]:
    processes = {
        name: subprocess.Popen(command(folder, rules), stdout=subprocess.PIPE, text=True)
        for name, command in sides.items()
    }
    try:
        yield {name: Server(process.pid, _port(process)) for name, process in processes.items()}
    finally:
        for process in processes.values():
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)


def _port(process: subprocess.Popen[str]) -> int:
    """Wait for the line that names the address."""
    assert process.stdout is not None
    for line in process.stdout:
        if "127.0.0.1:" in line:
            return int(line.rpartition(":")[2].split()[0].strip("/"))
    raise RuntimeError("a server ended without listening")


def _prompt(number: int) -> str:
    return f"topic-{number:05d};"


def _answer(number: int) -> str:
    return f"This is what there is to say about topic {number}, in about as many words as usual."


TIMED = "count the time"


def _peripety(folder: Path, rules: int) -> list[str]:
    responses: list[dict[str, object]] = [
        {"pattern": {"type": "contains", "text": _prompt(number)}, "response": _answer(number)}
        for number in range(rules - 1)
    ]
    pace = {"tokens_per_second": PER_SECOND}
    timed = {"text": str(TOKEN, "ascii") * TOKENS, "pace": pace}
    responses.append({"pattern": {"type": "contains", "text": TIMED}, "response": timed})
    file = folder / f"scenario-{rules}.json"
    file.write_text(json.dumps({"responses": responses}), encoding="utf-8")
    return [sys.executable, "-m", "peripety", "simulate", "--script", str(file)]


def _aimock(installed: Path, folder: Path, rules: int) -> list[str]:
    fixtures: list[dict[str, object]] = [
        {"match": {"userMessage": _prompt(number)}, "response": {"content": _answer(number)}}
        for number in range(rules - 1)
    ]
    fixtures.append(
        {
            "match": {"userMessage": TIMED},
            "response": {"content": str(TOKEN, "ascii") * TOKENS},
            "chunkSize": len(TOKEN),
            "streamingProfile": {"ttft": 0, "tps": PER_SECOND},
        },
    )
    file = folder / f"fixtures-{rules}.json"
    file.write_text(json.dumps({"fixtures": fixtures}), encoding="utf-8")
    cli = installed / "dist" / "cli.js"
    return ["node", str(cli), "--port", "0", "--fixtures", str(file)]


# ---- what a request costs


def _costs(servers: dict[str, Server], rules: int) -> dict[str, Cost]:
    best = dict.fromkeys(servers, Cost(0, float("inf")))
    for _ in range(ROUNDS):
        for name, server in servers.items():
            numbers = (index * 7919 % (rules - 1) for index in range(REQUESTS))
            questions = [question(server.port, _prompt(number)) for number in numbers]
            before = cpu_seconds(server.pid)
            seconds = ask(server.port, questions, CONNECTIONS)
            spent = (cpu_seconds(server.pid) - before) / REQUESTS * 1e6
            best[name] = Cost(
                max(best[name].per_second, REQUESTS / seconds),
                min(best[name].microseconds, spent),
            )
    return best


def _report_costs(rules: int, costs: dict[str, Cost]) -> None:
    sys.stdout.write(f"\n{rules:,} rules, {CONNECTIONS} connections\n")
    for name, cost in costs.items():
        figures = f"{cost.per_second:8,.0f} requests/s   {cost.microseconds:7.0f} us of CPU a request"
        sys.stdout.write(f"  {name:<10} {figures}\n")
    if len(costs) > 1:
        ours, theirs = costs.values()
        sys.stdout.write(f"  aimock / peripety in CPU time: {theirs.microseconds / ours.microseconds:.2f}\n")


# ---- pace of streams


def _report_pace(name: str, streams: int, server: Server) -> None:
    request = question(server.port, TIMED, stream=True)
    before = cpu_seconds(server.pid)
    ended = asyncio.run(stream(server.port, request, streams))
    spent = cpu_seconds(server.pid) - before
    wanted = (TOKENS - 1) / PER_SECOND
    drifts = sorted(one.seconds / wanted - 1 for one in ended)
    per_token = spent / streams / TOKENS * 1e6
    sys.stdout.write(
        f"\n{name}, {streams} streams of {TOKENS} tokens at {PER_SECOND}/s:"
        f" drift {drifts[0]:+.2%} to {drifts[-1]:+.2%}, {per_token:.0f} us of CPU a token\n",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)

"""Batches: specifications a second, beside validators of schemas alone, in process and over loopback.

`make bench-batch`, or `PYTHONPATH=tests python -m bench.batch [ITEMS]`. What is compared takes turns in one
run; the best round counts.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import jsonschema
import jsonschema_rs

from peripety import engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.certification.options import DryRunOptions
from peripety.client import AsyncClient
from peripety.engine.schemas import SCENARIO_SPEC, schema_document
from peripety.scenario import batch
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.scenario.types import ValidationLevel
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence


SEED = 7
ITEMS = 10_000
TOGETHER = 64
ROUNDS = 3
SLOW_ITEMS = 200
RUNS, TURNS = 200, 30

STATIC = batch.BatchOptions()
DICE = batch.BatchOptions(ValidationLevel.DRY_RUN, DryRunOptions(max_runs=RUNS, horizon=TURNS))
STATIC_ASKED = pb.ValidationOptions(level=pb.VALIDATION_LEVEL_STATIC)
DICE_ASKED = pb.ValidationOptions(
    level=pb.VALIDATION_LEVEL_DRY_RUN,
    dry_run=pb.DryRunOptions(max_runs=RUNS, horizon=TURNS),
)

Specs = list[bytes]


def main(items: int) -> None:
    """Measure and print."""
    say(f"{items} random specifications, {engine.BACKEND} core, {os.cpu_count()} cores, {_load()}")
    specs = [generate_spec(SEED, index) for index in range(items)]
    say(f"median size {median(map(len, specs)):.0f} bytes")
    _checks(specs)
    _batches(specs)
    say(_load())


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


def _checks(specs: Specs) -> None:
    """All checks from bytes, beside the schema alone on what is parsed already."""
    parsed = [json.loads(spec) for spec in specs]
    schema = schema_document(SCENARIO_SPEC)
    slow, quick = jsonschema.Draft202012Validator(schema), jsonschema_rs.validator_for(dict(schema))
    sides: dict[str, tuple[Callable[[], Any], int]] = {
        "jsonschema, schema alone, parsed": (
            lambda: [slow.is_valid(value) for value in parsed[:SLOW_ITEMS]],
            min(SLOW_ITEMS, len(specs)),
        ),
        "jsonschema-rs, schema alone, parsed": (
            lambda: [quick.is_valid(value) for value in parsed],
            len(specs),
        ),
        "all checks, from bytes": (partial(_check_all, specs, 1), len(specs)),
        "the same on two threads": (partial(_check_all, specs, 2), len(specs)),
        "all checks and compiling": (partial(_compile_all, specs, 1), len(specs)),
        "checks and compiling on two threads": (partial(_compile_all, specs, 2), len(specs)),
    }
    best = dict.fromkeys(sides, (float("inf"), float("inf")))
    for _ in range(ROUNDS):
        for name, (work, number) in sides.items():
            best[name] = min(best[name], _microseconds(work, number))
    ours = best["all checks, from bytes"][1]
    say(f"\n{'microseconds a specification':40}  {'wall':>8}  {'CPU':>8}  {'CPU ÷ ours':>10}")
    for name, (wall, cpu) in best.items():
        say(f"  {name:38}  {wall:8.1f}  {cpu:8.1f}  {cpu / ours:9.2f}x")


def _compile_all(specs: Specs, threads: int) -> None:
    parts = [specs[first : first + TOGETHER] for first in range(0, len(specs), TOGETHER)]
    with ThreadPoolExecutor(threads) as pool:
        deque(pool.map(_compile_each, parts), maxlen=0)


def _compile_each(specs: Specs) -> None:
    for checked in engine.validate_many(specs, threads=1):
        if checked.program is not None:
            checked.program._backend_program.new_state(0)  # programs are compiled when they are first played


def _check_all(specs: Specs, threads: int) -> None:
    for first in range(0, len(specs), TOGETHER):
        engine.validate_many(specs[first : first + TOGETHER], threads)


def _microseconds(work: Callable[[], Any], number: int) -> tuple[float, float]:
    """Time on the wall and CPU time of one of so many."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - wall) * 1e6 / number, (time.process_time() - cpu) * 1e6 / number


def _batches(specs: Specs) -> None:
    """Batches in process and through a server, on the wall."""
    with tempfile.TemporaryDirectory() as home, ServerProcess(Path(home)) as server:
        ask = partial(_asked, server.address, specs)
        sides: dict[str, Callable[[], int]] = {
            f"{RUNS} runs of {TURNS} turns each, no verdict": partial(_play_all, specs),
            "level dry-run in process": partial(_validated, specs, DICE),
            "level dry-run over gRPC, packed": partial(ask, AsyncClient.validate, DICE_ASKED),
            "level dry-run over gRPC, one a message": partial(ask, _one_by_one, DICE_ASKED),
            "level static in process": partial(_validated, specs, STATIC),
            "level static over gRPC, packed": partial(ask, AsyncClient.validate, STATIC_ASKED),
            "level static over gRPC, one a message": partial(ask, _one_by_one, STATIC_ASKED),
        }
        rates, runs = dict.fromkeys(sides, 0.0), dict.fromkeys(sides, 0.0)
        for _ in range(ROUNDS):
            for name, work in sides.items():
                started = time.perf_counter()
                runs[name] = work() / len(specs)
                rates[name] = max(rates[name], len(specs) / (time.perf_counter() - started))
    say(f"\n{'batches':40}  {'specs/s':>8}  {'of in process':>13}  {'runs each':>9}")
    for name, rate in rates.items():
        level, _, is_remote = name.partition(" over")
        share = f"{rate / rates[f'{level} in process']:.0%}" if is_remote else ""
        say(f"  {name:38}  {rate:8,.0f}  {share:>13}  {runs[name]:9.1f}")


def _play_all(specs: Specs) -> int:
    """Check every specification and play so many runs of each, whatever they show."""

    def play(some: Sequence[bytes]) -> int:
        programs = [checked.program for checked in engine.validate_many(some, threads=1)]
        reports = [p.dry_run(runs=RUNS, horizon=TURNS, threads=1) for p in programs if p is not None]
        return sum(report.runs for report in reports)

    parts = [specs[first : first + TOGETHER] for first in range(0, len(specs), TOGETHER)]
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(play, parts))


def _validated(specs: Specs, options: batch.BatchOptions) -> int:
    found = batch.validate(enumerate(specs), options)
    return sum(verdict.dry_run.runs for _, verdict in found if verdict.dry_run)


def _asked(
    address: str,
    specs: Specs,
    how: Callable[..., AsyncIterator[pb.SpecVerdict]],
    options: pb.ValidationOptions,
) -> int:
    async def all_runs() -> int:
        documents = ((str(index), spec) for index, spec in enumerate(specs))
        async with AsyncClient(address) as client:
            runs = [verdict.dry_run.runs async for verdict in how(client, documents, options)]
        assert len(runs) == len(specs)
        return sum(runs)

    return asyncio.run(all_runs())


async def _one_by_one(
    client: AsyncClient,
    documents: Any,
    options: pb.ValidationOptions,
) -> AsyncIterator[pb.SpecVerdict]:
    """Validate each document with a call of its own, without batching."""

    async def requests() -> AsyncIterator[pb.ValidateScenariosRequest]:
        for item_id, spec in documents:
            item = pb.SpecItem(item_id=item_id, spec=spec)
            yield pb.ValidateScenariosRequest(options=options, items=[item])

    async for response in client.scenarios.ValidateScenarios(requests()):
        for verdict in response.verdicts:
            yield verdict


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ITEMS)

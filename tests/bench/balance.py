"""Benchmark of the balancer: share of random specifications that reach the target rate, and the time.

`PYTHONPATH=tests python -m bench.balance` requests 30 to 40 % for a hundred of them, and counts those whose
rate lies within 2 points of that over 10,000 unseen runs.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.certification.options import DryRunOptions
from peripety.core.concurrency import WorkerPool
from peripety.scenario.balance.balancer import BalanceOrder, Balancer, BalanceReached, BalanceTarget
from peripety.scenario.spec_generator.generator import generate_spec

if TYPE_CHECKING:
    from peripety.engine import Persona


_TOLERANCE = 0.02
_CHECKING_RUNS = 10_000
_UNSEEN_RUN = 2**45


async def balanced(order: BalanceOrder, workers: WorkerPool) -> Any:
    """Return the last event of balancing."""
    return [event async for event in Balancer(workers).balance(order)][-1]


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> None:
    """Balance, check and count."""
    parser = argparse.ArgumentParser(description="Balance random specifications.")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", type=float, nargs=2, default=(30, 40), metavar=("LOW", "HIGH"))
    parser.add_argument("--persona", choices=engine.PERSONAS, default="random")
    given = parser.parse_args()
    target = BalanceTarget(given.target[0] / 100, given.target[1] / 100)
    persona: Persona = given.persona
    workers = WorkerPool()
    within, seconds, moved = 0, [], []
    for index in range(given.count):
        document = generate_spec(given.seed, index)
        started = time.perf_counter()
        order = BalanceOrder(document, target, DryRunOptions(persona, max_runs=_CHECKING_RUNS))
        found = asyncio.run(balanced(order, workers))
        seconds.append(time.perf_counter() - started)
        if isinstance(found, BalanceReached):
            program = engine.compile(found.document)
            fresh = program.dry_run(runs=_CHECKING_RUNS, first_run=_UNSEEN_RUN, persona=persona)
            within += target.min_rate - _TOLERANCE <= fresh.fail_rate <= target.max_rate + _TOLERANCE
            moved.append(len(found.edits))
        else:
            _tell(f"{index}: {found.findings[0].message}")
    workers.close()
    _tell(f"core {engine.BACKEND}, persona {persona}, target {target}, seed {given.seed}")
    _tell(f"within 2 points over {_CHECKING_RUNS} fresh runs: {within} of {given.count}")
    deciles = statistics.quantiles(seconds, n=10)
    _tell(f"seconds: median {statistics.median(seconds):.2f}, p90 {deciles[-1]:.2f}, most {max(seconds):.2f}")
    if moved:
        _tell(f"numbers moved: median {statistics.median(moved):g}, most {max(moved)}")


if __name__ == "__main__":
    main()

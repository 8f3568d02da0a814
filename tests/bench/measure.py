"""CPU time of things that take turns, and where figures stay until `bench.table` prints them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    # Does something so many times; how many units of it that was.
    Work = Callable[[int], int]

__all__ = ["RESULTS", "best", "keep"]

RESULTS = Path(os.environ.get("PERIPETY_BENCH_RESULTS", "build/bench"))
_SECONDS = 0.1
_ROUNDS = 7


def best(sides: Mapping[str, Work], clock: Callable[[], float] = time.process_time) -> dict[str, float]:
    """Nanoseconds for a unit of each side's work: the best of several rounds in which the sides take turns.

    Args:
        sides: what each does. A unit is what they have in common, such as a turn.
        clock: CPU time of the process, all its threads included, unless another is given.
    """
    times = {name: _enough(work, clock) for name, work in sides.items()}
    figures = dict.fromkeys(sides, float("inf"))
    for _ in range(_ROUNDS):
        for name, work in sides.items():
            figures[name] = min(figures[name], _measured(work, times[name], clock)[0])
    return figures


def _enough(work: Work, clock: Callable[[], float]) -> int:
    """Return the number of runs that last about as long as one measurement should, in whole blocks."""
    times = 1
    while True:
        _, seconds = _measured(work, times, clock)
        wanted = times * _SECONDS / max(seconds, 1e-7)
        if wanted < 2 * times:
            return times
        times = int(min(wanted, times * 64) / 64 + 1) * 64 if wanted > 64 else int(wanted)


def _measured(work: Work, times: int, clock: Callable[[], float]) -> tuple[float, float]:
    """Nanoseconds for a unit, and seconds in all."""
    started = clock()
    units = work(times)
    seconds = clock() - started
    return seconds * 1e9 / units, seconds


def keep(section: str, **figures: Any) -> None:
    """Note a row of a section of the table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "python.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"section": section, **figures}) + "\n")

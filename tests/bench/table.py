"""All figures of `make bench` in one table, in CPU time and as ratios; what was not measured is not there.

`PYTHONPATH=tests python -m bench.table`, after the benchmarks in Python and in Rust have left their figures.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measure import RESULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

CRITERION = Path("simcore/benches/target/baseline/criterion")
# By build of the loop, the instructions for the engine, the first of them that this processor has.
TARGETS = {"baseline": ("baseline",), "avx2": ("avx2",), "native": ("avx512", "avx2", "baseline")}
WANTED = {"baseline": 1.0, "avx2": 1.5, "avx512": 2.5}

Row = dict[str, Any]
Cells = list[str]


def main() -> None:
    """Print the table."""
    sys.stdout.write(f"\n{_machine()}\n")
    kept = _rows("python")
    for title, head, rows in _sections(kept):
        lines = [head, *rows]
        if rows:
            widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
            sys.stdout.write(f"\n{title}\n")
            for line in lines:
                cells = [line[0].ljust(widths[0]), *(map(str.rjust, line[1:], widths[1:]))]
                sys.stdout.write(f"  {'  '.join(cells)}\n")


def _sections(kept: list[Row]) -> Iterator[tuple[str, Cells, list[Cells]]]:
    def section(name: str, cells: Callable[[Row], Cells]) -> list[Cells]:
        return [[row["scenario"], *cells(row)] for row in kept if row["section"] == name]

    yield (
        "dry-run from Python on one thread, CPU time of a turn",
        ["scenario", "naive", "compiled", "native", "naive/compiled", "naive/native"],
        section("dry-run", _players),
    )
    yield (
        "dry-run in Rust beside a loop written by hand, CPU time of a turn",
        ["scenario", "loop built for (engine held to)", "loop", "engine", "loop/engine", "wanted"],
        list(_limits()),
    )
    yield (
        "instructions of a turn, both built for the baseline",
        ["scenario", "loop", "engine", "loop/engine"],
        list(_instructions()),
    )
    yield (
        "10,000 futures of at most 30 turns from turn 20 on, CPU time; on two threads, time on the wall",
        ["scenario", "python", "interpreter", "native", "interpreter/native", "two threads", "load"],
        section("futures", _futures),
    )
    yield (
        "live turn from Python: act, step, hash",
        ["scenario", "python", "native", "python/native"],
        section("live turn", lambda row: [*_times(row, "python", "native"), _ratio(row, "python", "native")]),
    )
    yield (
        "two threads, time on the wall of a turn",
        ["scenario", "one", "two", "one/two", "in CPU time", "load"],
        section("threads", _threads),
    )
    logic = [row for row in kept if row["section"] == "JSONLogic"]
    names = list(dict.fromkeys(name for row in logic for name in row if name not in {"section", "scenario"}))
    yield (
        "JSONLogic from Python: one expression, compiled where possible, CPU time",
        ["expression", *names],
        section("JSONLogic", lambda row: _times(row, *names)),
    )
    yield (
        "the first of many rules that matches a prompt, from Python, CPU time",
        ["rules and prompts", "python", "native", "python/native"],
        section("matching", lambda row: [*_times(row, "python", "native"), _ratio(row, "python", "native")]),
    )
    yield "in Rust (criterion), CPU time", ["what", "median"], list(_criterion())


def _players(row: Row) -> Cells:
    return [
        *_times(row, "naive", "compiled", "native"),
        _ratio(row, "naive", "compiled"),
        _ratio(row, "naive", "native"),
    ]


def _futures(row: Row) -> Cells:
    times = _times(row, "python", "interpreter", "native")
    return [*times, _ratio(row, "interpreter", "native"), *_times(row, "two"), str(row["load"])]


def _threads(row: Row) -> Cells:
    return [*_times(row, "1", "2"), _ratio(row, "1", "2"), f"{row['cpu']:.2f}x", str(row["load"])]


def _limits() -> Iterator[Cells]:
    engines = _least(_rows("limit-baseline") or _rows("limit-native"))
    for build, instructions in TARGETS.items():
        for scenario, row in _least(_rows(f"limit-{build}")).items():
            engine = engines.get(scenario, {})
            isa = next((isa for isa in instructions if isa in engine), None)
            if isa:
                both = {"loop": row["hand"], "engine": engine[isa]}
                least = WANTED[isa] if scenario == "numeric" else 0.4
                times = _times(both, "loop", "engine")
                yield [scenario, f"{build} ({isa})", *times, _ratio(both, "loop", "engine"), f"{least}x"]


def _least(rows: Iterable[Row]) -> dict[str, Row]:
    """The best figures of each scenario over all passes."""
    least: dict[str, Row] = {}
    for row in rows:
        best = least.setdefault(row.pop("scenario"), row)
        best.update({name: min(best[name], value) for name, value in row.items()})
    return least


def _instructions() -> Iterator[Cells]:
    counts: dict[str, dict[str, float]] = {}
    for row in _rows("instructions"):
        counts.setdefault(row["scenario"], {})[row["side"]] = row["instructions"]
    for scenario, sides in counts.items():
        figures = [f"{sides[side]:.0f}" for side in ("hand", "baseline")]
        yield [scenario, *figures, _ratio(sides, "hand", "baseline")]


def _criterion() -> Iterator[Cells]:
    for path in sorted(CRITERION.rglob("new/estimates.json")):
        estimate = json.loads(path.read_bytes())["median"]["point_estimate"]
        yield [" ".join(path.relative_to(CRITERION).parts[:-2]), _time(estimate)]


def _rows(name: str) -> list[Row]:
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def _times(row: Row, *names: str) -> Cells:
    return [_time(row[name]) if name in row else "-" for name in names]


def _time(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.2f} {unit}"
    return f"{nanoseconds:.1f} ns"


def _ratio(row: Row, one: str, other: str) -> str:
    if one not in row or other not in row:
        return "-"
    ratio = row[one] / row[other]
    return f"{ratio:.0f}x" if ratio >= 100 else f"{ratio:.2f}x"


def _machine() -> str:
    info = Path("/proc/cpuinfo")
    models = (
        [line for line in info.read_text("utf-8").splitlines() if line.startswith("model name")]
        if info.exists()
        else []
    )
    model = models[0].partition(":")[2].strip() if models else platform.processor()
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    return f"{os.cpu_count()} x {model}, {platform.system()}, Python {platform.python_version()}, load {load}"


if __name__ == "__main__":
    main()

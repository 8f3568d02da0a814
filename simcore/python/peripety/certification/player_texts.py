"""Texts about the runs of a persona: its rates with their limits, its losses by cause, and its wins.

A median or a path of a few runs is noise. It is given only from `ENOUGH` runs on, with their number.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.certification.options import DryRunOptions
    from peripety.engine import DryRunReport, Program
    from peripety.engine.executor import Executor

ENOUGH = 16
"""The number of runs from which on their median and their most frequent path are given."""

_PATH_RUNS = 64
_MAX_PATH = 12
_MAX_CAUSES = 3


async def explain(
    program: Program,
    report: DryRunReport,
    options: DryRunOptions,
    workers: Executor,
) -> str:
    """Return a clause about a persona's losses by cause, and about the turn and path of its wins.

    Args:
        program: the scenario.
        report: its runs.
        options: their options.
        workers: worker pool.
    """
    play = partial(
        program.dry_run,
        runs=min(_PATH_RUNS, report.runs),
        first_run=report.first_run,
        seed=options.seed,
        horizon=options.horizon,
        persona=report.persona,
        threads=workers.threads,
        detail=True,
        paths=True,
    )
    told = [describe_losses(report)] if report.lost else []
    if not program.spec.get("win_conditions"):
        return "; ".join(told)
    if not report.won:
        return "; ".join([*told, "it never wins"])
    sampled = await workers.run(play)
    if sampled.detail is None or sampled.won < ENOUGH:
        few = f"it wins {sampled.won} of {sampled.runs} sampled runs, too few to show a usual way"
        return "; ".join([*told, few])
    turn = _median(sampled.detail.won_turns)
    path, count = sampled.detail.win_paths[0]
    how = f", {count} times by {_shorten(path)}" if count > 1 else ", each time by other actions"
    return "; ".join([*told, f"it wins in turn {turn} at the median of {sampled.won} wins{how}"])


def describe_losses(report: DryRunReport) -> str:
    """Return the shares of the most frequent causes of the losses of a report with losses."""
    if report.lost < ENOUGH:
        causes = ", ".join(f"{count} by '{name}'" for name, count in _list_causes(report))
        return f"its losses are {causes}"
    causes = ", ".join(f"{count / report.lost:.0%} by '{name}'" for name, count in _list_causes(report))
    return f"of its losses {causes}"


def describe_figures(report: DryRunReport, counted: str, band: str) -> str:
    """Return a line about a persona: its rate with its band, its median turn, its losses.

    Args:
        report: its runs.
        counted: the rate, such as `wins 56%`.
        band: the band of the rate, and if the rate is inside.
    """
    told = [f"{report.persona}: {counted} of {report.runs} runs ({band})"]
    turns = report.detail.won_turns if report.detail else {}
    if report.won >= ENOUGH and turns:
        told.append(f"median turn of wins {_median(turns)}")
    if report.lost:
        causes = ", ".join(f"{name} {count}" for name, count in _list_causes(report))
        told.append(f"lost {report.lost}: {causes}")
    return "; ".join(told)


def describe_use(report: DryRunReport) -> str:
    """Return the actions of detailed runs, the most frequent first, with their mean number in a run."""
    uses = report.detail.actions if report.detail else {}
    taken = Counter({name: use.taken for name, use in uses.items()}).most_common(_MAX_PATH)
    told = [f"{name} {count / report.runs:.1f} times" for name, count in taken if count]
    return ", ".join(told) or "no action"


def format_rate(rate: float) -> str:
    """Format a limit of a rate, without digits that it does not need."""
    return f"{rate * 100:.3g}%"


def _list_causes(report: DryRunReport) -> Iterator[tuple[str, int]]:
    return ((name, count) for name, count in Counter(report.losses).most_common(_MAX_CAUSES) if count)


def _median(turns: Mapping[int, int]) -> int:
    """Return the turn by which half of the counted runs have ended."""
    half, seen = sum(turns.values()) / 2, 0
    for turn, count in sorted(turns.items()):
        seen += count
        if seen >= half:
            return turn
    return 0


def _shorten(path: tuple[str, ...]) -> str:
    """Return a path with repeated actions counted, and cut at its end."""
    steps = [
        f"{name} {count} times" if count > 1 else name
        for name, count in ((name, len([*run])) for name, run in groupby(path))
    ]
    told = ", ".join(steps[:_MAX_PATH])
    return f"{told}, …" if len(steps) > _MAX_PATH else told or "no action"

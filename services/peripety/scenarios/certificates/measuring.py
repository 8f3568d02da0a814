"""Sampling of a persona: runs until the interval of its fail rate is narrow enough.

The runs are examined only at fixed counts, so the stopping point depends on the runs alone, not on pieces,
threads or processes. An interval at an early stop is slightly too narrow. The number of looks is small, and
the last one has enough runs for any rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.errors import ResourceExhaustedError
from peripety.gateway.streams import following
from peripety.scenarios.certificates.model import MOST_RUNS
from peripety.scenarios.model import DryRunOptions
from peripety.scenarios.rates import interval
from peripety.scenarios.runs import MOST_SECONDS, Runner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from peripety.scenarios.certificates.model import CertificateOptions
    from peripety.sim import DryRunReport, Persona, Program
    from peripety.workers import Worker

__all__ = ["measure", "most_runs"]

_FIRST_LOOK = 256


@dataclass(frozen=True, slots=True)
class _Precision:
    """Required precision of a fail rate.

    Attributes:
        half_width: the maximum half width of its interval.
        runs: the number of runs that is enough for any rate.
    """

    half_width: float
    runs: int


_USUAL = _Precision(0.01, MOST_RUNS)
_SEARCHING = {"planner": _Precision(0.04, 600)}
"""The precision of personas that simulate many turns for each of their own."""


async def measure(
    program: Program,
    persona: Persona,
    options: CertificateOptions,
    watch: Mapping[str, float],
    workers: Worker,
    most_seconds: float = MOST_SECONDS,
) -> AsyncIterator[DryRunReport]:
    """Simulate one persona until its fail rate is known precisely enough.

    Args:
        program: the scenario.
        persona: the persona; all personas use the same run numbers, and therefore the same random numbers.
        options: the seed, the horizon and the maximum number of runs.
        watch: paths of numbers to follow, with their scales.
        workers: worker pool.
        most_seconds: time limit of the runs.

    Yields:
        The detailed report so far, after each piece; the last one is complete.

    Raises:
        ResourceExhaustedError: the runs exceed the time limit.
    """
    how = DryRunOptions(persona, options.seed, most_runs(persona, options), options.horizon)
    runner = Runner(program, how, workers, most_seconds)
    report: DryRunReport | None = None
    for look in _looks(how.max_runs):
        played = 0 if report is None else report.runs
        before = report
        async with following(_named(runner.playing(played, look - played, watch), persona)) as pieces:
            async for piece in pieces:
                report = piece if before is None else before.merged(piece)
                yield report
        if report is not None and _is_known(report):
            return


async def _named(pieces: AsyncIterator[DryRunReport], persona: Persona) -> AsyncIterator[DryRunReport]:
    """Yield the pieces; add the persona to the error for exceeded time."""
    try:
        async with following(pieces):
            async for piece in pieces:
                yield piece
    except ResourceExhaustedError as error:
        raise ResourceExhaustedError(
            f"The runs of the {persona} persona exceed the time limit: omit it, or allow more"
            " time, fewer runs or a shorter horizon",
            code=error.code,
        ) from None


def most_runs(persona: Persona, options: CertificateOptions) -> int:
    """Return the maximum number of runs of a persona."""
    return min(_precision(persona).runs, options.max_runs)


def _looks(most: int) -> Iterator[int]:
    """Yield the numbers of runs after which the interval is examined."""
    look = _FIRST_LOOK
    while look < most:
        yield look
        look *= 2
    yield most


def _is_known(report: DryRunReport) -> bool:
    low, high = interval(report.lost, report.runs)
    return (high - low) / 2 <= _precision(report.persona).half_width


def _precision(persona: Persona) -> _Precision:
    return _SEARCHING.get(persona, _USUAL)

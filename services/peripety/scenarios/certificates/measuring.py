"""How often a persona loses, in as many runs as it takes to know that well enough.

The runs are looked at after fixed numbers of them only, so where they stop follows from the runs alone, and
not from the pieces, threads or processes that played them. An interval is a little too narrow where one
stopped because it was narrow; the looks are few, and the last one has as many runs as any rate needs.
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
    """How well a fail rate is to be known.

    Attributes:
        half_width: half the width of its interval, at most.
        runs: so many are enough for that whatever the rate is.
    """

    half_width: float
    runs: int


_USUAL = _Precision(0.01, MOST_RUNS)
_SEARCHING = {"planner": _Precision(0.04, 600)}
"""Who plays many turns to take one."""


async def measure(
    program: Program,
    persona: Persona,
    options: CertificateOptions,
    watch: Mapping[str, float],
    workers: Worker,
    most_seconds: float = MOST_SECONDS,
) -> AsyncIterator[DryRunReport]:
    """Play one persona until its fail rate is known well enough.

    Args:
        program: the scenario.
        persona: who plays; all play the same run numbers, and so have the same luck.
        options: the seed, the horizon and the most runs.
        watch: paths of numbers to follow, with their scales.
        workers: play the runs.
        most_seconds: so long they may play.

    Yields:
        The runs so far, from time to time; the last time all of them. They have their detail.

    Raises:
        ResourceExhaustedError: the runs take longer than there is time.
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
    """The pieces; when they take too long, it is said whose they are."""
    try:
        async with following(pieces):
            async for piece in pieces:
                yield piece
    except ResourceExhaustedError as error:
        raise ResourceExhaustedError(
            f"The runs of the {persona} persona take longer than there is time: leave it out, or allow more"
            " time, fewer runs or a shorter horizon",
            code=error.code,
        ) from None


def most_runs(persona: Persona, options: CertificateOptions) -> int:
    """How many runs a persona plays when its rate is hard to know."""
    return min(_precision(persona).runs, options.max_runs)


def _looks(most: int) -> Iterator[int]:
    """After how many runs to look whether there are enough."""
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

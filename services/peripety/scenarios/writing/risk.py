"""What is said of a scenario whose description asked that nothing be at stake: there is, openly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety import sim
from peripety.authoring.reading.riskless import riskless_phrase
from peripety.errors import Finding, ResourceExhaustedError, Severity, SpecError
from peripety.scenarios.certificates.figures import report_of
from peripety.scenarios.certificates.model import Rate
from peripety.scenarios.model import DryRunOptions
from peripety.scenarios.runs import Runner

if TYPE_CHECKING:
    from peripety.scenarios.certificates.model import Certificate
    from peripety.workers import Worker

__all__ = ["risk_kept"]

_RUNS = 256
_MOST_SECONDS = 5.0
_MOST_QUOTED = 80


async def risk_kept(
    description: str, document: bytes, certificate: Certificate | None, workers: Worker
) -> tuple[Finding, ...]:
    """The warning that a scenario has risk although its description asked for none; nothing where it did not.

    Args:
        description: what the scenario was to be about, or how it was to be changed.
        document: the scenario.
        certificate: its certificate, when it has one; where it has none, some runs are played.
        workers: play them.
    """
    phrase = await workers.run(riskless_phrase, description)
    if not phrase:
        return ()
    lost = _certified(certificate) if certificate else await _played(document, workers)
    message = f"the description says '{phrase[:_MOST_QUOTED]}', and something is at stake all the same"
    if lost is not None:
        interval = f"95 % interval {lost.low:.1%} to {lost.high:.1%}"
        message += f": the random persona loses {lost.value:.1%} of {lost.total} runs ({interval})"
    return (Finding("RISK_RETAINED", "/negativity_budget/min_fail_rate", message, Severity.WARNING),)


def _certified(certificate: Certificate) -> Rate | None:
    report = report_of("random", certificate.personas)
    return report.lost if report else None


async def _played(document: bytes, workers: Worker) -> Rate | None:
    """How often the random persona loses; None for what was not checked so far that it could be played.

    Nobody may have played it before, so it may be anything but quick: then it is not known either.
    """
    try:
        program = await workers.run(sim.compile, document)
        report = await Runner(program, DryRunOptions(), workers, _MOST_SECONDS).play(0, _RUNS)
    except (SpecError, ResourceExhaustedError):
        return None
    return Rate.of(report.lost, report.runs)

"""Notice of retained risk, for a description that requests a scenario without risk."""

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
    """Return a warning if the description requests a scenario without risk; otherwise nothing.

    Args:
        description: the description of the scenario, or of a change.
        document: the scenario.
        certificate: its certificate; without one, some runs are simulated.
        workers: worker pool.
    """
    phrase = await workers.run(riskless_phrase, description)
    if not phrase:
        return ()
    lost = _certified(certificate) if certificate else await _played(document, workers)
    message = f"the description requests no risk ('{phrase[:_MOST_QUOTED]}'), but the scenario has some"
    if lost is not None:
        interval = f"95 % interval {lost.low:.1%} to {lost.high:.1%}"
        message += f": the random persona loses {lost.value:.1%} of {lost.total} runs ({interval})"
    return (Finding("RISK_RETAINED", "/negativity_budget/min_fail_rate", message, Severity.WARNING),)


def _certified(certificate: Certificate) -> Rate | None:
    report = report_of("random", certificate.personas)
    return report.lost if report else None


async def _played(document: bytes, workers: Worker) -> Rate | None:
    """Return the fail rate of the random persona; None for a document that is invalid or too slow."""
    try:
        program = await workers.run(sim.compile, document)
        report = await Runner(program, DryRunOptions(), workers, _MOST_SECONDS).play(0, _RUNS)
    except (SpecError, ResourceExhaustedError):
        return None
    return Rate.of(report.lost, report.runs)

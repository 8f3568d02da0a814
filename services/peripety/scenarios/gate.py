"""Difficulty gate: sequential test of the fail rate against the budget, and a limit on drift.

A specification states a budget: the share of runs that a player without skill must lose, and optionally the
maximum. The gate measures this share by simulation and decides if the scenario passes. Registration,
generation, amendment, batches and certificates all use this one function, so that they cannot disagree.

Test. Runs are simulated in blocks of 64. After each block, Wald's sequential probability ratio test compares
the fail rate with each end of the band. Its error rate is 1 % outside an indifference zone of 3 points around
the threshold. It usually decides after a few blocks; only rates near a threshold need many. If the maximum
number of runs is reached without a decision, the point estimate decides. Invariants:

- The result depends only on the program and the options. Run `n` has the same random numbers everywhere,
  blocks have a fixed size, and the time limit can only raise an error, never change a verdict.
- A miss needs both the decision of the test and a point estimate on the same side. A scenario whose measured
  rate is inside the band is never rejected for its rate.
- A rule that raises an error is reported instead of a rate: the rates of a broken scenario mean nothing.
- The upper end is not tested if it is 1.

Drift. A scenario can have the right fail rate and still become safer each turn. So an accepted scenario is
also compared with the drift limit, on the detailed counts of the first block. A block is a small sample for a
mean. Therefore a rejection by drift is first confirmed on up to 512 runs.

Alternatives not used: a fixed sample size, which wastes runs on clear cases and is too small for close ones;
testing after every single run, which increases the error rate by repeated testing; and a confidence interval
as the criterion, which does not bound the error rate of a sequential decision.

Only the miss of a budget can be repaired by moving numbers. The repair is confirmed with fresh run numbers,
because the search has already adapted to the old ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from peripety.errors import Finding, InternalError, Severity
from peripety.gateway.streams import following
from peripety.scenarios.drift import drift_findings, drifts, watched
from peripety.scenarios.model import errors_among
from peripety.scenarios.rates import Side, interval, side_of
from peripety.scenarios.runs import MOST_SECONDS, Runner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from peripety.scenarios.model import DryRunOptions
    from peripety.sim import DryRunReport, Program, RuleError
    from peripety.workers import Worker

__all__ = ["BLOCK", "Miss", "Verdict", "judge", "rate_sentence", "rule_finding", "verdict_of"]

BLOCK = 64
"""The number of runs between two tests; testing after every run would increase the error rate."""

_BUDGET = "/negativity_budget"
# With this many runs a drift is known to about a hundredth per turn.
_DRIFT_RUNS = 512


class Miss(Enum):
    """Kind of a budget miss."""

    TOO_EASY = "too easy"
    TOO_HARD = "too hard"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict of the gate.

    Attributes:
        report: the runs.
        findings: errors reject the scenario; warnings do not.
        miss: set if only the budget is missed, which moving numbers may repair.
    """

    report: DryRunReport
    findings: tuple[Finding, ...]
    miss: Miss | None = None

    @property
    def accepted(self) -> bool:
        """Return True if no finding is an error."""
        return not errors_among(self.findings)


async def judge(
    program: Program,
    options: DryRunOptions,
    workers: Worker,
    *,
    first_run: int = 0,
    most_seconds: float = MOST_SECONDS,
) -> AsyncIterator[DryRunReport | Verdict]:
    """Simulate until the test decides; at the maximum number of runs the point estimate decides.

    Args:
        program: the scenario.
        options: simulation options.
        workers: worker pool.
        first_run: the number of the first run; disjoint ranges are fresh runs.
        most_seconds: time limit of the runs.

    Yields:
        The report so far after each block, and the verdict as the last item.

    Raises:
        ResourceExhaustedError: the runs exceed the time limit.
    """
    runner = Runner(program, options, workers, most_seconds)
    detailed = await runner.play(first_run, min(BLOCK, options.max_runs), watched(program))
    report = replace(detailed, detail=None)
    while True:
        yield report
        left = options.max_runs - report.runs
        verdict = _verdict(program, report, is_last=left == 0)
        if verdict is not None:
            break
        report = report.merged(await runner.play(first_run + report.runs, min(BLOCK, left)))
    if verdict.accepted:
        findings = await _drifting(program, detailed, runner, options)
        verdict = replace(verdict, findings=(*findings, *verdict.findings))
    yield verdict


async def verdict_of(
    program: Program, options: DryRunOptions, workers: Worker, most_seconds: float = MOST_SECONDS
) -> Verdict:
    """Return only the verdict, without intermediate reports."""
    async with following(judge(program, options, workers, most_seconds=most_seconds)) as steps:
        async for step in steps:
            if isinstance(step, Verdict):
                return step
    raise InternalError("The gate ended without a verdict")


def rate_sentence(report: DryRunReport) -> str:
    """Describe the fail rate of the persona, with its interval."""
    low, high = interval(report.lost, report.runs)
    return (
        f"the {report.persona} persona loses {report.fail_rate:.1%} of {report.runs} runs"
        f" (95 % interval {low:.1%} to {high:.1%})"
    )


def _verdict(program: Program, report: DryRunReport, *, is_last: bool) -> Verdict | None:
    if report.errors:
        return Verdict(report, tuple(rule_finding(error, report) for error in report.errors))
    budget = program.spec["negativity_budget"]
    least, most = budget["min_fail_rate"], budget.get("max_fail_rate", 1)
    above_least = _side(report, least, is_last=is_last)
    # No rate exceeds 1, so the test is not necessary.
    below_most = Side.BELOW if most == 1 else _side(report, most, is_last=is_last)
    if above_least is Side.BELOW and report.fail_rate < least:
        return Verdict(report, (_too_easy(report, least),), Miss.TOO_EASY)
    if below_most is Side.ABOVE and report.fail_rate > most:
        return Verdict(report, (_too_hard(report, most),), Miss.TOO_HARD)
    if above_least is None or below_most is None:
        return None
    return Verdict(report, tuple(_warnings(report)))


async def _drifting(
    program: Program, report: DryRunReport, runner: Runner, options: DryRunOptions
) -> tuple[Finding, ...]:
    """Return the findings of excessive drift; a rejection is confirmed on more runs."""
    found = tuple(drift_findings(drifts(program, report)))
    more = min(_DRIFT_RUNS, options.max_runs) - report.runs
    if not found or more <= 0:
        return found
    report = report.merged(await runner.play(report.first_run + report.runs, more, watched(program)))
    return tuple(drift_findings(drifts(program, report)))


def _side(report: DryRunReport, threshold: float, *, is_last: bool) -> Side | None:
    side = side_of(report.lost, report.runs, threshold)
    if side is None and is_last:
        return Side.ABOVE if report.fail_rate >= threshold else Side.BELOW
    return side


def rule_finding(error: RuleError, report: DryRunReport) -> Finding:
    """Return the finding for a rule that raised an error."""
    is_pointer = error.rule.startswith("/")
    place = "" if is_pointer or not error.rule else f"{error.rule}: "
    message = f"{place}{error.message}; it failed {error.count} times in {report.runs} runs"
    return Finding(error.code, error.rule if is_pointer else "", message)


def _too_easy(report: DryRunReport, least: float) -> Finding:
    message = (
        f"too easy: {rate_sentence(report)}, and at least {least:.1%} are asked for; make events likelier or"
        " harsher, or decay faster"
    )
    return Finding("TOO_EASY", f"{_BUDGET}/min_fail_rate", message)


def _too_hard(report: DryRunReport, most: float) -> Finding:
    message = (
        f"too hard: {rate_sentence(report)}, and at most {most:.1%} are asked for; make events rarer or"
        " milder, or decay slower"
    )
    return Finding("TOO_HARD", f"{_BUDGET}/max_fail_rate", message)


def _warnings(report: DryRunReport) -> Iterator[Finding]:
    if report.lost == report.runs == report.turns and report.horizon > 1:
        message = "every run is lost in its first turn, so there is nothing to play"
        yield Finding("LOST_AT_ONCE", "/loss_conditions", message, Severity.WARNING)

"""The dry-run gate: whether a scenario is as hard as its own budget asks for, and stays so.

The runs are played in blocks, and after each block a sequential test says whether there were enough of them.
What is as hard as it should be is then held to the limit of its drift.
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
"""Runs between two looks at the test; plain peeking after every run would judge wrongly more often."""

_BUDGET = "/negativity_budget"
# Over so many runs a drift is known to about a hundredth in each turn.
_DRIFT_RUNS = 512


class Miss(Enum):
    """How a scenario misses its budget."""

    TOO_EASY = "too easy"
    TOO_HARD = "too hard"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says.

    Attributes:
        report: the runs that were played.
        findings: why the scenario is refused; a warning does not refuse it.
        miss: set when only the budget is missed, which moving numbers may put right.
    """

    report: DryRunReport
    findings: tuple[Finding, ...]
    miss: Miss | None = None

    @property
    def accepted(self) -> bool:
        """Whether the scenario may pass."""
        return not errors_among(self.findings)


async def judge(
    program: Program,
    options: DryRunOptions,
    workers: Worker,
    *,
    first_run: int = 0,
    most_seconds: float = MOST_SECONDS,
) -> AsyncIterator[DryRunReport | Verdict]:
    """Play until the test decides, or the most runs are played and the point estimate does.

    Args:
        program: the scenario.
        options: how to simulate.
        workers: play the runs.
        first_run: number of the first run; disjoint ranges are fresh runs.
        most_seconds: so long they may take.

    Yields:
        The runs so far after each block, and the verdict as the last item.

    Raises:
        ResourceExhaustedError: the runs take longer than there is time.
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
    """The verdict alone; see `judge`."""
    async with following(judge(program, options, workers, most_seconds=most_seconds)) as steps:
        async for step in steps:
            if isinstance(step, Verdict):
                return step
    raise InternalError("The gate ended without a verdict")


def rate_sentence(report: DryRunReport) -> str:
    """How often the persona loses, with the interval that the number of runs allows."""
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
    # No rate is above 1, so there is nothing to wait for.
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
    """What drifts too far, in one block of runs, and in more of them before that refuses a scenario."""
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
    """A rule that failed in play as what is wrong with its scenario."""
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

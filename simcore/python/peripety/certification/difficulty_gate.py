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

Players. The fail rate of a player without skill does not show if skill is of use. From version 1.1 on,
players that think are measured as well (`player_checks`), and `max_fail_rate` is required only where chance
is the game: where none of them loses clearly less often than the random persona.

Only the miss of a budget can be repaired by moving numbers. The repair is confirmed with fresh run numbers,
because the search has already adapted to the old ones.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from peripety.certification import player_checks
from peripety.certification.drift import find_excessive_drift, measure_drift, watched_paths
from peripety.certification.options import BLOCK
from peripety.certification.player_texts import describe_figures, explain
from peripety.certification.rate_interval import ThresholdSide, compare_to_threshold, rate_interval
from peripety.certification.simulation import MAX_SECONDS, SimulationRunner
from peripety.errors import Finding, InternalError, Severity, filter_errors

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from peripety.certification.options import DryRunOptions
    from peripety.engine import DryRunReport, Program, RuleError
    from peripety.engine.executor import Executor


_BUDGET = "/negativity_budget"
# With this many runs a drift is known to about a hundredth per turn.
_DRIFT_RUNS = 512


class BudgetMiss(Enum):
    """Kind of a budget miss."""

    TOO_EASY = "too easy"
    TOO_HARD = "too hard"


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """Verdict of the gate.

    Attributes:
        report: the runs.
        findings: errors reject the scenario; warnings do not.
        miss: set if only the budget is missed, which moving numbers may repair.
        players: those of the findings that are about players that think.
        figures: a line about each measured player, and the band of its rate.
    """

    report: DryRunReport
    findings: tuple[Finding, ...]
    miss: BudgetMiss | None = None
    players: tuple[Finding, ...] = ()
    figures: tuple[str, ...] = ()

    @property
    def is_accepted(self) -> bool:
        """Return True if no finding is an error."""
        return not filter_errors(self.findings)


async def evaluate(
    program: Program,
    options: DryRunOptions,
    workers: Executor,
    *,
    first_run: int = 0,
    most_seconds: float = MAX_SECONDS,
    explains: bool = True,
) -> AsyncGenerator[DryRunReport | GateVerdict]:
    """Simulate until the test decides; at the maximum number of runs the point estimate decides.

    Args:
        program: the scenario.
        options: simulation options.
        workers: worker pool.
        first_run: the number of the first run; disjoint ranges are fresh runs.
        most_seconds: time limit of the runs.
        explains: add reasons to a miss: losses by cause, the median turn and the path of wins.

    Yields:
        The report so far after each block, and the verdict as the last item.

    Raises:
        ResourceExhaustedError: the runs exceed the time limit.
    """
    runner = SimulationRunner(program, options, workers, most_seconds)
    detailed = await runner.run(first_run, min(BLOCK, options.max_runs), watched_paths(program))
    report = replace(detailed, detail=None)
    while True:
        yield report
        left = options.max_runs - report.runs
        verdict = _decide(program, report, is_last=left == 0)
        if verdict is not None:
            break
        report = report.merge(await runner.run(first_run + report.runs, min(BLOCK, left)))
    verdict = replace(verdict, figures=(_describe_random(program, report, verdict.miss),))
    if not report.errors and program.spec["spec_version"] != "1.0":
        thinking = await player_checks.check_players(program, report, options, workers, most_seconds)
        if verdict.miss is BudgetMiss.TOO_HARD and not thinking.is_chance:
            verdict = GateVerdict(report, tuple(_find_warnings(report)))
        findings = (*verdict.findings, *thinking.findings)
        line = _describe_random(program, report, verdict.miss, is_chance=thinking.is_chance)
        figures = (*thinking.figures, line)
        verdict = replace(verdict, findings=findings, players=thinking.findings, figures=figures)
    if explains and verdict.miss is not None:
        reasons = await explain(program, report, options, workers)
        first, *others = verdict.findings
        first = replace(first, message=f"{first.message}; {reasons}")
        verdict = replace(verdict, findings=(first, *others))
    if verdict.is_accepted:
        findings = await _confirm_drift(program, detailed, runner, options)
        verdict = replace(verdict, findings=(*findings, *verdict.findings))
    yield verdict


async def evaluate_to_verdict(
    program: Program,
    options: DryRunOptions,
    workers: Executor,
    most_seconds: float = MAX_SECONDS,
    *,
    explains: bool = True,
) -> GateVerdict:
    """Return only the verdict, without intermediate reports."""
    trial = evaluate(program, options, workers, most_seconds=most_seconds, explains=explains)
    async with aclosing(trial) as steps:
        async for step in steps:
            if isinstance(step, GateVerdict):
                return step
    raise InternalError("The gate ended without a verdict")


def describe_rate(report: DryRunReport) -> str:
    """Describe the fail rate of the persona, with its interval."""
    low, high = rate_interval(report.lost, report.runs)
    return (
        f"the {report.persona} persona loses {report.fail_rate:.1%} of {report.runs} runs"
        f" (95 % interval {low:.1%} to {high:.1%})"
    )


def _describe_random(
    program: Program,
    report: DryRunReport,
    miss: BudgetMiss | None,
    *,
    is_chance: bool = True,
) -> str:
    """Return a line about the persona of the budget, and the band of its rate."""
    budget = program.spec["negativity_budget"]
    asked = f"at least {budget['min_fail_rate']:.0%}"
    if is_chance and budget.get("max_fail_rate", 1) < 1:
        asked = f"{budget['min_fail_rate']:.0%} to {budget['max_fail_rate']:.0%}"
    side = {None: "inside", BudgetMiss.TOO_EASY: "too low", BudgetMiss.TOO_HARD: "too high"}[miss]
    return describe_figures(report, f"loses {report.fail_rate:.1%}", f"must be {asked}: {side}")


def _decide(program: Program, report: DryRunReport, *, is_last: bool) -> GateVerdict | None:
    if report.errors:
        return GateVerdict(report, tuple(rule_finding(error, report) for error in report.errors))
    budget = program.spec["negativity_budget"]
    least, most = budget["min_fail_rate"], budget.get("max_fail_rate", 1)
    above_least = _side_of_threshold(report, least, is_last=is_last)
    # No rate exceeds 1, so the test is not necessary.
    below_most = ThresholdSide.BELOW if most == 1 else _side_of_threshold(report, most, is_last=is_last)
    if above_least is ThresholdSide.BELOW and report.fail_rate < least:
        return GateVerdict(report, (_too_easy_finding(report, least),), BudgetMiss.TOO_EASY)
    if below_most is ThresholdSide.ABOVE and report.fail_rate > most:
        return GateVerdict(report, (_too_hard_finding(report, most),), BudgetMiss.TOO_HARD)
    if above_least is None or below_most is None:
        return None
    return GateVerdict(report, tuple(_find_warnings(report)))


async def _confirm_drift(
    program: Program,
    report: DryRunReport,
    runner: SimulationRunner,
    options: DryRunOptions,
) -> tuple[Finding, ...]:
    """Return the findings of excessive drift; a rejection is confirmed on more runs."""
    found = tuple(find_excessive_drift(measure_drift(program, report)))
    more = min(_DRIFT_RUNS, options.max_runs) - report.runs
    if not found or more <= 0:
        return found
    report = report.merge(await runner.run(report.first_run + report.runs, more, watched_paths(program)))
    return tuple(find_excessive_drift(measure_drift(program, report)))


def _side_of_threshold(report: DryRunReport, threshold: float, *, is_last: bool) -> ThresholdSide | None:
    side = compare_to_threshold(report.lost, report.runs, threshold)
    if side is None and is_last:
        return ThresholdSide.ABOVE if report.fail_rate >= threshold else ThresholdSide.BELOW
    return side


def rule_finding(error: RuleError, report: DryRunReport) -> Finding:
    """Return the finding for a rule that raised an error."""
    is_pointer = error.rule.startswith("/")
    place = "" if is_pointer or not error.rule else f"{error.rule}: "
    message = f"{place}{error.message}; it failed {error.count} times in {report.runs} runs"
    return Finding(error.code, error.rule if is_pointer else "", message)


def _too_easy_finding(report: DryRunReport, least: float) -> Finding:
    message = (
        f"too easy: {describe_rate(report)}, and at least {least:.1%} are asked for; make events likelier or"
        " harsher, or decay faster"
    )
    return Finding("TOO_EASY", f"{_BUDGET}/min_fail_rate", message)


def _too_hard_finding(report: DryRunReport, most: float) -> Finding:
    message = (
        f"too hard: {describe_rate(report)}, and at most {most:.1%} are asked for; make events rarer or"
        " milder, or decay slower"
    )
    return Finding("TOO_HARD", f"{_BUDGET}/max_fail_rate", message)


def _find_warnings(report: DryRunReport) -> Iterator[Finding]:
    if report.lost == report.runs == report.turns and report.horizon > 1:
        message = "every run is lost in its first turn, so there is nothing to play"
        yield Finding("LOST_AT_ONCE", "/loss_conditions", message, Severity.WARNING)

"""Balancing: the fewest and smallest moves of numbers that bring a fail rate into a requested band.

Whole numbers stay whole, unless the band is out of reach that way.

The caller requests it explicitly, so it may move more numbers than a repair, and more than once. All
tunable numbers are candidates, and no number moves by more than half. A result is confirmed on fresh runs.
If that fails, the search continues with the difference as a correction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peripety import engine
from peripety.certification.difficulty_gate import describe_rate, rule_finding
from peripety.certification.options import DryRunOptions, validate_options
from peripety.core.concurrency import closing
from peripety.errors import Finding, filter_errors, require_field
from peripety.scenario.balance.candidate_runs import FIRST_FRESH_RUN, CandidateRuns
from peripety.scenario.balance.parameters import MAX_MOVE, select_for_balance
from peripety.scenario.balance.search import BalanceSearch, SearchTarget
from peripety.scenario.types import Progress, ProgressStage
from peripety.scenario.validation import load_valid, validate_document_size

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.core.concurrency import WorkerPool
    from peripety.engine import DryRunReport, Program
    from peripety.scenario.balance.candidate_runs import BalanceCandidate
    from peripety.scenario.types import NumberEdit


CONFIRMING_RUNS = 10_000
"""The default number of runs that confirm a balance."""


# The resolution of 10,000 runs: half of their widest 95 % interval.
_RESOLUTION = 0.01
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class BalanceTarget:
    """Target band of a fail rate: two shares of runs, 0 … 1, both inclusive."""

    min_rate: float
    max_rate: float

    def is_met(self, rate: float) -> bool:
        """Return True if a measured rate is in the band, or indistinguishable from its middle."""
        return abs(rate - self.middle) <= max(self.width / 2, _RESOLUTION) + _ROUNDING

    def __str__(self) -> str:
        return f"{self.min_rate:.1%} to {self.max_rate:.1%}"

    @property
    def middle(self) -> float:
        """Return the middle of the band."""
        return (self.min_rate + self.max_rate) / 2

    @property
    def width(self) -> float:
        """Return the width of the band."""
        return self.max_rate - self.min_rate


@dataclass(frozen=True, slots=True)
class BalanceOrder:
    """Order of a balance.

    Attributes:
        document: the specification, any bytes.
        target: the target band.
        options: simulation options; `max_runs` are simulated before and after.
    """

    document: bytes
    target: BalanceTarget
    options: DryRunOptions


@dataclass(frozen=True, slots=True)
class BalanceReached:
    """The fail rate is in the target; the last event.

    Attributes:
        document: the canonical specification.
        edits: the moved numbers; empty if the rate was in the target already.
        before: the runs of the original specification.
        after: the confirming runs of the result; the search used other runs.
    """

    document: bytes
    edits: tuple[NumberEdit, ...]
    before: DryRunReport
    after: DryRunReport


@dataclass(frozen=True, slots=True)
class BalanceFailed:
    """The target is out of reach, or the specification has errors; the last event.

    Attributes:
        findings: the reasons.
        closest: the runs of the closest candidate; None without any.
    """

    findings: tuple[Finding, ...]
    closest: DryRunReport | None = None


BalanceEvent: TypeAlias = Progress | BalanceReached | BalanceFailed


# Runs per candidate: more for a narrow target, fewer for the planner, which is about a hundred times slower.
_SEARCH_RUNS = 2_048
_FINE_SEARCH_RUNS = 8_192
_SLOW_SEARCH_RUNS = 512
_NARROW = 0.06
# The search aims inside the target: by a margin, by a share of its width, and not closer than it can measure.
_MARGIN = 0.02
_SHARES = (0.6, 0.3, 0.1)
_MIN_REACH = 0.005
_MAX_DESCRIBED = 3


def validate_target(target: BalanceTarget) -> None:
    """Raise an error for an invalid target.

    Raises:
        InvalidArgumentError: the target is empty or out of range.
    """
    require_field(0 <= target.min_rate <= 1, ".target.min_fail_rate", "must be from 0 to 1")
    require_field(0 <= target.max_rate <= 1, ".target.max_fail_rate", "must be from 0 to 1")
    require_field(
        target.min_rate <= target.max_rate,
        ".target.max_fail_rate",
        "must not be less than min_fail_rate",
    )


class Balancer:
    """Balancing of scenarios.

    Args:
        workers: pool for validation and simulation.
    """

    def __init__(self, workers: WorkerPool) -> None:
        self._workers = workers

    async def balance(self, order: BalanceOrder) -> AsyncIterator[BalanceEvent]:
        """Move the numbers of a specification until the fail rate of a persona is in the target.

        Yields:
            Progress, and `Balanced` or `BalanceFailed` as the last event.

        Raises:
            InvalidArgumentError: the document is empty or too large, or an option or the target is out of
                range.
            ResourceExhaustedError: the runs exceed the time limit.
        """
        validate_document_size(order.document)
        validate_options(order.options)
        validate_target(order.target)
        yield Progress(ProgressStage.VALIDATING, "checking the document", 0.0)
        findings = await self._workers.run(engine.validate, order.document)
        if filter_errors(findings):
            yield BalanceFailed(tuple(findings))
            return
        yield Progress(ProgressStage.COMPILING, "compiling the rules", 0.05)
        attempts = _BalanceAttempts(await self._workers.run(load_valid, order.document), order, self._workers)
        async with closing(attempts.events()) as events:
            async for event in events:
                yield event


class _BalanceAttempts:
    """Balancing of one scenario."""

    def __init__(self, program: Program, order: BalanceOrder, workers: WorkerPool) -> None:
        self._target = order.target
        self._runs = order.options.max_runs
        if order.options.persona == "planner":
            runs = _SLOW_SEARCH_RUNS
        else:
            runs = _SEARCH_RUNS if order.target.width >= _NARROW else _FINE_SEARCH_RUNS
        knobs = select_for_balance(program.spec)
        whole = [knob.keep_whole() for knob in knobs]
        self._choices = [
            CandidateRuns(program, numbers, min(runs, self._runs), order.options, workers)
            for numbers in ([whole, knobs] if whole != knobs else [knobs])
        ]
        self._trials = self._choices[0]

    async def events(self) -> AsyncIterator[BalanceEvent]:
        """Simulate the scenario and balance it: first with whole numbers that stay whole, then with any."""
        yield Progress(ProgressStage.DRY_RUNNING, "simulating the present scenario", 0.1)
        before = await self._trials.simulate(self._trials.start_setting, 0, self._runs)
        if before.report.errors:
            yield _rule_failure(before)
            return
        yield Progress(ProgressStage.DRY_RUNNING, describe_rate(before.report), 0.2)
        for trials in self._choices:
            self._trials = trials
            async with closing(self._search_and_confirm(before)) as events:
                async for event in events:
                    if isinstance(event, BalanceFailed) and trials is not self._choices[-1]:
                        break
                    yield event
                else:
                    return

    async def _search_and_confirm(self, before: BalanceCandidate) -> AsyncIterator[BalanceEvent]:
        """Search, confirm, and search again if the confirmation fails."""
        found, after, luck = before, before, 0.0
        for attempt in range(len(_SHARES)):
            if attempt or not self._target.is_met(before.rate):
                yield Progress(
                    ProgressStage.REPAIRING,
                    f"trying {len(self._trials.numbers)} numbers",
                    0.2 + 0.2 * attempt,
                )
                steering = BalanceSearch(self._trials, await self._search_target(luck, attempt))
                hit = await steering.search() or self._closest_in_target(steering.closest)
                if hit is None:
                    yield self._not_confirmed(after) if attempt else self._out_of_reach(steering, before)
                    return
                found = await steering.round_digits(hit)
            yield Progress(ProgressStage.DRY_RUNNING, "confirming on fresh runs", 0.35 + 0.2 * attempt)
            after = await self._trials.simulate(found.setting, FIRST_FRESH_RUN * (attempt + 1), self._runs)
            if after.report.errors:
                yield _rule_failure(after)
                return
            if self._target.is_met(after.rate):
                yield BalanceReached(after.program.document, after.edits, before.report, after.report)
                return
            # Either sample may be an outlier; the one with fewer runs is weighted as the less certain one.
            luck = (after.rate - found.rate) * self._runs / (self._runs + found.report.runs)
        yield self._not_confirmed(after)

    def _closest_in_target(self, closest: BalanceCandidate | None) -> BalanceCandidate | None:
        """Return the closest candidate if it is inside the target, although outside the search goal."""
        return closest if closest is not None and self._target.is_met(closest.rate) else None

    async def _search_target(self, correction: float, attempt: int) -> SearchTarget:
        """Return the goal of the search: inside the target, and further inside after each failure.

        Args:
            luck: the fail rate of the fresh runs minus that of the search.
            attempt: the number of failed confirmations.
        """
        half = self._target.width / 2
        middle = self._target.middle - correction
        reach = max(half - _MARGIN * (attempt + 1), half * _SHARES[attempt], _MIN_REACH)
        # A target that ends at 0 or 1 needs no margin at that end.
        least = middle - reach if self._target.min_rate > 0 else 0.0
        most = middle + reach if self._target.max_rate < 1 else 1.0
        start = await self._trials.get(self._trials.start_setting)
        return SearchTarget(least, most, is_harder=start.rate < middle)

    def _out_of_reach(self, search: BalanceSearch, before: BalanceCandidate) -> BalanceFailed:
        closest = search.closest or before
        wanted = f"the target is {self._target}"
        if search.discontinuity is not None:
            jump = search.discontinuity
            move = self._trials.describe_move(jump.index, jump.below.setting, jump.above.setting)
            message = (
                f"the rate jumps from {jump.below.rate:.1%} to {jump.above.rate:.1%} with one number, and"
                f" {wanted}: {move}; use smaller steps"
            )
        elif not closest.edits:
            message = (
                f"none of the {len(self._trials.numbers)} movable numbers has a measurable effect on the rate"
                f" of {closest.rate:.1%}, and {wanted}; change the rules"
            )
        else:
            message = (
                f"no number moves by more than {MAX_MOVE:.0%} of itself, which brings the rate to"
                f" {closest.rate:.1%} only, and {wanted}; largest moves: "
                f"{_describe_largest_moves(closest)}; change the rules"
            )
        return BalanceFailed((Finding("BALANCE_OUT_OF_REACH", "", message),), closest.report)

    def _not_confirmed(self, after: BalanceCandidate) -> BalanceFailed:
        message = (
            f"the moves were not confirmed on {after.report.runs} fresh runs: the last rate was"
            f" {after.rate:.1%}, and the target is {self._target}; use a wider target or allow more runs"
        )
        return BalanceFailed((Finding("BALANCE_NOT_CONFIRMED", "", message),), after.report)


def _rule_failure(trial: BalanceCandidate) -> BalanceFailed:
    """Return the failure for rules that raise errors, before or after the moves."""
    findings = tuple(rule_finding(error, trial.report) for error in trial.report.errors)
    return BalanceFailed(findings, trial.report)


def _describe_largest_moves(trial: BalanceCandidate) -> str:
    """Describe the largest moves of a candidate."""
    largest = sorted(trial.edits, key=lambda edit: -abs(edit.after / edit.before - 1))
    more = f" and {len(largest) - _MAX_DESCRIBED} more" if len(largest) > _MAX_DESCRIBED else ""
    return "; ".join(edit.summary for edit in largest[:_MAX_DESCRIBED]) + more

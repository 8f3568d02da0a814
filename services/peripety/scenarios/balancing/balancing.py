"""Balancing: the fewest and smallest moves of numbers that bring a fail rate into a requested band.

The caller requests it explicitly, so it may move more numbers than a repair, and more than once. All tunable
numbers are candidates, and no number moves by more than half. A result is confirmed on fresh runs. If that
fails, the search continues with the difference as a correction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety import sim
from peripety.errors import Finding
from peripety.gateway.streams import following
from peripety.requests import require
from peripety.scenarios.balancing.choosing import balanceable
from peripety.scenarios.balancing.knobs import LARGEST_MOVE
from peripety.scenarios.balancing.model import Balanced, NotBalanced
from peripety.scenarios.balancing.searching import FRESH_RUN, Trials
from peripety.scenarios.balancing.steering import Aim, Steering
from peripety.scenarios.checking import load
from peripety.scenarios.checks import check_document, check_options
from peripety.scenarios.gate import rate_sentence, rule_finding
from peripety.scenarios.model import Progress, Stage, errors_among

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.scenarios.balancing.model import BalanceEvent, BalanceOrder, Target
    from peripety.scenarios.balancing.searching import Trial
    from peripety.sim import Program
    from peripety.workers import Workers

__all__ = ["Balancer", "check_target"]

# Runs per candidate: more for a narrow target, fewer for the planner, which is about a hundred times slower.
_SEARCH_RUNS = 2_048
_FINE_SEARCH_RUNS = 8_192
_SLOW_SEARCH_RUNS = 512
_NARROW = 0.06
# The search aims inside the target: by a margin, by a share of its width, and not closer than it can measure.
_MARGIN = 0.02
_SHARES = (0.6, 0.3, 0.1)
_CLOSEST = 0.005
_TOLD = 3


def check_target(target: Target) -> None:
    """Raise an error for an invalid target.

    Raises:
        InvalidArgumentError: the target is empty or out of range.
    """
    require(0 <= target.least <= 1, ".target.min_fail_rate", "must be from 0 to 1")
    require(0 <= target.most <= 1, ".target.max_fail_rate", "must be from 0 to 1")
    require(target.least <= target.most, ".target.max_fail_rate", "must not be less than min_fail_rate")


class Balancer:
    """Balancing of scenarios.

    Args:
        workers: pool for validation and simulation.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    async def balance(self, order: BalanceOrder) -> AsyncIterator[BalanceEvent]:
        """Move the numbers of a specification until the fail rate of a persona is in the target.

        Yields:
            Progress, and `Balanced` or `NotBalanced` as the last event.

        Raises:
            InvalidArgumentError: the document is empty or too large, or an option or the target is out of
                range.
            ResourceExhaustedError: the runs exceed the time limit.
        """
        check_document(order.document)
        check_options(order.options)
        check_target(order.target)
        yield Progress(Stage.VALIDATING, "checking the document", 0.0)
        findings = await self._workers.run(sim.validate, order.document)
        if errors_among(findings):
            yield NotBalanced(tuple(findings))
            return
        yield Progress(Stage.COMPILING, "compiling the rules", 0.05)
        attempts = _Attempts(await self._workers.run(load, order.document), order, self._workers)
        async with following(attempts.events()) as events:
            async for event in events:
                yield event


class _Attempts:
    """Balancing of one scenario."""

    def __init__(self, program: Program, order: BalanceOrder, workers: Workers) -> None:
        self._target = order.target
        self._runs = order.options.max_runs
        if order.options.persona == "planner":
            runs = _SLOW_SEARCH_RUNS
        else:
            runs = _SEARCH_RUNS if order.target.width >= _NARROW else _FINE_SEARCH_RUNS
        knobs = balanceable(program.spec)
        self._trials = Trials(program, knobs, min(runs, self._runs), order.options, workers)

    async def events(self) -> AsyncIterator[BalanceEvent]:
        """Simulate the scenario, search, confirm, and search again if the confirmation fails."""
        yield Progress(Stage.DRY_RUNNING, "simulating the present scenario", 0.1)
        before = await self._trials.play(self._trials.start, 0, self._runs)
        if before.report.errors:
            yield _failed(before)
            return
        yield Progress(Stage.DRY_RUNNING, rate_sentence(before.report), 0.2)
        found, after, luck = before, before, 0.0
        for attempt in range(len(_SHARES)):
            if attempt or not self._target.met(before.rate):
                yield Progress(
                    Stage.REPAIRING, f"trying {len(self._trials.knobs)} numbers", 0.2 + 0.2 * attempt
                )
                steering = Steering(self._trials, await self._aim(luck, attempt))
                hit = await steering.search() or self._within(steering.closest)
                if hit is None:
                    yield self._unconfirmed(after) if attempt else self._refusal(steering, before)
                    return
                found = await steering.tidied(hit)
            yield Progress(Stage.DRY_RUNNING, "confirming on fresh runs", 0.35 + 0.2 * attempt)
            after = await self._trials.play(found.setting, FRESH_RUN * (attempt + 1), self._runs)
            if after.report.errors:
                yield _failed(after)
                return
            if self._target.met(after.rate):
                yield Balanced(after.program.document, after.edits, before.report, after.report)
                return
            # Either sample may be an outlier; the one with fewer runs is weighted as the less certain one.
            luck = (after.rate - found.rate) * self._runs / (self._runs + found.report.runs)
        yield self._unconfirmed(after)

    def _within(self, closest: Trial | None) -> Trial | None:
        """Return the closest candidate if it is inside the target, although outside the search goal."""
        return closest if closest is not None and self._target.met(closest.rate) else None

    async def _aim(self, luck: float, attempt: int) -> Aim:
        """Return the goal of the search: inside the target, and further inside after each failure.

        Args:
            luck: the fail rate of the fresh runs minus that of the search.
            attempt: the number of failed confirmations.
        """
        half = self._target.width / 2
        middle = self._target.middle - luck
        reach = max(half - _MARGIN * (attempt + 1), half * _SHARES[attempt], _CLOSEST)
        # A target that ends at 0 or 1 needs no margin at that end.
        least = middle - reach if self._target.least > 0 else 0.0
        most = middle + reach if self._target.most < 1 else 1.0
        start = await self._trials.at(self._trials.start)
        return Aim(least, most, is_harder=start.rate < middle)

    def _refusal(self, steering: Steering, before: Trial) -> NotBalanced:
        closest = steering.closest or before
        wanted = f"the target is {self._target}"
        if steering.jump is not None:
            jump = steering.jump
            move = self._trials.told(jump.index, jump.below.setting, jump.above.setting)
            message = (
                f"the rate jumps from {jump.below.rate:.1%} to {jump.above.rate:.1%} with one number, and"
                f" {wanted}: {move}; use smaller steps"
            )
        elif not closest.edits:
            message = (
                f"none of the {len(self._trials.knobs)} movable numbers has a measurable effect on the rate"
                f" of {closest.rate:.1%}, and {wanted}; change the rules"
            )
        else:
            message = (
                f"no number moves by more than {LARGEST_MOVE:.0%} of itself, which brings the rate to"
                f" {closest.rate:.1%} only, and {wanted}; largest moves: {_some(closest)}; change the rules"
            )
        return NotBalanced((Finding("BALANCE_OUT_OF_REACH", "", message),), closest.report)

    def _unconfirmed(self, after: Trial) -> NotBalanced:
        message = (
            f"the moves were not confirmed on {after.report.runs} fresh runs: the last rate was"
            f" {after.rate:.1%}, and the target is {self._target}; use a wider target or allow more runs"
        )
        return NotBalanced((Finding("BALANCE_NOT_CONFIRMED", "", message),), after.report)


def _failed(trial: Trial) -> NotBalanced:
    """Return the failure for rules that raise errors, before or after the moves."""
    findings = tuple(rule_finding(error, trial.report) for error in trial.report.errors)
    return NotBalanced(findings, trial.report)


def _some(trial: Trial) -> str:
    """Describe the largest moves of a candidate."""
    largest = sorted(trial.edits, key=lambda edit: -abs(edit.after / edit.before - 1))
    more = f" and {len(largest) - _TOLD} more" if len(largest) > _TOLD else ""
    return "; ".join(edit.summary for edit in largest[:_TOLD]) + more

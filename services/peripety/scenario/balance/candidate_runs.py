"""Candidate runs of repair and balancing: common random numbers, and a bisection for thresholds.

Candidates share their runs, so that they differ only by their numbers. A result must be confirmed on fresh
runs. `repair` finds the smallest common factor that brings the fail rate into its budget.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peripety import engine
from peripety.certification.difficulty_gate import BudgetMiss
from peripety.certification.gate_thresholds import INDIFFERENCE_ZONE
from peripety.certification.simulation import MAX_SECONDS, SimulationRunner, too_slow_error
from peripety.scenario.balance.parameters import (
    MAX_MOVE,
    describe_number_change,
    select_for_repair,
    set_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from peripety.certification.options import DryRunOptions
    from peripety.core.concurrency import WorkerPool
    from peripety.engine import DryRunReport, Program
    from peripety.scenario.balance.parameters import TunableNumber
    from peripety.scenario.types import NumberEdit


FIRST_FRESH_RUN = 2**32
"""The number of the first fresh run: unused by any search and gate."""

Setting: TypeAlias = "tuple[float, ...]"
"""A value for each tunable number."""


@dataclass(frozen=True, slots=True)
class BalanceCandidate:
    """Candidate: a scenario with moved numbers, and its runs.

    Attributes:
        setting: the values of all tunable numbers.
        program: the scenario.
        edits: the moved numbers.
        report: the runs.
    """

    setting: Setting
    program: Program
    edits: tuple[NumberEdit, ...]
    report: DryRunReport

    @property
    def rate(self) -> float:
        """Return the fail rate."""
        return self.report.fail_rate


class CandidateRuns:
    """Candidates of one scenario, each simulated once.

    Args:
        program: the scenario.
        numbers: the tunable numbers.
        runs: the number of runs per candidate.
        options: simulation options.
        workers: worker pool.
    """

    def __init__(
        self,
        program: Program,
        numbers: Sequence[TunableNumber],
        runs: int,
        options: DryRunOptions,
        workers: WorkerPool,
    ) -> None:
        self.numbers = numbers
        self._spec = program.spec
        self._runs = runs
        self._options = options
        self._workers = workers
        self._candidates: dict[Setting, BalanceCandidate] = {}
        self._until = time.monotonic() + MAX_SECONDS

    @property
    def start_setting(self) -> Setting:
        """Return the current values of all tunable numbers."""
        return tuple(knob.value for knob in self.numbers)

    async def get(self, setting: Setting) -> BalanceCandidate:
        """Return the candidate of a setting.

        Raises:
            ResourceExhaustedError: the runs exceed the time limit.
        """
        if setting not in self._candidates:
            self._candidates[setting] = await self.simulate(setting, 0, self._runs)
        return self._candidates[setting]

    async def simulate(self, setting: Setting, first_run: int, runs: int) -> BalanceCandidate:
        """Return the candidate of a setting, on other runs."""
        if time.monotonic() > self._until:
            raise too_slow_error()
        program, edits = await self._workers.run(self._build, setting)
        report = await SimulationRunner(program, self._options, self._workers).run(first_run, runs)
        return BalanceCandidate(setting, program, edits, report)

    def describe_move(self, index: int, before: Setting, after: Setting) -> str:
        """Describe the move of one number between two settings."""
        return describe_number_change(self._spec, self.numbers[index].segments, before[index], after[index])

    def _build(self, setting: Setting) -> tuple[Program, tuple[NumberEdit, ...]]:
        spec, edits = set_numbers(self._spec, dict(zip(self.numbers, setting, strict=True)))
        return engine.compile_trusted(engine.canonicalize(spec)), edits


async def find_threshold(
    candidate_at: Callable[[int], Awaitable[BalanceCandidate]],
    steps: int,
    reached: Callable[[BalanceCandidate], bool],
) -> tuple[int, BalanceCandidate]:
    """Return the first of the steps 1 … `steps` that satisfies a predicate, by bisection; the last one must.

    Args:
        candidate_at: returns the candidate of a step.
        steps: the number of steps.
        reached: the predicate.
    """
    low, high = 0, steps
    best = await candidate_at(high)
    while high - low > 1:
        middle = (low + high) // 2
        candidate = await candidate_at(middle)
        if reached(candidate):
            high, best = middle, candidate
        else:
            low = middle
    return high, best


_SEARCH_RUNS = 256
_STEPS = 32
# Wider than the noise of the search plus the indifference zone of the gate.
_MARGIN = 2 * INDIFFERENCE_ZONE


@dataclass(frozen=True, slots=True)
class BudgetRepair:
    """Result of a repair.

    Attributes:
        program: the repaired scenario; None if even the largest moves miss the budget.
        edits: the moved numbers.
        fail_rate: the rate in the search, of the repaired scenario or of the largest moves.
        limit: the end of the band that is missed.
        target: the rate that the search needs: the end of the band with a margin for fresh runs.
    """

    program: Program | None
    edits: tuple[NumberEdit, ...]
    fail_rate: float
    limit: float
    target: float


async def repair(
    program: Program,
    miss: BudgetMiss,
    options: DryRunOptions,
    workers: WorkerPool,
) -> BudgetRepair:
    """Repair the numbers of a scenario that misses its budget.

    Args:
        program: the scenario.
        miss: the kind of the miss.
        options: simulation options.
        workers: worker pool.

    Raises:
        ResourceExhaustedError: the runs exceed the time limit.
    """
    trials = CandidateRuns(program, select_for_repair(program.spec), _SEARCH_RUNS, options, workers)
    is_harder = miss is BudgetMiss.TOO_EASY
    target = _target_rate(program, harder=is_harder)
    budget = program.spec["negativity_budget"]
    limit = budget["min_fail_rate"] if is_harder else budget.get("max_fail_rate", 1.0)

    async def at(step: int) -> BalanceCandidate:
        move = MAX_MOVE * step / _STEPS
        factor = 1 + move if is_harder else 1 - move
        return await trials.get(tuple(knob.with_factor(factor) for knob in trials.numbers))

    def reached(trial: BalanceCandidate) -> bool:
        return trial.rate >= target if is_harder else trial.rate <= target

    largest = await at(_STEPS)
    if not reached(largest):
        return BudgetRepair(None, largest.edits, largest.rate, limit, target)
    _, best = await find_threshold(at, _STEPS, reached)
    return BudgetRepair(best.program, best.edits, best.rate, limit, target)


def _target_rate(program: Program, *, harder: bool) -> float:
    """Return the target rate: a margin inside the band, or the middle of a narrow band."""
    budget = program.spec["negativity_budget"]
    least: float = budget["min_fail_rate"]
    most: float = budget.get("max_fail_rate", 1.0)
    middle = (least + most) / 2
    return min(least + _MARGIN, middle) if harder else max(most - _MARGIN, middle)

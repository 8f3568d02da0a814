"""Difficulty gate with one repair of numbers, if only the budget is missed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.errors import Finding, InternalError
from peripety.gateway.streams import following
from peripety.scenarios.balancing.knobs import LARGEST_MOVE
from peripety.scenarios.balancing.repairing import Repair, repair
from peripety.scenarios.balancing.searching import FRESH_RUN
from peripety.scenarios.gate import Verdict, judge, rate_sentence
from peripety.scenarios.model import NumbersMoved, Progress, Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.scenarios.model import DryRunOptions, NumberEdit
    from peripety.sim import Program
    from peripety.workers import Workers

__all__ = ["Trial"]


class Trial:
    """Gate of one program, with a repair.

    Attributes:
        program: the program; after a repair the repaired one.
        edits: the numbers that the repair moved.
    """

    def __init__(self, program: Program, options: DryRunOptions, workers: Workers) -> None:
        self._workers = workers
        self._options = options
        self._verdict: Verdict | None = None
        self.program = program
        self.edits: tuple[NumberEdit, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Return the last verdict of the gate, with any failed repair; available after `events`."""
        if self._verdict is None:
            raise InternalError("The gate ended without a verdict")
        return self._verdict

    async def events(self, *, auto_repair: bool = True) -> AsyncIterator[Progress | NumbersMoved]:
        """Run the gate; if only the budget is missed, repair and run it again on fresh runs.

        Yields:
            Progress of the gate as a fraction of its work, and `NumbersMoved` after a repair.
        """
        async with following(self._judged(0, "simulating runs without a model", 0.0)) as steps:
            async for step in steps:
                yield step
        first = self.verdict
        if first.miss is None or not auto_repair:
            return
        yield Progress(Stage.REPAIRING, f"{first.miss.value}: looking for the smallest change", 0.4)
        found = await repair(self.program, first.miss, self._options, self._workers)
        if found.program is None:
            self._add(_out_of_reach(found))
            return
        self.program, self.edits = found.program, found.edits
        yield NumbersMoved(self.edits, first.report)
        async with following(self._judged(FRESH_RUN, "confirming the change on fresh runs", 0.7)) as steps:
            async for step in steps:
                yield step
        if not self.verdict.accepted:
            self._add(_not_confirmed())

    async def _judged(self, first_run: int, purpose: str, since: float) -> AsyncIterator[Progress]:
        steps = judge(self.program, self._options, self._workers, first_run=first_run)
        yield Progress(Stage.DRY_RUNNING, purpose, since)
        async with following(steps):
            async for step in steps:
                if isinstance(step, Verdict):
                    self._verdict = step
                else:
                    share = step.runs / self._options.max_runs
                    yield Progress(Stage.DRY_RUNNING, rate_sentence(step), since + 0.3 * share)

    def _add(self, finding: Finding) -> None:
        self._verdict = replace(self.verdict, findings=(*self.verdict.findings, finding))


def _out_of_reach(found: Repair) -> Finding:
    if not found.edits:
        message = "no event weight, event effect or decay has a number that could be moved"
    else:
        message = (
            f"moving every weight and effect of events and every decay by as much as {LARGEST_MOVE:.0%}"
            f" brings the rate to {found.fail_rate:.1%} only; change the rules"
        )
    return Finding("REPAIR_OUT_OF_REACH", "/negativity_budget", message)


def _not_confirmed() -> Finding:
    message = "numbers were moved, and the result did not hold on fresh runs; change the rules"
    return Finding("REPAIR_NOT_CONFIRMED", "/negativity_budget", message)

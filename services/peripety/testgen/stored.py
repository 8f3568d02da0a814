"""A run as it is kept: what it is to do, all that happened in it, and what it used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from peripety.durable.model import RUNNING
from peripety.testgen.events import Failed
from peripety.testgen.loop.ledger import Account
from peripety.testgen.loop.state import RunState
from peripety.testgen.loop.stats import stats_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import PeripetyError
    from peripety.testgen.events import Phase, RunEvent, Stats, StoppedBy
    from peripety.testgen.model import Quality, TestGenOrder, Verdict
    from peripety.testgen.sources import KeptSubject

__all__ = ["ENDED", "Rerun", "Run", "RunSummary"]

ENDED = "ended"
"""The state of a run in which nothing more will happen."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """What the tests of a run showed when they were run again after its end.

    Attributes:
        verdicts: by the ids of the tests.
        quality: how good they are together.
    """

    verdicts: Mapping[str, Verdict]
    quality: Quality


@dataclass(frozen=True)
class Run:
    """A run.

    Attributes:
        run_id: its id.
        order: what it is to do.
        subject: what its tests are run on; None for nothing.
        created: when it was created, in microseconds since 1970.
        updated: when its last event was recorded, likewise.
        account: what it has used, and what is reserved.
        events: all that happened in it.
        state: `RUNNING` or `ENDED`.
        last_sequence: sequence of its last recorded event.
        rerun: the last time that its tests were run again; None when they were not.
    """

    run_id: str
    order: TestGenOrder
    subject: KeptSubject | None
    created: int
    updated: int
    account: Account = Account()  # noqa: RUF009 - frozen
    events: tuple[RunEvent, ...] = ()
    state: str = RUNNING
    last_sequence: int = 0
    rerun: Rerun | None = None

    @cached_property
    def so_far(self) -> RunState:
        """How far it is."""
        return RunState.fold(self.events, self.order)

    @property
    def stats(self) -> Stats:
        """The sums so far, or those at its end, with what is known of its tests now."""
        stats = self.so_far.ended or stats_of(self.so_far, self.account)
        return replace(stats, quality=self.quality)

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """What became of tests when they were run last, by their ids."""
        return {**self.so_far.verdicts, **(self.rerun.verdicts if self.rerun else {})}

    @property
    def quality(self) -> Quality | None:
        """How good its tests were when they were run last; None when they were not."""
        return self.rerun.quality if self.rerun else self.so_far.quality

    @property
    def error(self) -> PeripetyError | None:
        """Why it failed; None when it did not."""
        last = self.events[-1] if self.events else None
        return last.error if isinstance(last, Failed) else None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run without its weight.

    Attributes:
        run_id: its id.
        task_id: the caller's name of the task.
        phase: what it is busy with; None when it has not begun.
        total_tests: tests kept.
        stopped_by: why it ended; None while it goes on.
        created: when it was created, in microseconds since 1970.
        updated: when its last event was recorded, likewise.
    """

    run_id: str
    task_id: str
    phase: Phase | None
    total_tests: int
    stopped_by: StoppedBy | None
    created: int
    updated: int

"""Stored form of a run: its order, event log and budget account, with derived values."""

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
"""The state of a completed run."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """The results of rerunning the tests of a run after its end.

    Attributes:
        verdicts: by the ids of the tests.
        quality: their quality together.
    """

    verdicts: Mapping[str, Verdict]
    quality: Quality


@dataclass(frozen=True)
class Run:
    """A run.

    Attributes:
        run_id: its id.
        order: its input.
        subject: the subject of its tests; None for text only.
        created: time of creation, in microseconds since 1970.
        updated: time of its last event, in microseconds since 1970.
        account: its budget account: usage and reservations.
        events: its event log.
        state: `RUNNING` or `ENDED`.
        last_sequence: sequence number of its last event.
        rerun: the latest rerun; None without one.
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
        """The state of the run, folded from its events."""
        return RunState.fold(self.events, self.order)

    @property
    def stats(self) -> Stats:
        """The final or current statistics, with the latest quality of its tests."""
        stats = self.so_far.ended or stats_of(self.so_far, self.account)
        return replace(stats, quality=self.quality)

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The latest verdicts by test id."""
        return {**self.so_far.verdicts, **(self.rerun.verdicts if self.rerun else {})}

    @property
    def quality(self) -> Quality | None:
        """The latest measured quality; None without one."""
        return self.rerun.quality if self.rerun else self.so_far.quality

    @property
    def error(self) -> PeripetyError | None:
        """The error of a failed run; None for any other."""
        last = self.events[-1] if self.events else None
        return last.error if isinstance(last, Failed) else None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A summary of a run.

    Attributes:
        run_id: its id.
        task_id: the caller's name of the task.
        phase: its phase; None before its begin.
        total_tests: the number of tests.
        stopped_by: the reason for its end; None while it is running.
        created: time of creation, in microseconds since 1970.
        updated: time of its last event, in microseconds since 1970.
    """

    run_id: str
    task_id: str
    phase: Phase | None
    total_tests: int
    stopped_by: StoppedBy | None
    created: int
    updated: int

"""What is asked of the store of runs, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.errors import PeripetyError
    from peripety.gateway.agents.model import Progress, Recorded, Run, RunEvent, RunState

__all__ = ["Change", "Lease", "Log", "LostLeaseError", "RunSummary", "Started"]


class LostLeaseError(Exception):
    """Somebody else works on the run now, or it was stopped or deleted."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a run.

    Attributes:
        name: tells it from all others.
        until: when it ends unless it is renewed, in microseconds since 1970.
    """

    name: str
    until: int


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a run.

    Attributes:
        events: what to tell of it, in order.
        state: where it stands now; None leaves it there. In any state but RUNNING nobody holds a lease.
        progress: how far it is now; None leaves it there.
        error: why it failed.
    """

    events: Sequence[RunEvent] = ()
    state: RunState | None = None
    progress: Progress | None = None
    error: PeripetyError | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A run that a request has started or set going again.

    Attributes:
        run_id: the run.
        after: sequence of its last event before that.
        run: the run as it is now; None when the same request had done that before.
    """

    run_id: str
    after: int
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """A piece of the log of a run.

    Attributes:
        events: in order.
        state: where the run stood when they were read.
        abandoned: whether it should be worked on and nobody does.
    """

    events: list[Recorded]
    state: RunState
    abandoned: bool


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run without its weight."""

    run_id: str
    name: str
    state: RunState
    completed_phases: int
    total_phases: int
    created: int
    updated: int

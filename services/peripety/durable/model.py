"""What is asked of a store of runs, and what it says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["RUNNING", "Change", "Lease", "Log", "LostLeaseError", "Recorded", "Started", "StoredRun"]

RUNNING = "running"
"""The state of a run that is to be worked on; in any other one nobody works on it."""

E = TypeVar("E")
R = TypeVar("R")


class LostLeaseError(Exception):
    """Somebody else works on the run now, or it was stopped or deleted."""


class StoredRun(Protocol):
    """What every run has."""

    @property
    def run_id(self) -> str:
        """Its id."""
        ...

    @property
    def created(self) -> int:
        """When it was created, in microseconds since 1970."""
        ...

    @property
    def updated(self) -> int:
        """When its last event was recorded, in microseconds since 1970."""
        ...

    @property
    def last_sequence(self) -> int:
        """Sequence of its last recorded event; 0 before the first one."""
        ...


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
class Change(Generic[E]):
    """What becomes of a run.

    Attributes:
        events: what to tell of it, in order.
        state: where it stands now; None leaves it there. In any state but `RUNNING` nobody holds a lease.
        values: what else is kept of it, by column.
    """

    events: Sequence[E] = ()
    state: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recorded(Generic[E]):
    """An event with its place in the log of its run, from 1."""

    sequence: int
    event: E


@dataclass(frozen=True, slots=True)
class Started(Generic[R]):
    """A run that a request has started or changed.

    Attributes:
        run_id: the run.
        after: sequence of its last event before that.
        run: the run as it is now; None when the same request had done that before.
    """

    run_id: str
    after: int
    run: R | None = None


@dataclass(frozen=True, slots=True)
class Log(Generic[E]):
    """A piece of the log of a run.

    Attributes:
        events: in order.
        running: whether the run was to be worked on when they were read.
        abandoned: whether it should be worked on and nobody does.
    """

    events: list[Recorded[E]]
    running: bool
    abandoned: bool

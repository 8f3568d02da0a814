"""Types of durable runs: stored run, lease, update and event log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["RUNNING", "Change", "Lease", "Log", "LostLeaseError", "Recorded", "Started", "StoredRun"]

RUNNING = "running"
"""The state of a run that has work to do; in every other state no worker holds it."""

E = TypeVar("E")
R = TypeVar("R")


class LostLeaseError(Exception):
    """The lease of a run was lost: another worker has it, or the run was stopped or deleted."""


class StoredRun(Protocol):
    """Properties common to all runs."""

    @property
    def run_id(self) -> str:
        """Id of the run."""
        ...

    @property
    def created(self) -> int:
        """Creation time in microseconds since 1970."""
        ...

    @property
    def updated(self) -> int:
        """Time of the last recorded event in microseconds since 1970."""
        ...

    @property
    def last_sequence(self) -> int:
        """Sequence of the last recorded event; 0 before the first one."""
        ...


@dataclass(frozen=True, slots=True)
class Lease:
    """The exclusive right to work on a run (a lease).

    Attributes:
        name: unique name.
        until: expiry time in microseconds since 1970, unless it is renewed.
    """

    name: str
    until: int


@dataclass(frozen=True, slots=True)
class Change(Generic[E]):
    """An update of a run: events, state and columns that change together.

    Attributes:
        events: events to append, in order.
        state: new state; None leaves it unchanged. In any state but `RUNNING` the lease is released.
        values: further values by column.
    """

    events: Sequence[E] = ()
    state: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recorded(Generic[E]):
    """An event with its position in the log of its run, from 1."""

    sequence: int
    event: E


@dataclass(frozen=True, slots=True)
class Started(Generic[R]):
    """A run that a request has started or changed.

    Attributes:
        after: sequence of the last event before the request.
        run: the run after the change; None if the same request was executed before.
    """

    run_id: str
    after: int
    run: R | None = None


@dataclass(frozen=True, slots=True)
class Log(Generic[E]):
    """A page of the event log of a run.

    Attributes:
        events: in order.
        running: True if the run had work to do when the events were read.
        abandoned: True if the run has work to do and no worker holds its lease.
    """

    events: list[Recorded[E]]
    running: bool
    abandoned: bool

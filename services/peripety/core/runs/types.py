"""Types of durable runs: stored run, lease, update, event log, and the error that ended a run.

Clients receive the public form of that error. Its JSON form is stored.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from peripety.core import logging_setup
from peripety.errors import FieldViolation, PeripetyError, current_code, hide_internal_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.core.idempotency.store import PendingResponse

_log = logging.getLogger(__name__)


def public_error(error: Exception, run_id: str) -> PeripetyError:
    """Convert an exception to the error shown to clients; internal errors are logged and hidden.

    Args:
        error: the error that ended the run.
        run_id: the id under which the error is logged.
    """
    public = hide_internal_error(error, "the id of the run")
    if public is not error:
        _log.error(
            "unexpected error in a run", extra={"run_id": run_id, **logging_setup.describe_error(error)}
        )
    return public


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
class RunUpdate(Generic[E]):
    """An update of a run: events, state and columns that change together.

    Attributes:
        events: events to append, in order.
        state: new state; None leaves it unchanged. In any state but `RUNNING` the lease is released.
        values: further values by column.
        pending: the last event, which is made in the transaction of the update; None without one.
    """

    events: Sequence[E] = ()
    state: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    pending: PendingResponse[E] | None = None


@dataclass(frozen=True, slots=True)
class RecordedEvent(Generic[E]):
    """An event with its position in the log of its run, from 1."""

    sequence: int
    event: E


@dataclass(frozen=True, slots=True)
class StartResult(Generic[R]):
    """A run that a request has started or changed.

    Attributes:
        after: sequence of the last event before the request.
        run: the run after the change; None if the same request was executed before.
    """

    run_id: str
    after: int
    run: R | None = None


@dataclass(frozen=True, slots=True)
class RunLog(Generic[E]):
    """A page of the event log of a run.

    Attributes:
        events: in order.
        is_running: True if the run had work to do when the events were read.
        is_abandoned: True if the run has work to do and no worker holds its lease.
    """

    events: list[RecordedEvent[E]]
    is_running: bool
    is_abandoned: bool


_ERRORS = {error.kind.value: error for error in PeripetyError.__subclasses__()}


def encode_error(error: PeripetyError | None) -> str | None:
    """Encode the error of a run as JSON."""
    if error is None:
        return None
    # ASCII escapes: a message may quote characters that a database does not accept in text.
    return json.dumps(
        {
            "kind": error.kind.value,
            "message": error.message,
            "code": error.code,
            "details": error.details,
            "violations": [[violation.field, violation.reason] for violation in error.violations],
            "retry_after": error.retry_after,
        },
        separators=(",", ":"),
    )


def decode_error(text: str | None) -> PeripetyError | None:
    """Decode the error of a run."""
    if text is None:
        return None
    written = json.loads(text)
    kind = _ERRORS[written.pop("kind")]
    violations = [FieldViolation(*violation) for violation in written.pop("violations")]
    code = current_code(written.pop("code"))
    return kind(written.pop("message"), code=code, violations=violations, **written)

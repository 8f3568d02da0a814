"""Streams that continue after a lost connection, the turns of a session, and batches of specifications."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import grpc

from peripety.client.channel import MAX_MESSAGE_BYTES, with_request_id
from peripety.client.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.api.common.v1.engine_pb2 import ActionCall
    from peripety.api.session.v1.session_pb2 import Session, TakeTurnRequest, TurnEvent
    from peripety.client.errors import CallError

_TRIES = 8
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_LONGEST_HINT = 30.0
_ENDED_EARLY = {"SERVER_SHUTTING_DOWN", "TOO_SLOW"}


class Cursor:
    """Position in a stream of numbered events, and the request that continues there.

    Args:
        request: the first request; it gets a `request_id` if it needs one.
        timeout: seconds for the whole stream, repetitions included; None for no limit of its own.
    """

    def __init__(self, request: Any, timeout: float | None = None) -> None:
        self.request = type(request)()
        self.request.CopyFrom(with_request_id(request))
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._fields = set(request.DESCRIPTOR.fields_by_name)
        self._last = request.after_sequence if "after_sequence" in self._fields else 0
        self._attempt = ""
        self._failures = 0

    def remaining(self) -> float | None:
        """Return the seconds until the deadline; None without one."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def advance(self, response: Any) -> bool:
        """Record a response, and return True if it is not a repetition.

        Raises:
            Unavailable: the server has ended the stream early, and continues with another call.
        """
        if "closed" in response.DESCRIPTOR.fields_by_name and response.closed.reason in _ENDED_EARLY:
            raise Unavailable(f"server ended the stream: {response.closed.reason}")
        self._failures = 0
        event = _numbered_event(response)
        if event is None:
            return True
        attempt = event.accepted.attempt_id if _kind(event) == "accepted" else self._attempt
        if event.sequence <= self._last and attempt == self._attempt:
            return False
        self._attempt, self._last = attempt, event.sequence
        return True

    def pause_after(self, error: CallError) -> float:
        """Prepare the request that continues, and return the seconds to wait before it.

        Raises:
            CallError: the given error, if repeating does not help or has not helped.
        """
        self._failures += 1
        hint = 0.0 if error.retry_after is None else error.retry_after
        is_busy = error.status is grpc.StatusCode.RESOURCE_EXHAUSTED and 0 < hint <= _LONGEST_HINT
        is_forgotten = error.reason == "WORK_NOT_FOUND" and self._last > 0
        if self._failures >= _TRIES or not (error.is_lost_connection or is_busy or is_forgotten):
            raise error
        if is_forgotten:  # the server lost the unfinished work: it starts again, from its first event
            self._last = 0
        if "after_sequence" in self._fields:
            self.request.after_sequence = self._last
        if "attempt_id" in self._fields:
            self.request.attempt_id = self._attempt
        backoff: float = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (self._failures - 1))
        return max(hint, backoff * random.uniform(0.5, 1))  # noqa: S311 - spreads clients, hides nothing


def _numbered_event(response: Any) -> Any:
    """Return the part of a response that has its sequence number; None for one without a number."""
    for part in ("turn_event", "rewound", "event"):
        if part in response.DESCRIPTOR.fields_by_name and response.HasField(part):
            return getattr(response, part)
    return response if "sequence" in response.DESCRIPTOR.fields_by_name else None


def _kind(event: Any) -> str | None:
    kind: str | None = event.WhichOneof("event") if "event" in event.DESCRIPTOR.oneofs_by_name else None
    return kind


def action(action_id: str, **params: str | float | bool) -> ActionCall:
    """Return an action with its parameters."""
    from peripety.api.common.v1 import engine_pb2  # noqa: PLC0415 - the stubs load on demand

    call = engine_pb2.ActionCall(action_id=action_id)
    for name, value in params.items():
        if isinstance(value, bool):
            call.params[name].flag = value
        elif isinstance(value, str):
            call.params[name].text = value
        else:
            call.params[name].number = value
    return call


def turn_request(
    session: Session, actions: Iterable[str | ActionCall], text: str, seat_id: str
) -> TakeTurnRequest:
    """Return the request of the next turn of a session."""
    from peripety.api.session.v1 import session_pb2  # noqa: PLC0415 - the stubs load on demand

    return session_pb2.TakeTurnRequest(
        session_id=session.session_id,
        expected_turn=session.turn + 1,
        actions=[action(chosen) if isinstance(chosen, str) else chosen for chosen in actions],
        input=text,
        pov_entity_id=session.pov_entity_id,
        seat_id=seat_id,
    )


def update_session(session: Session, event: TurnEvent) -> None:
    """Advance a session by the committed event of its next turn. `state` is cleared: events have no state."""
    if event.WhichOneof("event") != "committed":
        return
    end = event.committed
    session.turn, session.last_sequence = event.turn, event.sequence
    session.state_hash, session.chain_hash, session.next_seat_id = (
        end.state_hash,
        end.chain_hash,
        end.next_seat_id,
    )
    session.status.CopyFrom(end.status)
    session.update_time.CopyFrom(end.commit_time)
    del session.legal_actions[:]
    session.legal_actions.extend(end.legal_actions)
    session.ClearField("state")


_ITEMS_PER_MESSAGE = 256
_BYTES_PER_MESSAGE = MAX_MESSAGE_BYTES // 8
_MAX_SPEC_BYTES = 1024 * 1024 + 1
"""Longer specifications are rejected for their length, so the rest is not sent."""


def batch_requests(
    documents: Iterable[tuple[str, bytes]], options: Any, failures: list[Exception]
) -> Iterator[Any]:
    """Pack documents into few messages. An error of `documents` ends the batch and is put into `failures`."""
    from peripety.api.scenario.v1 import scenario_pb2  # noqa: PLC0415 - the stubs load on demand

    request, size = scenario_pb2.ValidateScenariosRequest(options=options), 0
    try:
        for item_id, spec in documents:
            request.items.add(item_id=item_id, spec=spec[:_MAX_SPEC_BYTES])
            size += len(spec)
            if len(request.items) == _ITEMS_PER_MESSAGE or size >= _BYTES_PER_MESSAGE:
                yield request
                request, size = scenario_pb2.ValidateScenariosRequest(), 0
    except Exception as error:  # noqa: BLE001 - gRPC would replace it; the client raises it
        failures.append(error)
    if request.items:
        yield request

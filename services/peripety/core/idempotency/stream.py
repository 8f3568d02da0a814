"""Response streams with sequence numbers, recorded so that they can be replayed and resumed."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

from peripety.core.concurrency import closing
from peripety.core.idempotency.store import PendingResponse
from peripety.core.validation import check_request_id
from peripety.errors import require_field

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection

    from google.protobuf.message import Message
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.idempotency.store import IdempotencyStore


class _StreamResponse(Protocol):
    """A message of a resumable stream."""

    sequence: int

    @classmethod
    def FromString(cls, s: bytes, /) -> Self: ...  # noqa: N802 - protobuf's name

    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's name

    def WhichOneof(self, oneof_group: Literal["event"], /) -> str | None: ...  # noqa: N802 - protobuf's name


_Event = TypeVar("_Event")
_Message = TypeVar("_Message", bound=_StreamResponse)


class ResponseRecorder:
    """Recorder of response streams: converts events to responses and stores them.

    Args:
        store: stores the responses.
        final_events: names of the events that end their work.
    """

    def __init__(self, store: IdempotencyStore, final_events: Collection[str]) -> None:
        self._store = store
        self._final_events = frozenset(final_events)

    async def stream(
        self,
        request: Any,
        work: AsyncIterator[_Event],
        respond: Callable[[_Event], _Message | PendingResponse[_Message]],
        response_type: type[_Message],
    ) -> AsyncIterator[_Message]:
        """Yield the responses to a request, or replay them if the request was executed before.

        Args:
            request: a message with `request_id` and `after_sequence`.
            work: yields the events; not started if the responses are stored.
            respond: converts an event to a message without a sequence number.
            kind: the message type of the responses.

        Raises:
            InvalidArgumentError: one of the two fields is invalid.
            PeripetyError: errors of the store or of the work.
        """
        check_request_id(request.request_id)
        require_field(request.after_sequence >= 0, ".after_sequence", "must not be negative")
        answer = self._store.run_once(
            request.request_id,
            request_fingerprint(request),
            self._encode(work, respond),
            after=request.after_sequence,
        )
        async with closing(answer) as responses:
            async for data in responses:
                yield response_type.FromString(data)

    async def execute_once(self, request: Any, change: Callable[[AsyncConnection], Awaitable[None]]) -> None:
        """Make a change unless the same request has made it already.

        Args:
            request: a message with `request_id`.
            change: makes the change in the transaction that stores the record of the request.

        Raises:
            InvalidArgumentError: the request has no id.
            PeripetyError: errors of the store or of the change.
        """
        check_request_id(request.request_id)
        await self._store.execute_once(request.request_id, request_fingerprint(request), change)

    async def _encode(
        self,
        work: AsyncIterator[_Event],
        respond: Callable[[_Event], _Message | PendingResponse[_Message]],
    ) -> AsyncIterator[bytes | PendingResponse[bytes]]:
        """Yield events as numbered, encoded responses; the last one is pending."""
        sequence = 0
        async with closing(work):
            async for event in work:
                response, sequence = respond(event), sequence + 1
                numbered = partial(_encode_numbered, sequence)
                if isinstance(response, PendingResponse):
                    yield response.map(numbered)
                elif response.WhichOneof("event") in self._final_events:
                    yield PendingResponse(partial(_without_change, response)).map(numbered)
                else:
                    yield numbered(response)


def _encode_numbered(sequence: int, response: _StreamResponse) -> bytes:
    response.sequence = sequence
    return response.SerializeToString()


async def _without_change(response: _Message, _connection: AsyncConnection) -> _Message:
    """Return a final response that has no database change."""
    return response


def request_fingerprint(request: Message) -> str:
    """Return the fingerprint of a request: a hash of all fields except the resume position."""
    same = type(request)()
    same.CopyFrom(request)
    if "after_sequence" in same.DESCRIPTOR.fields_by_name:
        same.ClearField("after_sequence")
    return hashlib.sha256(
        same.DESCRIPTOR.name.encode() + same.SerializeToString(deterministic=True),
    ).hexdigest()

"""Work as numbered responses, which are the same ones again when its request is sent again."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

from peripety.answering.log import Pending
from peripety.gateway.streams import following
from peripety.requests import check_request_id, require

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection

    from google.protobuf.message import Message
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.answering.log import RequestLog

__all__ = ["Recorder"]


class _Response(Protocol):
    """A message of a stream that can be taken up again."""

    sequence: int

    @classmethod
    def FromString(cls, s: bytes, /) -> Self: ...  # noqa: N802 - protobuf's name

    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's name

    def WhichOneof(self, oneof_group: Literal["event"], /) -> str | None: ...  # noqa: N802 - protobuf's name


_Event = TypeVar("_Event")
_Told = TypeVar("_Told", bound=_Response)


class Recorder:
    """Answers requests with events, and keeps their answers.

    Args:
        log: keeps them.
        last: names of the events that are the last ones of their work.
    """

    def __init__(self, log: RequestLog, last: Collection[str]) -> None:
        self._log = log
        self._last = frozenset(last)

    async def answers(
        self,
        request: Any,
        work: AsyncIterator[_Event],
        respond: Callable[[_Event], _Told | Pending[_Told]],
        kind: type[_Told],
    ) -> AsyncIterator[_Told]:
        """The responses to a request, or the same ones again when it was answered before.

        Args:
            request: a message with `request_id` and `after_sequence`.
            work: the events as they come; not begun when the answer is kept.
            respond: puts an event into a message whose sequence is left open.
            kind: the type of the responses.

        Raises:
            InvalidArgumentError: one of these two fields is wrong.
            PeripetyError: as `RequestLog.once`, or what the work raises.
        """
        check_request_id(request.request_id)
        require(request.after_sequence >= 0, ".after_sequence", "must not be negative")
        answer = self._log.once(
            request.request_id,
            _fingerprint(request),
            self._encoded(work, respond),
            after=request.after_sequence,
        )
        async with following(answer) as responses:
            async for data in responses:
                yield kind.FromString(data)

    async def change_once(self, request: Any, change: Callable[[AsyncConnection], Awaitable[None]]) -> None:
        """Make a change, unless the same request has made it already.

        Args:
            request: a message with `request_id`.
            change: makes the change in the transaction that keeps the record of the request.

        Raises:
            InvalidArgumentError: the request has no id.
            PeripetyError: as `RequestLog.change_once`, or what the change raises.
        """
        check_request_id(request.request_id)
        await self._log.change_once(request.request_id, _fingerprint(request), change)

    async def _encoded(
        self, work: AsyncIterator[_Event], respond: Callable[[_Event], _Told | Pending[_Told]]
    ) -> AsyncIterator[bytes | Pending[bytes]]:
        """Events as numbered responses in bytes, of which the last is pending."""
        sequence = 0
        async with following(work):
            async for event in work:
                response, sequence = respond(event), sequence + 1
                numbered = partial(_numbered, sequence)
                if isinstance(response, Pending):
                    yield response.told(numbered)
                elif response.WhichOneof("event") in self._last:
                    yield Pending(partial(_unchanged, response)).told(numbered)
                else:
                    yield numbered(response)


def _numbered(sequence: int, response: _Response) -> bytes:
    response.sequence = sequence
    return response.SerializeToString()


async def _unchanged(response: _Told, _connection: AsyncConnection) -> _Told:
    """A last response that comes with no change."""
    return response


def _fingerprint(request: Message) -> str:
    """What makes a request the same: all of it but where the caller wants to go on."""
    same = type(request)()
    same.CopyFrom(request)
    if "after_sequence" in same.DESCRIPTOR.fields_by_name:
        same.ClearField("after_sequence")
    return hashlib.sha256(
        same.DESCRIPTOR.name.encode() + same.SerializeToString(deterministic=True)
    ).hexdigest()

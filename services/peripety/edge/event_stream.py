"""Server-sent events: their text, logs that several readers follow, and heartbeats.

An `EventLog` decouples the source of events from its readers. The source ends even if every reader has gone,
and a reader that comes back continues after the last event that it has seen. A log is bounded: a reader that
falls behind its oldest event gets an error and has to start again, and the memory of a stream stays constant.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from peripety.edge.problems import to_problem
from peripety.errors import ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HEARTBEAT_SECONDS = 15.0
"""Longest silence of a stream. Proxies close connections that are silent for a minute or less."""

_HEARTBEAT = b": heartbeat\n\n"
_MAX_BYTES = 4 * 1024 * 1024
_SEQUENCE_DIGITS = 16
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event.

    Attributes:
        name: its type.
        data: its content as JSON.
        event_id: position of the event in its stream, for `Last-Event-ID`; empty for none.
    """

    name: str
    data: str
    event_id: str = ""

    @classmethod
    def of(cls, name: str, value: Any, event_id: str = "") -> ServerEvent:
        """Return the event of a JSON value."""
        return cls(name, json.dumps(value, ensure_ascii=False, separators=(",", ":")), event_id)

    def encode(self) -> bytes:
        """Return the event as text of a stream. JSON has no line breaks, so the data is one line."""
        position = f"id: {self.event_id}\n" if self.event_id else ""
        return f"{position}event: {self.name}\ndata: {self.data}\n\n".encode()

    def to_frame(self) -> str:
        """Return the event as a text frame of a WebSocket."""
        position = json.dumps(self.event_id)
        return f'{{"event":{json.dumps(self.name)},"id":{position},"data":{self.data}}}'


def describe_stream(description: str, message: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the OpenAPI description of a response with server-sent events.

    Args:
        description: its events.
        message: the schema of the content of an event `message`; without it, events have other names.
    """
    events = [_describe_event({"const": "error"}, {"$ref": "#/components/schemas/Problem"})]
    if message is None:
        events.append(_describe_event({"type": "string", "not": {"const": "error"}}, {"type": "object"}))
    else:
        events.append(_describe_event({"const": "message"}, message))
        events.append(_describe_event({"const": "done"}, {"type": "object", "maxProperties": 0}))
    return {"description": description, "content": {"text/event-stream": {"schema": {"oneOf": events}}}}


def _describe_event(name: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": content}
    properties = {"event": name, "id": {"type": "string"}, "data": data}
    return {"type": "object", "properties": properties, "required": ["event", "data"]}


def error_event(error: Exception) -> ServerEvent:
    """Return the event that ends a stream which failed: the problem document of the error."""
    return ServerEvent.of("error", to_problem(error))


def parse_event_id(last_event_id: str | None) -> tuple[int, str]:
    """Return sequence and attempt of a header `Last-Event-ID`, where a stream is resumed.

    Args:
        last_event_id: the id of the last event that the client has seen: a sequence, or a sequence, a dot and
            an attempt. Anything else starts the stream from its beginning: (0, "").
    """
    sequence, _, attempt = (last_event_id or "").partition(".")
    return (int(sequence), attempt) if sequence.isdecimal() and len(sequence) <= _SEQUENCE_DIGITS else (0, "")


class EventLog:
    """The last events of a stream, for any number of readers.

    Args:
        max_bytes: maximum size of the stored events.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._events: deque[ServerEvent] = deque()
        self._first = 0
        self._bytes = 0
        self._max_bytes = max_bytes
        self._is_closed = False
        self._changed = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        """True if no event follows."""
        return self._is_closed

    @property
    def is_complete(self) -> bool:
        """True if no event was dropped."""
        return self._first == 0

    def append(self, event: ServerEvent) -> None:
        """Add an event, and drop the oldest ones above the limit."""
        self._events.append(event)
        self._bytes += len(event.data)
        while self._bytes > self._max_bytes and len(self._events) > 1:
            self._bytes -= len(self._events.popleft().data)
            self._first += 1
        self._notify()

    def close(self) -> None:
        """End the stream."""
        self._is_closed = True
        self._notify()

    def find(self, event_id: str) -> int | None:
        """Return the position after the last event with an id; None if the log does not have it."""
        for index in range(len(self._events) - 1, -1, -1):
            if self._events[index].event_id == event_id:
                return self._first + index + 1
        return None

    async def first(self) -> ServerEvent | None:
        """Wait for the first event, and return it; None if there is none."""
        while not self._events and not self._is_closed:
            await self._changed.wait()
        return self._events[0] if self._events else None

    async def follow(
        self, position: int = 0, heartbeat: float = HEARTBEAT_SECONDS
    ) -> AsyncIterator[ServerEvent | None]:
        """Iterate over the events from a position on, to the end of the stream.

        Args:
            position: number of the first event.
            heartbeat: longest silence in seconds.

        Yields:
            Events, and None after each silence.

        Raises:
            ResourceExhaustedError: the reader was too slow, and the next event is no longer there.
        """
        while True:
            if position < self._first:
                raise ResourceExhaustedError(
                    "reader is too slow; connect again with the id of the last event", code="TOO_SLOW"
                )
            if position < self._first + len(self._events):
                yield self._events[position - self._first]
                position += 1
            elif self._is_closed:
                return
            else:
                changed = self._changed
                try:
                    await asyncio.wait_for(changed.wait(), heartbeat)
                except TimeoutError:
                    yield None

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class EventStreamResponse(StreamingResponse):
    """Response that streams events; a failure of their source becomes a last event `error`."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[ServerEvent | None]) -> None:
        super().__init__(_encode(events), headers=_HEADERS)


async def _encode(events: AsyncIterator[ServerEvent | None]) -> AsyncIterator[bytes]:
    try:
        async for event in events:
            yield _HEARTBEAT if event is None else event.encode()
    except Exception as error:  # noqa: BLE001 - the border: the status has been sent
        yield error_event(error).encode()


async def with_heartbeats(events: AsyncIterator[ServerEvent]) -> AsyncIterator[ServerEvent | None]:
    """Yield the events of a source for a single reader, and None after each silence.

    The source is closed with its reader.
    """
    log = EventLog()
    work = asyncio.ensure_future(collect(log, events))
    try:
        async for event in log.follow():
            yield event
    finally:
        work.cancel()


async def collect(log: EventLog, events: AsyncIterator[ServerEvent]) -> None:
    """Append the events of a source to a log and close it; a failure becomes its last event."""
    try:
        async for event in events:
            log.append(event)
    except Exception as error:  # noqa: BLE001 - the readers get it
        log.append(error_event(error))
    finally:
        log.close()

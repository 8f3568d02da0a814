"""Clients that take turns and note when each part of one arrives, for little CPU time.

Both speak over a connection of their own for each session. They read no more of an event than its kind.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from bench.dialogue import GrpcSpeaker
from bench.session_game import ACTION, PARAMETER, POV, mark
from peripety.api.common.v1 import engine_pb2
from peripety.api.session.v1 import session_pb2 as pb
from support.servers.apps import new_id

if TYPE_CHECKING:
    from collections.abc import Iterator


_SERVICE = pb.DESCRIPTOR.services_by_name["SessionService"].full_name


@dataclass
class Taken:
    """A completed turn, in seconds of the monotonic clock.

    Attributes:
        session: its session.
        `asked`: time of the request.
        arrived: time of the first event of each kind, by kind.
        events: number of events.
    """

    session: int
    asked: float = field(default_factory=time.monotonic)
    arrived: dict[str, float] = field(default_factory=dict)
    events: int = 0

    def hear(self, kind: str) -> None:
        """Count an event in."""
        self.events += 1
        self.arrived.setdefault(kind, time.monotonic())

    @property
    def ended(self) -> float:
        """When it was committed."""
        return self.arrived["committed"]


class Player(Protocol):
    """Player of one session."""

    async def open(self) -> None:
        """Connect."""
        ...

    async def take(self) -> Taken:
        """Take the next turn, to its end.

        Raises:
            ConnectionError: it was not committed.
        """
        ...

    def close(self) -> None:
        """Hang up."""
        ...


class _Connection(asyncio.Protocol):
    """A connection that plays one turn at a time."""

    def __init__(self, port: int, number: int) -> None:
        self._port = port
        self._number = number
        self._ended: asyncio.Future[None] | None = None

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(lambda: self, "127.0.0.1", self._port)

    async def take(self) -> Taken:
        self._ended = asyncio.get_running_loop().create_future()
        self._taken = Taken(self._number)
        self._transport.write(self._question())
        await self._ended
        if "committed" not in self._taken.arrived:
            raise ConnectionError(f"a turn was not committed: {list(self._taken.arrived)}")
        return self._taken

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        if self._heard(data) and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(error or ConnectionError("the server hung up"))

    def _question(self) -> bytes:
        raise NotImplementedError

    def _heard(self, data: bytes) -> bool:
        raise NotImplementedError


class GrpcPlayer(_Connection):
    """Plays a session over gRPC.

    Args:
        port: of the server.
        number: by which the session is known.
        session: the session.
    """

    def __init__(self, port: int, number: int, session: pb.Session) -> None:
        super().__init__(port, number)
        self._speaker = _Stream(f"/{_SERVICE}/TakeTurn")
        self.session_id = session.session_id
        self._turn = session.turn

    async def open(self) -> None:
        await super().open()
        self._transport.write(self._speaker.opening)

    def _question(self) -> bytes:
        self._turn += 1
        call = engine_pb2.ActionCall(action_id=ACTION)
        call.params[PARAMETER].text = mark(self._number)
        request = pb.TakeTurnRequest(
            session_id=self.session_id,
            request_id=new_id(),
            expected_turn=self._turn,
            actions=[call],
            pov_entity_id=POV,
        )
        return self._speaker.ask(request.SerializeToString())

    def _heard(self, data: bytes) -> bool:
        reply, messages, ended = self._speaker.listen(data)
        if reply:
            self._transport.write(reply)
        for message in messages:
            self._taken.hear(pb.TakeTurnResponse.FromString(message).event.WhichOneof("event") or "nothing")
        return ended


class Watcher(asyncio.Protocol):
    """Follows a session over gRPC, and counts its events.

    Args:
        port: of the server.
        session_id: the session.
    """

    def __init__(self, port: int, session_id: str) -> None:
        self._port = port
        self._speaker = _Stream(f"/{_SERVICE}/WatchSession")
        self._request = pb.WatchSessionRequest(session_id=session_id, pov_entity_id=POV)
        self.events = 0

    async def open(self) -> None:
        """Begin to watch."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(lambda: self, "127.0.0.1", self._port)
        self._transport.write(self._speaker.opening + self._speaker.ask(self._request.SerializeToString()))

    def data_received(self, data: bytes) -> None:
        reply, messages, _ = self._speaker.listen(data)
        self.events += len(messages)
        if reply:
            self._transport.write(reply)

    def close(self) -> None:
        """Watch no more."""
        self._transport.close()


class _Stream(GrpcSpeaker):
    """The client's end of calls whose messages are read while they come."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._rest = b""

    def listen(self, data: bytes) -> tuple[bytes, list[bytes], bool]:
        """Return the bytes to send back, the completed messages, and whether the call has ended."""
        said, ended = b"", False
        messages: list[bytes] = []
        for kind, flags, payload in self._frames(data):
            if kind == self._DATA:
                messages += self._messages(payload)
            else:
                said += self._reply(kind, flags, payload)
            ended |= kind in {self._DATA, self._HEADERS} and bool(flags & self._END_STREAM)
        return said, messages, ended

    def _messages(self, payload: bytes) -> Iterator[bytes]:
        received, start = self._rest + payload, 0
        while len(received) >= start + 5:
            end = start + 5 + int.from_bytes(received[start + 1 : start + 5], "big")
            if len(received) < end:
                break
            yield received[start + 5 : end]
            start = end
        self._rest = received[start:]


class SsePlayer(_Connection):
    """Plays a session over server-sent events.

    Args:
        port: of the server.
        number: by which the session is known.
        session_id: the session.
    """

    def __init__(self, port: int, number: int, session_id: str) -> None:
        super().__init__(port, number)
        self._rest = b""
        body = {"session_id": session_id, "actions": [{"id": ACTION, "params": {PARAMETER: mark(number)}}]}
        self._request = _post(port, "/turns", body)

    def _question(self) -> bytes:
        self._rest = b""
        return self._request

    def _heard(self, data: bytes) -> bool:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"event: "):
                self._taken.hear(line[7:].decode())
        return self._rest == b"" and data.endswith(b"0\r\n\r\n")


def _post(port: int, path: str, body: Any) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Accept: text/event-stream\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content

"""Broadcaster: watched sessions of this process, and the turns that it plays.

Commits of this process reach watchers at once. Commits of other processes are found by polling: one query for
all watched sessions at a time.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety.errors import NotFoundError, PeripetyError, ResourceExhaustedError
from peripety.session.types import CommittedTurn
from peripety.session.watch.topic import LoggedTurn, LogHead, SessionRewound, SessionTopic, last_sequence_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from peripety.session.events import Committed
    from peripety.session.store.session_store import SessionStore
    from peripety.session.types import Session
    from peripety.session.watch.topic import LiveTurn, LogEntry


_PAGE_TURNS = 8

_log = logging.getLogger(__name__)


class SessionBroadcaster:
    """Broadcaster of session events to watchers.

    Args:
        store: stores the sessions.
        followers: maximum number of concurrent watchers.
        look_seconds: polling interval of the database.
    """

    def __init__(self, store: SessionStore, *, followers: int = 128, look_seconds: float = 0.25) -> None:
        self._store = store
        self._limit = followers
        self._look_seconds = look_seconds
        self._channels: dict[str, SessionTopic] = {}
        self._live: dict[str, LiveTurn] = {}
        self._followers = 0
        self._hurry = asyncio.Event()
        self._lookout: asyncio.Task[None] | None = None
        self.stopping = False

    @contextmanager
    def playing(self, live: LiveTurn) -> Iterator[None]:
        """Publish an attempt to play the next turn to watchers until the block ends."""
        live.heard = partial(self._pulse, live.session_id)
        self._live[live.session_id] = live
        try:
            yield
        finally:
            if self._live.get(live.session_id) is live:
                del self._live[live.session_id]
            channel = self._channels.get(live.session_id)
            if channel is not None:
                channel.last_attempt = live

    def committed(self, session: Session, live: LiveTurn, last: Committed) -> None:
        """Publish the commit of an attempt.

        Args:
            session: the session after it.
            live: the attempt.
            last: its last event.
        """
        channel = self._channels.get(session.session_id)
        if channel is None:
            return
        if channel.head.sequence == live.after:
            recorded = LoggedTurn(live.turn, [*live.events, live.happened(last)])
            channel.learn(LogHead.of(session), [recorded])
        else:
            self.look()

    def deleted(self, session_id: str) -> None:
        """Publish the deletion of a session."""
        channel = self._channels.get(session_id)
        if channel is not None:
            channel.deleted = True
            channel.pulse()

    def acted(self, session: Session, seats: tuple[str, ...]) -> None:
        """Publish which seats have acted in the turn after a session."""
        channel = self._channels.get(session.session_id)
        if channel is not None:
            channel.hear_of_seats(session.last_sequence, seats)

    def look(self) -> None:
        """Poll the database now."""
        self._hurry.set()

    def live(self, channel: SessionTopic) -> LiveTurn | None:
        """Return the current or last attempt of this process to play the next turn of a session."""
        return self._live.get(channel.session_id, channel.last_attempt)

    @asynccontextmanager
    async def following(self, session: Session, spec: Mapping[str, Any]) -> AsyncIterator[SessionTopic]:
        """Watch a session, as just read, until the block ends.

        Raises:
            ResourceExhaustedError: there are too many watchers.
        """
        if self._followers >= self._limit:
            raise ResourceExhaustedError(
                f"too many watch streams: {self._followers}; use another server or retry later",
                code="TOO_MANY_WATCHERS",
                retry_after=1.0,
            )
        channel = self._channels.get(session.session_id)
        if channel is None:
            channel = self._channels[session.session_id] = SessionTopic(session, spec)
        channel.followers += 1
        self._followers += 1
        # Finds changes made since the session was read.
        self.look()
        if self._lookout is None or self._lookout.done():
            # Outside the caller's context, which has a deadline.
            self._lookout = asyncio.create_task(self._look_out(), context=contextvars.Context())
        try:
            if channel.head.sequence < session.last_sequence:
                await self._catch_up(channel)
            yield channel
        finally:
            channel.followers -= 1
            self._followers -= 1
            if not channel.followers:
                del self._channels[session.session_id]
                self.look()

    async def next_entry(self, channel: SessionTopic, after: int) -> LogEntry | None:
        """Return the first log entry that ends after a sequence, or None if it does not exist yet."""
        return await channel.after(after, partial(self._entries, channel))

    async def aclose(self) -> None:
        """End all watch streams."""
        self.stopping = True
        for channel in self._channels.values():
            channel.pulse()
        if self._lookout is not None:
            self._lookout.cancel()
            await asyncio.wait([self._lookout])

    def _pulse(self, session_id: str) -> None:
        channel = self._channels.get(session_id)
        if channel is not None:
            channel.pulse()

    async def _look_out(self) -> None:
        while self._channels:
            self._hurry.clear()
            try:
                await self._look_once()
            except PeripetyError as error:
                _log.warning("sessions cannot be polled now", extra={"code": error.code})
            try:
                async with asyncio.timeout(self._look_seconds):
                    await self._hurry.wait()
            except TimeoutError:
                continue

    async def _look_once(self) -> None:
        ends = await self._store.last_sequences(list(self._channels))
        for channel in list(self._channels.values()):
            channel.tidy()
            end = ends.get(channel.session_id)
            if end is None or end > channel.head.sequence:
                await self._catch_up(channel)
        together = [channel for channel in self._channels.values() if channel.seats]
        if together:
            acted = await self._store.seats.acted([channel.session_id for channel in together])
            for channel in together:
                after = channel.head.sequence
                channel.hear_of_seats(after, acted.get((channel.session_id, after), ()))

    async def _catch_up(self, channel: SessionTopic) -> None:
        """Read the changes of a session from the database."""
        try:
            session = await self._store.session(channel.session_id)
        except NotFoundError:
            self.deleted(channel.session_id)
            return
        head, known = LogHead.of(session), channel.head.sequence
        found: list[LogEntry] = []
        while known < head.sequence:
            page = await self._entries(channel, known)
            found += page
            # Turns rewound since the session was read are missing.
            known = last_sequence_of(page[-1]) if page else head.sequence
        # Later entries are left to the next poll.
        channel.learn(head, [entry for entry in found if last_sequence_of(entry) <= head.sequence])

    async def _entries(self, channel: SessionTopic, after: int) -> Sequence[LogEntry]:
        return [
            LoggedTurn.of(channel.session_id, channel.spec, happened)
            if isinstance(happened, CommittedTurn)
            else SessionRewound(happened.turn, happened.sequence)
            for happened in await self._store.happened(channel.session_id, after, _PAGE_TURNS)
        ]

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

from peripety.core.concurrency import wait_for_event
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
        max_watchers: maximum number of concurrent watchers.
        poll_seconds: polling interval of the database.
    """

    def __init__(self, store: SessionStore, *, max_watchers: int = 128, poll_seconds: float = 0.25) -> None:
        self._store = store
        self._max_watchers = max_watchers
        self._poll_seconds = poll_seconds
        self._topics: dict[str, SessionTopic] = {}
        self._live: dict[str, LiveTurn] = {}
        self._watchers = 0
        self._poll_requested = asyncio.Event()
        self._poll_task: asyncio.Task[None] | None = None
        self.stopping = False

    @contextmanager
    def publish_attempt(self, live: LiveTurn) -> Iterator[None]:
        """Publish an attempt to play the next turn to watchers until the block ends."""
        live.on_event = partial(self._notify, live.session_id)
        self._live[live.session_id] = live
        try:
            yield
        finally:
            if self._live.get(live.session_id) is live:
                del self._live[live.session_id]
            channel = self._topics.get(live.session_id)
            if channel is not None:
                channel.last_attempt = live

    def publish_commit(self, session: Session, live: LiveTurn, last: Committed) -> None:
        """Publish the commit of an attempt.

        Args:
            session: the session after it.
            live: the attempt.
            last: its last event.
        """
        channel = self._topics.get(session.session_id)
        if channel is None:
            return
        if channel.head.sequence == live.after:
            recorded = LoggedTurn(live.turn, [*live.events, live.make_event(last)])
            channel.update(LogHead.from_session(session), [recorded])
        else:
            self.poll_now()

    def publish_deletion(self, session_id: str) -> None:
        """Publish the deletion of a session."""
        channel = self._topics.get(session_id)
        if channel is not None:
            channel.is_deleted = True
            channel.notify()

    def publish_seats(self, session: Session, seats: tuple[str, ...]) -> None:
        """Publish which seats have acted in the turn after a session."""
        channel = self._topics.get(session.session_id)
        if channel is not None:
            channel.set_seats(session.last_sequence, seats)

    def poll_now(self) -> None:
        """Poll the database now."""
        self._poll_requested.set()

    def current_attempt(self, channel: SessionTopic) -> LiveTurn | None:
        """Return the current or last attempt of this process to play the next turn of a session."""
        return self._live.get(channel.session_id, channel.last_attempt)

    @asynccontextmanager
    async def subscribe(self, session: Session, spec: Mapping[str, Any]) -> AsyncIterator[SessionTopic]:
        """Watch a session, as just read, until the block ends.

        Raises:
            ResourceExhaustedError: there are too many watchers.
        """
        if self._watchers >= self._max_watchers:
            raise ResourceExhaustedError(
                f"too many watch streams: {self._watchers}; use another server or retry later",
                code="TOO_MANY_WATCHERS",
                retry_after=1.0,
            )
        channel = self._topics.get(session.session_id)
        if channel is None:
            channel = self._topics[session.session_id] = SessionTopic(session, spec)
        channel.watchers += 1
        self._watchers += 1
        # Finds changes made since the session was read.
        self.poll_now()
        if self._poll_task is None or self._poll_task.done():
            # Outside the caller's context, which has a deadline.
            self._poll_task = asyncio.create_task(self._poll(), context=contextvars.Context())
        try:
            if channel.head.sequence < session.last_sequence:
                await self._refresh(channel)
            yield channel
        finally:
            channel.watchers -= 1
            self._watchers -= 1
            if not channel.watchers:
                del self._topics[session.session_id]
                self.poll_now()

    async def next_entry(self, channel: SessionTopic, after: int) -> LogEntry | None:
        """Return the first log entry that ends after a sequence, or None if it does not exist yet."""
        return await channel.next_entry(after, partial(self._load_entries, channel))

    async def aclose(self) -> None:
        """End all watch streams."""
        self.stopping = True
        for channel in self._topics.values():
            channel.notify()
        if self._poll_task is not None:
            self._poll_task.cancel()
            await asyncio.wait([self._poll_task])

    def _notify(self, session_id: str) -> None:
        channel = self._topics.get(session_id)
        if channel is not None:
            channel.notify()

    async def _poll(self) -> None:
        while self._topics:
            self._poll_requested.clear()
            try:
                await self._poll_once()
            except PeripetyError as error:
                _log.warning("sessions cannot be polled now", extra={"code": error.code})
            except Exception:  # noqa: BLE001 - without the next poll, every watch stream would wait forever
                _log.exception("sessions could not be polled")
            await wait_for_event(self._poll_requested, self._poll_seconds)

    async def _poll_once(self) -> None:
        ends = await self._store.last_sequences(list(self._topics))
        for channel in list(self._topics.values()):
            channel.compact()
            end = ends.get(channel.session_id)
            if end is None or end > channel.head.sequence:
                await self._refresh(channel)
        together = [(channel, channel.acted_seats) for channel in self._topics.values() if channel.seats]
        if together:
            acted = await self._store.seats.list_acted([channel.session_id for channel, _ in together])
            for channel, before in together:
                after = channel.head.sequence
                # A submission to this process during the query may be missing in its result.
                if channel.acted_seats == before:
                    channel.set_seats(after, acted.get((channel.session_id, after), ()))

    async def _refresh(self, channel: SessionTopic) -> None:
        """Read the changes of a session from the database."""
        try:
            session = await self._store.get_session(channel.session_id)
        except NotFoundError:
            self.publish_deletion(channel.session_id)
            return
        head, known = LogHead.from_session(session), channel.head.sequence
        found: list[LogEntry] = []
        while known < head.sequence:
            page = await self._load_entries(channel, known)
            found += page
            # Turns rewound since the session was read are missing.
            known = last_sequence_of(page[-1]) if page else head.sequence
        # Later entries are left to the next poll.
        channel.update(head, [entry for entry in found if last_sequence_of(entry) <= head.sequence])

    async def _load_entries(self, channel: SessionTopic, after: int) -> Sequence[LogEntry]:
        return [
            LoggedTurn.from_committed(channel.session_id, channel.spec, happened)
            if isinstance(happened, CommittedTurn)
            else SessionRewound(happened.turn, happened.sequence)
            for happened in await self._store.list_history(channel.session_id, after, _PAGE_TURNS)
        ]

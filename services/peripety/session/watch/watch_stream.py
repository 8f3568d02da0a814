"""Watch stream of a session: recorded events first, then live ones, without gap or repetition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.core.concurrency import closing, wait_for_event
from peripety.session.types import sequence_of_attempt
from peripety.session.validation import check_watch_request
from peripety.session.watch.topic import (
    MAX_LAG_TURNS,
    SeatActed,
    SessionRewound,
    WatchClosed,
    WatchHeartbeat,
    last_sequence_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from peripety.session.session_view import RulesetCache
    from peripety.session.store.session_store import SessionStore
    from peripety.session.visibility import ViewerProjection
    from peripety.session.watch.broadcaster import SessionBroadcaster
    from peripety.session.watch.topic import CachedEventView, LogEntry, SessionTopic, WatchEvent, WatchRequest


_HEARTBEAT_SECONDS = 15.0


class WatchStreams:
    """Factory of watch streams.

    Args:
        store: stores the sessions.
        rulesets: the programs of their scenarios.
        broadcaster: publishes events.
        heartbeat_seconds: seconds without an event after which a heartbeat is sent.
    """

    def __init__(
        self,
        store: SessionStore,
        rulesets: RulesetCache,
        broadcaster: SessionBroadcaster,
        *,
        heartbeat_seconds: float = _HEARTBEAT_SECONDS,
    ) -> None:
        self._store = store
        self._rulesets = rulesets
        self._broadcaster = broadcaster
        self._heartbeat_seconds = heartbeat_seconds

    async def open(self, request: WatchRequest) -> AsyncGenerator[WatchEvent, None]:
        """Watch a session until it ends, is deleted, or the server stops; the last event has the reason.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session or entity does not exist.
            ResourceExhaustedError: there are too many watchers on this server.
        """
        check_watch_request(request)
        session = await self._store.get_session(request.session_id)
        ruleset = await self._rulesets.get(session.spec_hash)
        view = ruleset.projector.for_viewer(request.pov)
        async with self._broadcaster.subscribe(session, ruleset.spec) as channel:
            watcher = _WatchStream(self._broadcaster, channel, view, request)
            await watcher.find_position()
            while True:
                news = channel.news
                async with closing(watcher.events()) as events:
                    async for event in events:
                        yield event
                reason = watcher.reason_to_close()
                if reason is not None:
                    yield WatchClosed(reason, watcher.last_sequence)
                    return
                if not await wait_for_event(news, self._heartbeat_seconds):
                    yield WatchHeartbeat(watcher.last_sequence)


@dataclass(slots=True)
class _WatchPosition:
    """Position of a watcher.

    Attributes:
        recorded: sequence up to which all recorded events were sent.
        attempt_id: the attempt at the next turn of which events were sent; None for none.
        sent: number of its events that were sent.
    """

    recorded: int
    attempt_id: str | None = None
    sent: int = 0


class _WatchStream:
    """One watch stream."""

    def __init__(
        self,
        hub: SessionBroadcaster,
        channel: SessionTopic,
        view: ViewerProjection,
        request: WatchRequest,
    ) -> None:
        self._broadcaster = hub
        self._topic = channel
        self._view = view
        self._request = request
        self._position = _WatchPosition(0)
        self._caught_up = False
        self._too_slow = False
        self._reported_seats: set[tuple[int, str]] = set()

    @property
    def last_sequence(self) -> int:
        """Sequence of the last event sent."""
        return self._position.recorded + self._position.sent

    async def find_position(self) -> None:
        """Determine the position from the request."""
        after, attempt_id = self._request.after, self._request.attempt_id
        if not after:
            return
        start = None if attempt_id is None else sequence_of_attempt(attempt_id)
        if start is not None and start < after:
            start = min(start, self._topic.head.sequence)
            self._position = _WatchPosition(start, attempt_id, after - start)
            return
        entry = await self._broadcaster.next_entry(self._topic, after - 1)
        if entry is None:
            self._position = _WatchPosition(min(after, self._topic.head.sequence))
        elif isinstance(entry, SessionRewound) or entry.first_sequence > after:
            self._position = _WatchPosition(after)
        else:
            start = entry.first_sequence - 1
            ended = entry.last_sequence == after and attempt_id in {None, entry.attempt_id}
            self._position = (
                _WatchPosition(after) if ended else _WatchPosition(start, attempt_id, after - start)
            )

    async def events(self) -> AsyncGenerator[WatchEvent, None]:
        """Yield all events that can be sent now."""
        while not self._is_stopped and (entry := await self._next_entry()) is not None:
            if isinstance(entry, SessionRewound):
                yield entry
            else:
                known = (
                    self._position.attempt_id == entry.attempt_id
                    and entry.first_sequence == self._position.recorded + 1
                )
                for happened in entry.events[self._position.sent if known else 0 :]:
                    yield happened.view_for(self._view)
            self._position = _WatchPosition(last_sequence_of(entry))
        for acted in self._unreported_seats():
            yield acted
        for sight in self._unsent_live_events():
            yield sight

    def reason_to_close(self) -> str | None:
        """Return the reason to close the stream, or None if it stays open."""
        channel = self._topic
        if channel.is_deleted:
            return "SESSION_DELETED"
        if self._broadcaster.stopping:
            return "SERVER_SHUTTING_DOWN"
        if self._too_slow:
            return "TOO_SLOW"
        return "RUN_ENDED" if self._is_at_the_end and not channel.head.is_ongoing else None

    @property
    def _is_stopped(self) -> bool:
        return self._too_slow or self._topic.is_deleted or self._broadcaster.stopping

    @property
    def _is_at_the_end(self) -> bool:
        return self._position.recorded >= self._topic.head.sequence

    async def _next_entry(self) -> LogEntry | None:
        """Return the next log entry to send, or None if it must wait."""
        if self._is_at_the_end:
            self._caught_up = True
            return None
        entry = await self._broadcaster.next_entry(self._topic, self._position.recorded)
        if entry is None or isinstance(entry, SessionRewound):
            return entry
        head = self._topic.head
        ahead = head.turn - entry.turn - (self._request.delay_turns if head.is_ongoing else 0)
        if ahead < 0:
            self._caught_up = True
            return None
        if self._caught_up and ahead >= MAX_LAG_TURNS:
            self._too_slow = True
            return None
        return entry

    def _unreported_seats(self) -> Iterator[SeatActed]:
        """Yield the seats that have acted in the next turn and were not reported yet."""
        # News arrive while a report is sent, so all reports are about the state as it is now.
        after, acted, turn = self._topic.acted_after, self._topic.acted_seats, self._topic.head.turn + 1
        if self._request.delay_turns or self._is_stopped or not self._is_at_the_end:
            return
        if after != self._position.recorded:
            return
        known, self._reported_seats = self._reported_seats, {(after, seat) for seat in acted}
        for count, seat in enumerate(acted, 1):
            if (after, seat) not in known:
                waiting = tuple(one for one in self._topic.seats if one not in acted[:count])
                yield SeatActed(turn, seat, waiting)

    def _unsent_live_events(self) -> Iterator[CachedEventView]:
        """Yield the unsent events of the turn that this process plays."""
        live = self._broadcaster.current_attempt(self._topic)
        if self._request.delay_turns or self._is_stopped or live is None:
            return
        if not self._is_at_the_end or live.after != self._position.recorded or not live.events:
            return
        if live.attempt_id != self._position.attempt_id:
            self._position = _WatchPosition(live.after, live.attempt_id)
        while live.attempt_id == self._position.attempt_id and self._position.sent < len(live.events):
            happened = live.events[self._position.sent]
            self._position.sent += 1
            yield happened.view_for(self._view)

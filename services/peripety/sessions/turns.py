"""The life of a turn: asked for, decided, told, stored.

Of all that happens before the commit nothing lasts: a turn that is cancelled, crashes or loses a race leaves
the session as it was. After the commit its events are a record, and asking again replays them.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from peripety import sim
from peripety.clock import microseconds_now
from peripety.errors import (
    AlreadyExistsError,
    ConflictError,
    InternalError,
    PeripetyError,
)
from peripety.gateway.model import Spent
from peripety.sessions.attempts import new_attempt_id
from peripety.sessions.checks import (
    check_known_actions,
    check_next_turn,
    check_ongoing,
    check_turn_request,
)
from peripety.sessions.events import Accepted, Committed, RuleFailed
from peripety.sessions.mechanics import Board
from peripety.sessions.model import CommittedTurn, Resolution
from peripety.sessions.narrating.narrator import Told
from peripety.sessions.narrating.scene import Scene
from peripety.sessions.recent import RecentTurns
from peripety.sessions.remembered import since
from peripety.sessions.seats.model import LEASE_MICROSECONDS
from peripety.sessions.seats.seating import check_turn_of, seat_of
from peripety.sessions.seen import Seen, SeenTurn, seen_events
from peripety.sessions.stage import Anew, set_up
from peripety.sessions.watching.live import Live
from peripety.tasks import aside, finish

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence

    from peripety.sessions.events import Event
    from peripety.sessions.mechanics import Played
    from peripety.sessions.model import Seat, Session, TurnRequest
    from peripety.sessions.narrating.narrator import Narrator
    from peripety.sessions.rulesets import Ruleset, Rulesets
    from peripety.sessions.seen import Room
    from peripety.sessions.stage import Stage
    from peripety.sessions.store import SessionStore
    from peripety.sessions.watching.hub import Hub

__all__ = ["Turns"]

# Mechanics that take so small a part of the room hardly ever make a turn that is too large.
_SMALL = 16
_TOO_LARGE = RuleFailed(
    "TURN_TOO_LARGE",
    "",
    "the turn changes more than one message can tell, so it was not taken; try fewer actions",
    turn_abandoned=True,
)


class Turns:
    """Plays turns.

    Args:
        store: where sessions are kept.
        rulesets: the scenarios that they play.
        narrator: who tells the turns.
        room: how large they may grow.
        hub: lets those who follow the sessions hear of them.
    """

    def __init__(
        self, store: SessionStore, rulesets: Rulesets, narrator: Narrator, room: Room, hub: Hub
    ) -> None:
        self._store = store
        self._recent = RecentTurns(store)
        self._hub = hub
        self._rulesets = rulesets
        self._narrator = narrator
        self._room = room
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def take(self, request: TurnRequest) -> AsyncGenerator[Seen, None]:
        """Play a turn and follow it, or replay it when its request has played it already.

        Turns of one session wait for each other in this process; between processes the database decides.

        Raises:
            InvalidArgumentError: a field is wrong.
            NotFoundError: there is no such session or entity.
            AlreadyExistsError: the request id was used for a different turn.
            ConflictError: `STALE_TURN`: it is not the turn that comes next.
            FailedPreconditionError: `RUN_ENDED`, `NOT_YOUR_TURN` or `SIMULTANEOUS_SEATS`.
        """
        check_turn_request(request)
        async with aclosing(self._take(request, seat_of)) as events:
            async for event in events:
                yield event

    async def take_round(self, request: TurnRequest) -> AsyncGenerator[Seen, None]:
        """Play a turn in which all seats act together, told to everyone; see `take`.

        What cannot be taken of their actions is only told: they cannot agree on others.
        """
        async with aclosing(self._take(request, _no_seat)) as events:
            async for event in events:
                yield event

    async def _take(
        self, request: TurnRequest, seat_of: Callable[[TurnRequest, Session], Seat | None]
    ) -> AsyncGenerator[Seen, None]:
        async with (
            self._locks.setdefault(request.session_id, asyncio.Lock()),
            aclosing(self._take_alone(request, seat_of)) as events,
        ):
            async for event in events:
                yield event

    async def _take_alone(
        self, request: TurnRequest, seat_of: Callable[[TurnRequest, Session], Seat | None]
    ) -> AsyncGenerator[Seen, None]:
        session = await self._store.session(request.session_id)
        ruleset = await self._rulesets.of(session.spec_hash)
        attempt = _Attempt(request, seat_of(request, session), session, ruleset)
        recorded = await self._recorded(request)
        if recorded is not None:
            for event in attempt.replay(recorded):
                yield event
            return
        attempt.check()
        async with self._held(session), aclosing(self._play(attempt)) as events:
            with self._hub.playing(attempt.live):
                async for event in events:
                    yield event

    @asynccontextmanager
    async def _held(self, session: Session) -> AsyncIterator[None]:
        """Put off the moment at which the turn goes on without who has not acted: somebody just does."""
        if session.due is None:
            yield
            return
        later = max(session.due, microseconds_now() + LEASE_MICROSECONDS)
        await self._store.seats.move(session, later)
        try:
            yield
        finally:
            # Nothing moves if the turn was committed. If that fails, the turn is only due later: what is told
            # is what became of it.
            with suppress(PeripetyError):
                await finish(self._store.seats.move(replace(session, due=later), session.due))

    async def _recorded(self, request: TurnRequest) -> CommittedTurn | None:
        recorded = await self._store.turn(request.session_id, request.request_id)
        if recorded is not None and recorded.request_digest != request.digest():
            raise AlreadyExistsError(
                f".request_id was used for another request, of turn {recorded.turn}; make a new one",
                code="REQUEST_ID_REUSED",
            )
        return recorded

    async def _play(self, attempt: _Attempt) -> AsyncGenerator[Seen, None]:
        stage, opening = await aside(attempt.set_up, len(attempt.session.snapshot))
        if stage is not None and not await self._may_fit(attempt, stage.foresee()):
            stage, opening = None, (_TOO_LARGE,)
        for event in attempt.opening(opening):
            yield event
        if stage is None:
            return
        told = None
        async with aclosing(self._narrator.tell(await self._scene(attempt, stage))) as telling:
            async for happened in telling:
                if isinstance(happened, Told):
                    told = happened
                else:
                    for event in attempt.goes_on(happened):
                        yield event
        if told is None or stage.played is None:
            raise InternalError("a narrator ended without an end")
        async for event in self._end(attempt, stage.played, told):
            yield event

    async def _end(self, attempt: _Attempt, played: Played, told: Told) -> AsyncGenerator[Seen, None]:
        """Store the turn, unless it grew too large."""
        committed = attempt.committed(played, told)
        last = attempt.note(committed)
        turn = attempt.turn_to_record(played, told)
        if not await self._fits(attempt.whole(turn)):
            yield attempt.abandoning(_TOO_LARGE)
            return
        session = attempt.session_after(committed, played, told)
        recorded = await self._commit(attempt.request, session, turn)
        if recorded is turn:
            self._recent.keep(session, (*attempt.past, turn))
            self._hub.committed(session, attempt.live, committed)
        for event in (last,) if recorded is turn else attempt.replay(recorded):
            yield event

    async def _may_fit(self, attempt: _Attempt, played: Played) -> bool:
        """Whether it is worth asking a narrator: it is asked in vain about what is too large to be stored."""
        is_small = len(played.record) < self._room.limit // _SMALL
        return is_small or await self._fits(attempt.opened(played))

    async def _fits(self, turn: SeenTurn) -> bool:
        """Whether a turn can be sent to a viewer who may see all of it."""
        return await aside(lambda: self._room.holds(turn), len(turn.turn.record))

    async def _commit(self, request: TurnRequest, session: Session, turn: CommittedTurn) -> CommittedTurn:
        """Store a turn; the turn as it is recorded now."""
        try:
            await self._store.commit(session, turn)
        except ConflictError:
            # Another process may have played this very request meanwhile; then its record is the answer.
            recorded = await self._recorded(request)
            if recorded is None:
                raise
            return recorded
        return turn

    async def _scene(self, attempt: _Attempt, stage: Stage) -> Scene:
        attempt.past = await self._recent.of(attempt.session)
        return Scene(
            spec=attempt.ruleset.spec,
            view=attempt.ruleset.viewers.view(attempt.audience),
            turn=attempt.request.expected_turn,
            input=attempt.request.input,
            session=attempt.session,
            stage=stage,
            past=attempt.past,
        )


class _Attempt:
    """One try to play a turn: what it started from, and its events so far."""

    def __init__(self, request: TurnRequest, seat: Seat | None, session: Session, ruleset: Ruleset) -> None:
        self.request = request
        self.seat = seat
        self.session = session
        self.ruleset = ruleset
        self.view = ruleset.viewers.view(request.pov if seat is None else seat.entity_id)
        self.audience = request.pov if session.table is None else None
        self.live = Live(session, self.audience, ruleset.spec)
        self.past: tuple[CommittedTurn, ...] = ()
        self._accepted = self._acceptance()
        self._events: list[Event] = []

    def _acceptance(self) -> Accepted:
        request = self.request
        attempt_id = new_attempt_id(self.session.last_sequence)
        return Accepted(attempt_id, request.request_id, request.actions, request.input)

    def check(self) -> None:
        """Refuse a turn that cannot follow the session as it is."""
        session, request = self.session, self.request
        check_next_turn(request.expected_turn, session)
        check_ongoing(session)
        check_turn_of(self.seat, session)
        check_known_actions(request.actions, self.ruleset.spec)

    def set_up(self) -> tuple[Stage | None, tuple[Event, ...]]:
        """Carry out what the player chose; see `stage.set_up`."""
        session = self.session
        board = Board(
            self.ruleset.program,
            session.snapshot,
            reseeded=session.seed if session.reseeded else None,
            actor=None if self.seat is None else self.seat.entity_id,
        )
        # Seats that act together cannot agree on other actions: theirs are played as they are.
        one_player = session.table is None or self.seat is not None
        return set_up(board, self.request.actions, mistakes_cost_nothing=one_player)

    def opening(self, events: Sequence[Event]) -> Iterator[Seen]:
        """Begin the turn, and tell what became of the actions."""
        yield from map(self.note, (self._accepted, *events))

    def goes_on(self, happened: Event | Anew) -> Iterator[Seen]:
        """Tell what happened next, or begin the turn anew and tell its mechanics as they are now."""
        if not isinstance(happened, Anew):
            yield self.note(happened)
            return
        self._accepted = self._acceptance()
        self._events.clear()
        yield from self.opening(happened.events)

    def opened(self, played: Played) -> SeenTurn:
        """What the turn comes to if nothing is told about it."""
        told = Told("", Resolution.NARRATED, Spent(), "", memories=self.session.memories)
        committed, turn = self.committed(played, told), self.turn_to_record(played, told)
        return self.whole(replace(turn, events=(self._accepted, *played.events, committed)))

    def whole(self, turn: CommittedTurn) -> SeenTurn:
        """A turn with nothing cut away."""
        return SeenTurn(turn, tuple(map(self._seen, turn.events)))

    def abandoning(self, failure: RuleFailed) -> Seen:
        """The end of a turn that was about to be stored: what failed takes the place of its last event."""
        self._events.pop()
        return self.note(failure)

    def note(self, event: Event) -> Seen:
        """Keep an event for the record, and let others hear of it; what the viewer sees of it."""
        self._events.append(event)
        # That a turn is committed is true when it is stored.
        if not isinstance(event, Committed):
            self.live.tell(event)
        return self._seen(self.view.event(event, self.audience))

    def _seen(self, event: Event | None) -> Seen:
        sequence = self.session.last_sequence + len(self._events)
        return Seen(self.session.session_id, self.request.expected_turn, sequence, event, self.ruleset.spec)

    def replay(self, recorded: CommittedTurn) -> Iterator[Seen]:
        """The turn as it is recorded."""
        return seen_events(self.session, self.ruleset.spec, self.view, recorded)

    def committed(self, played: Played, told: Told) -> Committed:
        """The last event of the turn."""
        return Committed(
            state_hash=played.state_hash,
            chain_hash=sim.chain(self.session.chain_hash, played.record),
            status=played.world.status,
            legal_actions=played.legal_actions,
            usage=told.usage,
            changes=played.changes,
            narrative=told.narrative,
            resolution=told.resolution,
            model=told.model,
            commit_time=microseconds_now(),
            conduct=told.conduct,
            next_seat_id=replace(
                self.session, turn=self.request.expected_turn, status=played.world.status
            ).next_seat_id,
        )

    def session_after(self, committed: Committed, played: Played, told: Told) -> Session:
        """The session as the turn leaves it."""
        after = replace(
            self.session,
            turn=self.request.expected_turn,
            status=committed.status,
            snapshot=played.snapshot,
            state_hash=committed.state_hash,
            chain_hash=committed.chain_hash,
            last_sequence=self.session.last_sequence + len(self._events),
            usage=self.session.usage + committed.usage,
            updated=committed.commit_time,
            reseeded=False,
            memories=told.memories,
        )
        return replace(after, due=after.next_due(committed.commit_time))

    def turn_to_record(self, played: Played, told: Told) -> CommittedTurn:
        """The turn, to be recorded."""
        return CommittedTurn(
            turn=self.request.expected_turn,
            request_id=self.request.request_id,
            request_digest=self.request.digest(),
            pov=self.audience,
            record=played.record,
            first_sequence=self.session.last_sequence + 1,
            events=tuple(self._events),
            memories=since(self.session.memories, told.memories),
        )


def _no_seat(_request: TurnRequest, _session: Session) -> None:
    """Who acts when all do."""

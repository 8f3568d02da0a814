"""Life of a turn: requested, decided, narrated, committed.

A turn is the only operation that changes a session through the engine. It may take minutes, because a
language model narrates it, and it must happen exactly once. The phases are:

1. Request. Requests for the same session wait for each other in this process. A request that has been
   committed before is replayed from its record (idempotency). Otherwise the request is validated against
   the session as it is.
2. Decision. The engine executes the actions of the player on a copy of the state. If nothing can be
   applied, or the result cannot be sent, the turn is abandoned before a model is called.
3. Narration. The narrator may add actions, dice and small changes within its scope, and writes the prose.
   Words that it does not understand, or that it fails to narrate, leave the turn unplayed. Events are
   streamed to the client and to watchers as they occur. If speculative mechanics turn out wrong, a new
   `Accepted` event restarts the stream of this turn.
4. Commit. The turn, its events and the session's next state are written in one transaction.

Invariants:

* Before the commit nothing is durable: a turn that is cancelled, crashes or loses a race leaves the session
  unchanged.
* After the commit the events are a record; repeating the request replays them unchanged.
* `Committed` is sent only after the commit. All earlier events are provisional, and the attempt id shows
  whether they belong to the attempt that was committed.
* The events of a turn have consecutive sequences after the session's last one. The commit is a
  compare-and-swap on turn and sequence, so of two concurrent attempts in different processes only one is
  stored.
* A committed turn fits into a message for a viewer who may see all of it. Otherwise it could never be read
  again.

Alternatives and their costs. A lock in the database for the time of a turn would block other writers for
minutes and outlive a crashed process. A lease per session would need renewal and expiry; the
compare-and-swap needs neither, and the cost of a lost race is one wasted narration. To store events as they
occur would make partial turns visible and would need a cleanup after crashes.

In a session with several seats, the due time of the turn is postponed while the turn is played, so that no
other process plays it for a seat that is late.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from peripety import engine
from peripety.core.call_context import now_micros
from peripety.core.concurrency import closing, run_in_thread_if_large, shield_until_done
from peripety.core.idempotency.store import check_same_request
from peripety.errors import ConflictError, InternalError, PeripetyError
from peripety.gateway.types.response import UsageTotal
from peripety.session.events import Accepted, Committed, RuleFailed
from peripety.session.memory import diff_memories
from peripety.session.narration.turn_context import NarrationContext
from peripety.session.narration.turn_narration import NarrationResult, TurnNotPlayed
from peripety.session.seats.turn_order import check_seat_turn, seat_of_request, turn_lease
from peripety.session.session_view import RecentTurnCache
from peripety.session.speculation import TurnRestarted, begin_turn
from peripety.session.turn_transaction import TurnTransaction
from peripety.session.types import CommittedTurn, Resolution, new_attempt_id
from peripety.session.validation import (
    check_known_actions,
    check_next_turn,
    check_ongoing,
    check_turn_request,
)
from peripety.session.visibility import TurnEventView, TurnView, project_turn
from peripety.session.watch.topic import LiveTurn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence

    from peripety.session.events import Event
    from peripety.session.narration.narrator import Narrator
    from peripety.session.session_view import Ruleset, RulesetCache
    from peripety.session.speculation import SpeculativeTurn
    from peripety.session.store.session_store import SessionStore
    from peripety.session.turn_transaction import TurnResult
    from peripety.session.types import Seat, Session, TurnRequest
    from peripety.session.visibility import MessageLimit
    from peripety.session.watch.broadcaster import SessionBroadcaster


# Mechanics below this fraction of the message limit hardly ever make a turn too large.
_SAFE_FRACTION = 16
_TOO_LARGE_FAILURE = RuleFailed(
    "TURN_TOO_LARGE",
    "",
    "the turn does not fit into a message, so it was abandoned; try fewer actions",
    turn_abandoned=True,
)


class TurnRunner:
    """Runner of turns.

    Args:
        store: stores the sessions.
        rulesets: the programs of their scenarios.
        narrator: narrates the turns.
        message_limit: size limit of a turn.
        broadcaster: notifies watchers.
    """

    def __init__(
        self,
        store: SessionStore,
        rulesets: RulesetCache,
        narrator: Narrator,
        message_limit: MessageLimit,
        broadcaster: SessionBroadcaster,
    ) -> None:
        self._store = store
        self._recent_turns = RecentTurnCache(store)
        self._broadcaster = broadcaster
        self._rulesets = rulesets
        self._narrator = narrator
        self._message_limit = message_limit
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def lease_micros(self) -> int:
        """The lease on a turn that is being played, in microseconds."""
        return turn_lease(self._narrator.seconds)

    async def run(
        self,
        request: TurnRequest,
        *,
        is_joint: bool = False,
    ) -> AsyncGenerator[TurnEventView, None]:
        """Play a turn and stream its events, or replay it if its request has played it already.

        Turns of one session wait for each other in this process; between processes the database decides.

        Args:
            request: the turn.
            is_joint: True if all seats act together: the turn has no single acting seat, is narrated for
                everyone, and rejected actions are only reported, as the seats cannot agree on others.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session or entity does not exist.
            AlreadyExistsError: the request id was used for a different turn.
            ConflictError: `STALE_TURN`: it is not the next turn.
            FailedPreconditionError: `RUN_ENDED`, `NOT_YOUR_TURN` or `SIMULTANEOUS_SEATS`.
        """
        if not is_joint:
            check_turn_request(request)
        async with self._locks.setdefault(request.session_id, asyncio.Lock()):
            session = await self._store.get_session(request.session_id)
            ruleset = await self._rulesets.get(session.spec_hash)
            seat = None if is_joint else seat_of_request(request, session)
            attempt = TurnAttempt(request, seat, session, ruleset)
            recorded = await self._find_recorded(request)
            if recorded is not None:
                for event in attempt.replay(recorded):
                    yield event
                return
            attempt.check()
            async with self._extend_lease(session):
                with self._broadcaster.publish_attempt(attempt.live):
                    stage, opening = await self._begin(attempt)
                    for event in opening:
                        yield event
                    if stage is None:
                        return
                    told = None
                    context = await self._narration_context(attempt, stage)
                    async with closing(self._narrator.narrate(context)) as telling:
                        async for happened in telling:
                            if isinstance(happened, NarrationResult | TurnNotPlayed):
                                told = happened
                                continue
                            for event in attempt.on_event(happened):
                                yield event
                    for event in await self._commit_or_abandon(attempt, stage, told):
                        yield event

    @asynccontextmanager
    async def _extend_lease(self, session: Session) -> AsyncIterator[None]:
        """Postpone the seat deadline while the turn is played."""
        if session.due is None:
            yield
            return
        later = max(session.due, now_micros() + self.lease_micros)
        await self._store.seats.set_deadline(session, later)
        try:
            yield
        finally:
            # If the turn was committed, this changes nothing. If it fails, the turn is only due later, so the
            # error is suppressed in favour of the turn's own result.
            with suppress(PeripetyError):
                await shield_until_done(
                    self._store.seats.set_deadline(replace(session, due=later), session.due),
                )

    async def _find_recorded(self, request: TurnRequest) -> CommittedTurn | None:
        recorded = await self._store.find_turn(request.session_id, request.request_id)
        if recorded is not None:
            check_same_request(request.request_digest(), recorded.request_digest)
        return recorded

    async def _begin(
        self,
        attempt: TurnAttempt,
    ) -> tuple[SpeculativeTurn | None, Iterator[TurnEventView]]:
        """Execute the actions of the player; without a stage, the turn was abandoned."""
        stage, opening = await run_in_thread_if_large(attempt.begin, len(attempt.session.snapshot))
        if stage is not None and not await self._fits_estimate(attempt, stage.preview()):
            stage, opening = None, (_TOO_LARGE_FAILURE,)
        return stage, attempt.opening(opening)

    async def _commit_or_abandon(
        self,
        attempt: TurnAttempt,
        stage: SpeculativeTurn,
        told: NarrationResult | TurnNotPlayed | None,
    ) -> Iterable[TurnEventView]:
        """Commit the turn, unless it is too large or was not played; return its last events."""
        if isinstance(told, TurnNotPlayed):
            # Only the usage remains, so that the budget of the session holds.
            await self._store.add_usage(attempt.session, told.usage)
            return (attempt.record(told.failure),)
        played = stage.result
        if told is None or played is None:
            raise InternalError("a narration ended without a result")
        committed = attempt.committed_event(played, told)
        last = attempt.record(committed)
        turn = attempt.turn_to_record(played, told)
        if not await self._fits(attempt.unprojected(turn)):
            return (attempt.abandon(_TOO_LARGE_FAILURE),)
        session = attempt.session_after(committed, played, told)
        recorded = await self._commit(attempt.request, session, turn)
        if recorded is not turn:
            return attempt.replay(recorded)
        self._recent_turns.put(session, (*attempt.recent_turns, turn))
        self._broadcaster.publish_commit(session, attempt.live, committed)
        return (last,)

    async def _fits_estimate(self, attempt: TurnAttempt, played: TurnResult) -> bool:
        """Return True if the turn is likely to fit, so that no narration is wasted."""
        is_small = len(played.record) < self._message_limit.max_bytes // _SAFE_FRACTION
        return is_small or await self._fits(attempt.minimal_turn(played))

    async def _fits(self, turn: TurnView) -> bool:
        """Return True if a turn can be sent to a viewer who may see all of it."""
        return await run_in_thread_if_large(lambda: self._message_limit.fits(turn), len(turn.turn.record))

    async def _commit(self, request: TurnRequest, session: Session, turn: CommittedTurn) -> CommittedTurn:
        """Commit a turn; return the turn as recorded now."""
        try:
            await self._store.commit_turn(session, turn)
        except ConflictError:
            # Another process may have played this very request meanwhile; its record is then the result.
            recorded = await self._find_recorded(request)
            if recorded is None:
                raise
            return recorded
        return turn

    async def _narration_context(self, attempt: TurnAttempt, stage: SpeculativeTurn) -> NarrationContext:
        session, ruleset = attempt.session, attempt.ruleset
        view, room = ruleset.projector.for_viewer(attempt.audience), self._narrator.room_for(session)
        attempt.recent_turns = await self._recent_turns.get(session)
        return NarrationContext(
            spec=ruleset.spec,
            view=view,
            turn=attempt.request.expected_turn,
            input=attempt.request.input,
            session=session,
            speculation=stage,
            recent_turns=attempt.recent_turns,
            history=await self._recent_turns.history(session, ruleset, view, room),
            room=room,
            words_only=attempt.words_only,
        )


class TurnAttempt:
    """One attempt to play a turn: its starting point and its events so far."""

    def __init__(self, request: TurnRequest, seat: Seat | None, session: Session, ruleset: Ruleset) -> None:
        self.request = request
        self.seat = seat
        self.session = session
        self.ruleset = ruleset
        self.view = ruleset.projector.for_viewer(request.pov if seat is None else seat.entity_id)
        self.audience = request.pov if session.table is None else None
        self.live = LiveTurn(session, self.audience, ruleset.spec)
        self.recent_turns: tuple[CommittedTurn, ...] = ()
        self._accepted = self._accepted_event()
        self._events: list[Event] = []

    @property
    def words_only(self) -> bool:
        """True if the turn has nothing but the words of one player."""
        is_joint = self.session.table is not None and self.seat is None
        return bool(self.request.input.strip()) and not self.request.actions and not is_joint

    def _accepted_event(self) -> Accepted:
        request = self.request
        attempt_id = new_attempt_id(self.session.last_sequence)
        return Accepted(attempt_id, request.request_id, request.actions, request.input)

    def check(self) -> None:
        """Raise an error if the turn is not possible in the current session."""
        session, request = self.session, self.request
        check_next_turn(request.expected_turn, session)
        check_ongoing(session)
        check_seat_turn(self.seat, session)
        check_known_actions(request.actions, self.ruleset.spec)

    def begin(self) -> tuple[SpeculativeTurn | None, tuple[Event, ...]]:
        """Execute the actions of the player."""
        session = self.session
        board = TurnTransaction(
            self.ruleset.program,
            session.snapshot,
            new_seed=session.seed if session.reseeded else None,
            actor=None if self.seat is None else self.seat.entity_id,
        )
        # Seats that act together cannot agree on other actions, so rejected ones do not abandon the turn.
        one_player = session.table is None or self.seat is not None
        return begin_turn(board, self.request.actions, abandon_if_all_rejected=one_player)

    def opening(self, events: Sequence[Event]) -> Iterator[TurnEventView]:
        """Start the turn and yield the events of its actions."""
        yield from map(self.record, (self._accepted, *events))

    def on_event(self, happened: Event | TurnRestarted) -> Iterator[TurnEventView]:
        """Yield the next event, or restart the turn and yield its new mechanics."""
        if not isinstance(happened, TurnRestarted):
            yield self.record(happened)
            return
        self._accepted = self._accepted_event()
        self._events.clear()
        yield from self.opening(happened.events)

    def minimal_turn(self, played: TurnResult) -> TurnView:
        """Return the turn with an empty narration, to estimate its minimum size."""
        told = NarrationResult("", Resolution.NARRATED, UsageTotal(), "", memories=self.session.memories)
        committed, turn = self.committed_event(played, told), self.turn_to_record(played, told)
        return self.unprojected(replace(turn, events=(self._accepted, *played.events, committed)))

    def unprojected(self, turn: CommittedTurn) -> TurnView:
        """Return the unfiltered view of a turn."""
        return TurnView(turn, tuple(map(self._view, turn.events)))

    def abandon(self, failure: RuleFailed) -> TurnEventView:
        """Replace the last event of a turn that was about to be committed with a failure."""
        self._events.pop()
        return self.record(failure)

    def record(self, event: Event) -> TurnEventView:
        """Record an event and publish it to watchers; return it as seen by the viewer."""
        self._events.append(event)
        # `Committed` is published after the commit.
        if not isinstance(event, Committed):
            self.live.publish(event)
        return self._view(self.view.project_event(event, self.audience))

    def _view(self, event: Event | None) -> TurnEventView:
        sequence = self.session.last_sequence + len(self._events)
        return TurnEventView(
            self.session.session_id,
            self.request.expected_turn,
            sequence,
            event,
            self.ruleset.spec,
        )

    def replay(self, recorded: CommittedTurn) -> Iterator[TurnEventView]:
        """Yield the recorded turn as seen by the viewer."""
        return project_turn(self.session, self.ruleset.spec, self.view, recorded)

    def committed_event(self, played: TurnResult, told: NarrationResult) -> Committed:
        """Return the last event of the turn."""
        return Committed(
            state_hash=played.state_hash,
            chain_hash=engine.extend_hash_chain(self.session.chain_hash, played.record),
            status=played.world.status,
            legal_actions=played.legal_actions,
            usage=told.usage,
            changes=played.changes,
            narrative=told.narrative,
            resolution=told.resolution,
            model=told.model,
            commit_time=now_micros(),
            conduct=told.stats,
            next_seat_id=replace(
                self.session,
                turn=self.request.expected_turn,
                status=played.world.status,
            ).next_seat_id,
        )

    def session_after(self, committed: Committed, played: TurnResult, told: NarrationResult) -> Session:
        """Return the session after the turn."""
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
        return replace(after, due=after.next_deadline(committed.commit_time))

    def turn_to_record(self, played: TurnResult, told: NarrationResult) -> CommittedTurn:
        """Return the turn to commit."""
        return CommittedTurn(
            turn=self.request.expected_turn,
            request_id=self.request.request_id,
            request_digest=self.request.request_digest(),
            pov=self.audience,
            record=played.record,
            first_sequence=self.session.last_sequence + 1,
            events=tuple(self._events),
            memories=diff_memories(self.session.memories, told.memories),
        )

"""The life of a turn: asked for, decided, told, stored.

Of all that happens before the commit nothing lasts: a turn that is cancelled, crashes or loses a race leaves
the session as it was. After the commit its events are a record, and asking again replays them.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from peripety.errors import AlreadyExistsError, ConflictError, FailedPreconditionError, InternalError
from peripety.sessions.checks import check_turn_request, refuse
from peripety.sessions.events import Accepted, Committed
from peripety.sessions.facts import Scene
from peripety.sessions.mechanics import Abandoned, next_hash, play
from peripety.sessions.model import CommittedTurn, microseconds_now
from peripety.sessions.narrator import Told

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence

    from peripety.sessions.events import Event
    from peripety.sessions.mechanics import Played
    from peripety.sessions.model import Session, TurnRequest
    from peripety.sessions.narrator import Narrator
    from peripety.sessions.rulesets import Ruleset, Rulesets
    from peripety.sessions.store import SessionStore
    from peripety.sessions.visibility import View

__all__ = ["Seen", "Turns", "seen_events"]

_HISTORY = 6


@dataclass(frozen=True, slots=True)
class Seen:
    """An event as one viewer sees it.

    Attributes:
        session_id: the session.
        turn: the turn, from 1.
        sequence: its place among all recorded events of the session, from 1.
        event: what happened; None when the viewer may see nothing of it.
        spec: the scenario that it happened in.
    """

    session_id: str
    turn: int
    sequence: int
    event: Event | None
    spec: Mapping[str, Any]


def seen_events(session: Session, spec: Mapping[str, Any], view: View, turn: CommittedTurn) -> Iterator[Seen]:
    """The recorded events of a turn, as one viewer sees them."""
    for sequence, event in enumerate(turn.events, turn.first_sequence):
        yield Seen(session.session_id, turn.turn, sequence, view.event(event, turn.pov), spec)


class Turns:
    """Plays turns.

    Args:
        store: where sessions are kept.
        rulesets: the scenarios that they play.
        narrator: who tells the turns.
    """

    def __init__(self, store: SessionStore, rulesets: Rulesets, narrator: Narrator) -> None:
        self._store = store
        self._rulesets = rulesets
        self._narrator = narrator
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def take(self, request: TurnRequest) -> AsyncGenerator[Seen, None]:
        """Play a turn and follow it, or replay it when its request has played it already.

        Turns of one session wait for each other in this process; between processes the database decides.

        Raises:
            InvalidArgumentError: a field is wrong.
            NotFoundError: there is no such session or entity.
            AlreadyExistsError: the request id was used for a different turn.
            ConflictError: `STALE_TURN`: it is not the turn that comes next.
            FailedPreconditionError: `RUN_ENDED`.
        """
        check_turn_request(request)
        async with (
            self._locks.setdefault(request.session_id, asyncio.Lock()),
            aclosing(self._take(request)) as events,
        ):
            async for event in events:
                yield event

    async def _take(self, request: TurnRequest) -> AsyncGenerator[Seen, None]:
        session = await self._store.session(request.session_id)
        attempt = _Attempt(request, session, await self._rulesets.of(session.spec_hash))
        recorded = await self._recorded(request)
        if recorded is not None:
            for event in attempt.replay(recorded):
                yield event
            return
        async with aclosing(self._play(attempt)) as events:
            async for event in events:
                yield event

    async def _recorded(self, request: TurnRequest) -> CommittedTurn | None:
        recorded = await self._store.turn(request.session_id, request.request_id)
        if recorded is not None and recorded.request_digest != request.digest():
            raise AlreadyExistsError(
                f".request_id was used for another request, of turn {recorded.turn}; make a new one",
                code="REQUEST_ID_REUSED",
            )
        return recorded

    async def _play(self, attempt: _Attempt) -> AsyncGenerator[Seen, None]:
        attempt.check()
        session, request = attempt.session, attempt.request
        played = await asyncio.to_thread(play, attempt.ruleset.program, session.snapshot, request.actions)
        for event in attempt.opening(played.events):
            yield event
        if isinstance(played, Abandoned):
            return
        told = None
        async with aclosing(self._narrator.tell(await self._scene(attempt, played))) as telling:
            async for prose in telling:
                if isinstance(prose, Told):
                    told = prose
                else:
                    yield attempt.note(prose)
        if told is None:
            raise InternalError("a narrator ended without an end")
        committed = attempt.committed(played, told)
        last = attempt.note(committed)
        turn = attempt.turn_to_record(played)
        recorded = await self._commit(request, attempt.session_after(committed, played), turn)
        for event in (last,) if recorded is turn else attempt.replay(recorded):
            yield event

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

    async def _scene(self, attempt: _Attempt, played: Played) -> Scene:
        view = attempt.view
        narrated = await self._store.narratives(attempt.session.session_id, view.viewer, _HISTORY)
        turn, spoken = attempt.request.expected_turn, attempt.request.input
        return Scene(attempt.ruleset.spec, view, turn, spoken, played, narrated)


class _Attempt:
    """One try to play a turn: what it started from, and its events so far."""

    def __init__(self, request: TurnRequest, session: Session, ruleset: Ruleset) -> None:
        self.request = request
        self.session = session
        self.ruleset = ruleset
        self.view = ruleset.visibility.view(request.pov)
        self._events: list[Event] = []

    def check(self) -> None:
        """Refuse a turn that cannot follow the session as it is."""
        session, request = self.session, self.request
        if request.expected_turn != session.turn + 1:
            raise ConflictError(
                f".expected_turn is {request.expected_turn}, but the next turn of the session is"
                f" {session.turn + 1}; read the session again, then go on from there",
                code="STALE_TURN",
                details={"turn": str(session.turn), "expected_turn": str(request.expected_turn)},
            )
        if session.status.kind != "ongoing":
            raise FailedPreconditionError(
                f"The run has ended ({session.status.kind}) and takes no more turns; start another session",
                code="RUN_ENDED",
            )
        known = {action["id"] for action in self.ruleset.spec["actions"]}
        for index, action in enumerate(request.actions):
            if action.action_id not in known:
                name = action.action_id[:64]
                raise refuse(f".actions[{index}].action_id", f"names no action of the scenario: '{name}'")

    def opening(self, events: Sequence[Event]) -> Iterator[Seen]:
        """Begin the turn, and tell what the engine decided."""
        request = self.request
        accepted = Accepted(str(uuid.uuid4()), request.request_id, request.actions, request.input)
        yield from map(self.note, (accepted, *events))

    def note(self, event: Event) -> Seen:
        """Keep an event for the record; what the viewer sees of it."""
        self._events.append(event)
        sequence = self.session.last_sequence + len(self._events)
        seen = self.view.event(event, self.request.pov)
        return Seen(self.session.session_id, self.request.expected_turn, sequence, seen, self.ruleset.spec)

    def replay(self, recorded: CommittedTurn) -> Iterator[Seen]:
        """The turn as it is recorded."""
        return seen_events(self.session, self.ruleset.spec, self.view, recorded)

    def committed(self, played: Played, told: Told) -> Committed:
        """The last event of the turn."""
        return Committed(
            state_hash=played.state_hash,
            chain_hash=next_hash(self.session.chain_hash, played.record),
            status=played.world.status,
            legal_actions=played.legal_actions,
            usage=told.usage,
            changes=played.changes,
            narrative=told.narrative,
            resolution=told.resolution,
            model=told.model,
            commit_time=microseconds_now(),
        )

    def session_after(self, committed: Committed, played: Played) -> Session:
        """The session as the turn leaves it."""
        return replace(
            self.session,
            turn=self.request.expected_turn,
            status=committed.status,
            snapshot=played.snapshot,
            state_hash=committed.state_hash,
            chain_hash=committed.chain_hash,
            last_sequence=self.session.last_sequence + len(self._events),
            usage=self.session.usage + committed.usage,
            updated=committed.commit_time,
        )

    def turn_to_record(self, played: Played) -> CommittedTurn:
        """The turn, to be recorded."""
        return CommittedTurn(
            turn=self.request.expected_turn,
            request_id=self.request.request_id,
            request_digest=self.request.digest(),
            pov=self.request.pov,
            record=played.record,
            first_sequence=self.session.last_sequence + 1,
            events=tuple(self._events),
        )

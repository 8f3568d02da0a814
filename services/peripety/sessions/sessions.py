"""Session manager: create, read, list, play, resume, fork, rewind, watch, export and delete sessions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from peripety.errors import NotFoundError
from peripety.pages import Position, page_of, page_size, position_in
from peripety.sessions.branches import Branches
from peripety.sessions.bundles.exporting import Exporter
from peripety.sessions.bundles.importing import Importer
from peripety.sessions.checks import check_deletion, check_new_session, check_players, check_session_id
from peripety.sessions.events import Accepted
from peripety.sessions.looks import look
from peripety.sessions.opening import opened
from peripety.sessions.seats.rounds import Rounds
from peripety.sessions.seen import SeenTurn, seen_events
from peripety.sessions.turns import Turns
from peripety.sessions.watching.hub import Hub
from peripety.sessions.watching.watch import Watching
from peripety.tasks import aside

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from peripety.pages import Page
    from peripety.scenarios.model import ScenarioSource
    from peripety.sessions.branches.model import Compared, Comparison, Fork, Rewinding
    from peripety.sessions.bundles.exporting import ReplayCompleted
    from peripety.sessions.bundles.replaying import ReplayedTurn
    from peripety.sessions.looks import SeenSession
    from peripety.sessions.model import CommittedTurn, NewSession, Session, SessionSummary, TurnRequest
    from peripety.sessions.narrating.narrator import Narrator
    from peripety.sessions.rulesets import Ruleset, Rulesets
    from peripety.sessions.seats.model import Submission
    from peripety.sessions.seen import Room, Seen
    from peripety.sessions.store import SessionStore
    from peripety.sessions.watching.model import WatchEvent, WatchRequest

__all__ = ["Sessions"]


class Sessions:
    """Manager of all sessions of a database.

    Args:
        store: stores the sessions.
        scenarios: source of their scenarios.
        rulesets: the programs of their scenarios.
        narrator: narrates their turns.
        room: size limit of a turn and of a page of turns.
        watchers: maximum number of concurrent watchers.
    """

    def __init__(
        self,
        store: SessionStore,
        scenarios: ScenarioSource,
        rulesets: Rulesets,
        narrator: Narrator,
        room: Room,
        watchers: int = 128,
    ) -> None:
        self._store = store
        self._scenarios = scenarios
        self._rulesets = rulesets
        self._hub = Hub(store, followers=watchers)
        self._turns = Turns(store, rulesets, narrator, room, self._hub)
        self._watching = Watching(store, rulesets, self._hub)
        self._rounds = Rounds(store, rulesets, self._turns, self._hub)
        self._branches = Branches(store, rulesets, room)
        self._exporter = Exporter(store, rulesets, scenarios)
        self._importer = Importer(store, room)
        self._room = room

    async def create(self, new: NewSession) -> SeenSession:
        """Create a session of a compiled scenario; idempotent by request id.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the scenario, version or entity does not exist.
            AlreadyExistsError: the request id was used for a different request.
        """
        check_new_session(new)
        made = await self._store.made_by(new.named())
        if made is not None:
            return await self._seen(made, new.pov)
        scenario = await self._scenarios.compiled(new.scenario_id, new.spec_hash)
        ruleset = await self._rulesets.of(scenario.spec_hash, scenario.document)
        ruleset.viewers.view(new.pov)
        if new.table is not None:
            check_players(new.table, ruleset.spec)
        session = await asyncio.to_thread(opened, ruleset.program, new)
        return await self._seen(await self._store.add(session, scenario.document, new.named()), new.pov)

    async def get(self, session_id: str, pov: str | None) -> SeenSession:
        """Return a session as seen by an entity.

        Raises:
            NotFoundError: the session or entity does not exist.
            InvalidArgumentError: the entity is not playable.
        """
        session, ruleset = await self._session(session_id)
        return await aside(lambda: look(session, ruleset, pov), len(session.snapshot))

    async def list(self, scenario_id: str | None, asked_size: int, token: str) -> Page[SessionSummary]:
        """List sessions, newest first, optionally only those of one scenario.

        Raises:
            InvalidArgumentError: the page size or token is invalid.
        """
        size = page_size(asked_size)
        position = position_in(token, named=True)
        found = await self._store.sessions(scenario_id, position, size + 1)
        return page_of(found, size, lambda session: Position(session.created, session.session_id))

    async def delete(self, session_id: str, request_id: str) -> None:
        """Delete a session with its turns; idempotent by request id.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session does not exist.
        """
        check_deletion(session_id, request_id)
        await self._store.delete(session_id, request_id)
        self._hub.deleted(session_id)

    def take_turn(self, request: TurnRequest) -> AsyncGenerator[Seen, None]:
        """Play a turn, or replay it if its request has played it already."""
        return self._turns.take(request)

    async def resume(
        self,
        session_id: str,
        which: int | str,
        *,
        after: int = 0,
        attempt_id: str | None = None,
        pov: str | None = None,
    ) -> tuple[Seen, ...]:
        """Return the recorded events of a committed turn after a given one.

        Args:
            session_id: the session.
            which: the turn's number, or the id of the request that played it.
            after: sequence of the last received event.
            attempt_id: the attempt of that event; if another attempt was committed, all events are returned.
            pov: the entity whose view this is; None for the public view.

        Raises:
            NotFoundError: the session, turn or entity does not exist.
        """
        session, ruleset = await self._session(session_id)
        view = ruleset.viewers.view(pov)
        turn = await self._store.turn(session_id, which)
        if turn is None:
            raise NotFoundError(
                "turn is not committed; send it again with its request id, or use a committed turn",
                code="UNKNOWN_TURN",
            )
        if attempt_id is not None and attempt_id != _attempt_of(turn):
            after = 0
        return tuple(seen for seen in seen_events(session, ruleset.spec, view, turn) if seen.sequence > after)

    async def turns(self, session_id: str, pov: str | None, asked_size: int, token: str) -> Page[SeenTurn]:
        """List committed turns, oldest first.

        Raises:
            NotFoundError: the session or entity does not exist.
            InvalidArgumentError: the page size or token is invalid.
        """
        size = page_size(asked_size)
        after = position_in(token) or Position(0)
        session, ruleset = await self._session(session_id)
        view = ruleset.viewers.view(pov)
        found = [
            SeenTurn(turn, tuple(seen_events(session, ruleset.spec, view, turn)))
            for turn in await self._store.turns(session_id, after.number, size + 1)
        ]
        fitting = await asyncio.to_thread(self._room.fitting, [(seen,) for seen in found[:size]])
        return page_of(found, fitting, lambda seen: Position(seen.turn.turn))

    async def fork(self, request: Fork) -> SeenSession:
        """Create a session that shares the first turns of another."""
        return await self._branches.fork(request)

    async def rewind(self, request: Rewinding) -> SeenSession:
        """Undo the last turns of a session."""
        seen = await self._branches.rewind(request)
        self._hub.look()
        return seen

    async def compare(self, request: Comparison) -> Compared:
        """Compare two sessions: their last common turn, and the differences since."""
        return await self._branches.compare(request)

    def watch(self, request: WatchRequest) -> AsyncGenerator[WatchEvent, None]:
        """Watch a session until it ends."""
        return self._watching.watch(request)

    async def submit(self, submission: Submission) -> tuple[str, ...]:
        """Submit the actions of a seat."""
        return await self._rounds.submit(submission)

    def look_out(self) -> None:
        """Start polling for turns that are due."""
        self._rounds.look_out()

    async def aclose(self) -> None:
        """Shut down: close all watch streams and stop the seat-timeout scheduler."""
        await self._hub.aclose()
        await self._rounds.aclose()

    def replay(
        self, session_id: str, first_turn: int, last_turn: int
    ) -> AsyncGenerator[ReplayedTurn | ReplayCompleted, None]:
        """Replay a session and compare it with its record."""
        return self._exporter.replay(session_id, first_turn, last_turn)

    def export(self, session_id: str, last_turn: int) -> AsyncGenerator[bytes, None]:
        """Export a session as a bundle."""
        return self._exporter.export(session_id, last_turn)

    async def take_in(self, request_id: str, pieces: AsyncIterator[bytes]) -> SeenSession:
        """Import the session of a bundle and return its public view."""
        return await self._seen(await self._importer.take_in(request_id, pieces), None)

    async def _session(self, session_id: str) -> tuple[Session, Ruleset]:
        check_session_id(session_id)
        session = await self._store.session(session_id)
        return session, await self._rulesets.of(session.spec_hash)

    async def _seen(self, session: Session, pov: str | None) -> SeenSession:
        ruleset = await self._rulesets.of(session.spec_hash)
        return await aside(lambda: look(session, ruleset, pov), len(session.snapshot))


def _attempt_of(turn: CommittedTurn) -> str | None:
    first = turn.events[0]
    return first.attempt_id if isinstance(first, Accepted) else None

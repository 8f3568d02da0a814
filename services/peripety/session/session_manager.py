"""Session manager: create, read, list, resume, rewind, import and delete sessions."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety import engine
from peripety.core.call_context import now_micros
from peripety.core.concurrency import run_in_thread_if_large
from peripety.core.validation import PagePosition, decode_page_token, make_page, resolve_page_size
from peripety.errors import NotFoundError
from peripety.gateway.types.response import UsageTotal
from peripety.session.branches import BranchManager
from peripety.session.bundles.exporter import SessionExporter
from peripety.session.bundles.importer import SessionImporter
from peripety.session.events import Accepted
from peripety.session.questions.answers import Answer, answer_question
from peripety.session.questions.session_record import read_record
from peripety.session.seats.seat_timeout import RoundScheduler
from peripety.session.session_view import project_session
from peripety.session.turn_runner import TurnRunner
from peripety.session.types import Session
from peripety.session.validation import (
    check_deletion,
    check_new_session,
    check_playable_seats,
    check_question,
    check_session_id,
)
from peripety.session.visibility import TurnView, project_turn
from peripety.session.watch.broadcaster import SessionBroadcaster
from peripety.session.watch.watch_stream import WatchStreams

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.core.validation import Page
    from peripety.scenario.types import ScenarioSource
    from peripety.session.branch_types import RewindRequest
    from peripety.session.narration.narrator import Narrator
    from peripety.session.session_view import Ruleset, RulesetCache, SessionView
    from peripety.session.store.session_store import SessionStore
    from peripety.session.types import CommittedTurn, NewSession, SessionListing, SessionSummary
    from peripety.session.visibility import MessageLimit, TurnEventView


def create_session(program: engine.Program, request: NewSession) -> Session:
    """Return a new session before its first turn; it is not stored."""
    seed = program.spec["seed"] if request.seed is None else request.seed
    state = program.new_state(seed)
    now = now_micros()
    session = Session(
        session_id=str(uuid.uuid4()),
        scenario_id=request.scenario_id,
        spec_hash=program.spec_hash,
        seed=seed,
        first_seed=seed,
        reseeded=False,
        turn=0,
        status=state.status,
        snapshot=state.to_json(),
        state_hash=state.hash(),
        chain_hash=engine.start_hash_chain(seed, program.spec_hash),
        last_sequence=0,
        usage=UsageTotal(),
        created=now,
        updated=now,
        line_id=str(uuid.uuid4()),
        narrator=request.narrator,
        table=request.table,
    )
    return replace(session, due=session.next_deadline(now))


class SessionManager:
    """Manager of all sessions of a database.

    Args:
        store: stores the sessions.
        scenarios: source of their scenarios.
        rulesets: the programs of their scenarios.
        narrator: narrates their turns.
        message_limit: size limit of a turn and of a page of turns.
        watchers: maximum number of concurrent watchers.

    Attributes:
        turn_runner: plays turns.
        round_scheduler: collects the actions of seats that act together, and plays turns that are due.
        branches: forks and compares sessions.
        watch_streams: opens streams of the events of a session.
        exporter: exports and replays sessions.
    """

    def __init__(
        self,
        store: SessionStore,
        scenarios: ScenarioSource,
        rulesets: RulesetCache,
        narrator: Narrator,
        message_limit: MessageLimit,
        watchers: int = 128,
    ) -> None:
        self._store = store
        self._scenarios = scenarios
        self._rulesets = rulesets
        self._narrator = narrator
        self._broadcaster = SessionBroadcaster(store, max_watchers=watchers)
        self.turn_runner = TurnRunner(store, rulesets, narrator, message_limit, self._broadcaster)
        self.watch_streams = WatchStreams(store, rulesets, self._broadcaster)
        self.round_scheduler = RoundScheduler(store, rulesets, self.turn_runner, self._broadcaster)
        self.branches = BranchManager(store, rulesets, message_limit)
        self.exporter = SessionExporter(store, rulesets, scenarios)
        self._importer = SessionImporter(store, message_limit)
        self._message_limit = message_limit

    async def create(self, new: NewSession) -> SessionView:
        """Create a session of a compiled scenario; idempotent by request id.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the scenario, version or entity does not exist.
            AlreadyExistsError: the request id was used for a different request.
        """
        check_new_session(new)
        made = await self._store.find_by_request_id(new.request_key())
        if made is not None:
            return await self._project(made, new.pov)
        scenario = await self._scenarios.get_scenario(new.scenario_id, new.spec_hash)
        ruleset = await self._rulesets.get(scenario.spec_hash, scenario.document)
        ruleset.projector.for_viewer(new.pov)
        self._narrator.check_options(new.narrator)
        if new.table is not None:
            check_playable_seats(new.table, ruleset.spec)
        session = await asyncio.to_thread(create_session, ruleset.program, new)
        return await self._project(
            await self._store.add(session, scenario.document, new.request_key()),
            new.pov,
        )

    async def get(self, session_id: str, pov: str | None) -> SessionView:
        """Return a session as seen by an entity.

        Raises:
            NotFoundError: the session or entity does not exist.
            InvalidArgumentError: the entity is not playable.
        """
        session, ruleset = await self._session(session_id)
        return await run_in_thread_if_large(
            lambda: project_session(session, ruleset, pov),
            len(session.snapshot),
        )

    async def list_sessions(
        self,
        listing: SessionListing,
        requested_size: int,
        token: str,
    ) -> Page[SessionSummary]:
        """List sessions.

        Args:
            listing: filter and order.
            requested_size: maximum number of sessions; 0 for the default.
            token: token of the page; empty for the first one.

        Raises:
            InvalidArgumentError: the page size or token is invalid.
        """
        size = resolve_page_size(requested_size)
        position = decode_page_token(token, has_name=True)
        found = await self._store.list_sessions(listing, position, size + 1)

        def position_of(session: SessionSummary) -> PagePosition:
            time = session.updated if listing.by_update_time else session.created
            return PagePosition(time, session.session_id)

        return make_page(found, size, position_of)

    async def delete(self, session_id: str, request_id: str) -> None:
        """Delete a session with its turns; idempotent by request id.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session does not exist.
        """
        check_deletion(session_id, request_id)
        await self._store.delete(session_id, request_id)
        self._broadcaster.publish_deletion(session_id)

    async def resume(
        self,
        session_id: str,
        which: int | str,
        *,
        after: int = 0,
        attempt_id: str | None = None,
        pov: str | None = None,
    ) -> tuple[TurnEventView, ...]:
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
        view = ruleset.projector.for_viewer(pov)
        turn = await self._store.find_turn(session_id, which)
        if turn is None:
            raise NotFoundError(
                "turn is not committed; send it again with its request id, or use a committed turn",
                code="UNKNOWN_TURN",
            )
        if attempt_id is not None and attempt_id != _attempt_id_of(turn):
            after = 0
        return tuple(
            seen for seen in project_turn(session, ruleset.spec, view, turn) if seen.sequence > after
        )

    async def list_turns(
        self,
        session_id: str,
        pov: str | None,
        requested_size: int,
        token: str,
    ) -> Page[TurnView]:
        """List committed turns, oldest first.

        Raises:
            NotFoundError: the session or entity does not exist.
            InvalidArgumentError: the page size or token is invalid.
        """
        size = resolve_page_size(requested_size)
        after = decode_page_token(token) or PagePosition(0)
        session, ruleset = await self._session(session_id)
        view = ruleset.projector.for_viewer(pov)
        found = [
            TurnView(turn, tuple(project_turn(session, ruleset.spec, view, turn)))
            for turn in await self._store.list_turns(session_id, after.number, size + 1)
        ]
        fitting = await asyncio.to_thread(
            self._message_limit.count_fitting,
            [(seen,) for seen in found[:size]],
        )
        return make_page(found, fitting, lambda seen: PagePosition(seen.turn.turn))

    async def ask(self, session_id: str, question: str, pov: str | None) -> Answer:
        """Answer a question about a session from its record, as an entity may know it.

        Raises:
            InvalidArgumentError: the question is empty or too long, or the entity is not playable.
            NotFoundError: the session or entity does not exist.
        """
        check_question(question)
        session, ruleset = await self._session(session_id)
        view = ruleset.projector.for_viewer(pov)
        turns = await self._store.list_turns(session_id, 0, session.turn) if session.turn else []

        def answer() -> Answer:
            program = ruleset.program
            state = program.load_state(session.snapshot)
            legal = program.legal_actions(state) if session.status.kind == "ongoing" else ()
            return answer_question(read_record(program.spec, state, legal, view, turns), question)

        return await asyncio.to_thread(answer)

    async def rewind(self, request: RewindRequest) -> SessionView:
        """Undo the last turns of a session."""
        seen = await self.branches.rewind(request)
        self._broadcaster.poll_now()
        return seen

    async def aclose(self) -> None:
        """Shut down: close all watch streams and stop the seat-timeout scheduler."""
        await self._broadcaster.aclose()
        await self.round_scheduler.aclose()

    async def import_bundle(self, request_id: str, chunks: AsyncIterator[bytes]) -> SessionView:
        """Import the session of a bundle and return its public view."""
        return await self._project(await self._importer.import_bundle(request_id, chunks), None)

    async def _session(self, session_id: str) -> tuple[Session, Ruleset]:
        check_session_id(session_id)
        session = await self._store.get_session(session_id)
        return session, await self._rulesets.get(session.spec_hash)

    async def _project(self, session: Session, pov: str | None) -> SessionView:
        ruleset = await self._rulesets.get(session.spec_hash)
        return await run_in_thread_if_large(
            lambda: project_session(session, ruleset, pov),
            len(session.snapshot),
        )


def _attempt_id_of(turn: CommittedTurn) -> str | None:
    first = turn.events[0]
    return first.attempt_id if isinstance(first, Accepted) else None

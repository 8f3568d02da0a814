"""A session as its viewers see it, and what active sessions have in memory: their programs and last turns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from peripety import engine
from peripety.core.lru import LruCache
from peripety.session.narration.turn_context import RECENT_TURNS, ScenarioRules, turn_names
from peripety.session.narration.turn_history import first_turn_of_history, render_turn
from peripety.session.visibility import Projector

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from peripety.engine import Program
    from peripety.scenario.registry import ProgramCache
    from peripety.session.narration.prompt_room import PromptRoom
    from peripety.session.narration.turn_history import TurnText
    from peripety.session.store.session_store import SessionStore
    from peripety.session.types import CommittedTurn, Session
    from peripety.session.visibility import ViewerProjection


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session as seen by one viewer.

    Attributes:
        session: the session; its snapshot must not be shown to viewers.
        spec: the scenario.
        viewer: the entity whose view this is; None for the public view.
        state: the visible part of the state as canonical JSON.
        legal_actions: ids of the actions that are legal next.
    """

    session: Session
    spec: Mapping[str, Any]
    viewer: str | None
    state: bytes
    legal_actions: tuple[str, ...]


def project_session(session: Session, ruleset: Ruleset, pov: str | None) -> SessionView:
    """Return the view of a session for an entity, or the public view for None.

    Raises:
        NotFoundError: the entity does not exist.
        InvalidArgumentError: the entity is not playable.
    """
    view = ruleset.projector.for_viewer(pov)
    program = ruleset.program
    state = program.load_state(session.snapshot)
    goes_on = session.status.kind == "ongoing"
    return SessionView(
        session=session,
        spec=ruleset.spec,
        viewer=pov,
        state=engine.canonicalize(view.project_state(state.tree())),
        legal_actions=program.legal_actions(state) if goes_on else (),
    )


_MAX_SESSIONS = 128
_MAX_BYTES = 64 * 1024
"""Maximum size of the records of one session; longer ones are not cached."""
_MAX_VIEWERS = 8
"""Maximum number of histories of one session; a session without a point of view has one."""


@dataclass(frozen=True, slots=True)
class _RecentTurns:
    """Cached data of a session.

    Attributes:
        sequence: its last event when this was cached.
        turns: its last turns; None if they are too large.
        histories: its history for each viewer and room that needed one.
    """

    sequence: int
    turns: tuple[CommittedTurn, ...] | None = None
    histories: LruCache[tuple[str | None, PromptRoom], tuple[TurnText, ...]] = field(
        default_factory=lambda: LruCache(_MAX_VIEWERS),
    )


class RecentTurnCache:
    """Cache of the last turns of active sessions, so that not every turn reads them from the database.

    It is an LRU cache whose records are bounded in size. An entry is valid until something else happens in
    the session, in any process. `Session.last_sequence` detects this: it counts all events and never
    repeats.

    Args:
        store: stores the sessions.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._entries: LruCache[str, _RecentTurns] = LruCache(_MAX_SESSIONS)

    async def get(self, session: Session) -> tuple[CommittedTurn, ...]:
        """Return the last turns of a session, oldest first, as many as a narration may use in full."""
        turns = self._entry(session).turns
        return turns if turns is not None else await self._load(session, session.turn - RECENT_TURNS)

    async def history(
        self,
        session: Session,
        ruleset: Ruleset,
        view: ViewerProjection,
        room: PromptRoom,
    ) -> tuple[TurnText, ...]:
        """Return the history of a session for a viewer, as the narrator's prompt contains it."""
        entry = self._entry(session)
        first = first_turn_of_history(session.turn + 1)
        known = [text for text in entry.histories.get((view.viewer, room)) or () if text.turn >= first]
        after = known[-1].turn if known else first - 1
        recent = entry.turns or ()
        missing = session.turn - after
        turns = (
            recent[len(recent) - missing :] if missing <= len(recent) else await self._load(session, after)
        )
        names = turn_names(ScenarioRules(session.spec_hash, ruleset.spec))
        texts = (*known, *(render_turn(turn, view, names, room) for turn in turns))
        entry.histories.put((view.viewer, room), texts)
        self._entries.put(session.session_id, entry)
        return texts

    def put(self, session: Session, turns: Sequence[CommittedTurn]) -> None:
        """Cache the last turns of a session that was just committed."""
        last = tuple(turns[-RECENT_TURNS:])
        entry = self._entries.get(session.session_id) or _RecentTurns(session.last_sequence)
        fits = sum(len(turn.record) for turn in last) <= _MAX_BYTES
        entry = replace(entry, sequence=session.last_sequence, turns=last if fits else None)
        self._entries.put(session.session_id, entry)

    def _entry(self, session: Session) -> _RecentTurns:
        entry = self._entries.get(session.session_id)
        is_current = entry is not None and entry.sequence == session.last_sequence
        return entry if entry is not None and is_current else _RecentTurns(session.last_sequence)

    async def _load(self, session: Session, after: int) -> tuple[CommittedTurn, ...]:
        if session.turn == 0:
            return ()
        turns = await self._store.list_turns(session.session_id, max(0, after), session.turn - max(0, after))
        return tuple(turns)


@dataclass(frozen=True, slots=True)
class Ruleset:
    """One version of a scenario: its program and its views."""

    program: Program
    projector: Projector

    @property
    def spec(self) -> Mapping[str, Any]:
        """The specification."""
        return self.program.spec


class RulesetCache:
    """Rulesets by version; the views are computed once per compiled program in the cache.

    Args:
        document: loads the specification of a version by its hash.
        programs: cache of compiled programs.
    """

    def __init__(self, document: Callable[[str], Awaitable[bytes]], programs: ProgramCache) -> None:
        self._document = document
        self._programs = programs
        self._projectors: WeakKeyDictionary[Program, Projector] = WeakKeyDictionary()

    async def get(self, spec_hash: str, document: bytes | None = None) -> Ruleset:
        """Return the ruleset of a version.

        Args:
            spec_hash: hash of the version.
            document: its specification, if already loaded.
        """
        program = self._programs.get(spec_hash)
        if program is None:
            program = await self._programs.load(spec_hash, document or await self._document(spec_hash))
        viewers = self._projectors.get(program)
        if viewers is None:
            viewers = self._projectors[program] = Projector(program.spec)
        return Ruleset(program, viewers)

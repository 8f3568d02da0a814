"""A session as its viewers see it; compiled programs and last turns in memory.

Projection of a session for a viewer.

Cache of the last turns of active sessions, so that not every turn reads them from the database.

Compiled programs of the scenarios that sessions play.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from peripety import engine
from peripety.core.lru import LruCache
from peripety.session.narration.turn_context import HISTORY_TURNS
from peripety.session.visibility import Projector

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from peripety.engine import Program
    from peripety.scenario.registry import ProgramCache
    from peripety.session.store.session_store import SessionStore
    from peripety.session.types import CommittedTurn, Session


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


class RecentTurnCache:
    """Cache of the last turns of sessions, an LRU cache whose records are bounded in size.

    An entry is valid until something else happens in the session, in any process. `Session.last_sequence`
    detects this: it counts all events and never repeats.

    Args:
        store: stores the sessions.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._entries: LruCache[str, tuple[int, tuple[CommittedTurn, ...]]] = LruCache(_MAX_SESSIONS)

    async def get(self, session: Session) -> tuple[CommittedTurn, ...]:
        """Return the last turns of a session, oldest first, as many as a narrator may use."""
        sequence, turns = self._entries.get(session.session_id) or (0, ())
        if sequence == session.last_sequence:
            return turns
        first = session.turn - HISTORY_TURNS
        return tuple(await self._store.list_turns(session.session_id, first, HISTORY_TURNS))

    def put(self, session: Session, turns: Sequence[CommittedTurn]) -> None:
        """Cache the last turns of a session that was just committed."""
        last = tuple(turns[-HISTORY_TURNS:])
        if sum(len(turn.record) for turn in last) <= _MAX_BYTES:
            self._entries.put(session.session_id, (session.last_sequence, last))
        else:
            self._entries.remove(session.session_id)


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

"""Forks and rewinds of sessions.

A rewind does not wait for a running turn. That turn fails, as it finds its session changed at commit.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety import sim
from peripety.clock import microseconds_now
from peripety.errors import ConflictError, NotFoundError
from peripety.gateway.model import Spent
from peripety.sessions.branches.comparing import compare
from peripety.sessions.branches.past import state_at
from peripety.sessions.checks import check_comparison, check_fork, check_rewind
from peripety.sessions.looks import look
from peripety.sessions.mechanics import reseeded
from peripety.sessions.model import Parent
from peripety.tasks import aside

if TYPE_CHECKING:
    from peripety.sessions.branches.model import Compared, Comparison, Fork, Rewinding
    from peripety.sessions.looks import SeenSession
    from peripety.sessions.model import Session
    from peripety.sessions.rulesets import Rulesets
    from peripety.sessions.seen import Room
    from peripety.sessions.store import SessionStore
    from peripety.sim import Program

__all__ = ["Branches"]


class Branches:
    """Forks, rewinds and comparisons of sessions.

    Args:
        store: stores the sessions.
        rulesets: the programs of their scenarios.
        room: size limit of a page of turns.
    """

    def __init__(self, store: SessionStore, rulesets: Rulesets, room: Room) -> None:
        self._store = store
        self._rulesets = rulesets
        self._room = room

    async def fork(self, request: Fork) -> SeenSession:
        """Create a session that shares the first turns of another; idempotent by request id.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session, turn or entity does not exist.
            AlreadyExistsError: the request id was used for a different request.
            ConflictError: the turn was rewound meanwhile.
        """
        check_fork(request)
        named = request.named()
        session, made = await self._store.made_from(named, request.session_id)
        if not made:
            ruleset = await self._rulesets.of(session.spec_hash)
            ruleset.viewers.view(request.pov)
            if request.turn is not None and request.turn != session.turn:
                session = await state_at(self._store, self._rulesets, request.session_id, request.turn)
            fork = _forked(ruleset.program, session, request.seed)
            session = await self._store.fork(fork, request.session_id, named)
        return await self._seen(session, request.pov)

    async def rewind(self, request: Rewinding) -> SeenSession:
        """Undo the last turns of a session; idempotent by request id.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session or entity does not exist.
            AlreadyExistsError: the request id was used for a different request.
            ConflictError: `STALE_TURN`: the session is not at the expected turn.
        """
        check_rewind(request)
        named = request.named()
        now = await self._store.session(request.session_id)
        (await self._rulesets.of(now.spec_hash)).viewers.view(request.pov)
        if await self._store.rewound_by(request.session_id, named):
            now = await self._store.session(request.session_id)  # a concurrent retry may have won
        else:
            if now.turn != request.expected_turn:
                raise ConflictError(
                    f".expected_turn is {request.expected_turn}, but the session is at {now.turn};"
                    " read the session again and continue from there",
                    code="STALE_TURN",
                    details={"turn": str(now.turn), "expected_turn": str(request.expected_turn)},
                )
            then = await self._before(now, request.turn)
            now = await self._store.rewind(now, _rewound(now, then), named)
        return await self._seen(now, request.pov)

    async def compare(self, request: Comparison) -> Compared:
        """Compare two sessions: their last common turn, and the differences since.

        Raises:
            InvalidArgumentError: a field is invalid, or they play different versions.
            NotFoundError: a session or entity does not exist.
        """
        check_comparison(request)
        return await compare(self._store, self._rulesets, self._room, request)

    async def _before(self, now: Session, turn: int) -> Session:
        """Return a session as it was at an earlier turn."""
        try:
            return await state_at(self._store, self._rulesets, now.session_id, turn)
        except NotFoundError as error:
            if error.code != "UNKNOWN_TURN":
                raise
            raise ConflictError(
                "session was rewound by another request; read it again and retry", code="STALE_TURN"
            ) from None

    async def _seen(self, session: Session, pov: str | None) -> SeenSession:
        ruleset = await self._rulesets.of(session.spec_hash)
        return await aside(lambda: look(session, ruleset, pov), len(session.snapshot))


def _forked(program: Program, parent: Session, seed: int | None) -> Session:
    """Return a new session that continues from the state of another, optionally under another seed."""
    now = microseconds_now()
    fork = replace(
        parent,
        session_id=str(uuid.uuid4()),
        line_id=str(uuid.uuid4()),
        parent=Parent(parent.session_id, parent.turn),
        usage=Spent(),
        created=now,
        updated=now,
        due=parent.next_due(now),
    )
    if seed is None or seed == parent.seed:
        return fork
    snapshot = reseeded(parent.snapshot, seed)
    if parent.turn:
        return replace(fork, snapshot=snapshot, seed=seed, reseeded=True)
    # No turn was played under the old seed, so the hash chain can start with the new one.
    return replace(
        fork,
        snapshot=snapshot,
        seed=seed,
        first_seed=seed,
        chain_hash=sim.chain_start(seed, program.spec_hash),
    )


def _rewound(now: Session, then: Session) -> Session:
    """Return a session reset to an earlier turn; the rewind is an event with the next sequence."""
    parent = now.parent and replace(now.parent, turn=min(now.parent.turn, then.turn))
    moment = microseconds_now()
    return replace(
        then,
        last_sequence=now.last_sequence + 1,
        updated=moment,
        due=then.next_due(moment),
        line_id=str(uuid.uuid4()),
        usage=now.usage,
        parent=parent,
    )

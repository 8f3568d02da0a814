"""Forks and rewinds.

A rewind does not wait for a turn that is under way: that turn loses, as it finds its session changed when it
comes to be stored.
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
    """Forks sessions, rewinds them, and compares what became of them.

    Args:
        store: where they are kept.
        rulesets: the scenarios that they play.
        room: how large a page of turns may grow.
    """

    def __init__(self, store: SessionStore, rulesets: Rulesets, room: Room) -> None:
        self._store = store
        self._rulesets = rulesets
        self._room = room

    async def fork(self, request: Fork) -> SeenSession:
        """Start a session that shares the first turns of another; again under the same id, the same one.

        Raises:
            InvalidArgumentError: a field is wrong.
            NotFoundError: there is no such session, turn or entity.
            AlreadyExistsError: the request id was used for a different request.
            ConflictError: the turn was taken back meanwhile.
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
        """Take the last turns of a session back; again under the same id, nothing happens.

        Raises:
            InvalidArgumentError: a field is wrong.
            NotFoundError: there is no such session or entity.
            AlreadyExistsError: the request id was used for a different request.
            ConflictError: `STALE_TURN`: the session is not at the turn that was expected.
        """
        check_rewind(request)
        named = request.named()
        now = await self._store.session(request.session_id)
        (await self._rulesets.of(now.spec_hash)).viewers.view(request.pov)
        if await self._store.rewound_by(request.session_id, named):
            now = await self._store.session(request.session_id)  # it may have done so just now
        else:
            if now.turn != request.expected_turn:
                raise ConflictError(
                    f".expected_turn is {request.expected_turn}, but the session is at {now.turn};"
                    " read it again, then go on from there",
                    code="STALE_TURN",
                    details={"turn": str(now.turn), "expected_turn": str(request.expected_turn)},
                )
            then = await self._before(now, request.turn)
            now = await self._store.rewind(now, _rewound(now, then), named)
        return await self._seen(now, request.pov)

    async def compare(self, request: Comparison) -> Compared:
        """Say where two sessions part, and how they differ since.

        Raises:
            InvalidArgumentError: a field is wrong, or they play different versions.
            NotFoundError: there is no such session or entity.
        """
        check_comparison(request)
        return await compare(self._store, self._rulesets, self._room, request)

    async def _before(self, now: Session, turn: int) -> Session:
        """A session as it was at a turn that it has been past."""
        try:
            return await state_at(self._store, self._rulesets, now.session_id, turn)
        except NotFoundError as error:
            if error.code != "UNKNOWN_TURN":
                raise
            raise ConflictError(
                "Somebody else took turns of the session back; read it again, then go on", code="STALE_TURN"
            ) from None

    async def _seen(self, session: Session, pov: str | None) -> SeenSession:
        ruleset = await self._rulesets.of(session.spec_hash)
        return await aside(lambda: look(session, ruleset, pov), len(session.snapshot))


def _forked(program: Program, parent: Session, seed: int | None) -> Session:
    """A session that goes on from where another one is, perhaps under another seed."""
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
    # Nothing has happened under the old seed, so that the chain can begin with the new one.
    return replace(
        fork,
        snapshot=snapshot,
        seed=seed,
        first_seed=seed,
        chain_hash=sim.chain_start(seed, program.spec_hash),
    )


def _rewound(now: Session, then: Session) -> Session:
    """A session back at an earlier turn: an event, which has the next sequence."""
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

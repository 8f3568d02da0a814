"""Reconstruction of earlier states of a session by replay from the nearest snapshot."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety import sim
from peripety.errors import InternalError, NotFoundError
from peripety.sessions import remembered
from peripety.sessions.mechanics import play_again, reseeded

if TYPE_CHECKING:
    from peripety.sessions.model import Session
    from peripety.sessions.rulesets import Rulesets
    from peripety.sessions.store import End, Past, SessionStore
    from peripety.sim import Program

__all__ = ["state_at"]


async def state_at(store: SessionStore, rulesets: Rulesets, session_id: str, turn: int) -> Session:
    """Return a session as it was after a turn: its seed, memories, hashes and last sequence at that time.

    Properties of the session as a whole are the current ones: id, line, usage, narrator, table and times. If
    the next turn was the first one under another seed, that seed is set.

    Args:
        store: stores the session.
        rulesets: the programs of scenarios.
        session_id: the session.
        turn: the turn, 0 for the start.

    Raises:
        NotFoundError: the session does not exist or has no such turn (`UNKNOWN_TURN`).
        InternalError: the replayed turns differ from the recorded ones.
    """
    past = await store.past(session_id, turn)
    if past is None:
        raise NotFoundError(
            f".turn: the session has not reached turn {turn}; use an earlier one", code="UNKNOWN_TURN"
        )
    if past.session.turn == turn:
        return past.session
    ruleset = await rulesets.of(past.session.spec_hash)
    return await asyncio.to_thread(_recalled, ruleset.program, past)


def _recalled(program: Program, past: Past) -> Session:
    snapshot, memories = past.snapshot, past.memories
    if snapshot is None:
        snapshot = program.new_state(past.session.first_seed).to_json()
    for number, (record, changes) in enumerate(past.played, past.start + 1):
        played = play_again(program, snapshot, sim.loads(record))
        if played.record != record:
            raise InternalError(f"replay of turn {number} of a session differs from its record")
        snapshot, memories = played.snapshot, remembered.after(memories, changes)
    then = _at_turn(past.session, past.turn, past.end) if past.end else _at_start(program, past.session)
    then = replace(then, memories=memories, due=None)
    next_seed = None if past.next_record is None else json.loads(past.next_record).get("seed")
    if next_seed is not None:
        return replace(then, snapshot=reseeded(snapshot, next_seed), seed=next_seed, reseeded=True)
    seed = int(json.loads(snapshot)["seed"])
    return replace(then, snapshot=snapshot, seed=seed, reseeded=False)


def _at_turn(session: Session, turn: int, end: End) -> Session:
    """Return the session with the recorded end of a turn."""
    return replace(
        session,
        turn=turn,
        status=end.committed.status,
        state_hash=end.committed.state_hash,
        chain_hash=end.committed.chain_hash,
        last_sequence=end.sequence,
    )


def _at_start(program: Program, session: Session) -> Session:
    """Return the session before its first turn."""
    state = program.new_state(session.first_seed)
    return replace(
        session,
        turn=0,
        status=state.status,
        state_hash=state.hash(),
        chain_hash=sim.chain_start(session.first_seed, session.spec_hash),
        last_sequence=0,
    )

"""Initial state of a session."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety import sim
from peripety.clock import microseconds_now
from peripety.gateway.model import Spent
from peripety.sessions.model import Session

if TYPE_CHECKING:
    from peripety.sessions.model import NewSession

__all__ = ["opened"]


def opened(program: sim.Program, new: NewSession) -> Session:
    """Return a new session before its first turn; it is not stored."""
    seed = program.spec["seed"] if new.seed is None else new.seed
    state = program.new_state(seed)
    now = microseconds_now()
    session = Session(
        session_id=str(uuid.uuid4()),
        scenario_id=new.scenario_id,
        spec_hash=program.spec_hash,
        seed=seed,
        first_seed=seed,
        reseeded=False,
        turn=0,
        status=state.status,
        snapshot=state.to_json(),
        state_hash=state.hash(),
        chain_hash=sim.chain_start(seed, program.spec_hash),
        last_sequence=0,
        usage=Spent(),
        created=now,
        updated=now,
        line_id=str(uuid.uuid4()),
        narrator=new.narrator,
        table=new.table,
    )
    return replace(session, due=session.next_due(now))

"""Sessions that are forked and rewound, for tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from peripety import engine
from peripety.errors import NotFoundError
from peripety.session.branch_types import ForkRequest, RewindRequest
from peripety.session.turn_engine import replay_turn
from peripety.session.types import PlayerAction, TurnRequest
from support.sessions import new_id
from support.specs import action, at_most, document, event, never

if TYPE_CHECKING:
    from peripety.core.storage.database import Database
    from peripety.session.session_manager import SessionManager
    from peripety.session.session_view import SessionView
    from peripety.session.store.session_store import SessionStore
    from peripety.session.types import CommittedTurn, Session


FATEFUL = document(
    entities=[{"id": "p", "playable": True}],
    state={"a": 1, "b": 1, "luck": 0, "private": {"p": {"x": 1}}},
    actions=[
        action("act", [{"op": "inc", "path": "state.a", "value": 1}]),
        action("other", [{"op": "inc", "path": "state.b", "value": 1}]),
    ],
    random_events=[
        event(f"e{n}", [{"op": "inc", "path": "state.luck", "value": n}], weight=0.2) for n in range(1, 5)
    ],
)
"""A scenario whose turns differ from seed to seed."""

ENDING = document(
    state={"a": 1},
    actions=[action("end", [{"op": "set", "path": "state.a", "value": 0}])],
    loss_conditions=[at_most("first", "state.a", 0), never("second")],
)
"""A scenario that can be lost in a turn."""


async def forked(
    sessions: SessionManager,
    session_id: str,
    turn: int | None = None,
    **more: Any,
) -> SessionView:
    """Fork a session."""
    return await sessions.fork(ForkRequest(new_id(), session_id, turn, **more))


async def rewound(sessions: SessionManager, session_id: str, turn: int, **more: Any) -> SessionView:
    """Rewind a session from wherever it is."""
    now = (await sessions.get(session_id, None)).session.turn
    return await sessions.rewind(
        RewindRequest(
            **{"request_id": new_id(), "session_id": session_id, "turn": turn, "expected_turn": now, **more},
        ),
    )


def turn_for(session: Session, *actions: str) -> TurnRequest:
    """The next turn of a session."""
    calls = tuple(PlayerAction(name, {}) for name in actions)
    return TurnRequest(session.session_id, new_id(), session.turn + 1, calls)


async def turns_of(store: SessionStore, session_id: str) -> list[CommittedTurn]:
    """All turns of a session."""
    return await store.list_turns(session_id, 0, 1_000_000)


async def verified(store: SessionStore, session_id: str) -> list[CommittedTurn]:
    """The turns of a session, which come to its state and its chain when they are played from the start."""
    session = await store.get_session(session_id)
    program = engine.compile_trusted(await store.get_document(session.spec_hash))
    snapshot = program.new_state(session.first_seed).to_json()
    chain = engine.start_hash_chain(session.first_seed, session.spec_hash)
    turns = await turns_of(store, session_id)
    assert [turn.turn for turn in turns] == list(range(1, session.turn + 1))
    for turn in turns:
        played = replay_turn(program, snapshot, json.loads(turn.record))
        assert played.record == turn.record
        snapshot, chain = played.snapshot, engine.extend_hash_chain(chain, turn.record)
    assert chain == session.chain_hash
    if not session.reseeded:
        assert snapshot == session.snapshot
    sequences = [number for turn in turns for number in (turn.first_sequence, turn.last_sequence)]
    assert sequences == sorted(sequences)
    assert session.last_sequence >= max(sequences, default=0)
    return turns


async def standing_rows(database: Database) -> dict[str, int]:
    """How many rows the tables of lines have."""
    tables = ("session_lines", "session_turns", "session_snapshots")
    async with database.read() as connection:
        return {name: await connection.scalar(text(f"SELECT count(*) FROM {name}")) for name in tables}  # noqa: S608


async def is_gone(sessions: SessionManager, session_id: str) -> bool:
    """Whether there is no such session."""
    try:
        await sessions.get(session_id, None)
    except NotFoundError:
        return True
    return False

"""Turn commit: one transaction adds the turn and moves the session to it. Either both are stored, or neither.

Invariants:

- A session moves only from the turn and the sequence that the caller has read (compare and swap). A
  concurrent change of the same session makes the update match no row, and the caller raises `STALE_TURN`.
  No lock is held while a model narrates, which may take minutes.
- Turns are never updated.
- Every 16th turn also stores a snapshot of the session, from which earlier states are replayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, insert, update

from peripety.errors import ConflictError
from peripety.session.store.tables import (
    session_to_columns,
    sessions,
    snapshots,
    turn_to_columns,
    turns,
)

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.storage.database import Database
    from peripety.session.types import CommittedTurn, Session


SNAPSHOT_TURNS = 16
"""Interval of snapshots in turns."""

_ADD_TURN = insert(turns)
_UPDATE_SESSION = update(sessions).where(
    sessions.c.session_id == bindparam("seen_id"),
    sessions.c.turn == bindparam("seen_turn"),
    sessions.c.last_sequence == bindparam("seen_sequence"),
)


def stale_turn(session_id: str, problem: str) -> ConflictError:
    """Return the error for a session that was changed concurrently."""
    return ConflictError(
        f"{problem}; read it again and retry",
        code="STALE_TURN",
        details={"session_id": session_id},
    )


async def commit_turn(database: Database, session: Session, turn: CommittedTurn) -> None:
    """Store a turn and update its session, in one transaction.

    Args:
        database: the database of the sessions.
        session: the session after the turn.
        turn: the turn.

    Raises:
        ConflictError: `STALE_TURN`: the session has changed since the turn began.
    """
    began = {"turn": turn.turn - 1, "last_sequence": turn.first_sequence - 1}
    async with database.write(f"session {session.session_id}") as connection:
        if not await update_session(connection, session, **began):
            raise stale_turn(
                session.session_id,
                f"turn {turn.turn} of the session was played by another request",
            )
        await connection.execute(_ADD_TURN, turn_to_columns(session.line_id, turn))
        if turn.turn % SNAPSHOT_TURNS == 0:
            await add_snapshot(connection, session)


async def update_session(
    connection: AsyncConnection,
    session: Session,
    *,
    turn: int,
    last_sequence: int,
) -> bool:
    """Update a session if it is still at a turn and a sequence (compare and swap); return True if it was."""
    seen = {"seen_id": session.session_id, "seen_turn": turn, "seen_sequence": last_sequence}
    moved = await connection.execute(_UPDATE_SESSION, seen | session_to_columns(session))
    return bool(moved.rowcount)


async def add_snapshot(connection: AsyncConnection, session: Session) -> None:
    """Store a snapshot of a session after its current turn."""
    columns = session_to_columns(session)
    await connection.execute(insert(snapshots), {column.name: columns[column.name] for column in snapshots.c})

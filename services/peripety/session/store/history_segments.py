"""History segments: the turns that a session references, and garbage collection of unreferenced ones."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, func, insert, literal, select

from peripety.session.store.tables import lines, sessions, snapshots, turns

if TYPE_CHECKING:
    from sqlalchemy import CTE
    from sqlalchemy.ext.asyncio import AsyncConnection


_DELETE_BATCH = 256


@dataclass(frozen=True, slots=True)
class HistorySegment:
    """A segment of a session's history: the turns of a line after one turn and up to another."""

    line_id: str
    after: int
    until: int

    def contains(self, turn: int) -> bool:
        """Return True if the turn is in the segment."""
        return self.after < turn <= self.until


def _ancestry_query() -> CTE:
    own = (
        select(
            lines.c.line_id,
            lines.c.parent_line,
            lines.c.parent_turn,
            sessions.c.turn.label("until"),
            literal(0).label("depth"),
        )
        .join(sessions, sessions.c.line_id == lines.c.line_id)
        .where(sessions.c.session_id == bindparam("session_id"))
        .cte("lineage", recursive=True)
    )
    return own.union_all(
        select(
            lines.c.line_id,
            lines.c.parent_line,
            lines.c.parent_turn,
            own.c.parent_turn,
            own.c.depth + 1,
        ).join(own, lines.c.line_id == own.c.parent_line),
    )


ANCESTRY = _ancestry_query()
"""Recursive query of the lines of the session `session_id`, each with its last turn for this session."""
_ADD = insert(lines)
_SEGMENTS = select(ANCESTRY.c.line_id, ANCESTRY.c.parent_turn, ANCESTRY.c.until).order_by(ANCESTRY.c.depth)


async def load_ancestry(connection: AsyncConnection, session_id: str) -> list[HistorySegment]:
    """Return the segments of a session, the latest first; empty if the session does not exist."""
    found = await connection.execute(_SEGMENTS, {"session_id": session_id})
    return [HistorySegment(*row) for row in found]


def find_segment(segments: list[HistorySegment], turn: int) -> HistorySegment | None:
    """Return the segment that contains a turn."""
    return next((segment for segment in segments if segment.contains(turn)), None)


async def add_line(
    connection: AsyncConnection,
    line_id: str,
    parent: HistorySegment | None,
    turn: int,
) -> None:
    """Add a line after a turn.

    Args:
        connection: in a transaction.
        line_id: id of the new line.
        parent: the segment of the turn; None at the start.
        turn: the last turn before those of the line.
    """
    parent_line = None if parent is None else parent.line_id
    await connection.execute(insert(lines).values(line_id=line_id, parent_line=parent_line, parent_turn=turn))


async def last_forked_turn(connection: AsyncConnection, line_id: str) -> int | None:
    """Return the latest turn of a line at which another line begins, or None."""
    turn: int | None = await connection.scalar(
        select(func.max(lines.c.parent_turn)).where(lines.c.parent_line == line_id),
    )
    return turn


async def garbage_collect(connection: AsyncConnection, line_id: str) -> None:
    """Delete the unreferenced turns of a line and of its ancestors."""
    line: str | None = line_id
    while line is not None:
        if await connection.scalar(select(sessions.c.session_id).where(sessions.c.line_id == line)):
            return
        needed = await last_forked_turn(connection, line)
        if needed is not None:
            await truncate(connection, line, needed)
            return
        parent, start = (
            await connection.execute(
                select(lines.c.parent_line, lines.c.parent_turn).where(lines.c.line_id == line),
            )
        ).one()
        await truncate(connection, line, start)
        await connection.execute(delete(lines).where(lines.c.line_id == line))
        line = parent


async def truncate(connection: AsyncConnection, line_id: str, turn: int) -> None:
    """Delete the turns of a line after a turn, in batches, so that the event loop is not blocked."""
    last = await connection.scalar(select(func.max(turns.c.turn)).where(turns.c.line_id == line_id))
    for until in range((last or 0) - _DELETE_BATCH, turn, -_DELETE_BATCH):
        await _delete_after(connection, line_id, until)
        await asyncio.sleep(0)
    await _delete_after(connection, line_id, turn)


async def _delete_after(connection: AsyncConnection, line_id: str, turn: int) -> None:
    for table in (turns, snapshots):
        await connection.execute(delete(table).where(table.c.line_id == line_id, table.c.turn > turn))


def slice_segments(segments: list[HistorySegment], after: int, until: int) -> list[HistorySegment]:
    """Return the parts of segments after one turn and up to another, the earliest first."""
    parts = [
        HistorySegment(segment.line_id, max(segment.after, after), min(segment.until, until))
        for segment in segments
    ]
    return [part for part in reversed(parts) if part.after < part.until]


def count_turns(segments: list[HistorySegment]) -> int:
    """Return the number of turns of segments."""
    return segments[0].until if segments else 0


def last_shared_turn(one: list[HistorySegment], other: list[HistorySegment]) -> int:
    """Return the last turn that is on the same line in both."""
    until = {segment.line_id: segment.until for segment in other}
    return max((min(s.until, until[s.line_id]) for s in one if s.line_id in until), default=0)

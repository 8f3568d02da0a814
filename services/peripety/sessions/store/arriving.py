"""Bulk import of the turns of a session that was played elsewhere.

There may be thousands of turns. They are decoded in a thread in small batches, so that the event loop is not
blocked.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from peripety.sessions.store import tables
from peripety.sessions.store.rows import turn_columns
from peripety.sessions.store.statements import keep_snapshot
from peripety.tasks import finish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.sessions.model import CommittedTurn, Session

__all__ = ["add_turns", "keep_snapshots"]

_AT_ONCE = 16


async def add_turns(connection: AsyncConnection, line_id: str, made: Iterator[CommittedTurn]) -> None:
    """Store turns on a line.

    Args:
        connection: in a transaction.
        line_id: the line.
        made: the turns, produced lazily in a thread.
    """

    def rows() -> list[dict[str, Any]]:
        return [turn_columns(line_id, turn) for turn in islice(made, _AT_ONCE)]

    while some := await finish(asyncio.to_thread(rows)):
        await connection.execute(insert(tables.turns), some)


async def keep_snapshots(connection: AsyncConnection, made: Iterator[Session]) -> None:
    """Store snapshots of a session.

    Args:
        connection: in a transaction.
        made: the session at each snapshot turn, produced lazily in a thread.
    """
    while (session := await finish(asyncio.to_thread(next, made, None))) is not None:
        await keep_snapshot(connection, session)

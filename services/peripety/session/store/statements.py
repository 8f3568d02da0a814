"""SQL statements of the session store, executed inside the caller's transaction.

Invariants:

- A request id belongs to one request. The same id with the same digest returns the stored result; with
  another digest it is an error. This includes turns that were rewound since.
- A rewind removes turns, or moves the session to a new line if a fork still needs them. It marks the requests
  of the rewound turns, so that a repeated request is recognised.
- A specification is stored once per hash, and every session with it refers to that row.

Statements are built once, with bound parameters: building them for each turn costs more than executing
them.

The turns of a session that was played elsewhere are imported in bulk. There may be thousands, so they are
decoded in a thread in small batches, and the event loop is not blocked.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, and_, bindparam, exists, insert, or_, select, true

from peripety.core.concurrency import shield_until_done
from peripety.core.idempotency.store import check_same_request
from peripety.errors import (
    FailedPreconditionError,
    InternalError,
    NotFoundError,
)
from peripety.session.events import Committed, decode_event
from peripety.session.store import tables
from peripety.session.store.history_segments import (
    ANCESTRY,
    HistorySegment,
    count_turns,
    find_segment,
    slice_segments,
)
from peripety.session.store.tables import (
    SESSION_COLUMNS,
    rewinds,
    rewound_turns,
    session_from_row,
    session_to_columns,
    sessions,
    snapshots,
    specs,
    turn_from_row,
    turn_to_columns,
    turns,
)
from peripety.session.store.turn_commit import add_snapshot
from peripety.session.types import RecordedRewind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Row, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.session.types import CommittedTurn, Session, SessionRequestKey


def session_not_found(session_id: str) -> NotFoundError:
    """Return the error for a session that does not exist."""
    return NotFoundError(
        f"session_id: unknown session '{session_id[:64]}'; list the sessions",
        code="UNKNOWN_SESSION",
    )


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """End of a turn: its last event, and the sequence of that event."""

    committed: Committed
    sequence: int


@dataclass(frozen=True, slots=True)
class TurnCursor:
    """Segment and last sequence of a turn; None and 0 at the start or if it does not exist."""

    segment: HistorySegment | None
    sequence: int


_ADD_SESSION = insert(sessions)
_SESSION_BY_ID = select(*SESSION_COLUMNS).where(sessions.c.session_id == bindparam("session_id"))
_SESSION_BY_REQUEST_OR_ID = select(sessions.c.request_id, sessions.c.request_digest, *SESSION_COLUMNS).where(
    or_(sessions.c.request_id == bindparam("request_id"), sessions.c.session_id == bindparam("session_id")),
)
_TURN_BY_REQUEST = (
    select(turns)
    .join(ANCESTRY, turns.c.line_id == ANCESTRY.c.line_id)
    .where(
        turns.c.request_id == bindparam("request_id"),
        turns.c.turn > ANCESTRY.c.parent_turn,
        turns.c.turn <= ANCESTRY.c.until,
    )
    .subquery()
)
_TURN_OR_REWOUND_BY_REQUEST = (
    select(rewound_turns.c.turn.label("taken_back"), *_TURN_BY_REQUEST.c)
    .select_from(sessions)
    .outerjoin(
        rewound_turns,
        and_(
            rewound_turns.c.session_id == sessions.c.session_id,
            rewound_turns.c.request_id == bindparam("request_id"),
        ),
    )
    .outerjoin(_TURN_BY_REQUEST, true())
    .where(sessions.c.session_id == bindparam("session_id"))
)
_SESSION_ID_BY_REQUEST = select(sessions.c.session_id).where(sessions.c.request_id == bindparam("request_id"))
_CURSOR = (
    select(
        ANCESTRY.c.line_id,
        ANCESTRY.c.parent_turn,
        ANCESTRY.c.until,
        turns.c.last_sequence,
        _SESSION_ID_BY_REQUEST.scalar_subquery().label("made"),
    )
    .outerjoin(
        turns,
        and_(
            turns.c.line_id == ANCESTRY.c.line_id,
            turns.c.turn == bindparam("turn"),
            turns.c.turn > ANCESTRY.c.parent_turn,
            turns.c.turn <= ANCESTRY.c.until,
        ),
    )
    .order_by(ANCESTRY.c.depth)
)


async def find_session_by_request(connection: AsyncConnection, request: SessionRequestKey) -> Session | None:
    """Return the session that a request has created, or None.

    Raises:
        AlreadyExistsError: the request id was used for a different request.
    """
    return (await find_session_by_request_or_id(connection, request, ""))[0]


async def find_session_by_request_or_id(
    connection: AsyncConnection,
    request: SessionRequestKey,
    session_id: str,
) -> tuple[Session | None, Session | None]:
    """Return the session that a request has created, and the session with an id.

    Raises:
        AlreadyExistsError: the request id was used for a different request.
    """
    found: list[Session | None] = [None, None]
    names = {"request_id": request.request_id, "session_id": session_id}
    for row in await connection.execute(_SESSION_BY_REQUEST_OR_ID, names):
        if row.request_id == request.request_id:
            check_same_request(request.digest, row.request_digest)
            found[0] = session_from_row(row)
        else:
            found[1] = session_from_row(row)
    return found[0], found[1]


async def is_rewound_by_request(
    connection: AsyncConnection,
    session_id: str,
    request: SessionRequestKey,
) -> bool:
    """Return True if a request has rewound a session.

    Raises:
        AlreadyExistsError: the request id was used for a different request.
    """
    digest = await connection.scalar(
        select(rewinds.c.request_digest).where(
            rewinds.c.session_id == session_id,
            rewinds.c.request_id == request.request_id,
        ),
    )
    if digest is not None:
        check_same_request(request.digest, digest)
    return digest is not None


async def load_session(connection: AsyncConnection, session_id: str) -> Session:
    """Return a session.

    Raises:
        NotFoundError: the session does not exist.
    """
    row = (await connection.execute(_SESSION_BY_ID, {"session_id": session_id})).one_or_none()
    if row is None:
        raise session_not_found(session_id)
    return session_from_row(row)


async def add_specification(connection: AsyncConnection, spec_hash: str, document: bytes) -> None:
    """Store a specification, unless it is stored already."""
    known = select(specs.c.spec_hash).where(specs.c.spec_hash == spec_hash)
    if await connection.scalar(known) is None:
        await connection.execute(insert(specs).values(spec_hash=spec_hash, document=document))


async def add_session(connection: AsyncConnection, session: Session, request: SessionRequestKey) -> None:
    """Store a session."""
    named = {"request_id": request.request_id, "request_digest": request.digest}
    await connection.execute(_ADD_SESSION, named | session_to_columns(session))


async def find_snapshot(
    connection: AsyncConnection,
    segments: list[HistorySegment],
    turn: int,
) -> Row[Any] | None:
    """Return the latest snapshot up to a turn."""
    for segment in reversed(slice_segments(segments, 0, turn)):
        row = (await connection.execute(_LATEST_SNAPSHOT, asdict(segment))).one_or_none()
        if row is not None:
            return row
    return None


def _on_segment(*columns: Any) -> Select[Any]:
    """Select columns of the turns of a segment."""
    return select(*columns).where(
        turns.c.line_id == bindparam("line_id"),
        turns.c.turn > bindparam("after"),
        turns.c.turn <= bindparam("until"),
    )


_TURNS = _on_segment(turns).order_by(turns.c.turn).limit(bindparam("limit"))
_RECORDS = _on_segment(turns.c.turn, turns.c.record, turns.c.memories).order_by(turns.c.turn)
_LAST_KNOWN_TURN = (
    _on_segment(turns.c.turn)
    .where(turns.c.last_sequence <= bindparam("sequence"))
    .order_by(turns.c.turn.desc())
    .limit(1)
)
_TURN_END = select(turns.c.events, turns.c.last_sequence).where(
    turns.c.line_id == bindparam("line_id"),
    turns.c.turn == bindparam("turn"),
)
_MARK_REWOUND = insert(rewound_turns).from_select(
    ["session_id", "request_id", "turn"],
    _on_segment(bindparam("session_id", type_=Text), turns.c.request_id, turns.c.turn),
)
_LATEST_SNAPSHOT = (
    select(snapshots)
    .where(
        snapshots.c.line_id == bindparam("line_id"),
        snapshots.c.turn > bindparam("after"),
        snapshots.c.turn <= bindparam("until"),
    )
    .order_by(snapshots.c.turn.desc())
    .limit(1)
)


async def load_records(connection: AsyncConnection, segments: list[HistorySegment]) -> list[Row[Any]]:
    """Return the records and memory diffs of the turns of ordered segments."""
    return [row for segment in segments for row in await connection.execute(_RECORDS, asdict(segment))]


async def load_turns(
    connection: AsyncConnection,
    segments: list[HistorySegment],
    turn: int,
    limit: int,
) -> list[CommittedTurn]:
    """Return turns after a number, oldest first."""
    found: list[CommittedTurn] = []
    for segment in slice_segments(segments, turn, count_turns(segments)):
        asked = asdict(segment) | {"limit": limit - len(found)}
        found.extend(map(turn_from_row, await connection.execute(_TURNS, asked)))
        if len(found) >= limit:
            break
    return found


async def find_turn(
    connection: AsyncConnection,
    segments: list[HistorySegment],
    turn: int,
) -> CommittedTurn | None:
    """Return a turn by its number."""
    segment = find_segment(segments, turn)
    if segment is None:
        return None
    query = select(turns).where(turns.c.line_id == segment.line_id, turns.c.turn == turn)
    return turn_from_row((await connection.execute(query)).one())


async def find_cursor(
    connection: AsyncConnection,
    session_id: str,
    turn: int,
    request: SessionRequestKey,
) -> TurnCursor | None:
    """Return the starting point of a new session that continues after a turn of another one.

    Returns:
        None if the session does not exist, or if the request has created one already.
    """
    names = {"session_id": session_id, "turn": turn, "request_id": request.request_id}
    rows = (await connection.execute(_CURSOR, names)).all()
    if not rows or rows[0].made is not None:
        return None
    for row in rows:
        if row.last_sequence is not None:
            return TurnCursor(HistorySegment(row.line_id, row.parent_turn, row.until), row.last_sequence)
    return TurnCursor(None, 0)


async def find_turn_by_request(
    connection: AsyncConnection,
    session_id: str,
    request_id: str,
) -> CommittedTurn | None:
    """Return the turn of a session that a request has played.

    Raises:
        FailedPreconditionError: `TURN_REWOUND`: the turn was rewound.
    """
    names = {"session_id": session_id, "request_id": request_id}
    row = (await connection.execute(_TURN_OR_REWOUND_BY_REQUEST, names)).one_or_none()
    if row is None:
        return None
    if row.line_id is not None:
        return turn_from_row(row)
    if row.taken_back is not None:
        raise FailedPreconditionError(
            "request_id: belongs to a turn that was rewound; use a new id for each request",
            code="TURN_REWOUND",
        )
    return None


async def find_known_turn(connection: AsyncConnection, segments: list[HistorySegment], sequence: int) -> int:
    """Return the last turn whose events all end up to a sequence; 0 for none."""
    if not sequence:
        return 0
    for segment in segments:
        turn: int | None = await connection.scalar(_LAST_KNOWN_TURN, asdict(segment) | {"sequence": sequence})
        if turn is not None:
            return turn
    return 0


async def load_rewinds(
    connection: AsyncConnection,
    session_id: str,
    sequence: int,
    limit: int,
) -> list[RecordedRewind]:
    """Return the rewinds after an event, oldest first, without those superseded by a deeper one."""
    later = rewinds.alias()
    superseded = exists().where(
        later.c.session_id == rewinds.c.session_id,
        later.c.sequence > rewinds.c.sequence,
        later.c.turn <= rewinds.c.turn,
    )
    query = select(rewinds.c.sequence, rewinds.c.turn, rewinds.c.time).where(
        rewinds.c.session_id == session_id,
        rewinds.c.sequence > sequence,
        ~superseded,
    )
    rows = await connection.execute(query.order_by(rewinds.c.sequence).limit(limit))
    return [RecordedRewind(*row) for row in rows]


async def add_rewind(connection: AsyncConnection, then: Session, request: SessionRequestKey) -> None:
    """Record that a session was rewound to its new state."""
    await connection.execute(
        insert(rewinds).values(
            session_id=then.session_id,
            sequence=then.last_sequence,
            turn=then.turn,
            request_id=request.request_id,
            request_digest=request.digest,
            time=then.updated,
        ),
    )


async def mark_rewound(connection: AsyncConnection, session_id: str, segments: list[HistorySegment]) -> None:
    """Store the request ids of the turns that are rewound."""
    for segment in segments:
        await connection.execute(_MARK_REWOUND, {"session_id": session_id} | asdict(segment))


async def load_turn_end(
    connection: AsyncConnection,
    segments: list[HistorySegment],
    turn: int,
) -> TurnEnd | None:
    """Return the end of a turn of segments, or None at the start."""
    segment = find_segment(segments, turn)
    if segment is None:
        return None
    row = (await connection.execute(_TURN_END, {"line_id": segment.line_id, "turn": turn})).one()
    committed = decode_event(json.loads(row.events)[-1])
    if not isinstance(committed, Committed):
        raise InternalError(f"turn {turn} of a session has no end")
    return TurnEnd(committed, row.last_sequence)


_TURNS_PER_BATCH = 16


async def add_turns(connection: AsyncConnection, line_id: str, turns: Iterator[CommittedTurn]) -> None:
    """Store turns on a line.

    Args:
        connection: in a transaction.
        line_id: the line.
        turns: the turns, produced lazily in a thread.
    """

    def rows() -> list[dict[str, Any]]:
        return [turn_to_columns(line_id, turn) for turn in islice(turns, _TURNS_PER_BATCH)]

    while some := await shield_until_done(asyncio.to_thread(rows)):
        await connection.execute(insert(tables.turns), some)


async def add_snapshots(connection: AsyncConnection, snapshots: Iterator[Session]) -> None:
    """Store snapshots of a session.

    Args:
        connection: in a transaction.
        snapshots: the session at each snapshot turn, produced lazily in a thread.
    """
    while (session := await shield_until_done(asyncio.to_thread(next, snapshots, None))) is not None:
        await add_snapshot(connection, session)

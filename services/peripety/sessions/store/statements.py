"""What the store says to a database, inside of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, exists, insert, literal, select, update

from peripety.errors import AlreadyExistsError, ConflictError, InternalError, NotFoundError
from peripety.sessions.events import Committed
from peripety.sessions.model import Rewind
from peripety.sessions.store.lines import between, holding, turns_of
from peripety.sessions.store.rows import (
    SESSION,
    committed,
    session_columns,
    session_of,
    turn_columns,
)
from peripety.sessions.store.tables import rewinds, sessions, snapshots, specs, taken_back, turns

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Row, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.sessions.model import CommittedTurn, Request, Session
    from peripety.sessions.store.lines import Segment

__all__ = [
    "add_session",
    "add_specification",
    "add_turn",
    "chain_hash",
    "keep_snapshot",
    "kept_snapshot",
    "known_turn",
    "last_sequence",
    "made_by",
    "move",
    "note_rewind",
    "note_taken_back",
    "on_segment",
    "one_session",
    "one_turn",
    "rewinds_since",
    "rewound_by",
    "stale",
    "turn_rows",
    "turns_after",
    "unknown",
]


def unknown(session_id: str) -> NotFoundError:
    """There is no such session."""
    return NotFoundError(f".session_id: there is no session '{session_id[:64]}'", code="UNKNOWN_SESSION")


def stale(session_id: str, what: str) -> ConflictError:
    """Somebody else was faster."""
    return ConflictError(
        f"{what}; read it again, then go on", code="STALE_TURN", details={"session_id": session_id}
    )


async def made_by(connection: AsyncConnection, request: Request) -> Session | None:
    """The session that a request has made.

    Raises:
        AlreadyExistsError: the request id was used for a different request.
    """
    query = select(sessions.c.request_digest, *SESSION).where(sessions.c.request_id == request.request_id)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    _same(request, row.request_digest)
    return session_of(row)


async def rewound_by(connection: AsyncConnection, session_id: str, request: Request) -> bool:
    """Whether a request has taken turns of a session back.

    Raises:
        AlreadyExistsError: the request id was used for a different request.
    """
    digest = await connection.scalar(
        select(rewinds.c.request_digest).where(
            rewinds.c.session_id == session_id, rewinds.c.request_id == request.request_id
        )
    )
    if digest is not None:
        _same(request, digest)
    return digest is not None


def _same(request: Request, digest: str) -> None:
    if request.digest != digest:
        raise AlreadyExistsError(
            ".request_id was used for a different request; make a new one for each request",
            code="REQUEST_ID_REUSED",
        )


async def one_session(connection: AsyncConnection, session_id: str) -> Session:
    """A session.

    Raises:
        NotFoundError: there is none of that id.
    """
    query = select(*SESSION).where(sessions.c.session_id == session_id)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise unknown(session_id)
    return session_of(row)


async def add_specification(connection: AsyncConnection, spec_hash: str, document: bytes) -> None:
    """Keep a specification, unless it is kept."""
    known = select(specs.c.spec_hash).where(specs.c.spec_hash == spec_hash)
    if await connection.scalar(known) is None:
        await connection.execute(insert(specs).values(spec_hash=spec_hash, document=document))


async def add_session(connection: AsyncConnection, session: Session, request: Request) -> None:
    """Store a session."""
    await connection.execute(
        insert(sessions).values(
            request_id=request.request_id, request_digest=request.digest, **session_columns(session)
        )
    )


async def move(connection: AsyncConnection, session: Session, *, turn: int, last_sequence: int) -> bool:
    """Make a session what it shall be, if it still is at a turn and a sequence."""
    seen = and_(
        sessions.c.session_id == session.session_id,
        sessions.c.turn == turn,
        sessions.c.last_sequence == last_sequence,
    )
    moved = await connection.execute(update(sessions).where(seen).values(**session_columns(session)))
    return bool(moved.rowcount)


async def add_turn(connection: AsyncConnection, line_id: str, turn: CommittedTurn) -> None:
    """Store a turn on a line."""
    await connection.execute(insert(turns).values(**turn_columns(line_id, turn)))


async def keep_snapshot(connection: AsyncConnection, session: Session) -> None:
    """Keep what a session is like after its present turn."""
    columns = session_columns(session)
    kept = {column.name: columns[column.name] for column in snapshots.c}
    await connection.execute(insert(snapshots).values(kept))


async def kept_snapshot(connection: AsyncConnection, segments: list[Segment], turn: int) -> Row[Any] | None:
    """The latest snapshot up to a turn."""
    for segment in reversed(between(segments, 0, turn)):
        query = select(snapshots).where(
            snapshots.c.line_id == segment.line_id,
            snapshots.c.turn > segment.after,
            snapshots.c.turn <= segment.until,
        )
        newest_first = await connection.execute(query.order_by(snapshots.c.turn.desc()).limit(1))
        row = newest_first.one_or_none()
        if row is not None:
            return row
    return None


def on_segment(segment: Segment) -> ColumnElement[bool]:
    """Whether a turn is one of a segment."""
    return and_(
        turns.c.line_id == segment.line_id, turns.c.turn > segment.after, turns.c.turn <= segment.until
    )


async def turn_rows(
    connection: AsyncConnection, query: Select[Any], segments: list[Segment], limit: int
) -> list[Row[Any]]:
    """What a query says about the turns of segments, which stand in order; the first of them."""
    rows: list[Row[Any]] = []
    for segment in segments:
        asked = query.where(on_segment(segment)).order_by(turns.c.turn).limit(limit - len(rows))
        rows.extend(await connection.execute(asked))
        if len(rows) >= limit:
            break
    return rows


async def one_turn(connection: AsyncConnection, segments: list[Segment], turn: int) -> CommittedTurn | None:
    """A turn by its number."""
    segment = holding(segments, turn)
    if segment is None:
        return None
    query = select(turns).where(turns.c.line_id == segment.line_id, turns.c.turn == turn)
    return committed((await connection.execute(query)).one())


async def last_sequence(connection: AsyncConnection, segment: Segment | None, turn: int) -> int:
    """The sequence that a turn of a segment ended with; 0 if there is no such turn."""
    if segment is None:
        return 0
    query = select(turns.c.last_sequence).where(turns.c.line_id == segment.line_id, turns.c.turn == turn)
    return await connection.scalar(query) or 0


async def known_turn(connection: AsyncConnection, segments: list[Segment], sequence: int) -> int:
    """The last turn whose events all come up to a sequence; 0 for none."""
    if not sequence:
        return 0
    for segment in segments:
        query = select(turns.c.turn).where(on_segment(segment), turns.c.last_sequence <= sequence)
        turn: int | None = await connection.scalar(query.order_by(turns.c.turn.desc()).limit(1))
        if turn is not None:
            return turn
    return 0


async def rewinds_since(
    connection: AsyncConnection, session_id: str, sequence: int, limit: int
) -> list[Rewind]:
    """The rewinds of a session since an event which no later one goes as far back as, oldest first."""
    later = rewinds.alias()
    superseded = exists().where(
        later.c.session_id == rewinds.c.session_id,
        later.c.sequence > rewinds.c.sequence,
        later.c.turn <= rewinds.c.turn,
    )
    query = select(rewinds.c.sequence, rewinds.c.turn, rewinds.c.time).where(
        rewinds.c.session_id == session_id, rewinds.c.sequence > sequence, ~superseded
    )
    rows = await connection.execute(query.order_by(rewinds.c.sequence).limit(limit))
    return [Rewind(*row) for row in rows]


async def note_rewind(connection: AsyncConnection, then: Session, request: Request) -> None:
    """Record that a session was taken back to where it is then."""
    await connection.execute(
        insert(rewinds).values(
            session_id=then.session_id,
            sequence=then.last_sequence,
            turn=then.turn,
            request_id=request.request_id,
            request_digest=request.digest,
            time=then.updated,
        )
    )


async def note_taken_back(connection: AsyncConnection, session_id: str, segments: list[Segment]) -> None:
    """Keep the requests of turns that are taken back from a session."""
    for segment in segments:
        gone = select(literal(session_id), turns.c.request_id, turns.c.turn).where(on_segment(segment))
        await connection.execute(insert(taken_back).from_select(["session_id", "request_id", "turn"], gone))


async def turns_after(
    connection: AsyncConnection, segments: list[Segment], turn: int, limit: int
) -> list[CommittedTurn]:
    """Turns after a number, oldest first."""
    since = between(segments, turn, turns_of(segments))
    rows = await turn_rows(connection, select(turns), since, limit)
    return [committed(row) for row in rows]


async def chain_hash(connection: AsyncConnection, segments: list[Segment], turn: int) -> str:
    """The chain hash after a turn of segments."""
    found = await one_turn(connection, segments, turn)
    end = None if found is None else found.events[-1]
    if not isinstance(end, Committed):
        raise InternalError(f"turn {turn} of a session has no end")
    return end.chain_hash

"""SQL statements of the session store, to be executed inside a transaction."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, and_, bindparam, exists, insert, or_, select, true, update

from peripety.errors import (
    FailedPreconditionError,
    InternalError,
)
from peripety.sessions.events import Committed, event_of
from peripety.sessions.model import Rewind
from peripety.sessions.store.lines import LINEAGE, Segment, between, holding, turns_of
from peripety.sessions.store.refusals import check_same, unknown
from peripety.sessions.store.rows import (
    SESSION,
    committed,
    session_columns,
    session_of,
    turn_columns,
)
from peripety.sessions.store.tables import rewinds, sessions, snapshots, specs, taken_back, turns

if TYPE_CHECKING:
    from sqlalchemy import Row, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.sessions.model import CommittedTurn, Request, Session

__all__ = [
    "End",
    "Standing",
    "add_session",
    "add_specification",
    "add_turn",
    "end_of_turn",
    "keep_snapshot",
    "kept_snapshot",
    "known_turn",
    "made_by",
    "made_or_named",
    "move",
    "note_rewind",
    "note_taken_back",
    "one_session",
    "one_turn",
    "played_by",
    "records",
    "rewinds_since",
    "rewound_by",
    "standing",
    "turns_after",
]


@dataclass(frozen=True, slots=True)
class End:
    """End of a turn: its last event, and the sequence of that event."""

    committed: Committed
    sequence: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Segment and last sequence of a turn; None and 0 at the start or if it does not exist."""

    segment: Segment | None
    sequence: int


_ADD_SESSION = insert(sessions)
_ADD_TURN = insert(turns)
_NAMED = select(*SESSION).where(sessions.c.session_id == bindparam("session_id"))
_MADE_OR_NAMED = select(sessions.c.request_id, sessions.c.request_digest, *SESSION).where(
    or_(sessions.c.request_id == bindparam("request_id"), sessions.c.session_id == bindparam("session_id"))
)
_MOVE = update(sessions).where(
    sessions.c.session_id == bindparam("seen_id"),
    sessions.c.turn == bindparam("seen_turn"),
    sessions.c.last_sequence == bindparam("seen_sequence"),
)
_PLAYED = (
    select(turns)
    .join(LINEAGE, turns.c.line_id == LINEAGE.c.line_id)
    .where(
        turns.c.request_id == bindparam("request_id"),
        turns.c.turn > LINEAGE.c.parent_turn,
        turns.c.turn <= LINEAGE.c.until,
    )
    .subquery()
)
_PLAYED_OR_TAKEN_BACK = (
    select(taken_back.c.turn.label("taken_back"), *_PLAYED.c)
    .select_from(sessions)
    .outerjoin(
        taken_back,
        and_(
            taken_back.c.session_id == sessions.c.session_id,
            taken_back.c.request_id == bindparam("request_id"),
        ),
    )
    .outerjoin(_PLAYED, true())
    .where(sessions.c.session_id == bindparam("session_id"))
)
_MADE = select(sessions.c.session_id).where(sessions.c.request_id == bindparam("request_id"))
_STANDING = (
    select(
        LINEAGE.c.line_id,
        LINEAGE.c.parent_turn,
        LINEAGE.c.until,
        turns.c.last_sequence,
        _MADE.scalar_subquery().label("made"),
    )
    .outerjoin(
        turns,
        and_(
            turns.c.line_id == LINEAGE.c.line_id,
            turns.c.turn == bindparam("turn"),
            turns.c.turn > LINEAGE.c.parent_turn,
            turns.c.turn <= LINEAGE.c.until,
        ),
    )
    .order_by(LINEAGE.c.depth)
)


async def made_by(connection: AsyncConnection, request: Request) -> Session | None:
    """Return the session that a request has created, or None.

    Raises:
        AlreadyExistsError: the request id was used for a different request.
    """
    return (await made_or_named(connection, request, ""))[0]


async def made_or_named(
    connection: AsyncConnection, request: Request, session_id: str
) -> tuple[Session | None, Session | None]:
    """Return the session that a request has created, and the session with an id.

    Raises:
        AlreadyExistsError: the request id was used for a different request.
    """
    found: list[Session | None] = [None, None]
    names = {"request_id": request.request_id, "session_id": session_id}
    for row in await connection.execute(_MADE_OR_NAMED, names):
        if row.request_id == request.request_id:
            check_same(request, row.request_digest)
            found[0] = session_of(row)
        else:
            found[1] = session_of(row)
    return found[0], found[1]


async def rewound_by(connection: AsyncConnection, session_id: str, request: Request) -> bool:
    """Return True if a request has rewound a session.

    Raises:
        AlreadyExistsError: the request id was used for a different request.
    """
    digest = await connection.scalar(
        select(rewinds.c.request_digest).where(
            rewinds.c.session_id == session_id, rewinds.c.request_id == request.request_id
        )
    )
    if digest is not None:
        check_same(request, digest)
    return digest is not None


async def one_session(connection: AsyncConnection, session_id: str) -> Session:
    """Return a session.

    Raises:
        NotFoundError: the session does not exist.
    """
    row = (await connection.execute(_NAMED, {"session_id": session_id})).one_or_none()
    if row is None:
        raise unknown(session_id)
    return session_of(row)


async def add_specification(connection: AsyncConnection, spec_hash: str, document: bytes) -> None:
    """Store a specification, unless it is stored already."""
    known = select(specs.c.spec_hash).where(specs.c.spec_hash == spec_hash)
    if await connection.scalar(known) is None:
        await connection.execute(insert(specs).values(spec_hash=spec_hash, document=document))


async def add_session(connection: AsyncConnection, session: Session, request: Request) -> None:
    """Store a session."""
    named = {"request_id": request.request_id, "request_digest": request.digest}
    await connection.execute(_ADD_SESSION, named | session_columns(session))


async def move(connection: AsyncConnection, session: Session, *, turn: int, last_sequence: int) -> bool:
    """Update a session if it is still at a turn and a sequence (compare and swap); return True if it was."""
    seen = {"seen_id": session.session_id, "seen_turn": turn, "seen_sequence": last_sequence}
    moved = await connection.execute(_MOVE, seen | session_columns(session))
    return bool(moved.rowcount)


async def add_turn(connection: AsyncConnection, line_id: str, turn: CommittedTurn) -> None:
    """Store a turn on a line."""
    await connection.execute(_ADD_TURN, turn_columns(line_id, turn))


async def keep_snapshot(connection: AsyncConnection, session: Session) -> None:
    """Store a snapshot of a session after its current turn."""
    columns = session_columns(session)
    await connection.execute(insert(snapshots), {column.name: columns[column.name] for column in snapshots.c})


async def kept_snapshot(connection: AsyncConnection, segments: list[Segment], turn: int) -> Row[Any] | None:
    """Return the latest snapshot up to a turn."""
    for segment in reversed(between(segments, 0, turn)):
        row = (await connection.execute(_KEPT, asdict(segment))).one_or_none()
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


_WHOLE_TURNS = _on_segment(turns).order_by(turns.c.turn).limit(bindparam("limit"))
_RECORDS = _on_segment(turns.c.turn, turns.c.record, turns.c.memories).order_by(turns.c.turn)
_KNOWN = (
    _on_segment(turns.c.turn)
    .where(turns.c.last_sequence <= bindparam("sequence"))
    .order_by(turns.c.turn.desc())
    .limit(1)
)
_END = select(turns.c.events, turns.c.last_sequence).where(
    turns.c.line_id == bindparam("line_id"), turns.c.turn == bindparam("turn")
)
_TAKE_BACK = insert(taken_back).from_select(
    ["session_id", "request_id", "turn"],
    _on_segment(bindparam("session_id", type_=Text), turns.c.request_id, turns.c.turn),
)
_KEPT = (
    select(snapshots)
    .where(
        snapshots.c.line_id == bindparam("line_id"),
        snapshots.c.turn > bindparam("after"),
        snapshots.c.turn <= bindparam("until"),
    )
    .order_by(snapshots.c.turn.desc())
    .limit(1)
)


async def records(connection: AsyncConnection, segments: list[Segment]) -> list[Row[Any]]:
    """Return the records and memory diffs of the turns of ordered segments."""
    return [row for segment in segments for row in await connection.execute(_RECORDS, asdict(segment))]


async def turns_after(
    connection: AsyncConnection, segments: list[Segment], turn: int, limit: int
) -> list[CommittedTurn]:
    """Return turns after a number, oldest first."""
    found: list[CommittedTurn] = []
    for segment in between(segments, turn, turns_of(segments)):
        asked = asdict(segment) | {"limit": limit - len(found)}
        found.extend(map(committed, await connection.execute(_WHOLE_TURNS, asked)))
        if len(found) >= limit:
            break
    return found


async def one_turn(connection: AsyncConnection, segments: list[Segment], turn: int) -> CommittedTurn | None:
    """Return a turn by its number."""
    segment = holding(segments, turn)
    if segment is None:
        return None
    query = select(turns).where(turns.c.line_id == segment.line_id, turns.c.turn == turn)
    return committed((await connection.execute(query)).one())


async def standing(
    connection: AsyncConnection, session_id: str, turn: int, request: Request
) -> Standing | None:
    """Return the starting point of a new session that continues after a turn of another one.

    Returns:
        None if the session does not exist, or if the request has created one already.
    """
    names = {"session_id": session_id, "turn": turn, "request_id": request.request_id}
    rows = (await connection.execute(_STANDING, names)).all()
    if not rows or rows[0].made is not None:
        return None
    for row in rows:
        if row.last_sequence is not None:
            return Standing(Segment(row.line_id, row.parent_turn, row.until), row.last_sequence)
    return Standing(None, 0)


async def played_by(connection: AsyncConnection, session_id: str, request_id: str) -> CommittedTurn | None:
    """Return the turn of a session that a request has played.

    Raises:
        FailedPreconditionError: `TURN_REWOUND`: the turn was rewound.
    """
    names = {"session_id": session_id, "request_id": request_id}
    row = (await connection.execute(_PLAYED_OR_TAKEN_BACK, names)).one_or_none()
    if row is None:
        return None
    if row.line_id is not None:
        return committed(row)
    if row.taken_back is not None:
        raise FailedPreconditionError(
            f".request_id played turn {row.taken_back}, which was rewound; make a new one for each turn",
            code="TURN_REWOUND",
        )
    return None


async def known_turn(connection: AsyncConnection, segments: list[Segment], sequence: int) -> int:
    """Return the last turn whose events all end up to a sequence; 0 for none."""
    if not sequence:
        return 0
    for segment in segments:
        turn: int | None = await connection.scalar(_KNOWN, asdict(segment) | {"sequence": sequence})
        if turn is not None:
            return turn
    return 0


async def rewinds_since(
    connection: AsyncConnection, session_id: str, sequence: int, limit: int
) -> list[Rewind]:
    """Return the rewinds after an event, oldest first, without those superseded by a deeper one."""
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
    """Record that a session was rewound to its new state."""
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
    """Store the request ids of the turns that are rewound."""
    for segment in segments:
        await connection.execute(_TAKE_BACK, {"session_id": session_id} | asdict(segment))


async def end_of_turn(connection: AsyncConnection, segments: list[Segment], turn: int) -> End | None:
    """Return the end of a turn of segments, or None at the start."""
    segment = holding(segments, turn)
    if segment is None:
        return None
    row = (await connection.execute(_END, {"line_id": segment.line_id, "turn": turn})).one()
    committed = event_of(json.loads(row.events)[-1])
    if not isinstance(committed, Committed):
        raise InternalError(f"turn {turn} of a session has no end")
    return End(committed, row.last_sequence)

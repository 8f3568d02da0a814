"""Where sessions and their turns are kept.

A turn is one transaction: its row, its events and the session's next state are written together or not at
all. Of two writers of the same turn the database lets one through, whatever process they run in.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    delete,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from peripety.errors import AlreadyExistsError, ConflictError, InternalError, NotFoundError
from peripety.sessions.events import Committed, decode, encode, event_of
from peripety.sessions.model import CommittedTurn, Session
from peripety.storage import METADATA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.sessions.model import NewSession
    from peripety.storage import Database

__all__ = ["SessionStore"]

_specs = Table(
    "session_specs",
    METADATA,
    Column("spec_hash", Text, primary_key=True),
    Column("document", LargeBinary, nullable=False),
)

_sessions = Table(
    "sessions",
    METADATA,
    Column("session_id", Text, primary_key=True),
    Column("request_id", Text, nullable=False, unique=True),
    Column("request_digest", Text, nullable=False),
    Column("scenario_id", Text, nullable=False, index=True),
    Column("spec_hash", Text, ForeignKey(_specs.c.spec_hash), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("first_seed", BigInteger, nullable=False),
    Column("reseeded", Boolean, nullable=False),
    Column("line_id", Text, nullable=False),
    Column("memories", Text, nullable=False),
    Column("narrator", Text, nullable=False),
    Column("table", Text),
    Column("parent", Text),
    Column("due", BigInteger),
    Column("turn", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("snapshot", LargeBinary, nullable=False),
    Column("state_hash", Text, nullable=False),
    Column("chain_hash", Text, nullable=False),
    Column("last_sequence", BigInteger, nullable=False),
    Column("usage", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
    Index("sessions_newest_first", "created", "session_id"),
)

_turns = Table(
    "session_turns",
    METADATA,
    Column("session_id", Text, ForeignKey(_sessions.c.session_id, ondelete="CASCADE"), primary_key=True),
    Column("turn", BigInteger, primary_key=True),
    Column("request_id", Text, nullable=False),
    Column("request_digest", Text, nullable=False),
    Column("pov", Text),
    Column("record", LargeBinary, nullable=False),
    Column("first_sequence", BigInteger, nullable=False),
    Column("events", Text, nullable=False),
    Column("narrative", Text, nullable=False),
    UniqueConstraint("session_id", "request_id"),
)

_deletions = Table(
    "session_deletions",
    METADATA,
    Column("session_id", Text, primary_key=True),
    Column("request_id", Text, nullable=False),
)

_STRUCTURED = ("status", "usage", "memories", "narrator", "table", "parent")
_SESSION = [_sessions.c[name] for name in Session.__dataclass_fields__]


class SessionStore:
    """The tables of sessions, turns and the specifications that they play.

    Args:
        database: the database of the process.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def made_by(self, new: NewSession) -> Session | None:
        """The session that a request has made already, if it has.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.read() as connection:
            return await _made_by(connection, new)

    async def add(self, session: Session, document: bytes, new: NewSession) -> Session:
        """Store a session that was just made, unless its request has made one already: then return that.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.write() as connection:
            made = await _made_by(connection, new)
            if made is not None:
                return made
            known = select(_specs.c.spec_hash).where(_specs.c.spec_hash == session.spec_hash)
            if await connection.scalar(known) is None:
                await connection.execute(
                    insert(_specs).values(spec_hash=session.spec_hash, document=document)
                )
            await connection.execute(
                insert(_sessions).values(
                    request_id=new.request_id, request_digest=new.digest(), **_columns(session)
                )
            )
        return session

    async def session(self, session_id: str) -> Session:
        """A session.

        Raises:
            NotFoundError: there is none of that id.
        """
        async with self._database.read() as connection:
            row = (
                await connection.execute(select(*_SESSION).where(_sessions.c.session_id == session_id))
            ).one_or_none()
        return _unknown(session_id) if row is None else _session(row)

    async def sessions(
        self, scenario_id: str | None, before: tuple[Any, ...] | None, limit: int
    ) -> list[Session]:
        """Sessions, newest first.

        Args:
            scenario_id: only those of this scenario; None for all.
            before: when the last one of the page before was created, and its id.
            limit: the most to return.
        """
        query = select(*_SESSION).order_by(_sessions.c.created.desc(), _sessions.c.session_id.desc())
        if scenario_id is not None:
            query = query.where(_sessions.c.scenario_id == scenario_id)
        if before is not None:
            query = query.where(tuple_(_sessions.c.created, _sessions.c.session_id) < before)
        async with self._database.read() as connection:
            return [_session(row) for row in await connection.execute(query.limit(limit))]

    async def document(self, spec_hash: str) -> bytes:
        """The specification of a version that some session plays."""
        async with self._database.read() as connection:
            document: bytes | None = await connection.scalar(
                select(_specs.c.document).where(_specs.c.spec_hash == spec_hash)
            )
        if document is None:
            raise InternalError(f"the specification {spec_hash} of a session is not stored")
        return document

    async def delete(self, session_id: str, request_id: str) -> None:
        """Delete a session with its turns; again under the same request id, nothing happens.

        Raises:
            NotFoundError: there is no such session.
        """
        async with self._database.write(f"session {session_id}") as connection:
            gone = await connection.execute(delete(_sessions).where(_sessions.c.session_id == session_id))
            if gone.rowcount:
                await connection.execute(
                    insert(_deletions).values(session_id=session_id, request_id=request_id)
                )
                return
            by = await connection.scalar(
                select(_deletions.c.request_id).where(_deletions.c.session_id == session_id)
            )
        if by != request_id:
            _unknown(session_id)

    async def commit(self, session: Session, turn: CommittedTurn) -> None:
        """Record a turn and move its session on, in one transaction.

        Args:
            session: the session after the turn.
            turn: the turn.

        Raises:
            ConflictError: `STALE_TURN`: the session is not at the turn before this one any more.
        """
        columns = _columns(session)
        at_the_turn_before = (_sessions.c.session_id == session.session_id) & (
            _sessions.c.turn == turn.turn - 1
        )
        async with self._database.write(f"session {session.session_id}") as connection:
            moved = await connection.execute(update(_sessions).where(at_the_turn_before).values(**columns))
            if not moved.rowcount:
                raise ConflictError(
                    f"Somebody else took turn {turn.turn} of the session; read it again, then go on",
                    code="STALE_TURN",
                    details={"session_id": session.session_id},
                )
            await connection.execute(insert(_turns).values(**_turn_columns(session.session_id, turn)))

    async def turn(self, session_id: str, which: int | str) -> CommittedTurn | None:
        """A committed turn, by its number or by the request that played it."""
        named = _turns.c.turn == which if isinstance(which, int) else _turns.c.request_id == which
        query = select(_turns).where(_turns.c.session_id == session_id, named)
        async with self._database.read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else _committed(row)

    async def turns(self, session_id: str, after: int, limit: int) -> list[CommittedTurn]:
        """Committed turns after a number, oldest first."""
        query = select(_turns).where(_turns.c.session_id == session_id, _turns.c.turn > after)
        async with self._database.read() as connection:
            rows = await connection.execute(query.order_by(_turns.c.turn).limit(limit))
            return [_committed(row) for row in rows]

    async def narratives(self, session_id: str, viewer: str | None, limit: int) -> tuple[str, ...]:
        """The last narrations that a viewer may read, oldest first."""
        query = select(_turns.c.narrative).where(
            _turns.c.session_id == session_id, or_(_turns.c.pov.is_(None), _turns.c.pov == viewer)
        )
        async with self._database.read() as connection:
            newest_first = await connection.scalars(query.order_by(_turns.c.turn.desc()).limit(limit))
            return tuple(reversed(newest_first.all()))


async def _made_by(connection: AsyncConnection, new: NewSession) -> Session | None:
    query = select(_sessions.c.request_digest, *_SESSION).where(_sessions.c.request_id == new.request_id)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    if row.request_digest != new.digest():
        raise AlreadyExistsError(
            ".request_id was used for a different request; make a new one for each request",
            code="REQUEST_ID_REUSED",
        )
    return _session(row)


def _unknown(session_id: str) -> NoReturn:
    raise NotFoundError(f".session_id: there is no session '{session_id[:64]}'", code="UNKNOWN_SESSION")


def _columns(session: Session) -> dict[str, Any]:
    plain = {name: getattr(session, name) for name in Session.__dataclass_fields__}
    return plain | {
        name: None if plain[name] is None else _dumps(encode(plain[name])) for name in _STRUCTURED
    }


def _session(row: Row[Any]) -> Session:
    plain = {name: getattr(row, name) for name in Session.__dataclass_fields__}
    parsed = {
        name: None if plain[name] is None else decode(name, json.loads(plain[name])) for name in _STRUCTURED
    }
    return Session(**plain | parsed)


def _turn_columns(session_id: str, turn: CommittedTurn) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "turn": turn.turn,
        "request_id": turn.request_id,
        "request_digest": turn.request_digest,
        "pov": turn.pov,
        "record": turn.record,
        "first_sequence": turn.first_sequence,
        "events": _dumps([encode(event) for event in turn.events]),
        "narrative": _narrative(turn.events),
    }


def _narrative(events: Sequence[object]) -> str:
    return next(event.narrative for event in reversed(events) if isinstance(event, Committed))


def _committed(row: Row[Any]) -> CommittedTurn:
    return CommittedTurn(
        turn=row.turn,
        request_id=row.request_id,
        request_digest=row.request_digest,
        pov=row.pov,
        record=row.record,
        first_sequence=row.first_sequence,
        events=tuple(event_of(event) for event in json.loads(row.events)),
    )


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

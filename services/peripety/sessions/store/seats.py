"""Storage of seat submissions and seat deadlines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, update

from peripety.clock import microseconds_now
from peripety.errors import AlreadyExistsError
from peripety.sessions.events import decode, encode
from peripety.sessions.model import SeatOrder
from peripety.sessions.seats.model import HandedIn, Round
from peripety.sessions.store.statements import one_session
from peripety.sessions.store.tables import sessions, submissions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.sessions.model import ActionCall, Session
    from peripety.sessions.seats.model import Submission
    from peripety.storage import Database

__all__ = ["SeatStore"]


class SeatStore:
    """Store of seat submissions, beside the tables of sessions.

    Args:
        database: the database of the process.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def submit(
        self, submission: Submission, check: Callable[[Round], None], later: int
    ) -> tuple[Round, bool]:
        """Store the submission of a seat; idempotent by request id.

        Args:
            submission: the submission.
            check: raises an error if the submission is not possible now.
            later: new due time if the submission completes the turn, in microseconds since 1970; if the
                process that plays the turn crashes, another one plays it then.

        Returns:
            The next turn in its current state, and whether this submission completed it.

        Raises:
            NotFoundError: the session does not exist.
            AlreadyExistsError: the request id was used for a different request.
        """
        about = f"session {submission.session_id}"
        async with self._database.write(about) as connection:
            before = await _round(connection, await one_session(connection, submission.session_id))
            if await _is_known(connection, submission):
                return before, False
            check(before)
            await _add(
                connection,
                before.session,
                submission.seat_id,
                submission.actions,
                submission.input,
                request_id=submission.request_id,
                request_digest=submission.digest(),
            )
            now = await _round(connection, before.session)
            if not now.waiting:
                await _move(connection, before.session, later)
        return now, not now.waiting

    async def round(self, session: Session) -> Round:
        """Return the current state of the turn after a session."""
        async with self._database.read() as connection:
            return await _round(connection, session)

    async def acted(self, session_ids: Collection[str]) -> dict[tuple[str, int], tuple[str, ...]]:
        """Return the seats that have acted in the next turns, by session id and preceding sequence."""
        query = (
            select(submissions.c.session_id, submissions.c.after, submissions.c.seat_id)
            .where(submissions.c.session_id.in_(session_ids), submissions.c.request_id.is_not(None))
            .join(sessions, sessions.c.session_id == submissions.c.session_id)
            .where(sessions.c.last_sequence == submissions.c.after)
            .order_by(submissions.c.time, submissions.c.seat_id)
        )
        acted: dict[tuple[str, int], tuple[str, ...]] = {}
        async with self._database.read() as connection:
            for session_id, after, seat_id in await connection.execute(query):
                acted[session_id, after] = (*acted.get((session_id, after), ()), seat_id)
        return acted

    async def due(self, now: int, limit: int) -> list[Session]:
        """Return sessions whose seat deadline has passed, the earliest deadline first."""
        query = select(sessions.c.session_id).where(sessions.c.due <= now).order_by(sessions.c.due)
        async with self._database.read() as connection:
            found = (await connection.scalars(query.limit(limit))).all()
            return [await one_session(connection, session_id) for session_id in found]

    async def take_over(self, session: Session, later: int) -> bool:
        """Take the lease on a due turn, whose waiting seats then time out.

        Args:
            session: the session with the due time that was read.
            later: expiry of the lease, in microseconds since 1970.

        Returns:
            False if another process has the lease.
        """
        async with self._database.write(f"session {session.session_id}") as connection:
            if not await _move(connection, session, later):
                return False
            if session.table is not None and session.table.order is SeatOrder.SIMULTANEOUS:
                for seat_id in (await _round(connection, session)).waiting:
                    await _add(connection, session, seat_id, (), "")
        return True

    async def move(self, session: Session, due: int | None) -> None:
        """Change the due time of a turn, unless the session or its due time has changed since."""
        async with self._database.write(f"session {session.session_id}") as connection:
            await _move(connection, session, due)

    async def open_anew(self, session: Session, due: int | None) -> None:
        """Reopen a turn that could not be played with the submissions of its seats.

        Args:
            session: the session.
            due: the new seat deadline.
        """
        of_turn = (submissions.c.session_id == session.session_id) & (
            submissions.c.after == session.last_sequence
        )
        async with self._database.write(f"session {session.session_id}") as connection:
            await connection.execute(delete(submissions).where(of_turn))
            await connection.execute(update(sessions).where(_unchanged(session)).values(due=due))


def _unchanged(session: Session) -> ColumnElement[bool]:
    return (sessions.c.session_id == session.session_id) & (sessions.c.last_sequence == session.last_sequence)


async def _move(connection: AsyncConnection, session: Session, due: int | None) -> bool:
    same = sessions.c.due.is_(None) if session.due is None else sessions.c.due == session.due
    moved = await connection.execute(update(sessions).where(_unchanged(session), same).values(due=due))
    return bool(moved.rowcount)


async def _is_known(connection: AsyncConnection, submission: Submission) -> bool:
    query = select(submissions.c.request_digest).where(
        submissions.c.session_id == submission.session_id, submissions.c.request_id == submission.request_id
    )
    digest = await connection.scalar(query)
    if digest is not None and digest != submission.digest():
        raise AlreadyExistsError(
            ".request_id was used for a different request; make a new one for each request",
            code="REQUEST_ID_REUSED",
        )
    return digest is not None


async def _add(
    connection: AsyncConnection,
    session: Session,
    seat_id: str,
    actions: tuple[ActionCall, ...],
    text: str,
    **request: str,
) -> None:
    await connection.execute(
        insert(submissions).values(
            session_id=session.session_id,
            after=session.last_sequence,
            seat_id=seat_id,
            actions=json.dumps(encode(actions)),
            input=text,
            time=microseconds_now(),
            **request,
        )
    )


async def _round(connection: AsyncConnection, session: Session) -> Round:
    query = (
        select(submissions)
        .where(submissions.c.session_id == session.session_id, submissions.c.after == session.last_sequence)
        .order_by(submissions.c.time, submissions.c.seat_id)
    )
    handed_in = tuple(
        HandedIn(
            row.seat_id, decode("actions", json.loads(row.actions)), row.input, row.request_id is not None
        )
        for row in await connection.execute(query)
    )
    return Round(session, handed_in)

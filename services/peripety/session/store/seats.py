"""Storage of seat submissions and seat deadlines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, update

from peripety.core.call_context import now_micros
from peripety.core.idempotency.store import check_same_request
from peripety.session.events import decode_member, encode_value
from peripety.session.seats.turn_order import SeatSubmission, SimultaneousTurn
from peripety.session.store.statements import load_session
from peripety.session.store.tables import sessions, submissions
from peripety.session.types import TurnOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.storage.database import Database
    from peripety.session.seats.turn_order import SubmitActionsRequest
    from peripety.session.types import PlayerAction, Session


class SeatStore:
    """Store of seat submissions, beside the tables of sessions.

    Args:
        database: the database of the process.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def submit(
        self,
        submission: SubmitActionsRequest,
        check: Callable[[SimultaneousTurn], None],
        new_deadline: int,
    ) -> tuple[SimultaneousTurn, bool]:
        """Store the submission of a seat; idempotent by request id.

        Args:
            submission: the submission.
            check: raises an error if the submission is not possible now.
            new_deadline: new due time if the submission completes the turn, in microseconds since 1970;
                if the
                process that plays the turn crashes, another one plays it then.

        Returns:
            The next turn in its current state, and whether this submission completed it.

        Raises:
            NotFoundError: the session does not exist.
            AlreadyExistsError: the request id was used for a different request.
        """
        about = f"session {submission.session_id}"
        async with self._database.write(about) as connection:
            before = await _load_turn(connection, await load_session(connection, submission.session_id))
            if await _is_recorded(connection, submission):
                return before, False
            check(before)
            await _add_submission(
                connection,
                before.session,
                submission.seat_id,
                submission.actions,
                submission.input,
                request_id=submission.request_id,
                request_digest=submission.request_digest(),
            )
            now = await _load_turn(connection, before.session)
            if not now.waiting_seats:
                await _set_deadline(connection, before.session, new_deadline)
        return now, not now.waiting_seats

    async def load_turn(self, session: Session) -> SimultaneousTurn:
        """Return the current state of the turn after a session."""
        async with self._database.read() as connection:
            return await _load_turn(connection, session)

    async def list_acted(self, session_ids: Collection[str]) -> dict[tuple[str, int], tuple[str, ...]]:
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

    async def list_due(self, now: int, limit: int) -> list[Session]:
        """Return sessions whose seat deadline has passed, the earliest deadline first."""
        query = select(sessions.c.session_id).where(sessions.c.due <= now).order_by(sessions.c.due)
        async with self._database.read() as connection:
            found = (await connection.scalars(query.limit(limit))).all()
            return [await load_session(connection, session_id) for session_id in found]

    async def claim(self, session: Session, expiry: int) -> bool:
        """Take the lease on a due turn, whose waiting seats then time out.

        Args:
            session: the session with the due time that was read.
            later: expiry of the lease, in microseconds since 1970.

        Returns:
            False if another process has the lease.
        """
        async with self._database.write(f"session {session.session_id}") as connection:
            if not await _set_deadline(connection, session, expiry):
                return False
            if session.table is not None and session.table.order is TurnOrder.SIMULTANEOUS:
                for seat_id in (await _load_turn(connection, session)).waiting_seats:
                    await _add_submission(connection, session, seat_id, (), "")
        return True

    async def set_deadline(self, session: Session, due: int | None) -> None:
        """Change the due time of a turn, unless the session or its due time has changed since."""
        async with self._database.write(f"session {session.session_id}") as connection:
            await _set_deadline(connection, session, due)

    async def reopen(self, session: Session, due: int | None) -> None:
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
            await connection.execute(update(sessions).where(_is_unchanged(session)).values(due=due))


def _is_unchanged(session: Session) -> ColumnElement[bool]:
    return (sessions.c.session_id == session.session_id) & (sessions.c.last_sequence == session.last_sequence)


async def _set_deadline(connection: AsyncConnection, session: Session, due: int | None) -> bool:
    same = sessions.c.due.is_(None) if session.due is None else sessions.c.due == session.due
    moved = await connection.execute(update(sessions).where(_is_unchanged(session), same).values(due=due))
    return bool(moved.rowcount)


async def _is_recorded(connection: AsyncConnection, submission: SubmitActionsRequest) -> bool:
    query = select(submissions.c.request_digest).where(
        submissions.c.session_id == submission.session_id,
        submissions.c.request_id == submission.request_id,
    )
    digest = await connection.scalar(query)
    if digest is not None:
        check_same_request(submission.request_digest(), digest)
    return digest is not None


async def _add_submission(
    connection: AsyncConnection,
    session: Session,
    seat_id: str,
    actions: tuple[PlayerAction, ...],
    text: str,
    **request: str,
) -> None:
    await connection.execute(
        insert(submissions).values(
            session_id=session.session_id,
            after=session.last_sequence,
            seat_id=seat_id,
            actions=json.dumps(encode_value(actions)),
            input=text,
            time=now_micros(),
            **request,
        ),
    )


async def _load_turn(connection: AsyncConnection, session: Session) -> SimultaneousTurn:
    query = (
        select(submissions)
        .where(submissions.c.session_id == session.session_id, submissions.c.after == session.last_sequence)
        .order_by(submissions.c.time, submissions.c.seat_id)
    )
    handed_in = tuple(
        SeatSubmission(
            row.seat_id,
            decode_member("actions", json.loads(row.actions)),
            row.input,
            row.request_id is not None,
        )
        for row in await connection.execute(query)
    )
    return SimultaneousTurn(session, handed_in)

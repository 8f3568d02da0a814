"""Sessions and turns, stored and found.

A turn is one transaction: its row, its events and the session's next state are written together or not at
all. Of two writers of the same turn the database lets one through, whatever process they run in: a session is
only ever moved on from the turn and the sequence that its writer has seen. Sequences never decrease, so a
turn that was begun before others were taken back cannot be stored after that.

What touches the lines of several sessions is alone in the database: making a session, deleting one, a rewind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select, tuple_

from peripety.errors import InternalError
from peripety.sessions.model import Rewind
from peripety.sessions.store import arriving, lines, tables
from peripety.sessions.store import statements as say
from peripety.sessions.store.refusals import stale, unknown
from peripety.sessions.store.rows import SUMMARY, memories_of, memory_changes, summary_of
from peripety.sessions.store.seats import SeatStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from peripety.sessions.model import CommittedTurn, Kept, Memory, Request, Session, SessionSummary
    from peripety.sessions.store.statements import End
    from peripety.storage import Database

__all__ = ["SNAPSHOT_TURNS", "Past", "SessionStore"]

SNAPSHOT_TURNS = 16
"""After every so many turns a session's state is kept."""


@dataclass(frozen=True, slots=True)
class Past:
    """What an earlier state of a session follows from.

    Attributes:
        session: the session as it is now.
        turn: the turn whose state is asked for.
        end: how that turn ended; None at the start.
        start: the last turn up to there whose state is known, 0 for the start.
        snapshot: that state; None at the start.
        memories: what was remembered then.
        played: the records of the turns since then, and how each changed what is remembered.
        next_record: the record of the turn that came next in the session; None if none did.
    """

    session: Session
    turn: int
    end: End | None
    start: int
    snapshot: bytes | None
    memories: tuple[Memory, ...]
    played: tuple[tuple[bytes, tuple[Kept | Memory, ...] | None], ...]
    next_record: bytes | None


class SessionStore:
    """The tables of sessions, their lines and turns, and the specifications that they play.

    Args:
        database: the database of the process.

    Attributes:
        seats: what the seats of sessions have handed in.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.seats = SeatStore(database)

    async def made_by(self, request: Request) -> Session | None:
        """The session that a request has made already, if it has: a new one, a fork or an import.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.read() as connection:
            return await say.made_by(connection, request)

    async def made_from(self, request: Request, session_id: str) -> tuple[Session, bool]:
        """The session that a request has made already from another one, or that other one if it has not.

        Returns:
            The session, and whether the request has made it.

        Raises:
            NotFoundError: there is neither.
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.read() as connection:
            made, other = await say.made_or_named(connection, request, session_id)
        found = made or other
        if found is None:
            raise unknown(session_id)
        return found, found is made

    async def add(
        self,
        session: Session,
        document: bytes,
        request: Request,
        turns: Iterable[CommittedTurn] = (),
        snapshots: Iterable[Session] = (),
    ) -> Session:
        """Store a session that was just made, unless its request has made one already: then return that.

        Args:
            session: the session, on a new line.
            document: the specification that it plays.
            request: what asked for it.
            turns: all turns that it has behind it, if it was played elsewhere; made in a thread.
            snapshots: what it was like after every `SNAPSHOT_TURNS` of these; made in a thread.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.write() as connection:
            made = await say.made_by(connection, request)
            if made is not None:
                return made
            await say.add_specification(connection, session.spec_hash, document)
            await lines.add_line(connection, session.line_id, None, 0)
            await say.add_session(connection, session, request)
            await arriving.add_turns(connection, session.line_id, iter(turns))
            await arriving.keep_snapshots(connection, iter(snapshots))
        return session

    async def fork(self, fork: Session, session_id: str, request: Request) -> Session:
        """Store a session that begins after a turn of another, unless its request has made one already.

        Args:
            fork: the new session, on a new line, at the turn after which it begins.
            session_id: the other one.
            request: what asked for it.

        Returns:
            The fork, its `last_sequence` that of the turn, whatever happened in the other one since.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
            NotFoundError: the other session is gone.
            ConflictError: `STALE_TURN`: that turn was taken back meanwhile.
        """
        async with self._database.write() as connection:
            stands = await say.standing(connection, session_id, fork.turn, request)
            if stands is None:
                made = await say.made_by(connection, request)
                if made is None:
                    raise unknown(session_id)
                return made
            # A turn that took its place would have a later sequence than any that was seen before.
            if fork.turn and not 0 < stands.sequence <= fork.last_sequence:
                raise stale(session_id, f"Turn {fork.turn} of the session was taken back meanwhile")
            fork = replace(fork, last_sequence=stands.sequence)
            await lines.add_line(connection, fork.line_id, stands.segment, fork.turn)
            await say.add_session(connection, fork, request)
        return fork

    async def rewind(self, before: Session, then: Session, request: Request) -> Session:
        """Take the last turns of a session back, unless the request has done so already.

        Turns that a fork has in common with the session stay, for the fork alone.

        Args:
            before: the session as it was found.
            then: the session as it shall be: at an earlier turn, `last_sequence` one more than before, on a
                new line, which is used if the old one is still needed as it is.
            request: what asked for it.

        Returns:
            The session now.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
            NotFoundError: there is no such session.
            ConflictError: `STALE_TURN`: it is not at that turn any more.
        """
        session_id, line = before.session_id, before.line_id
        async with self._database.write() as connection:
            if await say.rewound_by(connection, session_id, request):
                return await say.one_session(connection, session_id)
            segments = await lines.lineage(connection, session_id)
            if not segments:
                raise unknown(session_id)
            needed = await lines.furthest_fork(connection, line)
            if segments[0].after <= then.turn and (needed is None or needed <= then.turn):
                then = replace(then, line_id=line)
            seen = {"turn": before.turn, "last_sequence": before.last_sequence}
            if not await say.move(connection, then, **seen):
                raise stale(session_id, "Somebody else changed the session meanwhile")
            gone = lines.between(segments, then.turn, before.turn)
            await say.note_taken_back(connection, session_id, gone)
            await say.note_rewind(connection, then, request)
            if then.line_id == line:
                await lines.cut(connection, line, then.turn)
            else:
                parent = lines.holding(segments, then.turn)
                await lines.add_line(connection, then.line_id, parent, then.turn)
                await lines.collect(connection, line)
        return then

    async def rewound_by(self, session_id: str, request: Request) -> bool:
        """Whether a request has taken turns of a session back already.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.read() as connection:
            return await say.rewound_by(connection, session_id, request)

    async def session(self, session_id: str) -> Session:
        """A session.

        Raises:
            NotFoundError: there is none of that id.
        """
        async with self._database.read() as connection:
            return await say.one_session(connection, session_id)

    async def last_sequences(self, session_ids: Collection[str]) -> dict[str, int]:
        """The sequences of the last events of sessions; without those that do not exist."""
        query = select(tables.sessions.c.session_id, tables.sessions.c.last_sequence)
        async with self._database.read() as connection:
            found = await connection.execute(query.where(tables.sessions.c.session_id.in_(session_ids)))
            return {row.session_id: row.last_sequence for row in found}

    async def sessions(
        self, scenario_id: str | None, before: tuple[Any, ...] | None, limit: int
    ) -> list[SessionSummary]:
        """Sessions without their weight, newest first.

        Args:
            scenario_id: only those of this scenario; None for all.
            before: when the last one of the page before was created, and its id.
            limit: the most to return.
        """
        found = tables.sessions.c
        query = select(*SUMMARY).order_by(found.created.desc(), found.session_id.desc())
        if scenario_id is not None:
            query = query.where(found.scenario_id == scenario_id)
        if before is not None:
            query = query.where(tuple_(found.created, found.session_id) < before)
        async with self._database.read() as connection:
            return [summary_of(row) for row in await connection.execute(query.limit(limit))]

    async def document(self, spec_hash: str) -> bytes:
        """The specification of a version that some session plays."""
        async with self._database.read() as connection:
            document: bytes | None = await connection.scalar(
                select(tables.specs.c.document).where(tables.specs.c.spec_hash == spec_hash)
            )
        if document is None:
            raise InternalError(f"the specification {spec_hash} of a session is not stored")
        return document

    async def delete(self, session_id: str, request_id: str) -> None:
        """Delete a session, and the turns that no fork needs; again under the same request id, do nothing.

        Raises:
            NotFoundError: there is no such session.
        """
        of, by = tables.sessions.c, tables.deletions
        async with self._database.write() as connection:
            line = await connection.scalar(select(of.line_id).where(of.session_id == session_id))
            if line is not None:
                await connection.execute(delete(tables.sessions).where(of.session_id == session_id))
                await lines.collect(connection, line)
                await connection.execute(insert(by).values(session_id=session_id, request_id=request_id))
                return
            gone = await connection.scalar(select(by.c.request_id).where(by.c.session_id == session_id))
        if gone != request_id:
            raise unknown(session_id)

    async def commit(self, session: Session, turn: CommittedTurn) -> None:
        """Record a turn and move its session on, in one transaction.

        Args:
            session: the session after the turn.
            turn: the turn.

        Raises:
            ConflictError: `STALE_TURN`: the session is not where the turn began any more.
        """
        began = {"turn": turn.turn - 1, "last_sequence": turn.first_sequence - 1}
        async with self._database.write(f"session {session.session_id}") as connection:
            if not await say.move(connection, session, **began):
                raise stale(session.session_id, f"Somebody else took turn {turn.turn} of the session")
            await say.add_turn(connection, session.line_id, turn)
            if turn.turn % SNAPSHOT_TURNS == 0:
                await say.keep_snapshot(connection, session)

    async def turn(self, session_id: str, which: int | str) -> CommittedTurn | None:
        """A committed turn, by its number or by the request that played it.

        Raises:
            FailedPreconditionError: `TURN_REWOUND`: the request has played a turn that was taken back.
        """
        async with self._database.read() as connection:
            if isinstance(which, str):
                return await say.played_by(connection, session_id, which)
            return await say.one_turn(connection, await lines.lineage(connection, session_id), which)

    async def turns(self, session_id: str, after: int, limit: int) -> list[CommittedTurn]:
        """Committed turns after a number, oldest first."""
        async with self._database.read() as connection:
            segments = await lines.lineage(connection, session_id)
            return await say.turns_after(connection, segments, after, limit)

    async def happened(self, session_id: str, after: int, limit: int) -> list[CommittedTurn | Rewind]:
        """What happened in a session since an event, in the order of sequences.

        The next page begins after the `last_sequence` of the turn, or the `sequence` of the rewind, that ends
        this one; a page with fewer than `limit` is the last for now. Turns that were taken back are not told,
        and of the rewinds only those which no later one goes as far back as.

        Args:
            session_id: the session; one that does not exist has no events.
            after: the sequence of the last event that is known, 0 for none. In the middle of a turn, that
                turn comes first, whole.
            limit: the most turns and rewinds to return.
        """
        async with self._database.read() as connection:
            segments = await lines.lineage(connection, session_id)
            known = await say.known_turn(connection, segments, after)
            found: list[CommittedTurn | Rewind] = [
                *await say.turns_after(connection, segments, known, limit),
                *await say.rewinds_since(connection, session_id, after, limit),
            ]
        found.sort(key=lambda one: one.sequence if isinstance(one, Rewind) else one.first_sequence)
        return found[:limit]

    async def past(self, session_id: str, turn: int) -> Past | None:
        """What the state of a session after a turn follows from; None when it has not got there.

        Raises:
            NotFoundError: there is no such session.
        """
        async with self._database.read() as connection:
            session = await say.one_session(connection, session_id)
            if turn > session.turn:
                return None
            segments = await lines.lineage(connection, session_id)
            kept = await say.kept_snapshot(connection, segments, turn)
            start = 0 if kept is None else kept.turn
            rows = await say.records(connection, lines.between(segments, start, turn + 1))
            return Past(
                session=session,
                turn=turn,
                end=await say.end_of_turn(connection, segments, turn),
                start=start,
                snapshot=None if kept is None else kept.snapshot,
                memories=() if kept is None else memories_of(kept.memories),
                played=tuple((row.record, memory_changes(row.memories)) for row in rows if row.turn <= turn),
                next_record=next((row.record for row in rows if row.turn > turn), None),
            )

    async def common_turn(self, session_id: str, other_id: str) -> int:
        """The last turn that two sessions of one version have in common, by what happened; 0 for none."""
        async with self._database.read() as connection:
            one, other = [await lines.lineage(connection, name) for name in (session_id, other_id)]
            first, last = lines.shared(one, other), min(lines.turns_of(one), lines.turns_of(other))
            # A chain hash covers all that happened before it. Past the line that they share, sessions mostly
            # part at once.
            step = 1
            while first < last:
                turn = min(first + step, last)
                ends = [await say.end_of_turn(connection, segments, turn) for segments in (one, other)]
                if len({end.committed.chain_hash for end in ends if end is not None}) == 1:
                    first, step = turn, step * 2
                else:
                    last, step = turn - 1, max(1, (turn - 1 - first) // 2)
        return first

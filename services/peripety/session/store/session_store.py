"""Store of sessions and their turns.

Turns belong to *lines* (history segments). A session has its own line. A fork starts a new line at a turn of
another one and copies nothing, so the turns of a session are those of its line and of the ancestors of that
line. Turns are never changed. Turns that no session references any more are deleted together with the last
reference.

A turn is one transaction: its row, its events and the session's next state are written together or not at
all. Of two concurrent writers of the same turn, in any processes, the database lets only one write: a session
is only updated from the turn and the sequence that the writer has read (optimistic locking). Sequences never
decrease, so a turn that began before a rewind cannot be stored after it.

Operations that touch the lines of several sessions have the database for themselves: creation, deletion and
rewind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, or_, select, tuple_

from peripety.errors import InternalError
from peripety.gateway.types.response import UsageTotal
from peripety.session.store import history_segments, statements, tables, turn_commit
from peripety.session.store.seats import SeatStore
from peripety.session.store.statements import TurnEnd, session_not_found
from peripety.session.store.tables import (
    SUMMARY_COLUMNS,
    decode_memories,
    decode_memory_diff,
    summary_from_row,
)
from peripety.session.store.turn_commit import stale_turn
from peripety.session.types import RecordedRewind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from peripety.core.storage.database import Database
    from peripety.session.types import (
        CommittedTurn,
        NarratorMemory,
        Session,
        SessionListing,
        SessionRequestKey,
        SessionSummary,
        UnchangedMemories,
    )


@dataclass(frozen=True, slots=True)
class ReplayStart:
    """Data from which an earlier state of a session is reconstructed.

    Attributes:
        session: the current session.
        turn: the requested turn.
        end: the end of that turn; None at the start.
        start: the last turn up to there with a snapshot, 0 for the start.
        snapshot: that snapshot; None at the start.
        memories: memories at the snapshot.
        records: records and memory diffs of the turns since then.
        next_record: the record of the turn after the requested one, or None.
    """

    session: Session
    turn: int
    end: TurnEnd | None
    start: int
    snapshot: bytes | None
    memories: tuple[NarratorMemory, ...]
    records: tuple[tuple[bytes, tuple[UnchangedMemories | NarratorMemory, ...] | None], ...]
    next_record: bytes | None


class SessionStore:
    """Store of sessions, their lines and turns, and the specifications that they play.

    Args:
        database: the database of the process.

    Attributes:
        seats: the store of seat submissions.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.seats = SeatStore(database)

    async def find_by_request_id(self, request: SessionRequestKey) -> Session | None:
        """Return the session that a request has created, forked or imported already, or None.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.read() as connection:
            return await statements.find_session_by_request(connection, request)

    async def find_fork_or_parent(self, request: SessionRequestKey, session_id: str) -> tuple[Session, bool]:
        """Return the session that a request has forked already, or else the parent session.

        Returns:
            The session, and True if the request has created it.

        Raises:
            NotFoundError: neither session exists.
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.read() as connection:
            made, other = await statements.find_session_by_request_or_id(connection, request, session_id)
        found = made or other
        if found is None:
            raise session_not_found(session_id)
        return found, found is made

    async def add(
        self,
        session: Session,
        document: bytes,
        request: SessionRequestKey,
        turns: Iterable[CommittedTurn] = (),
        snapshots: Iterable[Session] = (),
    ) -> Session:
        """Store a new session, or return the one that its request has created already.

        Args:
            session: the session, on a new line.
            document: its specification.
            request: the request.
            turns: all turns of an imported session, produced lazily in a thread.
            snapshots: the session at every `SNAPSHOT_TURNS` of these, produced lazily in a thread.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.write() as connection:
            made = await statements.find_session_by_request(connection, request)
            if made is not None:
                return made
            await statements.add_specification(connection, session.spec_hash, document)
            await history_segments.add_line(connection, session.line_id, None, 0)
            await statements.add_session(connection, session, request)
            await statements.add_turns(connection, session.line_id, iter(turns))
            await statements.add_snapshots(connection, iter(snapshots))
        return session

    async def fork(self, fork: Session, session_id: str, request: SessionRequestKey) -> Session:
        """Store a fork of a session, or return the one that its request has created already.

        Args:
            fork: the new session, on a new line, at the turn where it begins.
            session_id: the parent session.
            request: the request.

        Returns:
            The fork; its `last_sequence` is that of the turn, whatever happened in the parent since.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
            NotFoundError: the parent session was deleted.
            ConflictError: `STALE_TURN`: the turn was rewound meanwhile.
        """
        async with self._database.write() as connection:
            stands = await statements.find_cursor(connection, session_id, fork.turn, request)
            if stands is None:
                made = await statements.find_session_by_request(connection, request)
                if made is None:
                    raise session_not_found(session_id)
                return made
            # A turn that replaced it would have a later sequence than any that was read before.
            if fork.turn and not 0 < stands.sequence <= fork.last_sequence:
                raise stale_turn(session_id, f"turn {fork.turn} of the session was rewound meanwhile")
            fork = replace(fork, last_sequence=stands.sequence)
            await history_segments.add_line(connection, fork.line_id, stands.segment, fork.turn)
            await statements.add_session(connection, fork, request)
        return fork

    async def rewind(self, before: Session, then: Session, request: SessionRequestKey) -> Session:
        """Rewind a session, unless the request has done so already.

        Turns that a fork shares with the session stay, for the fork.

        Args:
            before: the session as it was read.
            then: the rewound session: at an earlier turn, with `last_sequence` one more than before, on a new
                line, which is used if the old one is still referenced as it is.
            request: the request.

        Returns:
            The current session.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
            NotFoundError: the session does not exist.
            ConflictError: `STALE_TURN`: the session has changed since it was read.
        """
        session_id, line = before.session_id, before.line_id
        async with self._database.write() as connection:
            if await statements.is_rewound_by_request(connection, session_id, request):
                return await statements.load_session(connection, session_id)
            segments = await history_segments.load_ancestry(connection, session_id)
            if not segments:
                raise session_not_found(session_id)
            needed = await history_segments.last_forked_turn(connection, line)
            if segments[0].after <= then.turn and (needed is None or needed <= then.turn):
                then = replace(then, line_id=line)
            seen = {"turn": before.turn, "last_sequence": before.last_sequence}
            if not await turn_commit.update_session(connection, then, **seen):
                raise stale_turn(session_id, "session was changed meanwhile")
            gone = history_segments.slice_segments(segments, then.turn, before.turn)
            await statements.mark_rewound(connection, session_id, gone)
            await statements.add_rewind(connection, then, request)
            if then.line_id == line:
                await history_segments.truncate(connection, line, then.turn)
            else:
                parent = history_segments.find_segment(segments, then.turn)
                await history_segments.add_line(connection, then.line_id, parent, then.turn)
                await history_segments.garbage_collect(connection, line)
        return then

    async def is_rewound_by_request(self, session_id: str, request: SessionRequestKey) -> bool:
        """Return True if a request has rewound a session already.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.read() as connection:
            return await statements.is_rewound_by_request(connection, session_id, request)

    async def get_session(self, session_id: str) -> Session:
        """Return a session.

        Raises:
            NotFoundError: the session does not exist.
        """
        async with self._database.read() as connection:
            return await statements.load_session(connection, session_id)

    async def last_sequences(self, session_ids: Collection[str]) -> dict[str, int]:
        """Return the last sequences of the sessions that exist."""
        query = select(tables.sessions.c.session_id, tables.sessions.c.last_sequence)
        async with self._database.read() as connection:
            found = await connection.execute(query.where(tables.sessions.c.session_id.in_(session_ids)))
            return {row.session_id: row.last_sequence for row in found}

    async def list_sessions(
        self,
        listing: SessionListing,
        before: tuple[Any, ...] | None,
        limit: int,
    ) -> list[SessionSummary]:
        """List session summaries.

        Args:
            listing: filter and order.
            before: time, as in the order, and id of the last session of the previous page.
            limit: maximum number of sessions.
        """
        found = tables.sessions.c
        time = found.updated if listing.by_update_time else found.created
        query = select(*SUMMARY_COLUMNS).order_by(time.desc(), found.session_id.desc())
        if listing.scenario_id is not None:
            query = query.where(found.scenario_id == listing.scenario_id)
        if listing.statuses:
            query = query.where(or_(*map(tables.has_status, sorted(listing.statuses))))
        if before is not None:
            query = query.where(tuple_(time, found.session_id) < before)
        async with self._database.read() as connection:
            return [summary_from_row(row) for row in await connection.execute(query.limit(limit))]

    async def get_document(self, spec_hash: str) -> bytes:
        """Return the specification of a version that a session plays."""
        async with self._database.read() as connection:
            document: bytes | None = await connection.scalar(
                select(tables.specs.c.document).where(tables.specs.c.spec_hash == spec_hash),
            )
        if document is None:
            raise InternalError(f"the specification {spec_hash} of a session is not stored")
        return document

    async def delete(self, session_id: str, request_id: str) -> None:
        """Delete a session and its unshared turns; idempotent by request id.

        Raises:
            NotFoundError: the session does not exist.
        """
        of, by = tables.sessions.c, tables.deletions
        async with self._database.write() as connection:
            line = await connection.scalar(select(of.line_id).where(of.session_id == session_id))
            if line is not None:
                await connection.execute(delete(tables.sessions).where(of.session_id == session_id))
                await history_segments.garbage_collect(connection, line)
                await connection.execute(insert(by).values(session_id=session_id, request_id=request_id))
                return
            gone = await connection.scalar(select(by.c.request_id).where(by.c.session_id == session_id))
        if gone != request_id:
            raise session_not_found(session_id)

    async def commit_turn(self, session: Session, turn: CommittedTurn) -> None:
        """Store a turn and update its session, in one transaction.

        Args:
            session: the session after the turn.
            turn: the turn.

        Raises:
            ConflictError: `STALE_TURN`: the session has changed since the turn began.
        """
        await turn_commit.commit_turn(self._database, session, turn)

    async def add_usage(self, session: Session, usage: UsageTotal) -> None:
        """Add the usage of a turn that was not played, unless the session has changed since."""
        if usage == UsageTotal():
            return
        after = replace(session, usage=session.usage + usage)
        async with self._database.write(f"session {session.session_id}") as connection:
            await turn_commit.update_session(
                connection,
                after,
                turn=session.turn,
                last_sequence=session.last_sequence,
            )

    async def find_turn(self, session_id: str, which: int | str) -> CommittedTurn | None:
        """Return a committed turn by its number or by the id of the request that played it.

        Raises:
            FailedPreconditionError: `TURN_REWOUND`: the turn of the request was rewound.
        """
        async with self._database.read() as connection:
            if isinstance(which, str):
                return await statements.find_turn_by_request(connection, session_id, which)
            return await statements.find_turn(
                connection,
                await history_segments.load_ancestry(connection, session_id),
                which,
            )

    async def list_turns(self, session_id: str, after: int, limit: int) -> list[CommittedTurn]:
        """Return committed turns after a number, oldest first."""
        async with self._database.read() as connection:
            segments = await history_segments.load_ancestry(connection, session_id)
            return await statements.load_turns(connection, segments, after, limit)

    async def list_history(
        self,
        session_id: str,
        after: int,
        limit: int,
    ) -> list[CommittedTurn | RecordedRewind]:
        """Return the turns and rewinds of a session after an event, in sequence order.

        The next page begins after the `last_sequence` of the last turn, or the `sequence` of the last rewind;
        a page with fewer than `limit` items is the last one. Rewound turns and superseded rewinds are left
        out.

        Args:
            session_id: the session; one that does not exist has no events.
            after: the sequence of the last known event, 0 for none. If it is in the middle of a turn, the
                whole turn is returned first.
            limit: maximum number of turns and rewinds.
        """
        async with self._database.read() as connection:
            segments = await history_segments.load_ancestry(connection, session_id)
            known = await statements.find_known_turn(connection, segments, after)
            found: list[CommittedTurn | RecordedRewind] = [
                *await statements.load_turns(connection, segments, known, limit),
                *await statements.load_rewinds(connection, session_id, after, limit),
            ]
        found.sort(key=lambda one: one.sequence if isinstance(one, RecordedRewind) else one.first_sequence)
        return found[:limit]

    async def load_replay_start(self, session_id: str, turn: int) -> ReplayStart | None:
        """Return the data to reconstruct the state after a turn, or None if the session has not reached it.

        Raises:
            NotFoundError: the session does not exist.
        """
        async with self._database.read() as connection:
            session = await statements.load_session(connection, session_id)
            if turn > session.turn:
                return None
            segments = await history_segments.load_ancestry(connection, session_id)
            kept = await statements.find_snapshot(connection, segments, turn)
            start = 0 if kept is None else kept.turn
            rows = await statements.load_records(
                connection,
                history_segments.slice_segments(segments, start, turn + 1),
            )
            return ReplayStart(
                session=session,
                turn=turn,
                end=await statements.load_turn_end(connection, segments, turn),
                start=start,
                snapshot=None if kept is None else kept.snapshot,
                memories=() if kept is None else decode_memories(kept.memories),
                records=tuple(
                    (row.record, decode_memory_diff(row.memories)) for row in rows if row.turn <= turn
                ),
                next_record=next((row.record for row in rows if row.turn > turn), None),
            )

    async def common_turn(self, session_id: str, other_id: str) -> int:
        """Return the last common turn of two sessions of one version; 0 for none."""
        async with self._database.read() as connection:
            one, other = [
                await history_segments.load_ancestry(connection, name) for name in (session_id, other_id)
            ]
            first, last = (
                history_segments.last_shared_turn(one, other),
                min(history_segments.count_turns(one), history_segments.count_turns(other)),
            )
            # A chain hash covers the whole history before it, so a search for the last equal hash is enough.
            # It begins with small steps, as sessions mostly diverge soon after their shared line.
            step = 1
            while first < last:
                turn = min(first + step, last)
                ends = [
                    await statements.load_turn_end(connection, segments, turn) for segments in (one, other)
                ]
                if len({end.committed.chain_hash for end in ends if end is not None}) == 1:
                    first, step = turn, step * 2
                else:
                    last, step = turn - 1, max(1, (turn - 1 - first) // 2)
        return first

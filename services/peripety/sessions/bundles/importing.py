"""Import of bundles: received completely, verified to the end, then stored in one transaction."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import uuid
from dataclasses import replace
from itertools import islice
from typing import IO, TYPE_CHECKING

from peripety import sim
from peripety.clock import microseconds_now
from peripety.errors import Finding, InternalError, PeripetyError, ResourceExhaustedError
from peripety.gateway.model import Spent
from peripety.requests import check_request_id
from peripety.sessions import remembered
from peripety.sessions.bundles.defects import BundleError, Defect
from peripety.sessions.bundles.format import turn_of
from peripety.sessions.bundles.verifying import Verification
from peripety.sessions.checks import check_new_session
from peripety.sessions.events import Committed
from peripety.sessions.mechanics import reseeded
from peripety.sessions.model import CommittedTurn, NewSession, Request, Session
from peripety.sessions.seen import Seen, SeenTurn
from peripety.sessions.store import SNAPSHOT_TURNS
from peripety.sessions.visibility import Viewers
from peripety.tasks import finish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from peripety.sessions.bundles.format import BundledTurn, Header
    from peripety.sessions.bundles.replaying import Replay
    from peripety.sessions.model import Memory
    from peripety.sessions.seen import Room
    from peripety.sessions.store import SessionStore
    from peripety.sim import Program

__all__ = ["MOST_BUNDLE_BYTES", "Importer"]

MOST_BUNDLE_BYTES = 1 << 27
_IN_MEMORY_BYTES = 1 << 20
_TURNS_AT_ONCE = 32
_AT_ONCE = 2
# No request of this server played the turn, so a request with its id counts as one with another digest.
_ELSEWHERE = ""


class Importer:
    """Importer of bundles.

    Args:
        store: stores the sessions.
        room: size limit of a turn.
        most_bytes: size limit of a bundle.
    """

    def __init__(self, store: SessionStore, room: Room, most_bytes: int = MOST_BUNDLE_BYTES) -> None:
        self._store = store
        self._room = room
        self._most_bytes = most_bytes
        self._verifying = asyncio.Semaphore(_AT_ONCE)

    async def take_in(self, request_id: str, pieces: AsyncIterator[bytes]) -> Session:
        """Store the session of a bundle; idempotent by request id.

        Args:
            request_id: idempotency key.
            pieces: chunks of the bundle, from its beginning.

        Raises:
            InvalidArgumentError: the request id is invalid; or `BUNDLE_INVALID`, with the defects.
            ResourceExhaustedError: the bundle exceeds the size limit.
            AlreadyExistsError: the request id was used for a different request.
        """
        check_request_id(request_id)
        with (
            tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as bundle,
            tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as states,
        ):
            request = Request(request_id, await self._keep(pieces, bundle))
            made = await self._store.made_by(request)
            if made is not None:
                return made
            draft = _Draft(bundle, states, self._room)
            async with self._verifying:
                while await finish(asyncio.to_thread(draft.verify_some)):
                    pass
            session, document = draft.session()
            return await self._store.add(session, document, request, draft.turns(), draft.snapshots(session))

    async def _keep(self, pieces: AsyncIterator[bytes], bundle: IO[bytes]) -> str:
        """Write a bundle to a file and return its hash."""
        digest = hashlib.sha256()
        size = 0
        async for piece in pieces:
            size += len(piece)
            if size > self._most_bytes:
                raise ResourceExhaustedError(
                    f".chunk: bundle is larger than the limit of {self._most_bytes} bytes;"
                    " export fewer turns of it (last_turn)",
                    code="BUNDLE_TOO_LARGE",
                )
            digest.update(piece)
            bundle.write(piece)
        return digest.hexdigest()


class _Draft:
    """The session built from the verified part of a bundle.

    Args:
        bundle: the bundle.
        states: an empty file for snapshots at regular turns.
        room: size limit of a turn.
    """

    def __init__(self, bundle: IO[bytes], states: IO[bytes], room: Room) -> None:
        bundle.seek(0)
        self._bundle = bundle
        self._states = states
        self._kept: list[tuple[int, int, tuple[Memory, ...]]] = []
        self._room = room
        self._verification = Verification(bundle)
        self._verified = _numbered(turn for turn, _ in self._verification.turns())
        self._memories: tuple[Memory, ...] = ()
        self._usage = Spent()
        self._last_sequence = 0

    def verify_some(self) -> bool:
        """Verify the next turns; return True if there may be more.

        Raises:
            BundleError: the bundle has a defect.
        """
        count = 0
        for turn in islice(self._verified, _TURNS_AT_ONCE):
            self._require_right()
            self._take(turn)
            count += 1
        self._require_right()
        if not count:
            self._check_settings()
        return count > 0

    def _require_right(self) -> None:
        verdict = self._verification.verdict
        if not verdict.right:
            raise BundleError(verdict.defects)

    def _take(self, turn: CommittedTurn) -> None:
        _, replay = self._read()
        if not self._room.holds(_whole(turn, replay.program)):
            message = (
                "the turn does not fit into a message of this server; increase PERIPETY_MAX_MESSAGE_BYTES"
            )
            raise BundleError([Defect(self._verification.line, Finding("TURN_INVALID", "", message))])
        self._memories = remembered.after(self._memories, turn.memories)
        self._usage += _end_of(turn).usage
        self._last_sequence = turn.last_sequence
        if turn.turn % SNAPSHOT_TURNS == 0:
            self._kept.append((turn.turn, len(replay.snapshot), self._memories))
            self._states.write(replay.snapshot)

    def _check_settings(self) -> None:
        """Raise an error if the seats or narrator options of the header are invalid."""
        header, replay = self._read()
        viewers = Viewers(replay.program.spec)
        seats = () if header.table is None else header.table.seats
        try:
            check_new_session(
                NewSession(
                    str(uuid.uuid4()), header.scenario_id, table=header.table, narrator=header.narrator
                )
            )
            for seat in seats:
                viewers.view(seat.entity_id)
        except PeripetyError as error:
            raise BundleError([Defect(1, Finding("HEADER_INVALID", "", error.message))]) from None

    def _read(self) -> tuple[Header, Replay]:
        header, replay = self._verification.header, self._verification.replay
        if header is None or replay is None:
            raise InternalError("a valid bundle has no header")
        return header, replay

    def session(self) -> tuple[Session, bytes]:
        """Return the session at its last turn and its specification, after the whole bundle was verified."""
        header, replay = self._read()
        seed, snapshot = replay.seed, replay.snapshot
        if header.next_seed is not None:
            seed, snapshot = header.next_seed, reseeded(snapshot, header.next_seed)
        now = microseconds_now()
        session = Session(
            session_id=str(uuid.uuid4()),
            scenario_id=header.scenario_id,
            spec_hash=header.spec_hash,
            seed=seed,
            first_seed=header.first_seed,
            reseeded=header.next_seed is not None,
            turn=header.turns,
            status=replay.status,
            snapshot=snapshot,
            state_hash=replay.state_hash,
            chain_hash=replay.chain_hash,
            last_sequence=self._last_sequence,
            usage=self._usage,
            created=now,
            updated=now,
            line_id=str(uuid.uuid4()),
            memories=self._memories,
            narrator=header.narrator,
            table=header.table,
        )
        return replace(session, due=session.next_due(now)), replay.program.document

    def turns(self) -> Iterator[CommittedTurn]:
        """Yield all turns without validation: they are verified, and a transaction waits for them."""
        header, _ = self._read()
        self._bundle.seek(0)
        for _ in range(2 if header.certificate_hash is None else 3):
            self._bundle.readline()
        lines = islice(self._bundle, header.turns)
        return _numbered(turn_of(sim.loads(line)) for line in lines)

    def snapshots(self, session: Session) -> Iterator[Session]:
        """Yield the session at each snapshot turn."""
        self._states.seek(0)
        for turn, size, memories in self._kept:
            yield replace(session, turn=turn, snapshot=self._states.read(size), memories=memories)


def _numbered(turns: Iterable[BundledTurn]) -> Iterator[CommittedTurn]:
    """Yield the turns of a bundle as committed turns with new sequences."""
    sequence = 1
    memories: tuple[Memory, ...] = ()
    for number, turn in enumerate(turns, 1):
        remembering = memories if turn.memories is None else turn.memories
        committed = CommittedTurn(
            turn=number,
            request_id=turn.request_id,
            request_digest=_ELSEWHERE,
            pov=turn.pov,
            record=sim.canonical(turn.record),
            first_sequence=sequence,
            events=turn.events,
            memories=remembered.since(memories, remembering),
        )
        yield committed
        sequence, memories = committed.last_sequence + 1, remembering


def _whole(turn: CommittedTurn, program: Program) -> SeenTurn:
    """Return the unfiltered view of a turn."""
    events = enumerate(turn.events, turn.first_sequence)
    return SeenTurn(
        turn, tuple(Seen("", turn.turn, sequence, event, program.spec) for sequence, event in events)
    )


def _end_of(turn: CommittedTurn) -> Committed:
    end = turn.events[-1]
    if not isinstance(end, Committed):
        raise InternalError(f"turn {turn.turn} of a bundle has no end")
    return end

"""Import of bundles: received completely, verified to the end, then stored in one transaction."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import uuid
from dataclasses import replace
from itertools import islice
from typing import IO, TYPE_CHECKING

from peripety import engine
from peripety.core.call_context import now_micros
from peripety.core.concurrency import shield_until_done
from peripety.core.validation import check_request_id
from peripety.errors import Finding, InternalError, PeripetyError, ResourceExhaustedError
from peripety.gateway.types.response import UsageTotal
from peripety.session import memory
from peripety.session.bundles.format import BundleError, BundleIssue, turn_from_json
from peripety.session.bundles.verifier import BundleVerification
from peripety.session.events import Committed
from peripety.session.store.turn_commit import SNAPSHOT_TURNS
from peripety.session.turn_transaction import with_seed
from peripety.session.types import CommittedTurn, NewSession, Session, SessionRequestKey
from peripety.session.validation import check_new_session
from peripety.session.visibility import Projector, TurnEventView, TurnView

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from peripety.engine import Program
    from peripety.session.bundles.format import BundledTurn, BundleHeader
    from peripety.session.bundles.verifier import SessionReplay
    from peripety.session.store.session_store import SessionStore
    from peripety.session.types import NarratorMemory
    from peripety.session.visibility import MessageLimit


MAX_BUNDLE_BYTES = 1 << 27
_IN_MEMORY_BYTES = 1 << 20
_TURNS_PER_BATCH = 32
_MAX_CONCURRENT_IMPORTS = 2
# No request of this server played the turn, so a request with its id counts as one with another digest.
_NO_DIGEST = ""


class SessionImporter:
    """Importer of bundles.

    Args:
        store: stores the sessions.
        message_limit: size limit of a turn.
        max_bytes: size limit of a bundle.
    """

    def __init__(
        self,
        store: SessionStore,
        message_limit: MessageLimit,
        max_bytes: int = MAX_BUNDLE_BYTES,
    ) -> None:
        self._store = store
        self._message_limit = message_limit
        self._max_bytes = max_bytes
        self._verification_slots = asyncio.Semaphore(_MAX_CONCURRENT_IMPORTS)

    async def import_bundle(self, request_id: str, chunks: AsyncIterator[bytes]) -> Session:
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
            request = SessionRequestKey(request_id, await self._spool(chunks, bundle))
            made = await self._store.find_by_request_id(request)
            if made is not None:
                return made
            draft = _ImportDraft(bundle, states, self._message_limit)
            async with self._verification_slots:
                while await shield_until_done(asyncio.to_thread(draft.verify_batch)):
                    pass
            session, document = draft.session()
            return await self._store.add(session, document, request, draft.turns(), draft.snapshots(session))

    async def _spool(self, chunks: AsyncIterator[bytes], bundle: IO[bytes]) -> str:
        """Write a bundle to a file and return its hash."""
        digest = hashlib.sha256()
        size = 0
        async for piece in chunks:
            size += len(piece)
            if size > self._max_bytes:
                raise ResourceExhaustedError(
                    f"chunk: bundle is larger than the limit of {self._max_bytes} bytes;"
                    " export fewer turns of it (last_turn)",
                    code="BUNDLE_TOO_LARGE",
                )
            digest.update(piece)
            bundle.write(piece)
        return digest.hexdigest()


class _ImportDraft:
    """The session built from the verified part of a bundle.

    Args:
        bundle: the bundle.
        states: an empty file for snapshots at regular turns.
        message_limit: size limit of a turn.
    """

    def __init__(self, bundle: IO[bytes], states: IO[bytes], message_limit: MessageLimit) -> None:
        bundle.seek(0)
        self._bundle = bundle
        self._states = states
        self._snapshot_index: list[tuple[int, int, tuple[NarratorMemory, ...]]] = []
        self._message_limit = message_limit
        self._verification = BundleVerification(bundle)
        self._verified = _to_committed_turns(turn for turn, _ in self._verification.turns())
        self._memories: tuple[NarratorMemory, ...] = ()
        self._usage = UsageTotal()
        self._last_sequence = 0

    def verify_batch(self) -> bool:
        """Verify the next turns; return True if there may be more.

        Raises:
            BundleError: the bundle has a defect.
        """
        count = 0
        for turn in islice(self._verified, _TURNS_PER_BATCH):
            self._require_valid()
            self._add_turn(turn)
            count += 1
        self._require_valid()
        if not count:
            self._check_settings()
        return count > 0

    def _require_valid(self) -> None:
        verdict = self._verification.result
        if not verdict.is_valid:
            raise BundleError(verdict.issues)

    def _add_turn(self, turn: CommittedTurn) -> None:
        _, replay = self._verified_parts()
        if not self._message_limit.fits(_unfiltered_view(turn, replay.program)):
            message = (
                "the turn does not fit into a message of this server; increase PERIPETY_MAX_MESSAGE_BYTES"
            )
            raise BundleError([BundleIssue(self._verification.line, Finding("TURN_INVALID", "", message))])
        self._memories = memory.apply_diff(self._memories, turn.memories)
        self._usage += _committed_event(turn).usage
        self._last_sequence = turn.last_sequence
        if turn.turn % SNAPSHOT_TURNS == 0:
            self._snapshot_index.append((turn.turn, len(replay.snapshot), self._memories))
            self._states.write(replay.snapshot)

    def _check_settings(self) -> None:
        """Raise an error if the seats or narrator options of the header are invalid."""
        header, replay = self._verified_parts()
        viewers = Projector(replay.program.spec)
        seats = () if header.table is None else header.table.seats
        try:
            check_new_session(
                NewSession(
                    str(uuid.uuid4()),
                    header.scenario_id,
                    table=header.table,
                    narrator=header.narrator,
                ),
            )
            for seat in seats:
                viewers.for_viewer(seat.entity_id)
        except PeripetyError as error:
            raise BundleError([BundleIssue(1, Finding("HEADER_INVALID", "", error.message))]) from None

    def _verified_parts(self) -> tuple[BundleHeader, SessionReplay]:
        header, replay = self._verification.header, self._verification.replay
        if header is None or replay is None:
            raise InternalError("a valid bundle has no header")
        return header, replay

    def session(self) -> tuple[Session, bytes]:
        """Return the session at its last turn and its specification, after the whole bundle was verified."""
        header, replay = self._verified_parts()
        seed, snapshot = replay.seed, replay.snapshot
        if header.next_seed is not None:
            seed, snapshot = header.next_seed, with_seed(snapshot, header.next_seed)
        now = now_micros()
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
        return replace(session, due=session.next_deadline(now)), replay.program.document

    def turns(self) -> Iterator[CommittedTurn]:
        """Yield all turns without validation: they are verified, and a transaction waits for them."""
        header, _ = self._verified_parts()
        self._bundle.seek(0)
        for _ in range(2 if header.certificate_hash is None else 3):
            self._bundle.readline()
        lines = islice(self._bundle, header.turns)
        return _to_committed_turns(turn_from_json(engine.loads(line)) for line in lines)

    def snapshots(self, session: Session) -> Iterator[Session]:
        """Yield the session at each snapshot turn."""
        self._states.seek(0)
        for turn, size, memories in self._snapshot_index:
            yield replace(session, turn=turn, snapshot=self._states.read(size), memories=memories)


def _to_committed_turns(turns: Iterable[BundledTurn]) -> Iterator[CommittedTurn]:
    """Yield the turns of a bundle as committed turns with new sequences."""
    sequence = 1
    memories: tuple[NarratorMemory, ...] = ()
    for number, turn in enumerate(turns, 1):
        remembering = memories if turn.memories is None else turn.memories
        committed = CommittedTurn(
            turn=number,
            request_id=turn.request_id,
            request_digest=_NO_DIGEST,
            pov=turn.pov,
            record=engine.canonicalize(turn.record),
            first_sequence=sequence,
            events=turn.events,
            memories=memory.diff_memories(memories, remembering),
        )
        yield committed
        sequence, memories = committed.last_sequence + 1, remembering


def _unfiltered_view(turn: CommittedTurn, program: Program) -> TurnView:
    """Return the unfiltered view of a turn."""
    events = enumerate(turn.events, turn.first_sequence)
    return TurnView(
        turn,
        tuple(TurnEventView("", turn.turn, sequence, event, program.spec) for sequence, event in events),
    )


def _committed_event(turn: CommittedTurn) -> Committed:
    end = turn.events[-1]
    if not isinstance(end, Committed):
        raise InternalError(f"turn {turn.turn} of a bundle has no end")
    return end

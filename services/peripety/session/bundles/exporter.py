"""Export of stored sessions as bundles, and replay of stored sessions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety import engine
from peripety.certification.types import certificate_hash
from peripety.engine.schema_validation import validate_against_schema
from peripety.errors import ConflictError, SpecError, field_error
from peripety.session import memory
from peripety.session.branches import state_at
from peripety.session.bundles.format import BundledTurn, BundleHeader, BundleWriter, schema_of
from peripety.session.bundles.verifier import ReplayedTurn, SessionReplay
from peripety.session.validation import check_session_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence

    from peripety.scenario.types import ScenarioSource
    from peripety.session.session_view import RulesetCache
    from peripety.session.store.session_store import SessionStore
    from peripety.session.types import CommittedTurn, NarratorMemory, Session


_TURNS_PER_PAGE = 16
_CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class ReplayCompleted:
    """Result of a replay: number of compared turns, number of mismatches, and engine core."""

    turns: int
    mismatches: int
    core: str = engine.BACKEND


class SessionExporter:
    """Exporter of stored sessions.

    Args:
        store: stores the sessions.
        rulesets: the programs of their scenarios.
        scenarios: source of their certificates.
    """

    def __init__(self, store: SessionStore, rulesets: RulesetCache, scenarios: ScenarioSource) -> None:
        self._store = store
        self._rulesets = rulesets
        self._scenarios = scenarios

    async def replay(
        self,
        session_id: str,
        first_turn: int = 0,
        last_turn: int = 0,
    ) -> AsyncGenerator[ReplayedTurn | ReplayCompleted, None]:
        """Replay a session from its start and compare each turn with its record.

        Args:
            session_id: the session.
            first_turn: the first turn to report; 0 for the first. Earlier turns are replayed without a
                report.
            last_turn: the last turn; 0 for the current last one.

        Yields:
            Each turn, and the result as the last item.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session does not exist.
            ConflictError: turns were rewound meanwhile.
        """
        session = await self._session(session_id)
        until = _resolve_last_turn(session, last_turn)
        if not 0 <= first_turn <= max(until, 1):
            raise field_error(".first_turn", f"must be from 0 to {until}")
        end = await self._last_turn(session, until)
        ruleset = await self._rulesets.get(session.spec_hash)
        replay = await asyncio.to_thread(SessionReplay, ruleset.program, session.first_seed)
        compared = mismatches = 0
        async for page in self._pages(session, until):
            for replayed in await asyncio.to_thread(_replay_page, replay, page):
                if replayed.turn >= first_turn:
                    if not replayed.matches and not mismatches:
                        await self._require_unchanged(session, end)
                    compared += 1
                    mismatches += not replayed.matches
                    yield replayed
        yield ReplayCompleted(compared, mismatches)

    async def export(self, session_id: str, last_turn: int = 0) -> AsyncGenerator[bytes, None]:
        """Export a session as a bundle, in chunks.

        Args:
            session_id: the session.
            last_turn: the last turn to export; 0 for the current last one.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session does not exist.
            ConflictError: turns were rewound meanwhile.
        """
        session = await self._session(session_id)
        until = _resolve_last_turn(session, last_turn)
        end = await self._last_turn(session, until)
        then = session if until == session.turn else await self._state_at(session_id, until)
        certificate = await self._scenarios.get_certificate_document(session.scenario_id, session.spec_hash)
        writer, pieces = BundleWriter(), _ChunkBuffer()
        pieces.add(writer.header(_header(then, certificate)))
        pieces.add(writer.document(await self._store.get_document(session.spec_hash)))
        if certificate is not None:
            pieces.add(writer.document(certificate))
        memories: tuple[NarratorMemory, ...] = ()
        async for page in self._pages(session, until):
            lines, memories = await asyncio.to_thread(_encode_turns, writer, page, memories)
            pieces.add(lines)
            for piece in pieces.complete_chunks():
                yield piece
        await self._require_unchanged(session, end)
        pieces.add(writer.end())
        for piece in pieces.remaining_chunks():
            yield piece

    async def _session(self, session_id: str) -> Session:
        check_session_id(session_id)
        return await self._store.get_session(session_id)

    async def _state_at(self, session_id: str, turn: int) -> Session:
        return await state_at(self._store, self._rulesets, session_id, turn)

    async def _pages(self, session: Session, until: int) -> AsyncIterator[list[CommittedTurn]]:
        turn = 0
        while turn < until:
            page = await self._store.list_turns(session.session_id, turn, min(_TURNS_PER_PAGE, until - turn))
            if not page:
                raise _rewound_error()
            turn = page[-1].turn
            yield page

    async def _last_turn(self, session: Session, until: int) -> CommittedTurn | None:
        """Return the last of the requested turns."""
        return await self._store.find_turn(session.session_id, until) if until else None

    async def _require_unchanged(self, session: Session, end: CommittedTurn | None) -> None:
        """Raise an error if turns were rewound since the last one was read.

        No sequence is used twice, so a turn with the same sequence is the same turn, after the same
        predecessors.
        """
        if end is None:
            return
        now = await self._store.find_turn(session.session_id, end.turn)
        if now is None or now.last_sequence != end.last_sequence:
            raise _rewound_error()


class _ChunkBuffer:
    """Buffer that splits lines into chunks of equal size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def add(self, lines: bytes) -> None:
        self._buffer += lines

    def complete_chunks(self) -> Iterator[bytes]:
        """Yield the complete chunks."""
        while len(self._buffer) >= _CHUNK_BYTES:
            yield bytes(self._buffer[:_CHUNK_BYTES])
            del self._buffer[:_CHUNK_BYTES]

    def remaining_chunks(self) -> Iterator[bytes]:
        """Yield the remaining bytes."""
        yield from self.complete_chunks()
        if self._buffer:
            yield bytes(self._buffer)


def _resolve_last_turn(session: Session, requested: int) -> int:
    if not 0 <= requested <= session.turn:
        raise field_error(".last_turn", f"must be from 0 to {session.turn}, the session's turn")
    return requested or session.turn


def _rewound_error() -> ConflictError:
    return ConflictError("session was rewound meanwhile; read it again and retry", code="STALE_TURN")


def _header(session: Session, certificate: bytes | None) -> BundleHeader:
    return BundleHeader(
        scenario_id=session.scenario_id,
        spec_hash=session.spec_hash,
        certificate_hash=None if certificate is None else certificate_hash(certificate),
        first_seed=session.first_seed,
        next_seed=session.seed if session.reseeded else None,
        turns=session.turn,
        chain_hash=session.chain_hash,
        table=session.table,
        narrator=session.narrator,
    )


def _encode_turns(
    writer: BundleWriter,
    turns: Sequence[CommittedTurn],
    memories: tuple[NarratorMemory, ...],
) -> tuple[bytes, tuple[NarratorMemory, ...]]:
    """Return the lines of turns, and the memories after them."""
    lines = bytearray()
    for turn in turns:
        remembering = memory.apply_diff(memories, turn.memories)
        lines += writer.turn(
            BundledTurn(
                record=engine.loads(turn.record),
                request_id=turn.request_id,
                pov=turn.pov,
                events=turn.events,
                memories=None if remembering == memories else remembering,
            ),
        )
        memories = remembering
    return bytes(lines), memories


def _replay_page(replay: SessionReplay, turns: Sequence[CommittedTurn]) -> list[ReplayedTurn]:
    return [replay.replay_next(_parse_record(turn), turn.events) for turn in turns]


def _parse_record(turn: CommittedTurn) -> dict[str, object] | None:
    """Return the record of a turn, or None if the stored record is invalid."""
    try:
        record = engine.parse_canonical(turn.record)
    except SpecError:
        return None
    return None if validate_against_schema(schema_of("record"), record) else record

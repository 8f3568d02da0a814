"""Conversion of imported bundles and of replay events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.session.v1 import session_pb2 as pb
from peripety.requests import check_request_id, refuse
from peripety.sessions.bundles.exporting import ReplayCompleted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.sessions.bundles.replaying import ReplayedTurn

__all__ = ["pieces_of", "replayed"]

_MOST_CHUNK_BYTES = 1 << 20


async def pieces_of(requests: AsyncIterator[pb.ImportSessionRequest]) -> tuple[str, AsyncIterator[bytes]]:
    """Return the request id of an import and the chunks of its bundle.

    Raises:
        InvalidArgumentError: the first message is missing, or its request id is invalid.
    """
    first = await anext(requests, None)
    request_id = "" if first is None else first.request_id
    check_request_id(request_id)

    async def pieces() -> AsyncIterator[bytes]:
        request = first
        while request is not None:
            if len(request.chunk) > _MOST_CHUNK_BYTES:
                raise refuse(".chunk", f"has {len(request.chunk)} bytes; the limit is {_MOST_CHUNK_BYTES}")
            yield request.chunk
            request = await anext(requests, None)

    return request_id, pieces()


def replayed(sequence: int, turn: ReplayedTurn | ReplayCompleted) -> pb.ReplaySessionResponse:
    """Convert a replayed turn or the result of a replay to a message."""
    if isinstance(turn, ReplayCompleted):
        completed = pb.ReplaySessionResponse.Completed(
            turns=turn.turns, mismatches=turn.mismatches, core=turn.core
        )
        return pb.ReplaySessionResponse(sequence=sequence, completed=completed)
    return pb.ReplaySessionResponse(
        sequence=sequence,
        turn_replayed=pb.ReplaySessionResponse.TurnReplayed(
            turn=turn.turn,
            matches=turn.matches,
            recorded_state_hash=turn.recorded_state_hash,
            computed_state_hash=turn.computed_state_hash,
            recorded_chain_hash=turn.recorded_chain_hash,
            computed_chain_hash=turn.computed_chain_hash,
        ),
    )

"""`peripety sessions export`, `import` and `replay`: bundles of stored sessions."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import IO, TYPE_CHECKING
from uuid import uuid4

from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub
from peripety.cli.documents import opened, size_of
from peripety.cli.embedded import services_at
from peripety.cli.failure import FOUND_WRONG
from peripety.cli.jsonify import jsonify
from peripety.cli.output import errors, progress, require_place, results, sink, write_json
from peripety.cli.text import in_one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from peripety.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub

__all__ = ["export", "import_", "replay", "sessions_at"]

_CHUNK_BYTES = 256 * 1024


def export(session_id: str, out: Path | None, last_turn: int, server: str | None) -> None:
    """Export a session as a bundle, to a file or to standard output."""
    require_place(out)
    asyncio.run(_export(pb.ExportSessionRequest(session_id=session_id, last_turn=last_turn), out, server))


def import_(source: str, server: str | None, *, as_json: bool) -> None:
    """Verify a bundle, store its session, and print the new id."""
    with opened(source) as file, progress("sending", size_of(source)) as advance:
        session = asyncio.run(_import(_requests(file, advance), server))
    if as_json:
        write_json(jsonify(session))
    else:
        results().print(f"{session.session_id}: {in_one_line(session.scenario_id)}, turn {session.turn}")


def replay(session_id: str, first_turn: int, last_turn: int, server: str | None, *, as_json: bool) -> int:
    """Replay a stored session, print the turns that differ, and return the exit code."""
    request = pb.ReplaySessionRequest(session_id=session_id, first_turn=first_turn, last_turn=last_turn)
    completed = asyncio.run(_replay(request, server, _tell_json if as_json else _tell))
    if not as_json:
        right = not completed.mismatches
        results().print(
            f"{completed.turns:,} turns replayed on the {completed.core} core,"
            f" {completed.mismatches:,} of them differ",
            style="green" if right else "red",
        )
    return FOUND_WRONG if completed.mismatches else 0


@asynccontextmanager
async def sessions_at(server: str | None) -> AsyncIterator[SessionServiceAsyncStub]:
    """Yield a session stub: of a server, or of an embedded service on the configured database."""
    async with services_at(server, "gateway", "scenarios", "sessions") as channel:
        yield SessionServiceStub(channel)


async def _export(request: pb.ExportSessionRequest, out: Path | None, server: str | None) -> None:
    async with sessions_at(server) as stub:
        responses = aiter(stub.ExportSession(request))
        # Do not create a file for a session that does not exist.
        first = await anext(responses)
        with sink(out) as file:
            file.write(first.chunk)
            async for response in responses:
                file.write(response.chunk)


async def _import(requests: AsyncIterator[pb.ImportSessionRequest], server: str | None) -> pb.Session:
    async with sessions_at(server) as stub:
        return (await stub.ImportSession(requests)).session


async def _requests(
    file: IO[bytes], advance: Callable[[float], None]
) -> AsyncIterator[pb.ImportSessionRequest]:
    yield pb.ImportSessionRequest(request_id=str(uuid4()))
    while chunk := file.read(_CHUNK_BYTES):
        advance(len(chunk))
        yield pb.ImportSessionRequest(chunk=chunk)


async def _replay(
    request: pb.ReplaySessionRequest,
    server: str | None,
    tell: Callable[[pb.ReplaySessionResponse], None],
) -> pb.ReplaySessionResponse.Completed:
    completed = pb.ReplaySessionResponse.Completed()
    async with sessions_at(server) as stub:
        turn = (await stub.GetSession(pb.GetSessionRequest(session_id=request.session_id))).session.turn
        with progress("replaying", request.last_turn or turn) as advance:
            async for response in stub.ReplaySession(request):
                tell(response)
                advance(1)
                if response.HasField("completed"):
                    completed = response.completed
    return completed


def _tell_json(response: pb.ReplaySessionResponse) -> None:
    write_json(jsonify(response))


def _tell(response: pb.ReplaySessionResponse) -> None:
    turn = response.turn_replayed
    if response.HasField("turn_replayed") and not turn.matches:
        computed = turn.computed_chain_hash or "cannot be replayed"
        errors().print(f"turn {turn.turn} differs: chain {turn.recorded_chain_hash}, computed {computed}")

"""Watch, forecast, export, import, replay.

`peripety sessions export`, `import` and `replay`: bundles of stored sessions.

`peripety sessions odds` and `watch`: outcome forecasts and live events of a session.

`peripety replay`: verify a session bundle, without a server.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import groupby
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

from peripety import engine
from peripety.api.common.v1 import engine_pb2
from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub
from peripety.cli.embedded_services import services_at
from peripety.cli.input_documents import input_size, open_input
from peripety.cli.output import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    error_console,
    finding_fields,
    finding_lines,
    one_line,
    open_output,
    printable,
    progress_bar,
    require_writable,
    result_console,
    write_json,
)
from peripety.cli.proto_json import enum_word, to_json
from peripety.cli.render.console import ConsoleView
from peripety.session.bundles.format import header_to_json
from peripety.session.bundles.verifier import BundleVerification

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from peripety.api.common.v1 import common_pb2
    from peripety.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub
    from peripety.session.bundles.verifier import VerificationResult


_CHUNK_BYTES = 256 * 1024


def export_session(session_id: str, out: Path | None, last_turn: int, server: str | None) -> None:
    """Export a session as a bundle, to a file or to standard output."""
    require_writable(out)
    asyncio.run(_export(pb.ExportSessionRequest(session_id=session_id, last_turn=last_turn), out, server))


def import_session(source: str, server: str | None, *, as_json: bool) -> None:
    """Verify a bundle, store its session, and print the new id."""
    with open_input(source) as file, progress_bar("sending", input_size(source)) as advance:
        session = asyncio.run(_import(_import_requests(file, advance), server))
    if as_json:
        write_json(to_json(session))
    else:
        result_console().print(f"{session.session_id}: {one_line(session.scenario_id)}, turn {session.turn}")


def replay_stored(
    session_id: str,
    first_turn: int,
    last_turn: int,
    server: str | None,
    *,
    as_json: bool,
) -> int:
    """Replay a stored session, print the turns that differ, and return the exit code."""
    request = pb.ReplaySessionRequest(session_id=session_id, first_turn=first_turn, last_turn=last_turn)
    completed = asyncio.run(_replay(request, server, _print_turn_json if as_json else _print_turn))
    if not as_json:
        right = not completed.mismatches
        result_console().print(
            f"{completed.turns:,} turns replayed on the {completed.core} core,"
            f" {completed.mismatches:,} of them differ",
            style="green" if right else "red",
        )
    return EXIT_FAILED if completed.mismatches else 0


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
        with open_output(out) as file:
            file.write(first.chunk)
            async for response in responses:
                file.write(response.chunk)


async def _import(requests: AsyncIterator[pb.ImportSessionRequest], server: str | None) -> pb.Session:
    async with sessions_at(server) as stub:
        return (await stub.ImportSession(requests)).session


async def _import_requests(
    file: IO[bytes],
    advance: Callable[[float], None],
) -> AsyncIterator[pb.ImportSessionRequest]:
    yield pb.ImportSessionRequest(request_id=str(uuid4()))
    while chunk := file.read(_CHUNK_BYTES):
        advance(len(chunk))
        yield pb.ImportSessionRequest(chunk=chunk)


async def _replay(
    request: pb.ReplaySessionRequest,
    server: str | None,
    on_turn: Callable[[pb.ReplaySessionResponse], None],
) -> pb.ReplaySessionResponse.Completed:
    completed = pb.ReplaySessionResponse.Completed()
    async with sessions_at(server) as stub:
        turn = (await stub.GetSession(pb.GetSessionRequest(session_id=request.session_id))).session.turn
        with progress_bar("replaying", request.last_turn or turn) as advance:
            async for response in stub.ReplaySession(request):
                on_turn(response)
                advance(1)
                if response.HasField("completed"):
                    completed = response.completed
    return completed


def _print_turn_json(response: pb.ReplaySessionResponse) -> None:
    write_json(to_json(response))


def _print_turn(response: pb.ReplaySessionResponse) -> None:
    turn = response.turn_replayed
    if response.HasField("turn_replayed") and not turn.matches:
        computed = turn.computed_chain_hash or "cannot be replayed"
        error_console().print(
            f"turn {turn.turn} differs: chain {turn.recorded_chain_hash}, computed {computed}",
        )


_KIND = pb.OutcomeProbability.DESCRIPTOR.fields_by_name["kind"]


def odds_request(session_id: str, persona: str, runs: int, horizon: int) -> pb.ForecastOutcomesRequest:
    """Return the request for the odds."""
    number = engine_pb2.Persona.Value(f"PERSONA_{persona.upper()}")
    return pb.ForecastOutcomesRequest(session_id=session_id, persona=number, runs=runs, horizon=horizon)


def watch_request(session_id: str, pov: str, after: int, delay: int) -> pb.WatchSessionRequest:
    """Return the request to watch a session."""
    return pb.WatchSessionRequest(
        session_id=session_id,
        pov_entity_id=pov,
        after_sequence=after,
        delay_turns=delay,
    )


def print_odds(
    request: pb.ForecastOutcomesRequest,
    actions: Sequence[str],
    server: str | None,
    *,
    as_json: bool,
) -> None:
    """Simulate futures of a session, and print the probability of each outcome.

    Args:
        request: the futures.
        actions: first actions of each future, by the names of actions without parameters.
        server: `host:port` of a server; None runs them in this process.
        as_json: True to print the response as JSON.
    """
    request.actions.extend(engine_pb2.ActionCall(action_id=action) for action in actions)
    told = asyncio.run(_fetch_odds(request, server))
    if as_json:
        write_json(to_json(told))
        return
    result_console().print(f"{told.runs:,} futures from turn {told.turn}:")
    for end in told.outcomes:
        result_console().print(
            f"  {enum_word(_KIND, end.kind)} {printable(end.condition)}: {_format_rate(end.rate)}",
        )
    result_console().print(f"  survived: {_format_rate(told.survived)}")


def watch_session(request: pb.WatchSessionRequest, server: str | None, *, as_json: bool) -> None:
    """Print the recorded events of a session, then new events until it ends."""
    asyncio.run(_watch(request, server, as_json=as_json))


async def _fetch_odds(request: pb.ForecastOutcomesRequest, server: str | None) -> pb.ForecastOutcomesResponse:
    told = pb.ForecastOutcomesResponse()
    async with sessions_at(server) as stub:
        with progress_bar("simulating futures", request.runs or None) as advance:
            async for response in stub.ForecastOutcomes(request):
                advance(response.runs - told.runs)
                told = response
    return told


async def _watch(request: pb.WatchSessionRequest, server: str | None, *, as_json: bool) -> None:
    story = ConsoleView(result_console())
    async with sessions_at(server) as stub:
        async for response in stub.WatchSession(request):
            kind = response.WhichOneof("event")
            if as_json:
                write_json(to_json(response))
            elif kind == "turn_event":
                story.turn(response.turn_event)
            elif kind == "seat_acted":
                result_console().print(_format_seat_acted(response.seat_acted))
            elif kind == "rewound":
                result_console().print(f"\nRewound to turn {response.rewound.turn}")
            elif kind == "closed":
                result_console().print(f"  {response.closed.reason}")


def _format_seat_acted(acted: pb.WatchSessionResponse.SeatActed) -> str:
    waiting = ", ".join(map(printable, acted.waiting_seat_ids)) or "nobody"
    return f"  {printable(acted.seat_id)} has acted; waiting for {waiting}"


def _format_rate(rate: common_pb2.Rate) -> str:
    return f"{rate.value:.1%} (95 % interval {rate.low:.1%} to {rate.high:.1%})"


_SHOWN_HASH = 12


def replay_bundle(source: str, *, as_json: bool) -> int:
    """Replay the session of a bundle, print the result, and return the exit code."""
    try:
        with open_input(source) as file:
            verdict = _verify_bundle(file, input_size(source))
    except KeyboardInterrupt:
        error_console().print("interrupted")
        return EXIT_INTERRUPTED
    if as_json:
        write_json(_verdict_fields(verdict))
    else:
        _print_verdict(verdict)
    return 0 if verdict.is_valid else EXIT_FAILED


def _verify_bundle(file: IO[bytes], size: int | None) -> VerificationResult:
    verification = BundleVerification(file)
    shown = 0
    with progress_bar("replaying", size) as advance:
        for _ in verification.turns():
            if size is not None:
                advance(file.tell() - shown)
                shown = file.tell()
    return verification.result


def _print_verdict(verdict: VerificationResult) -> None:
    out = result_console()
    out.print(
        "the bundle is right" if verdict.is_valid else "the bundle is wrong",
        style=_verdict_style(verdict),
    )
    header = verdict.header
    if header is not None:
        certificate = header.certificate_hash
        out.print(
            f"  {one_line(header.scenario_id)}, specification {header.spec_hash[:_SHOWN_HASH]},"
            f" {'no certificate' if certificate is None else f'certificate {certificate[:_SHOWN_HASH]}'},"
            f" written by {one_line(header.exported_by)}",
        )
        out.print(
            f"  {verdict.turns:,} of {header.turns:,} turns replayed on the {engine.BACKEND} core,"
            f" {verdict.mismatches:,} of them differ; chain {header.chain_hash[:_SHOWN_HASH]}",
        )
    for line, defects in groupby(verdict.issues, key=attrgetter("line")):
        for told in finding_lines([defect.finding for defect in defects], indent=f"  line {line}: "):
            out.print(told)


def _verdict_style(verdict: VerificationResult) -> str:
    return "green" if verdict.is_valid else "red"


def _verdict_fields(verdict: VerificationResult) -> dict[str, Any]:
    return {
        "right": verdict.is_valid,
        "core": engine.BACKEND,
        "turns": verdict.turns,
        "mismatches": verdict.mismatches,
        "header": None if verdict.header is None else header_to_json(verdict.header),
        "findings": [{"line": d.line, **finding_fields(d.finding)} for d in verdict.issues],
    }

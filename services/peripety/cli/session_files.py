"""`peripety sessions export`, `import`, `replay`, `odds` and `watch`, and `peripety replay`.

`peripety replay` verifies a bundle without a server.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from peripety import engine
from peripety.api.common.v1 import engine_pb2
from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub
from peripety.cli.embedded_services import services_at
from peripety.cli.game import resolve_session_id
from peripety.cli.input_documents import input_size, open_input
from peripety.cli.options import Persona, Player, Pov, Server, SessionId
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
from peripety.cli.render.console import ConsoleView
from peripety.rpc.proto_json import enum_word, to_json
from peripety.session.bundles.format import header_to_json
from peripety.session.bundles.verifier import BundleVerification

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.api.common.v1 import common_pb2
    from peripety.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub
    from peripety.session.bundles.verifier import VerificationResult


commands = typer.Typer()


_CHUNK_BYTES = 256 * 1024


@asynccontextmanager
async def sessions_at(server: str | None) -> AsyncIterator[SessionServiceAsyncStub]:
    """Yield a session stub: of a server, or of an embedded service on the configured database."""
    async with services_at(server, "gateway", "scenarios", "sessions") as channel:
        yield SessionServiceStub(channel)


async def _export(request: pb.ExportSessionRequest, out: Path | None, server: str | None) -> None:
    async with sessions_at(server) as stub:
        request.session_id = await resolve_session_id(stub, request.session_id)
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
        request.session_id = await resolve_session_id(stub, request.session_id)
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


async def _fetch_odds(request: pb.ForecastOutcomesRequest, server: str | None) -> pb.ForecastOutcomesResponse:
    told = pb.ForecastOutcomesResponse()
    async with sessions_at(server) as stub:
        request.session_id = await resolve_session_id(stub, request.session_id)
        with progress_bar("simulating futures", request.runs or None) as advance:
            async for response in stub.ForecastOutcomes(request):
                advance(response.runs - told.runs)
                told = response
    return told


async def _watch(request: pb.WatchSessionRequest, server: str | None, *, as_json: bool) -> None:
    story = ConsoleView(result_console())
    async with sessions_at(server) as stub:
        request.session_id = await resolve_session_id(stub, request.session_id)
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
    waiting = ", ".join(map(printable, acted.waiting_seat_ids)) or "no seat"
    return f"  {printable(acted.seat_id)} has acted; waiting for {waiting}"


def _format_rate(rate: common_pb2.Rate) -> str:
    return f"{rate.value:.1%} (95% interval {rate.low:.1%} to {rate.high:.1%})"


_SHOWN_HASH = 12


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
        "the bundle is valid" if verdict.is_valid else "the bundle is invalid",
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


@commands.command("replay")
def replay_bundle(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Session bundle; use - for standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
) -> None:
    """Replay a session from its bundle and verify it.

    Needs only the file, which `peripety sessions export` writes. Exit code 0 if every turn matches, 1 if a
    turn differs, 2 if the file cannot be read. A bundle contains the whole state, including what no player
    may see.
    """
    try:
        with open_input(file) as stream:
            verdict = _verify_bundle(stream, input_size(file))
    except KeyboardInterrupt:
        error_console().print("interrupted")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        write_json(_verdict_fields(verdict))
    else:
        _print_verdict(verdict)
    raise typer.Exit(0 if verdict.is_valid else EXIT_FAILED)


stored = typer.Typer()
"""Commands about one stored session, which `peripety sessions` includes."""


@stored.command()
def odds(
    session_id: SessionId,
    runs: Annotated[int, typer.Option(min=1, max=100_000, help="Number of futures to simulate.")] = 1_000,
    horizon: Annotated[
        int,
        typer.Option(min=0, max=1_000, help="Turns of a future; 0 for all turns that the scenario has left."),
    ] = 0,
    persona: Player = Persona.RANDOM,
    do: Annotated[
        list[str] | None,
        typer.Option(metavar="ACTION", help="First action, without parameters; may be repeated."),
    ] = None,
    pov: Pov = "",
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the odds as one line of JSON.")] = False,
) -> None:
    """Forecast the outcomes of a session.

    Simulates thousands of futures from the current turn and prints the probability of each loss and win. The
    futures start from every hidden truth that fits what the point of view has seen, so they do not give the
    real one away. Other hidden state is used as it is.
    """
    number = engine_pb2.Persona.Value(f"PERSONA_{persona.value.upper()}")
    request = pb.ForecastOutcomesRequest(
        session_id=session_id,
        persona=number,
        runs=runs,
        horizon=horizon,
        pov_entity_id=pov,
    )
    request.actions.extend(engine_pb2.ActionCall(action_id=action) for action in do or ())
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


@stored.command()
def watch(
    session_id: SessionId,
    pov: Pov = "",
    after: Annotated[int, typer.Option(min=0, help="Show only events after this sequence number.")] = 0,
    delay: Annotated[int, typer.Option(min=0, help="Number of turns by which to delay the events.")] = 0,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Follow a session as one entity sees it.

    Starts at the first event and ends with the session.
    """
    request = pb.WatchSessionRequest(
        session_id=session_id,
        pov_entity_id=pov,
        after_sequence=after,
        delay_turns=delay,
    )
    asyncio.run(_watch(request, server, as_json=as_json))


@stored.command()
def export(
    session_id: SessionId,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the bundle to this file. [default: standard output]",
        ),
    ] = None,
    last_turn: Annotated[int, typer.Option(min=0, help="Last turn to export; 0 for all turns.")] = 0,
    server: Server = None,
) -> None:
    """Export a session as a bundle.

    `peripety replay` verifies the bundle, and any server imports it. It contains the whole state, including
    what no player may see: hidden state, every point of view, memories.
    """
    require_writable(out)
    asyncio.run(_export(pb.ExportSessionRequest(session_id=session_id, last_turn=last_turn), out, server))


@stored.command("import")
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Session bundle; use - for standard input.")],
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the session as a line of JSON.")] = False,
) -> None:
    """Verify a bundle and store its session.

    The session gets a new id. A bundle that fails the verification is not stored.
    """
    with open_input(file) as stream, progress_bar("sending", input_size(file)) as advance:
        session = asyncio.run(_import(_import_requests(stream, advance), server))
    if as_json:
        write_json(to_json(session))
    else:
        result_console().print(f"{session.session_id}: {one_line(session.scenario_id)}, turn {session.turn}")


@stored.command()
def replay(
    session_id: SessionId,
    first_turn: Annotated[
        int,
        typer.Option(min=0, help="First turn to compare; 0 for the first turn of the session."),
    ] = 0,
    last_turn: Annotated[
        int,
        typer.Option(min=0, help="Last turn to compare; 0 for the last turn of the session."),
    ] = 0,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each turn as a line of JSON.")] = False,
) -> None:
    """Replay a stored session and verify every turn.

    Exit code 0 if every turn matches the record, 1 otherwise.
    """
    request = pb.ReplaySessionRequest(session_id=session_id, first_turn=first_turn, last_turn=last_turn)
    completed = asyncio.run(_replay(request, server, _print_turn_json if as_json else _print_turn))
    if not as_json:
        right = not completed.mismatches
        result_console().print(
            f"{completed.turns:,} turns replayed on the {completed.core} core,"
            f" {completed.mismatches:,} of them differ",
            style="green" if right else "red",
        )
    raise typer.Exit(EXIT_FAILED if completed.mismatches else 0)

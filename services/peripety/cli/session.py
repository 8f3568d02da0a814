"""`peripety sessions`: the command group; list, show, fork, rewind, compare and delete."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, TypeVar
from uuid import uuid4

import typer

from peripety.api.scenario.v1 import scenario_pb2
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub
from peripety.cli.embedded_services import services_at
from peripety.cli.game import resolve_session_id, short_id
from peripety.cli.options import MAX_SEED, Pov, Server, SessionId
from peripety.cli.output import (
    EXIT_FAILED,
    one_line,
    person_console,
    result_console,
    start_table,
    table_console,
    write_json,
)
from peripety.cli.render.console import format_answer, format_status, format_value
from peripety.cli.session_files import sessions_at, stored
from peripety.rpc.proto_json import to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from peripety.api.common.v1 import engine_pb2


commands = typer.Typer(
    name="sessions",
    help="List, show, fork, watch and verify sessions.",
    no_args_is_help=True,
)


T = TypeVar("T")

_MAX_NAMES = 1_000
_SHOWN_NAME = 48


async def _fetch_sessions(
    count: int,
    scenario_id: str,
    server: str | None,
) -> tuple[list[pb.SessionSummary], dict[str, str]]:
    """Return sessions, and the names of the stored scenarios by their ids."""
    async with services_at(server, "gateway", "scenarios", "sessions") as channel:
        request = pb.ListSessionsRequest(scenario_id=scenario_id, page_size=count)
        sessions = (await SessionServiceStub(channel).ListSessions(request)).sessions
        scenarios = await ScenarioServiceStub(channel).ListScenarios(
            scenario_pb2.ListScenariosRequest(page_size=_MAX_NAMES)
        )
        return list(sessions), {one.scenario_id: one.name for one in scenarios.scenarios}


async def _fetch_session(session_id: str, pov: str, server: str | None) -> tuple[pb.Session, list[pb.Turn]]:
    async with sessions_at(server) as stub:
        session_id = await resolve_session_id(stub, session_id)
        named = pb.GetSessionRequest(session_id=session_id, pov_entity_id=pov)
        session = (await stub.GetSession(named)).session

        async def page(token: str) -> tuple[Iterable[pb.Turn], str]:
            request = pb.ListTurnsRequest(session_id=session_id, pov_entity_id=pov, page_token=token)
            answer = await stub.ListTurns(request)
            return answer.turns, answer.next_page_token

        return session, await _all_pages(page)


async def _fork(request: pb.ForkSessionRequest, server: str | None) -> pb.Session:
    async with sessions_at(server) as stub:
        request.session_id = await resolve_session_id(stub, request.session_id)
        return (await stub.ForkSession(request)).session


async def _rewind(session_id: str, turn: int, server: str | None) -> pb.Session:
    async with sessions_at(server) as stub:
        session_id = await resolve_session_id(stub, session_id)
        now = (await stub.GetSession(pb.GetSessionRequest(session_id=session_id))).session
        request = pb.RewindSessionRequest(
            request_id=str(uuid4()),
            session_id=session_id,
            turn=turn,
            expected_turn=now.turn,
        )
        return (await stub.RewindSession(request)).session


async def _fetch_comparison(
    session_id: str,
    other_id: str,
    pov: str,
    server: str | None,
) -> pb.CompareBranchesResponse:
    """Return all pages of a comparison as one response."""
    async with sessions_at(server) as stub:
        session_id, other_id = [await resolve_session_id(stub, one) for one in (session_id, other_id)]
        first = await stub.CompareBranches(_fetch_comparison_page(session_id, other_id, pov, ""))

        async def page(token: str) -> tuple[Iterable[pb.BranchTurn], str]:
            answer = await stub.CompareBranches(_fetch_comparison_page(session_id, other_id, pov, token))
            return answer.turns, answer.next_page_token

        if first.next_page_token:
            first.turns.extend(await _all_pages(page, first.next_page_token))
            first.ClearField("next_page_token")
        return first


def _fetch_comparison_page(session_id: str, other_id: str, pov: str, token: str) -> pb.CompareBranchesRequest:
    return pb.CompareBranchesRequest(
        session_id=session_id,
        other_session_id=other_id,
        pov_entity_id=pov,
        page_token=token,
    )


async def _ask(session_id: str, question: str, pov: str, server: str | None) -> pb.AskSessionResponse:
    async with sessions_at(server) as stub:
        session_id = await resolve_session_id(stub, session_id)
        return await stub.AskSession(
            pb.AskSessionRequest(session_id=session_id, question=question, pov_entity_id=pov),
        )


async def _delete(session_id: str, server: str | None) -> str:
    """Delete a session and return its id."""
    async with sessions_at(server) as stub:
        session_id = await resolve_session_id(stub, session_id)
        await stub.DeleteSession(pb.DeleteSessionRequest(request_id=str(uuid4()), session_id=session_id))
        return session_id


async def _all_pages(page: Callable[[str], Awaitable[tuple[Iterable[T], str]]], token: str = "") -> list[T]:
    """Return the items of all pages, from a page token on."""
    items, token = await page(token)
    found = list(items)
    while token:
        items, token = await page(token)
        found.extend(items)
    return found


_COLUMNS = ("turn", "actions", "event", "status", "narration")


def _turn_row(turn: pb.Turn) -> tuple[str, ...]:
    """Return a turn as a table row."""
    return (
        str(turn.turn),
        one_line(", ".join(call.action_id for call in turn.actions) or turn.input),
        one_line(turn.event_id),
        _format_status(turn.status),
        format_value(one_line(turn.narrative).encode()),
    )


def _summarize_turn(turn: pb.Turn) -> str:
    return "  ".join(filter(None, _turn_row(turn)[1:]))


def _format_status(status: engine_pb2.RunStatus) -> str:
    return one_line(format_status(status))


def _print_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    table = start_table(columns, {"turn"})
    for row in rows:
        table.add_row(*row)
    table_console().print(table)


@commands.command("list")
def list_(
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    scenario: Annotated[
        str, typer.Option(metavar="ID", help="Show only sessions of this scenario. [default: all sessions]")
    ] = "",
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each entry as a line of JSON.")] = False,
) -> None:
    """List sessions, newest first.

    The start of an id, or latest for the session that was played last, is enough for all commands.
    """
    found, names = asyncio.run(_fetch_sessions(count, scenario, server))
    if as_json:
        for one in found:
            write_json(to_json(one))
        return
    rows = (
        (
            short_id(one.session_id),
            one_line(names.get(one.scenario_id) or one.scenario_id)[:_SHOWN_NAME],
            str(one.turn),
            _format_status(one.status),
            one.update_time.ToDatetime().isoformat(" ", "minutes"),
            short_id(one.parent_session_id),
        )
        for one in found
    )
    if found:
        _print_table(("session", "name", "turn", "status", "played", "forked from"), rows)
        person_console().print("Continue one with: peripety play --session ID", style="dim")


@commands.command()
def show(
    session_id: SessionId,
    pov: Pov = "",
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the session as a line of JSON.")] = False,
) -> None:
    """Show a session as one entity sees it.

    Prints its status, its state and a summary of its turns.
    """
    session, turns = asyncio.run(_fetch_session(session_id, pov, server))
    if as_json:
        write_json(to_json(session))
        return
    out = result_console()
    out.print(f"Session {session.session_id}, seed {session.seed}, turn {session.turn}", style="bold")
    out.print(f"  {_format_status(session.status)}")
    out.print(f"  scenario {one_line(session.scenario_id)}, version {session.spec_hash}")
    if session.parent_session_id:
        out.print(f"  forked from {session.parent_session_id} after turn {session.parent_turn}")
    out.print(f"  chain {session.chain_hash}")
    for name, value in json.loads(session.state).items():
        out.print(f"  {one_line(name)}: {format_value(json.dumps(value, ensure_ascii=False).encode())}")
    if turns:
        _print_table(_COLUMNS, map(_turn_row, turns))


@commands.command()
def fork(
    session_id: SessionId,
    turn: Annotated[
        int | None,
        typer.Option(min=0, help="Turn after which the fork begins. [default: the last]"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MAX_SEED,
            help="Seed of the random numbers after that turn. [default: unchanged]",
        ),
    ] = None,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the fork as a line of JSON.")] = False,
) -> None:
    """Fork a session: the copy shares its first turns.

    Afterwards both sessions are independent.
    """
    request = pb.ForkSessionRequest(request_id=str(uuid4()), session_id=session_id, turn=turn, seed=seed)
    session = asyncio.run(_fork(request, server))
    if as_json:
        write_json(to_json(session))
    else:
        result_console().print(
            f"{session.session_id}: a fork of {session.parent_session_id} after turn {session.turn},"
            f" seed {session.seed}",
        )


@commands.command()
def rewind(
    session_id: SessionId,
    turn: Annotated[int, typer.Argument(metavar="TURN", min=0, help="Turn to rewind to; 0 is the start.")],
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the session as a line of JSON.")] = False,
) -> None:
    """Remove the last turns of a session.

    The turns cannot be restored: fork the session first to preserve them.
    """
    session = asyncio.run(_rewind(session_id, turn, server))
    if as_json:
        write_json(to_json(session))
    else:
        result_console().print(
            f"{session.session_id}: at turn {session.turn} again, {_format_status(session.status)}",
        )


@commands.command()
def compare(
    session_id: SessionId,
    other_id: Annotated[str, typer.Argument(metavar="OTHER", help="Id of the session to compare with.")],
    pov: Pov = "",
    server: Server = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the comparison as one line of JSON."),
    ] = False,
) -> None:
    """Compare two sessions of a scenario.

    Shows the last common turn, the differences of their states, and the turns of each since then.
    """
    compared = asyncio.run(_fetch_comparison(session_id, other_id, pov, server))
    if as_json:
        write_json(to_json(compared))
        return
    out = result_console()
    out.print(f"in common: {compared.common_turn} turn{'' if compared.common_turn == 1 else 's'}")
    for one in compared.differences:
        here, there = (
            format_value(getattr(one, side)) if one.HasField(side) else "(nothing)"
            for side in ("here", "there")
        )
        out.print(f"  {one_line(one.path)}: {here} | {there}")
    for pair in compared.turns:
        out.print(f"turn {pair.turn}", style="bold")
        if pair.HasField("here"):
            out.print(f"  {session_id}  {_summarize_turn(pair.here)}")
        if pair.HasField("there"):
            out.print(f"  {other_id}  {_summarize_turn(pair.there)}")


@commands.command()
def ask(
    session_id: SessionId,
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION",
            help="Question in English, or in the language of the scenario: Spanish, German or Chinese.",
        ),
    ],
    pov: Pov = "",
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as a line of JSON.")] = False,
) -> None:
    """Answer a question about a session from its record.

    This uses no model and costs no turn. The answer names the turns that it rests on. Exit code 1 if the
    record does not answer the question.
    """
    answer = asyncio.run(_ask(session_id, question, pov, server))
    if as_json:
        write_json(to_json(answer))
    else:
        result_console().print(format_answer(answer))
    raise typer.Exit(0 if answer.found else EXIT_FAILED)


@commands.command()
def delete(session_id: SessionId, server: Server = None) -> None:
    """Delete a session. Its forks remain."""
    result_console().print(f"{one_line(asyncio.run(_delete(session_id, server)))} is deleted")


commands.add_typer(stored)

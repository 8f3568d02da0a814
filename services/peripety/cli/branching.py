"""`peripety sessions list`, `show`, `fork`, `rewind`, `compare` and `delete`."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from rich.table import Table

from peripety.api.session.v1 import session_pb2 as pb
from peripety.cli.bundling import sessions_at
from peripety.cli.jsonify import jsonify
from peripety.cli.output import results, tables, write_json
from peripety.cli.story import shown, status_line
from peripety.cli.text import in_one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from peripety.api.common.v1 import engine_pb2

T = TypeVar("T")

__all__ = ["compare", "delete", "fork", "list_sessions", "rewind", "show"]


def list_sessions(count: int, scenario_id: str, server: str | None, *, as_json: bool) -> None:
    """Print stored sessions, newest first."""
    found = asyncio.run(_listed(count, scenario_id, server))
    if as_json:
        for one in found:
            write_json(jsonify(one))
    elif found:
        rows = (
            (
                one.session_id,
                one.create_time.ToDatetime().isoformat(" ", "seconds"),
                str(one.turn),
                _status(one.status),
                one.scenario_id,
                one.parent_session_id,
            )
            for one in found
        )
        _print_table(("session", "started", "turn", "status", "scenario", "forked from"), rows)


def show(session_id: str, pov: str, server: str | None, *, as_json: bool) -> None:
    """Print a session as an entity sees it, with a summary of its turns."""
    session, turns = asyncio.run(_read(session_id, pov, server))
    if as_json:
        write_json(jsonify(session))
        return
    out = results()
    out.print(f"Session {session.session_id}, seed {session.seed}, turn {session.turn}", style="bold")
    out.print(f"  {_status(session.status)}")
    out.print(f"  scenario {in_one_line(session.scenario_id)}, version {session.spec_hash}")
    if session.parent_session_id:
        out.print(f"  forked from {session.parent_session_id} after turn {session.parent_turn}")
    out.print(f"  chain {session.chain_hash}")
    for name, value in json.loads(session.state).items():
        out.print(f"  {in_one_line(name)}: {shown(json.dumps(value, ensure_ascii=False).encode())}")
    if turns:
        _print_table(_COLUMNS, map(_row, turns))


def fork(session_id: str, turn: int | None, seed: int | None, server: str | None, *, as_json: bool) -> None:
    """Fork a session, and print the id of the fork."""
    request = pb.ForkSessionRequest(request_id=str(uuid4()), session_id=session_id, turn=turn, seed=seed)
    session = asyncio.run(_forked(request, server))
    if as_json:
        write_json(jsonify(session))
    else:
        results().print(
            f"{session.session_id}: a fork of {session.parent_session_id} after turn {session.turn},"
            f" seed {session.seed}"
        )


def rewind(session_id: str, turn: int, server: str | None, *, as_json: bool) -> None:
    """Rewind a session to an earlier turn, and print its new position."""
    session = asyncio.run(_rewound(session_id, turn, server))
    if as_json:
        write_json(jsonify(session))
    else:
        results().print(f"{session.session_id}: at turn {session.turn} again, {_status(session.status)}")


def compare(session_id: str, other_id: str, pov: str, server: str | None, *, as_json: bool) -> None:
    """Print the turn at which two sessions diverge, and their differences since then."""
    compared = asyncio.run(_compared(session_id, other_id, pov, server))
    if as_json:
        write_json(jsonify(compared))
        return
    out = results()
    out.print(f"in common: {compared.common_turn} turn{'' if compared.common_turn == 1 else 's'}")
    for one in compared.differences:
        here, there = (
            shown(getattr(one, side)) if one.HasField(side) else "(nothing)" for side in ("here", "there")
        )
        out.print(f"  {in_one_line(one.path)}: {here} | {there}")
    for pair in compared.turns:
        out.print(f"turn {pair.turn}", style="bold")
        if pair.HasField("here"):
            out.print(f"  {session_id}  {_in_short(pair.here)}")
        if pair.HasField("there"):
            out.print(f"  {other_id}  {_in_short(pair.there)}")


def delete(session_id: str, server: str | None) -> None:
    """Delete a session."""
    asyncio.run(_delete(session_id, server))
    results().print(f"{in_one_line(session_id)} is deleted")


async def _listed(count: int, scenario_id: str, server: str | None) -> list[pb.SessionSummary]:
    async with sessions_at(server) as stub:
        request = pb.ListSessionsRequest(scenario_id=scenario_id, page_size=count)
        return list((await stub.ListSessions(request)).sessions)


async def _read(session_id: str, pov: str, server: str | None) -> tuple[pb.Session, list[pb.Turn]]:
    async with sessions_at(server) as stub:
        named = pb.GetSessionRequest(session_id=session_id, pov_entity_id=pov)
        session = (await stub.GetSession(named)).session

        async def page(token: str) -> tuple[Iterable[pb.Turn], str]:
            request = pb.ListTurnsRequest(session_id=session_id, pov_entity_id=pov, page_token=token)
            answer = await stub.ListTurns(request)
            return answer.turns, answer.next_page_token

        return session, await _all_pages(page)


async def _forked(request: pb.ForkSessionRequest, server: str | None) -> pb.Session:
    async with sessions_at(server) as stub:
        return (await stub.ForkSession(request)).session


async def _rewound(session_id: str, turn: int, server: str | None) -> pb.Session:
    async with sessions_at(server) as stub:
        now = (await stub.GetSession(pb.GetSessionRequest(session_id=session_id))).session
        request = pb.RewindSessionRequest(
            request_id=str(uuid4()), session_id=session_id, turn=turn, expected_turn=now.turn
        )
        return (await stub.RewindSession(request)).session


async def _compared(
    session_id: str, other_id: str, pov: str, server: str | None
) -> pb.CompareBranchesResponse:
    """Return all pages of a comparison as one response."""
    async with sessions_at(server) as stub:
        first = await stub.CompareBranches(_comparison(session_id, other_id, pov, ""))

        async def page(token: str) -> tuple[Iterable[pb.BranchTurn], str]:
            answer = await stub.CompareBranches(_comparison(session_id, other_id, pov, token))
            return answer.turns, answer.next_page_token

        if first.next_page_token:
            first.turns.extend(await _all_pages(page, first.next_page_token))
            first.ClearField("next_page_token")
        return first


def _comparison(session_id: str, other_id: str, pov: str, token: str) -> pb.CompareBranchesRequest:
    return pb.CompareBranchesRequest(
        session_id=session_id, other_session_id=other_id, pov_entity_id=pov, page_token=token
    )


async def _delete(session_id: str, server: str | None) -> None:
    async with sessions_at(server) as stub:
        await stub.DeleteSession(pb.DeleteSessionRequest(request_id=str(uuid4()), session_id=session_id))


async def _all_pages(page: Callable[[str], Awaitable[tuple[Iterable[T], str]]], token: str = "") -> list[T]:
    """Return the items of all pages, from a page token on."""
    items, token = await page(token)
    found = list(items)
    while token:
        items, token = await page(token)
        found.extend(items)
    return found


_COLUMNS = ("turn", "actions", "event", "status", "told")


def _row(turn: pb.Turn) -> tuple[str, ...]:
    """Return a turn as a table row."""
    return (
        str(turn.turn),
        in_one_line(", ".join(call.action_id for call in turn.actions) or turn.input),
        in_one_line(turn.event_id),
        _status(turn.status),
        shown(in_one_line(turn.narrative).encode()),
    )


def _in_short(turn: pb.Turn) -> str:
    return "  ".join(filter(None, _row(turn)[1:]))


def _status(status: engine_pb2.RunStatus) -> str:
    return in_one_line(status_line(status))


def _print_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column == "turn" else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    tables().print(table)

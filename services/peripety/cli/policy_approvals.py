"""`peripety policy approvals`, `approve` and `deny`, and the servers behind them."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import ApprovalServiceStub
from peripety.cli.output import one_line, person_console, result_console, write_json
from peripety.cli.prompt import PromptAbandonedError, prompt_line
from peripety.core.config import Config
from peripety.errors import NotFoundError
from peripety.policy.enforcement import approval_server
from peripety.policy.enforcement.approval_file import ApprovalFile
from peripety.policy.enforcement.setup import register_approvals
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from peripety.api.policy.v1.policy_pb2_grpc import ApprovalServiceAsyncStub
    from peripety.policy.enforcement.approvals import ApprovalQueue


commands = typer.Typer()

ApprovalPath = Annotated[
    Path | None,
    typer.Option(
        "--approvals",
        metavar="FILE",
        help="File with addresses and token of the approvals. [default: ~/.cache/peripety/proxy.json]",
    ),
]
ApprovalTime = Annotated[
    float,
    typer.Option(
        min=1,
        max=86_400,
        metavar="SECONDS",
        help="Time that a person has to approve a call. After it, the call is refused.",
    ),
]
ApprovalId = Annotated[str, typer.Argument(metavar="ID", help="Id of the waiting call.")]

_WATCH_SECONDS = 7 * 86_400.0


def _default_path() -> Path:
    # Clients start MCP servers with few variables of the environment: HOME, but not XDG_RUNTIME_DIR.
    return Path.home() / ".cache" / "peripety" / "proxy.json"


@asynccontextmanager
async def serve_approvals(approvals: ApprovalQueue, path: Path | None) -> AsyncIterator[None]:
    """Serve the waiting calls over HTTP and gRPC on loopback until the block ends.

    Args:
        approvals: the waiting calls.
        path: receives the addresses and the token, for its owner only; None for the default file.

    Raises:
        FailedPreconditionError: the file exists or cannot be written.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    token = ApprovalFile(url, "").token
    register = partial(register_approvals, approvals=approvals, token=token)
    async with (
        approval_server.serve_approvals(approvals, token, listening),
        serve_registered(Config(), [register], "127.0.0.1:0") as app,
    ):
        with ApprovalFile(url, app.address, token).written(path or _default_path()):
            yield


@asynccontextmanager
async def _approvals_at(path: Path | None) -> AsyncIterator[tuple[ApprovalServiceAsyncStub, Any]]:
    """Yield a stub, and the metadata of each request."""
    content = ApprovalFile.read(path or _default_path())
    async with open_channel(content.address) as channel:
        yield ApprovalServiceStub(channel), (("authorization", f"Bearer {content.token}"),)


async def _list(stub: ApprovalServiceAsyncStub, metadata: Any) -> list[pb.PendingApproval]:
    waiting: list[pb.PendingApproval] = []
    token = ""
    while True:
        page = await stub.ListApprovals(pb.ListApprovalsRequest(page_token=token), metadata=metadata)
        waiting += page.approvals
        token = page.next_page_token
        if not token:
            return waiting


def _to_call(approval: pb.PendingApproval) -> dict[str, Any]:
    request = approval.request
    return {
        "approval_id": approval.approval_id,
        "server_name": request.server_name,
        "tool_name": request.tool_name,
        "arguments": json.loads(request.arguments or b"{}"),
        "roles": [*request.roles],
        "call_hash": approval.call_hash,
        "rule_id": approval.rule_id,
        "reasons": [*approval.reasons],
        "until": approval.expire_time.ToMicroseconds() / 1_000_000,
    }


def format_call(call: Mapping[str, Any]) -> str:
    """Return a call in one line."""
    roles = f" as {', '.join(call['roles'])}" if call.get("roles") else ""
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    return one_line(f"{call['server_name']}/{call['tool_name']} {arguments}{roles}")


def _print_call(call: Mapping[str, Any]) -> None:
    result_console().print(f"{one_line(call['approval_id'])}: {format_call(call)}")
    for reason in call["reasons"]:
        result_console().print(f"  {one_line(reason)}")
    left = max(call["until"] - time.time(), 0)
    result_console().print(f"  denied in {left:,.0f} s unless you approve it", style="dim")


async def _watch(path: Path | None, *, as_json: bool) -> None:
    """Print each call that starts or stops waiting; at a terminal, prompt for an answer to each."""
    asks = sys.stdin.isatty() and not as_json
    async with _approvals_at(path) as (stub, metadata):
        events = stub.WatchApprovals(pb.WatchApprovalsRequest(), metadata=metadata, timeout=_WATCH_SECONDS)
        async for event in events:
            if event.HasField("waiting"):
                call = _to_call(event.waiting)
                if as_json:
                    write_json(call)
                else:
                    _print_call(call)
                if asks:
                    await _ask(stub, metadata, call)
            elif event.HasField("ended"):
                outcome = pb.ApprovalOutcome.Name(event.ended.outcome).rpartition("_")[2].lower()
                if as_json:
                    write_json({"approval_id": event.ended.approval_id, "outcome": outcome})
                else:
                    result_console().print(f"{event.ended.approval_id}: {outcome}", style="dim")


async def _ask(stub: ApprovalServiceAsyncStub, metadata: Any, call: Mapping[str, Any]) -> None:
    try:
        typed = prompt_line("approve? [y/N] ", lambda: time.time() > call["until"])
    except PromptAbandonedError:
        return
    try:
        await _send(stub, metadata, call, is_approved=(typed or "").lower() in {"y", "yes"})
    except NotFoundError:
        person_console().print("the call no longer waits", style="dim")


async def _send(
    stub: ApprovalServiceAsyncStub, metadata: Any, call: Mapping[str, Any], *, is_approved: bool
) -> None:
    known = {
        "request_id": str(uuid4()),
        "approval_id": call["approval_id"],
        "call_hash": call["call_hash"],
    }
    if is_approved:
        await stub.ApproveCall(pb.ApproveCallRequest(**known), metadata=metadata)
    else:
        await stub.DenyCall(pb.DenyCallRequest(**known), metadata=metadata)


@commands.command("approvals")
def list_approvals(
    file: ApprovalPath = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", "-w", help="Print calls as they come; at a terminal, prompt for an answer."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print lines of JSON.")] = False,
) -> None:
    """List the calls that wait for a person."""
    if watch:
        asyncio.run(_watch(file, as_json=as_json))
        return

    async def fetch() -> list[pb.PendingApproval]:
        async with _approvals_at(file) as (stub, metadata):
            return await _list(stub, metadata)

    waiting = [*map(_to_call, asyncio.run(fetch()))]
    for call in waiting:
        if as_json:
            write_json(call)
        else:
            _print_call(call)
    if not waiting and not as_json:
        result_console().print("no call waits")


async def _answer(approval_id: str, path: Path | None, *, is_approved: bool) -> None:
    async with _approvals_at(path) as (stub, metadata):
        calls = map(_to_call, await _list(stub, metadata))
        call = next((one for one in calls if one["approval_id"] == approval_id), None)
        if call is None:
            raise NotFoundError(
                f"no call waits as {approval_id}; `peripety policy approvals` lists those that wait",
                code="APPROVAL_NOT_FOUND",
            )
        await _send(stub, metadata, call, is_approved=is_approved)
        result_console().print(f"{'approved' if is_approved else 'denied'}: {format_call(call)}")


@commands.command()
def approve(approval_id: ApprovalId, file: ApprovalPath = None) -> None:
    """Approve a waiting call, once."""
    asyncio.run(_answer(approval_id, file, is_approved=True))


@commands.command()
def deny(approval_id: ApprovalId, file: ApprovalPath = None) -> None:
    """Deny a waiting call."""
    asyncio.run(_answer(approval_id, file, is_approved=False))

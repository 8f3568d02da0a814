"""`peripety policy proxy`, its log, and `tools`: policies in front of MCP servers."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from peripety.cli.output import (
    EXIT_FAILED,
    error_console,
    one_line,
    result_console,
    save_file,
    write_json,
)
from peripety.cli.policy_approvals import ApprovalPath, ApprovalTime, format_call, serve_approvals
from peripety.cli.policy_author import CONSTITUTION_FILE, POLICY_FILE
from peripety.cli.policy_bundle import TrustedKeys, policy_reader
from peripety.core.config import split_address
from peripety.engine import compile_policy
from peripety.engine.policies.types import CONTEXT_PREFIX
from peripety.errors import InvalidArgumentError, UnsupportedError
from peripety.policy.enforcement.approvals import ApprovalQueue
from peripety.policy.enforcement.context import CallContext, CallLimits, Limit, process_owner
from peripety.policy.enforcement.decision_log import DecisionLog, read_log, replay_log
from peripety.policy.enforcement.enforcement_point import Enforcer, PolicyFile
from peripety.policy.enforcement.tool_roles import guess_roles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.engine import Policy


commands = typer.Typer()

_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
PolicyPath = Annotated[
    Path, typer.Option("--policy", "-p", metavar="POLICY", help="Compiled folder or policy document.")
]
ServerCommand = Annotated[
    list[str],
    typer.Argument(metavar="-- SERVER...", help="Command of the MCP server with its arguments, or its URL."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]


def policy_document_path(policy: Path) -> Path:
    """Return the path of the document of a compiled folder, or the path of a document itself."""
    return policy / POLICY_FILE if policy.is_dir() else policy


def only_server(policy: Policy) -> str:
    """Return the name of the only server of a policy.

    Raises:
        BadParameter: there are several.
    """
    names = {tool["server_name"] for tool in policy.spec["tools"]}
    if len(names) != 1:
        raise typer.BadParameter(
            f"the policy is about {len(names)} servers ({', '.join(sorted(names))}); choose one with --name"
        )
    return str(*names)


def _parse_limit(option: str, text: str | None) -> Limit | None:
    if text is None:
        return None
    count, _, seconds = text.partition("/")
    if not (count.isdecimal() and seconds.isdecimal() and int(count) and int(seconds)):
        raise typer.BadParameter(f"{option} must be CALLS/SECONDS, such as 60/3600: {text!r}")
    return Limit(int(count), int(seconds))


def require_mcp() -> Any:
    """Return the module of the MCP proxy.

    Raises:
        UnsupportedError: the SDK is not installed.
    """
    try:
        from peripety.policy.enforcement import mcp_proxy  # noqa: PLC0415 - the SDK is an extra
    except ImportError as error:
        raise UnsupportedError(
            f"MCP needs its SDK ({error.name} is missing); run pip install 'peripety[mcp]'"
        ) from None
    return mcp_proxy


@commands.command(context_settings=_PASS_ON)
def proxy(
    policy: PolicyPath,
    server: ServerCommand,
    name: Annotated[
        str | None,
        typer.Option(metavar="SERVER", help="Name of the server in the policy. [default: the only one]"),
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="Role of the caller; may be repeated. [default: no role]"),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Serve streamable HTTP here. [default: standard input and output]"
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Append each decision to this file. [default: no log]"),
    ] = None,
    redact: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE",
            help="Role or name of an argument whose values stay out of the log; may be repeated.",
        ),
    ] = None,
    approvals: ApprovalPath = None,
    approval_time: ApprovalTime = 300.0,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="CALLS/SECONDS",
            help="Forward at most CALLS calls in SECONDS seconds. [default: no limit]",
        ),
    ] = None,
    breaker: Annotated[
        str | None,
        typer.Option(
            metavar="CALLS/SECONDS",
            help="Close all tools for SECONDS seconds after more than CALLS refused calls. [default: never]",
        ),
    ] = None,
    trust: TrustedKeys = None,
    shadow: Annotated[
        bool,
        typer.Option("--shadow", help="Forward every call, and only log the decisions."),
    ] = False,
) -> None:
    """Put a policy in front of an MCP server.

    The agent uses this command in place of the server. The policy decides each call: it is forwarded, or
    refused with the reason, or waits until a person approves it with `peripety policy approve`. An error
    refuses the call. A changed policy file is used from the next call on. With --trust, POLICY is a signed
    file that `peripety policy export` wrote. A file without a trusted signature, or with an older version,
    refuses every call.
    """
    mcp_proxy = require_mcp()
    if shadow and log is None:
        raise typer.BadParameter("--shadow only logs: add --log FILE")
    source = PolicyFile(policy_document_path(policy), policy_reader(trust))
    try:
        current = source.current()
    except OSError as error:
        remedy = (
            f"; compile it first: peripety policy compile {policy} -o {policy}/rules, and name that folder"
            if (policy / CONSTITUTION_FILE).is_file()
            else ""
        )
        raise InvalidArgumentError(
            f"cannot read {policy_document_path(policy)}: {error.strerror}{remedy}", code="FILE_INVALID"
        ) from None
    server_name = name or only_server(current)
    address = split_address(listen) if listen else None
    if any(name.startswith(CONTEXT_PREFIX) for name in role or ()):
        raise typer.BadParameter(
            f"--role must not begin with {CONTEXT_PREFIX}: the proxy computes the context"
        )
    limits = CallLimits(time.time, _parse_limit("--rate", rate), _parse_limit("--breaker", breaker))
    queue = ApprovalQueue(approval_time, time.time)

    async def serve() -> None:
        async with AsyncExitStack() as opened:
            decision_log = DecisionLog(log, redact or ()) if log else None
            if decision_log is not None:
                opened.callback(decision_log.close)
            context = CallContext(time.time, process_owner())
            if decision_log is not None:
                context.restore(decision_log.take_restored())
            context.require_supplied(current)
            enforcer = Enforcer(
                source,
                server_name,
                role or (),
                queue,
                time.time,
                decision_log,
                context=context,
                limits=limits,
                is_shadow=shadow,
            )
            await opened.enter_async_context(serve_approvals(queue, approvals))
            client = await opened.enter_async_context(mcp_proxy.connect_server(server))
            mcp = mcp_proxy.McpProxy(client, enforcer)
            await mcp.refresh_tools()
            if address is None:
                await mcp.serve_stdio()
            else:
                error_console().print(f"serving http://{listen}/mcp; press Ctrl-C to stop")
                await mcp.serve_http(*address)

    asyncio.run(serve())


@commands.command()
def replay(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Decision log of a proxy.")],
    policy: PolicyPath,
    as_json: AsJson = False,
) -> None:
    """Decide the calls of a decision log again.

    Shows those that the policy decides differently. Exit code 0 if all calls are decided alike, 1 otherwise.
    Exit code 2 if a line of the log was changed or removed: each line has the hash of the line before it.
    """
    rules = compile_policy(policy_document_path(policy).read_bytes())
    try:
        entries = [one for one in read_log(log) if one["outcome"] not in {"approved", "timed_out"}]
    except OSError as error:
        raise InvalidArgumentError(f"cannot read {log}: {error.strerror}", code="FILE_INVALID") from None
    changes = [*replay_log(rules, entries)]
    for change in changes:
        request, after = change.request, change.after
        call = {
            "server_name": request.server_name,
            "tool_name": request.tool_name,
            "arguments": request.arguments,
            "roles": [*request.roles],
        }
        if as_json:
            decided = {"before": change.before, "after": after.decision.value, "rule_id": after.rule_id}
            write_json(
                {"sequence": change.sequence, **decided, "is_redacted": change.is_redacted, "call": call}
            )
            continue
        unsure = " (values are redacted: uncertain)" if change.is_redacted else ""
        words = f"{change.before} → {after.decision.value} by {one_line(after.rule_id) or 'no rule'}{unsure}"
        result_console().print(f"{words}: {format_call(call)}")
    if not as_json:
        result_console().print(
            f"{len(changes):,} of {len(entries):,} calls are decided differently", style="bold"
        )
    raise typer.Exit(EXIT_FAILED if changes else 0)


async def _read_tools(mcp_proxy: Any, command: Sequence[str]) -> list[Any]:
    async with mcp_proxy.connect_server(command) as client:
        found: list[Any] = await mcp_proxy.list_server_tools(client)
        return found


@commands.command(context_settings=_PASS_ON)
def tools(
    server: ServerCommand,
    name: Annotated[str, typer.Option(metavar="SERVER", help="Name of the server in the policy.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write tools.json here. [default: standard output]"),
    ] = None,
) -> None:
    """Write tools.json for the tools of an MCP server.

    The roles of arguments are guessed from their names and formats. Read the reasons, and correct the file:
    rules about paths, URLs or recipients protect only arguments that have a role.
    """
    listed = asyncio.run(_read_tools(require_mcp(), server))
    documents = []
    for tool in listed:
        guesses = [*guess_roles(tool.name, tool.input_schema)]
        for guess in guesses:
            error_console().print(f"{tool.name}{guess.path}: {guess.role} ({guess.reason})")
        without = [
            key
            for key in tool.input_schema.get("properties") or {}
            if f"/{key}" not in {g.path for g in guesses}
        ]
        if without:
            error_console().print(f"{tool.name}: no role for {', '.join(without)}", style="dim")
        hints = tool.annotations
        documents.append(
            {
                "server_name": name,
                "tool_name": tool.name,
                **({"description": tool.description} if tool.description else {}),
                "input_schema": tool.input_schema,
                "argument_roles": [{"path": guess.path, "role": guess.role} for guess in guesses],
                **({"read_only": True} if hints and hints.read_only_hint else {}),
                **({"destructive": True} if hints and hints.destructive_hint else {}),
            }
        )
    text = json.dumps(documents, ensure_ascii=False, indent=2) + "\n"
    if out is None:
        result_console().print(text, markup=False, end="")
    else:
        save_file(text.encode(), out)
        error_console().print(f"{len(documents)} tools written to {out}")

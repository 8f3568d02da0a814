"""`peripety policy conditions`: what a tool may do, if some of its arguments are known."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated

import typer

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.options import Server
from peripety.cli.output import one_line, read_text_argument, result_console, write_json
from peripety.cli.policy_author import policy_input
from peripety.cli.policy_check import AsJson, Policy, policies_at
from peripety.rpc.proto_json import enum_word, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator


commands = typer.Typer()

_DECISION = pb.DecidePartiallyResponse.DESCRIPTOR.fields_by_name["decision"]
_STYLES = {"allow": "green", "deny": "red", "escalate": "yellow"}


async def _decide(request: pb.DecidePartiallyRequest, server: str | None) -> pb.DecidePartiallyResponse:
    async with policies_at(server) as stub:
        return await stub.DecidePartially(request)


def _format_rules(partial: pb.DecidePartiallyResponse) -> Iterator[tuple[str, str | None]]:
    """Yield a line for each rule, and one for the default, each with its style."""
    for number, rule in enumerate(partial.rules, start=1):
        style = _STYLES[enum_word(_DECISION, rule.decision)]
        yield f"{number}. {one_line(rule.text)} ({one_line(rule.rule_id)})", style
    if not partial.rules or json.loads(partial.rules[-1].condition):
        yield f"{len(partial.rules) + 1}. Deny any other call.", _STYLES["deny"]


@commands.command()
def conditions(
    policy: Policy,
    server_name: Annotated[str, typer.Argument(metavar="SERVER", help="Server that offers the tool.")],
    tool_name: Annotated[str, typer.Argument(metavar="TOOL", help="Tool to describe.")],
    arguments: Annotated[
        str,
        typer.Argument(
            metavar="[ARGUMENTS]",
            help="Known arguments, in JSON; all others are open. Use - for standard input.",
        ),
    ] = "{}",
    role: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="Role of the caller; may be repeated. [default: any roles]"),
    ] = None,
    no_roles: Annotated[bool, typer.Option("--no-roles", help="The caller has no roles.")] = False,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Describe what a tool may do: the conditions that remain for the open arguments.

    The first rule whose condition holds decides. The English is made from the remaining conditions alone. The
    context of a call, such as its time, stays open.
    """
    if policy == arguments == "-":
        raise typer.BadParameter("only one of POLICY and ARGUMENTS can come from standard input")
    if no_roles and role:
        raise typer.BadParameter("--no-roles contradicts --role: leave one of them out")
    known = pb.PolicyRequest(
        server_name=server_name,
        tool_name=tool_name,
        arguments=read_text_argument(arguments, "ARGUMENTS").encode(),
        roles=role or (),
    )
    request = pb.DecidePartiallyRequest(
        policy=policy_input(policy).policy, known=known, has_open_roles=not (role or no_roles)
    )
    partial = asyncio.run(_decide(request, server))
    if as_json:
        rules = [to_json(rule) | {"condition": json.loads(rule.condition)} for rule in partial.rules]
        write_json(to_json(partial) | {"rules": rules})
        return
    out = result_console()
    for line, style in _format_rules(partial):
        out.print(line, style=style)
    if partial.HasField("decision"):
        word = enum_word(_DECISION, partial.decision)
        out.print(f"The decision is always {word}.", style="bold")
    if partial.read_arguments:
        out.print(
            f"Known arguments that conditions still read: {one_line(', '.join(partial.read_arguments))}"
        )

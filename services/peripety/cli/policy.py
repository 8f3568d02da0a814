"""Policy command group; list, show, delete.

Commands and options of `peripety policy`.

`peripety policy list`, `show` and `delete`: stored policies.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer
from rich.table import Table

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.options import MaxCost, MaxTime, MaxTokens, Model, Server  # noqa: TC001 - typer reads them
from peripety.cli.output import one_line, result_console, table_console, write_json
from peripety.cli.policy_check import policies_at
from peripety.cli.proto_json import to_json
from peripety.cli.render.policy import (
    format_audit_entry,
    format_coverage,
    format_mutation_score,
    format_rule,
    format_sources,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


policies = typer.Typer(
    name="policy",
    help="Compile a written policy into rules for tool calls, and test the rules by scenarios.",
    no_args_is_help=True,
)

Policy = Annotated[
    str,
    typer.Argument(
        metavar="POLICY",
        help="Compiled folder, document (use - for standard input), or id of a stored policy.",
    ),
]
Scenarios = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Scenarios. [default: those in the folder, or stored with the policy]"),
]
PolicyId = Annotated[str, typer.Argument(metavar="ID", help="Id of the policy; see `peripety policy list`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]


@policies.command("compile")
def compile_(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="Folder with constitution.md, tools.json, optionally handwritten.json and foundation.json.",
        ),
    ] = None,
    constitution: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Written policy; use - for standard input."),
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Tools that the policy covers: a JSON list."),
    ] = None,
    handwritten: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Handwritten scenarios that must pass: a JSON list."),
    ] = None,
    foundation: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Invariants and lists that precede the rules: {invariants, lists} in JSON.",
        ),
    ] = None,
    version_of: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Store the result as the latest version of this policy."),
    ] = None,
    model: Model = "",
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write policy.json and scenarios.json to this folder.",
        ),
    ] = None,
    server: Server = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the stored policy as one line of JSON."),
    ] = False,
) -> None:
    """Compile a written policy into rules and a test suite.

    Stores both. Exit code 0 if rules and suite agree, 1 if they could not be reconciled: the findings give
    the reasons.
    """
    from peripety.cli import policy_author  # noqa: PLC0415
    from peripety.cli import policy_author as command  # noqa: PLC0415 - loads the services
    from peripety.cli.output import make_budget  # noqa: PLC0415

    command.require_folder(out)
    request = policy_author.policy_sources(folder, constitution, tools, handwritten, foundation).to_request()
    request.policy_id = version_of or ""
    request.model = model
    request.budget.CopyFrom(
        make_budget(tokens=max_tokens or 0, dollars=max_cost or 0.0, seconds=max_time or 0.0),
    )
    command.compile_policy(request, server, out=out, as_json=as_json)


@policies.command()
def verify(
    policy: Policy,
    scenarios: Scenarios = None,
    mutation: Annotated[bool, typer.Option("--mutation", help="Also measure the mutation score.")] = False,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Run scenarios against rules. No model is called.

    Exit code 0 if all scenarios pass, 1 if one fails.
    """
    from peripety.cli import policy_author, policy_check  # noqa: PLC0415 - loads the services

    source = policy_author.policy_input(policy, scenarios)
    raise typer.Exit(policy_check.verify_policy(source, server, mutation=mutation, as_json=as_json))


@policies.command()
def analyze(policy: Policy, server: Server = None, as_json: AsJson = False) -> None:
    """Find dead, shadowed and redundant rules.

    Exit code 0 without issues, 1 otherwise.
    """
    from peripety.cli import policy_author, policy_check  # noqa: PLC0415 - loads the services

    raise typer.Exit(policy_check.analyze_policy(policy_author.policy_input(policy), server, as_json=as_json))


@policies.command()
def diff(
    before: Policy,
    after: Policy,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of examples.")] = 50,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Show the calls that two policies decide differently.

    Newly allowed calls come first. Exit code 0 if the policies are proved equivalent, 1 if they differ or the
    proof
    is inconclusive.
    """
    from peripety.cli import policy_author, policy_check  # noqa: PLC0415 - loads the services

    old, new = policy_author.policy_input(before), policy_author.policy_input(after)
    raise typer.Exit(policy_check.diff_policies(old, new, limit, server, as_json=as_json))


@policies.command()
def mutate(
    policy: Policy,
    scenarios: Scenarios = None,
    operator: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Mutation operator; may be repeated. [default: all operators]"),
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Measure the mutation score of a suite.

    Changes the rules in small ways and reports how many of the changes the scenarios detect.
    """
    from peripety.cli import policy_author, policy_check  # noqa: PLC0415 - loads the services

    source = policy_author.policy_input(policy, scenarios)
    policy_check.mutate_policy(source, operator or (), server, as_json=as_json)


@policies.command()
def generate_scenarios(
    policy: Policy,
    scenarios: Scenarios = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of scenarios to generate. [default: as many as needed]"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write all scenarios to this file, the new ones last.",
        ),
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Generate scenarios for uncovered parts of the rules.

    The scenarios expect what the rules decide now: review them.
    """
    from peripety.cli import policy_author, policy_check  # noqa: PLC0415 - loads the services
    from peripety.cli.output import require_writable  # noqa: PLC0415

    require_writable(out)
    source = policy_author.policy_input(policy, scenarios)
    policy_check.generate_coverage(source, limit or 0, server, out=out, as_json=as_json)


@policies.command()
def decide(
    policy: Policy,
    server_name: Annotated[str, typer.Argument(metavar="SERVER", help="Server that offers the tool.")],
    tool_name: Annotated[str, typer.Argument(metavar="TOOL", help="Tool to call.")],
    arguments: Annotated[
        str,
        typer.Argument(
            metavar="[ARGUMENTS]",
            help="Arguments of the call, in JSON; use - for standard input.",
        ),
    ] = "{}",
    role: Annotated[list[str] | None, typer.Option(help="Role of the caller; may be repeated.")] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Decide one tool call, with the reasons.

    Exit code 0 if the call is allowed, 1 otherwise.
    """
    from peripety.api.policy.v1.policy_pb2 import PolicyRequest  # noqa: PLC0415 - loads protobuf
    from peripety.cli import policy_author, policy_check  # noqa: PLC0415
    from peripety.cli.output import read_text_argument  # noqa: PLC0415

    if policy == arguments == "-":
        raise typer.BadParameter("only one of POLICY and ARGUMENTS can come from standard input")
    call = PolicyRequest(
        server_name=server_name,
        tool_name=tool_name,
        arguments=read_text_argument(arguments, "ARGUMENTS").encode(),
        roles=role or (),
    )
    raise typer.Exit(
        policy_check.decide_call(policy_author.policy_input(policy), call, server, as_json=as_json),
    )


@policies.command("list")
def list_(
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """List the latest versions of policies, newest first."""
    print_policies(count, server, as_json=as_json)


@policies.command()
def show(
    policy_id: PolicyId,
    version: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="Version to show. [default: the latest]"),
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Show a policy: its rules, its suite, its audit log."""
    print_policy(policy_id, version, server, as_json=as_json)


@policies.command()
def delete(policy_id: PolicyId, server: Server = None) -> None:
    """Delete a policy with all its versions."""
    delete_policy(policy_id, server)


def print_policies(count: int, server: str | None, *, as_json: bool) -> None:
    """Print the latest versions of stored policies, newest first."""
    found = asyncio.run(_fetch_policies(count, server)).policies
    if as_json:
        for one in found:
            write_json(to_json(one))
    elif found:
        table_console().print(_policies_table(found))


def print_policy(policy_id: str, policy_hash: str | None, server: str | None, *, as_json: bool) -> None:
    """Print a stored policy: its rules in order, its suite, the results, and the audit log."""
    wanted = pb.GetPolicyRequest(policy_id=policy_id, policy_hash=policy_hash or "")
    policy = asyncio.run(_fetch_policy(wanted, server))
    if as_json:
        write_json(to_json(policy))
        return
    out = result_console()
    spec = json.loads(policy.document)
    out.print(f"{one_line(policy.policy_id)}, version {policy.policy_hash}", style="bold")
    for rule in [*spec.get("invariants", ()), *spec["rules"]]:
        out.print(format_rule(rule))
    report = policy.verification
    out.print(f"{format_sources(policy.scenarios)}: {report.passed:,} passed, {report.failed:,} failed")
    for line in format_coverage(report.coverage):
        out.print(line)
    for line in format_mutation_score(report.mutation) if report.HasField("mutation") else ():
        out.print(line)
    for entry in policy.audit:
        out.print(format_audit_entry(entry))


def delete_policy(policy_id: str, server: str | None) -> None:
    """Delete a stored policy with all its versions."""
    asyncio.run(_delete(policy_id, server))
    result_console().print(f"{one_line(policy_id)} is deleted")


async def _fetch_policies(count: int, server: str | None) -> pb.ListPoliciesResponse:
    async with policies_at(server) as stub:
        return await stub.ListPolicies(pb.ListPoliciesRequest(page_size=count))


async def _fetch_policy(wanted: pb.GetPolicyRequest, server: str | None) -> pb.CompiledPolicy:
    async with policies_at(server) as stub:
        return (await stub.GetPolicy(wanted)).policy


async def _delete(policy_id: str, server: str | None) -> None:
    async with policies_at(server) as stub:
        await stub.DeletePolicy(pb.DeletePolicyRequest(request_id=str(uuid4()), policy_id=policy_id))


def _policies_table(summaries: Iterable[pb.PolicySummary]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("policy", "stored", "rules", "scenarios", "version"):
        table.add_column(
            column,
            justify="right" if column in {"rules", "scenarios"} else "left",
            no_wrap=True,
        )
    for one in summaries:
        stored = one.create_time.ToDatetime().isoformat(" ", "seconds")
        table.add_row(one.policy_id, stored, f"{one.rules:,}", f"{one.scenarios:,}", one.policy_hash)
    return table

"""`peripety policy`: the command group; list, show and delete stored policies."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.options import Server
from peripety.cli.output import one_line, result_console, start_table, table_console, write_json
from peripety.cli.policy_approvals import commands as approval_commands
from peripety.cli.policy_author import commands as author_commands
from peripety.cli.policy_bundle import commands as bundle_commands
from peripety.cli.policy_check import commands as check_commands
from peripety.cli.policy_check import policies_at
from peripety.cli.policy_conditions import commands as conditions_commands
from peripety.cli.policy_enforce import commands as enforce_commands
from peripety.cli.policy_repl import commands as repl_commands
from peripety.cli.policy_suggest import commands as suggest_commands
from peripety.cli.render.policy import (
    format_audit_entry,
    format_rule,
    format_rule_figures,
    format_sources,
)
from peripety.rpc.proto_json import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table


commands = typer.Typer(
    name="policy",
    help="Compile a written policy into rules, and enforce them.",
    no_args_is_help=True,
)

stored = typer.Typer()


PolicyId = Annotated[str, typer.Argument(metavar="ID", help="Id of the policy; see `peripety policy list`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]


async def _fetch_policies(count: int, server: str | None) -> pb.ListPoliciesResponse:
    async with policies_at(server) as stub:
        return await stub.ListPolicies(pb.ListPoliciesRequest(page_size=count))


async def _fetch_policy(
    wanted: pb.GetPolicyRequest, server: str | None
) -> tuple[pb.CompiledPolicy, Iterable[pb.PolicySummary]]:
    """Return a version of a policy, and summaries of all versions."""
    async with policies_at(server) as stub:
        policy = (await stub.GetPolicy(wanted)).policy
        versions = pb.ListPolicyVersionsRequest(policy_id=wanted.policy_id)
        return policy, (await stub.ListPolicyVersions(versions)).versions


async def _delete(policy_id: str, server: str | None) -> None:
    async with policies_at(server) as stub:
        await stub.DeletePolicy(pb.DeletePolicyRequest(request_id=str(uuid4()), policy_id=policy_id))


def _policies_table(summaries: Iterable[pb.PolicySummary]) -> Table:
    table = start_table(("policy", "name", "stored", "rules", "scenarios", "version"), {"rules", "scenarios"})
    for one in summaries:
        stored = one.create_time.ToDatetime().isoformat(" ", "seconds")
        rules, scenarios = f"{one.rules:,}", f"{one.scenarios:,}"
        table.add_row(one.policy_id, one_line(one.name), stored, rules, scenarios, one.policy_hash)
    return table


@stored.command("list")
def list_(
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """List the latest versions of policies, newest first."""
    found = asyncio.run(_fetch_policies(count, server)).policies
    if as_json:
        for one in found:
            write_json(to_json(one))
    elif found:
        table_console().print(_policies_table(found))


@stored.command()
def show(
    policy_id: PolicyId,
    version: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="Version to show. [default: the latest]"),
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Show a policy: its rules, its suite, its audit log, its versions."""
    wanted = pb.GetPolicyRequest(policy_id=policy_id, policy_hash=version or "")
    policy, versions = asyncio.run(_fetch_policy(wanted, server))
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
    for line in format_rule_figures(
        report.coverage, report.mutation if report.HasField("mutation") else None
    ):
        out.print(line)
    for entry in policy.audit:
        out.print(format_audit_entry(entry))
    table_console().print(_policies_table(versions))


@stored.command()
def delete(policy_id: PolicyId, server: Server = None) -> None:
    """Delete a policy with all its versions."""
    asyncio.run(_delete(policy_id, server))
    result_console().print(f"{one_line(policy_id)} is deleted")


for part in (
    author_commands,
    check_commands,
    conditions_commands,
    repl_commands,
    enforce_commands,
    suggest_commands,
    bundle_commands,
    approval_commands,
    stored,
):
    commands.add_typer(part)

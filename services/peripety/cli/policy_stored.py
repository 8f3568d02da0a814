"""`peripety policy list`, `show` and `delete`: stored policies."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from uuid import uuid4

from rich.table import Table

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.jsonify import jsonify
from peripety.cli.output import results, tables, write_json
from peripety.cli.policy_checks import policies_at
from peripety.cli.policy_telling import (
    audit_line,
    coverage_lines,
    mutation_lines,
    rule_line,
    sources_words,
)
from peripety.cli.text import in_one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["delete", "list_policies", "show"]


def list_policies(count: int, server: str | None, *, as_json: bool) -> None:
    """Print the latest versions of stored policies, newest first."""
    found = asyncio.run(_listed(count, server)).policies
    if as_json:
        for one in found:
            write_json(jsonify(one))
    elif found:
        tables().print(_table(found))


def show(policy_id: str, policy_hash: str | None, server: str | None, *, as_json: bool) -> None:
    """Print a stored policy: its rules in order, its suite, the results, and the audit log."""
    wanted = pb.GetPolicyRequest(policy_id=policy_id, policy_hash=policy_hash or "")
    policy = asyncio.run(_read(wanted, server))
    if as_json:
        write_json(jsonify(policy))
        return
    out = results()
    spec = json.loads(policy.document)
    out.print(f"{in_one_line(policy.policy_id)}, version {policy.policy_hash}", style="bold")
    for rule in [*spec.get("invariants", ()), *spec["rules"]]:
        out.print(rule_line(rule))
    report = policy.verification
    out.print(f"{sources_words(policy.scenarios)}: {report.passed:,} passed, {report.failed:,} failed")
    for line in coverage_lines(report.coverage):
        out.print(line)
    for line in mutation_lines(report.mutation) if report.HasField("mutation") else ():
        out.print(line)
    for entry in policy.audit:
        out.print(audit_line(entry))


def delete(policy_id: str, server: str | None) -> None:
    """Delete a stored policy with all its versions."""
    asyncio.run(_delete(policy_id, server))
    results().print(f"{in_one_line(policy_id)} is deleted")


async def _listed(count: int, server: str | None) -> pb.ListPoliciesResponse:
    async with policies_at(server) as stub:
        return await stub.ListPolicies(pb.ListPoliciesRequest(page_size=count))


async def _read(wanted: pb.GetPolicyRequest, server: str | None) -> pb.CompiledPolicy:
    async with policies_at(server) as stub:
        return (await stub.GetPolicy(wanted)).policy


async def _delete(policy_id: str, server: str | None) -> None:
    async with policies_at(server) as stub:
        await stub.DeletePolicy(pb.DeletePolicyRequest(request_id=str(uuid4()), policy_id=policy_id))


def _table(summaries: Iterable[pb.PolicySummary]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("policy", "stored", "rules", "scenarios", "version"):
        table.add_column(
            column, justify="right" if column in {"rules", "scenarios"} else "left", no_wrap=True
        )
    for one in summaries:
        stored = one.create_time.ToDatetime().isoformat(" ", "seconds")
        table.add_row(one.policy_id, stored, f"{one.rules:,}", f"{one.scenarios:,}", one.policy_hash)
    return table

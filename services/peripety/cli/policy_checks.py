"""`peripety policy verify`, `analyze`, `diff` and `decide`: deterministic checks without a model."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.cli.embedded import services_at
from peripety.cli.failure import FOUND_WRONG, finding_lines
from peripety.cli.jsonify import enum_word, jsonify
from peripety.cli.output import results, write_json
from peripety.cli.policy_telling import (
    counted,
    coverage_lines,
    decision_words,
    failure_lines,
    mutation_lines,
    request_words,
)
from peripety.cli.text import in_one_line
from peripety.client.findings import finding_from_proto
from peripety.errors import Severity, SpecError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from peripety.api.common.v1 import common_pb2 as common
    from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub
    from peripety.cli.policy_input import Source
    from peripety.errors import Finding

__all__ = ["analyze", "decide", "diff", "policies_at", "usable", "verify"]

_ISSUE = pb.RuleIssue.DESCRIPTOR.fields_by_name["kind"]
_PATCH = pb.RulePatch.DESCRIPTOR.fields_by_name["kind"]


@asynccontextmanager
async def policies_at(server: str | None) -> AsyncIterator[PolicyServiceAsyncStub]:
    """Yield a policy stub: of a server, or of an embedded service on the configured database."""
    async with services_at(server, "gateway", "policies") as channel:
        yield PolicyServiceStub(channel)


def usable(findings: Iterable[common.Finding]) -> list[Finding]:
    """Return the warnings among findings.

    Raises:
        SpecError: a finding is an error.
    """
    found = list(map(finding_from_proto, findings))
    if any(one.severity is Severity.ERROR for one in found):
        raise SpecError("the policy has errors", found)
    return found


def verify(source: Source, server: str | None, *, mutation: bool, as_json: bool) -> int:
    """Run scenarios against rules, print the failures, and return the exit code.

    Args:
        source: the rules and the scenarios.
        server: `host:port` of a server; None verifies in this process.
        mutation: True to measure the mutation score as well.
        as_json: True to print the report as one line of JSON.

    Raises:
        SpecError: the policy has errors.
    """
    request = pb.VerifyPolicyRequest(
        policy=source.policy, scenarios=source.required_scenarios(), mutation=mutation
    )
    report, scenarios = asyncio.run(_verified(request, server))
    if as_json:
        write_json(jsonify(report))
    else:
        style = "red" if report.failed else "green"
        results().print(f"{report.passed:,} passed, {report.failed:,} failed", style=style)
        _print(failure_lines(report.results, scenarios))
        _print(_masked_lines(report.results, scenarios))
        _print(coverage_lines(report.coverage))
        if report.HasField("mutation"):
            _print(mutation_lines(report.mutation))
    return FOUND_WRONG if report.failed else 0


def analyze(source: Source, server: str | None, *, as_json: bool) -> int:
    """Print the issues of rules, and return the exit code.

    Raises:
        SpecError: the policy has errors.
    """
    told = asyncio.run(_analyzed(pb.AnalyzePolicyRequest(policy=source.policy), server))
    if as_json:
        write_json(jsonify(told))
        usable(told.findings)
        return FOUND_WRONG if told.issues else 0
    _print(finding_lines(usable(told.findings)))
    for issue in told.issues:
        kind = enum_word(_ISSUE, issue.kind)
        results().print(f"{in_one_line(issue.rule_id)}: {kind}: {in_one_line(issue.message)}", style="yellow")
        if issue.HasField("witness"):
            results().print(f"  example: {request_words(issue.witness)}")
    results().print(counted(len(told.issues), "issue"))
    return FOUND_WRONG if told.issues else 0


def diff(before: Source, after: Source, most: int, server: str | None, *, as_json: bool) -> int:
    """Print the requests that two policies decide differently, and return the exit code.

    Raises:
        SpecError: a policy has errors.
    """
    request = pb.DiffPoliciesRequest(before=before.policy, after=after.policy, max_examples=most)
    told = asyncio.run(_compared(request, server))
    if as_json:
        write_json(jsonify(told))
        usable(told.findings)
    else:
        findings = usable(told.findings)
        for patch in told.rule_changes:
            results().print(f"rule {in_one_line(patch.rule_id)}: {enum_word(_PATCH, patch.kind)}")
        for change in told.changes:
            style = "red" if change.after.decision == pb.DECISION_ALLOW else None
            words = f"{decision_words(change.before)} → {decision_words(change.after)}"
            results().print(f"{words}: {request_words(change.witness)}", style=style)
        _print(finding_lines(findings))
        results().print(_compared_words(told), style="bold")
    return 0 if told.equivalent else FOUND_WRONG


def decide(source: Source, call: pb.PolicyRequest, server: str | None, *, as_json: bool) -> int:
    """Print the decision of a policy on a tool call, and return the exit code.

    Raises:
        SpecError: the policy has errors.
    """
    result = asyncio.run(_decided(pb.DecideRequest(policy=source.policy, request=call), server))
    if as_json:
        write_json(jsonify(result))
    else:
        allowed = result.decision == pb.DECISION_ALLOW
        results().print(decision_words(result), style="green" if allowed else "red")
        _print(f"  {in_one_line(reason)}" for reason in result.reasons)
        _print(finding_lines([*map(finding_from_proto, result.errors)]))
    return 0 if result.decision == pb.DECISION_ALLOW else FOUND_WRONG


async def _verified(
    request: pb.VerifyPolicyRequest, server: str | None
) -> tuple[pb.VerificationReport, dict[str, pb.PolicyScenario]]:
    """Return the report, and its scenarios by id."""
    async with policies_at(server) as stub:
        scenarios = list(request.scenarios)
        if request.policy.policy_id and not scenarios:
            wanted = pb.GetPolicyRequest(policy_id=request.policy.policy_id)
            scenarios = list((await stub.GetPolicy(wanted)).policy.scenarios)
        told = await stub.VerifyPolicy(request)
    usable(told.findings)
    named = zip(told.verification.results, scenarios, strict=True)
    return told.verification, {result.scenario_id: scenario for result, scenario in named}


async def _analyzed(request: pb.AnalyzePolicyRequest, server: str | None) -> pb.AnalyzePolicyResponse:
    async with policies_at(server) as stub:
        return await stub.AnalyzePolicy(request)


async def _compared(request: pb.DiffPoliciesRequest, server: str | None) -> pb.DiffPoliciesResponse:
    async with policies_at(server) as stub:
        return await stub.DiffPolicies(request)


async def _decided(request: pb.DecideRequest, server: str | None) -> pb.DecisionResult:
    async with policies_at(server) as stub:
        return (await stub.Decide(request)).result


def _masked_lines(
    found: Iterable[pb.ScenarioResult], scenarios: dict[str, pb.PolicyScenario]
) -> Iterable[str]:
    for result in found:
        if result.passed and result.masked_rule_id:
            about = in_one_line(scenarios[result.scenario_id].description)
            meant = in_one_line(result.masked_rule_id)
            yield f"  masked: {about}: is {decision_words(result.actual)}, before {meant}"


def _compared_words(told: pb.DiffPoliciesResponse) -> str:
    if told.equivalent:
        return "the policies decide every request alike"
    if told.changes:
        return f"the policies differ: {counted(len(told.changes), 'example')}"
    return "no difference was found, but equivalence is not proved"


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        results().print(line)

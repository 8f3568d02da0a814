"""What several messages are made of: requests, scenarios and decisions."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.client.findings import finding_to_proto
from peripety.errors import Finding, Severity
from peripety.sim import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.api.common.v1 import common_pb2 as common
    from peripety.policies.model import Decided, Expectation, RulePatch, TestScenario, ToolRequest

__all__ = [
    "decision_result",
    "expectation",
    "findings",
    "rule_patch",
    "scenario",
    "scenario_id",
    "scenarios",
    "tool_request",
]

_ID_DIGITS = 16


def tool_request(request: ToolRequest) -> pb.PolicyRequest:
    """A call of a tool."""
    return pb.PolicyRequest(
        server_name=request.server_name,
        tool_name=request.tool_name,
        arguments=canonical(request.arguments),
        roles=request.roles,
    )


def decision_result(decided: Decided) -> pb.DecisionResult:
    """What the rules say, and why."""
    troubles = (
        Finding(error.code, error.path, f"{error.rule_id}: {error.message}", Severity.WARNING)
        for error in decided.errors
    )
    return pb.DecisionResult(
        decision=pb.Decision.Value(f"DECISION_{decided.decision.name}"),
        rule_id=decided.rule_id,
        by_invariant=decided.by_invariant,
        reasons=decided.reasons,
        errors=map(finding_to_proto, troubles),
    )


def expectation(expected: Expectation) -> pb.Expectation.ValueType:
    """What is expected of the rules."""
    return pb.Expectation.Value(f"EXPECTATION_{expected.name}")


def scenario_id(scenario: TestScenario) -> str:
    """What a scenario is called: as its author said, or by what it is about, which is unique in its suite."""
    named = sha256(scenario.description.encode()).hexdigest()[:_ID_DIGITS]
    return scenario.scenario_id or f"scn_{named}"


def scenario(written: TestScenario) -> pb.PolicyScenario:
    """A request with the decision that is expected."""
    return pb.PolicyScenario(
        scenario_id=scenario_id(written),
        description=written.description,
        request=tool_request(written.request),
        expected=expectation(written.expected_decision),
        reasoning=written.reasoning,
        source=pb.ScenarioSource.Value(f"SCENARIO_SOURCE_{written.source.name}"),
        rule_id=written.rule_id,
    )


def scenarios(written: Iterable[TestScenario]) -> list[pb.PolicyScenario]:
    """Some scenarios."""
    return [*map(scenario, written)]


def rule_patch(patch: RulePatch) -> pb.RulePatch:
    """One mechanical change of the rules."""
    return pb.RulePatch(
        kind=pb.RulePatchKind.Value(f"RULE_PATCH_KIND_{patch.kind.name}"),
        rule_id=patch.rule_id,
        before=None if patch.before is None else canonical(patch.before),
        after=None if patch.after is None else canonical(patch.after),
        position=patch.position,
        reasoning=patch.reasoning,
    )


def findings(found: Iterable[Finding]) -> list[common.Finding]:
    """What is wrong."""
    return [*map(finding_to_proto, found)]

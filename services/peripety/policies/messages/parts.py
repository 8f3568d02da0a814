"""Common parts of policy messages: requests, scenarios and decisions to protobuf."""

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
    """Convert a tool call."""
    return pb.PolicyRequest(
        server_name=request.server_name,
        tool_name=request.tool_name,
        arguments=canonical(request.arguments),
        roles=request.roles,
    )


def decision_result(decided: Decided) -> pb.DecisionResult:
    """Convert a decision with its reasons."""
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
    """Convert an expectation."""
    return pb.Expectation.Value(f"EXPECTATION_{expected.name}")


def scenario_id(scenario: TestScenario) -> str:
    """Return the id of a scenario: the given one, or a digest of its description."""
    named = sha256(scenario.description.encode()).hexdigest()[:_ID_DIGITS]
    return scenario.scenario_id or f"scn_{named}"


def scenario(written: TestScenario) -> pb.PolicyScenario:
    """Convert a scenario."""
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
    """Convert scenarios."""
    return [*map(scenario, written)]


def rule_patch(patch: RulePatch) -> pb.RulePatch:
    """Convert a change of a rule."""
    return pb.RulePatch(
        kind=pb.RulePatchKind.Value(f"RULE_PATCH_KIND_{patch.kind.name}"),
        rule_id=patch.rule_id,
        before=None if patch.before is None else canonical(patch.before),
        after=None if patch.after is None else canonical(patch.after),
        position=patch.position,
        reasoning=patch.reasoning,
    )


def findings(found: Iterable[Finding]) -> list[common.Finding]:
    """Convert findings."""
    return [*map(finding_to_proto, found)]

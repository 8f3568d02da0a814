"""Lint issues and policy differences to protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.policies.messages import parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.policies.model import DecisionChange, PolicyDifference, RuleIssue

__all__ = ["difference", "issues"]


def issues(found: Iterable[RuleIssue]) -> pb.AnalyzePolicyResponse:
    """Convert lint issues."""
    return pb.AnalyzePolicyResponse(issues=map(_issue, found))


def _issue(issue: RuleIssue) -> pb.RuleIssue:
    return pb.RuleIssue(
        kind=pb.RuleIssueKind.Value(f"RULE_ISSUE_KIND_{issue.kind.name}"),
        rule_id=issue.rule_id,
        caused_by=issue.caused_by,
        witness=None if issue.witness is None else parts.tool_request(issue.witness),
        message=issue.message,
    )


def difference(found: PolicyDifference) -> pb.DiffPoliciesResponse:
    """Convert a policy difference."""
    return pb.DiffPoliciesResponse(
        equivalent=found.equivalent,
        changes=map(_change, found.changes),
        rule_changes=map(parts.rule_patch, found.rule_changes),
        findings=parts.findings(found.findings),
    )


def _change(change: DecisionChange) -> pb.DecisionChange:
    return pb.DecisionChange(
        witness=parts.tool_request(change.witness),
        before=parts.decision_result(change.before),
        after=parts.decision_result(change.after),
    )

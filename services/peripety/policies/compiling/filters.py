"""Filter of scenarios that cannot be run: impossible expectations and invalid requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.errors import InvalidArgumentError
from peripety.policies.arguments import violations
from peripety.policies.model import Decision, DiscardedScenario, ScenarioSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.policies.model import TestScenario, ToolAnnotation
    from peripety.sim.policies.policy import Policy

__all__ = ["ARGUMENT_SCHEMA", "Filter", "Filtered"]

ARGUMENT_SCHEMA = "argument-schema"
"""The rule id of discarded requests whose arguments the tool rejects."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """The result of filtering.

    Attributes:
        kept: the runnable scenarios, in order.
        discarded: the others, each with the reason.
    """

    kept: tuple[TestScenario, ...]
    discarded: tuple[DiscardedScenario, ...]


class Filter:
    """Filter of scenarios; handwritten ones always pass.

    Args:
        policy: its invariants decide first, regardless of its rules.
        tools: the tools of the policy.
    """

    def __init__(self, policy: Policy, tools: Iterable[ToolAnnotation]) -> None:
        self._policy = policy
        self._tools: Mapping[tuple[str, str], ToolAnnotation] = {
            (tool.server_name, tool.tool_name): tool for tool in tools
        }

    def apply(self, scenarios: Iterable[TestScenario]) -> Filtered:
        """Split scenarios into runnable and discarded ones."""
        kept: list[TestScenario] = []
        discarded: list[DiscardedScenario] = []
        for scenario in scenarios:
            reason = None if scenario.source is ScenarioSource.HANDWRITTEN else self._reason(scenario)
            if reason is None:
                kept.append(scenario)
            else:
                discarded.append(DiscardedScenario(scenario, *reason))
        return Filtered(tuple(kept), tuple(discarded))

    def _reason(self, scenario: TestScenario) -> tuple[str, Decision] | None:
        """Return the rule that discards a scenario, with its fixed decision; None if no rule does."""
        request = scenario.request
        tool = self._tools.get((request.server_name, request.tool_name))
        if tool is not None and violations(tool.input_schema, request.arguments):
            return ARGUMENT_SCHEMA, Decision.DENY
        try:
            decided = self._policy.decide(request)
        except InvalidArgumentError:
            return ARGUMENT_SCHEMA, Decision.DENY
        if decided.by_invariant and not scenario.expected_decision.is_met_by(decided.decision):
            return decided.rule_id, decided.decision
        return None

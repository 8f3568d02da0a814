"""Scenario merge: replacements, corrections, deduplication and unique descriptions.

Scenarios that cannot be run are removed: impossible expectations and invalid requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety import engine
from peripety.engine.policies.types import Decision
from peripety.errors import InvalidArgumentError
from peripety.policy.rule_paths import argument_violations
from peripety.policy.types import DiscardedScenario, Expectation, ScenarioOrigin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.engine.policies.policy import Policy
    from peripety.engine.policies.types import ToolRequest
    from peripety.policy.types import (
        AnnotatedTool,
        ScenarioCorrection,
        ScenarioFeedback,
        TestScenario,
    )


ARGUMENT_SCHEMA_RULE = "argument-schema"
"""The rule id of discarded requests whose arguments the tool rejects."""
WITHDRAWN_RULE = "withdrawn"
"""The rule id of contested scenarios for which their author names no sentence of the policy."""


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The result of filtering.

    Attributes:
        accepted: the runnable scenarios, in order.
        discarded: the others, each with the reason.
    """

    accepted: tuple[TestScenario, ...]
    discarded: tuple[DiscardedScenario, ...]


class ScenarioFilter:
    """Filter of scenarios; handwritten ones always pass.

    Args:
        policy: its invariants decide first, regardless of its rules.
        tools: the tools of the policy.
    """

    def __init__(self, policy: Policy, tools: Iterable[AnnotatedTool]) -> None:
        self._policy = policy
        self._tools: Mapping[tuple[str, str], AnnotatedTool] = {
            (tool.server_name, tool.tool_name): tool for tool in tools
        }
        self._closing: Policy | None = None

    def close(self, closing: Policy) -> None:
        """Discard scenarios from now on that expect to be allowed what the rules of a policy stop."""
        self._closing = closing

    def apply(self, scenarios: Iterable[TestScenario]) -> FilterResult:
        """Split scenarios into runnable and discarded ones."""
        kept: list[TestScenario] = []
        discarded: list[DiscardedScenario] = []
        for scenario in scenarios:
            reason = None if scenario.source is ScenarioOrigin.HANDWRITTEN else self._discard_reason(scenario)
            if reason is None:
                kept.append(scenario)
            else:
                discarded.append(DiscardedScenario(scenario, *reason))
        return FilterResult(tuple(kept), tuple(discarded))

    def _discard_reason(self, scenario: TestScenario) -> tuple[str, Decision] | None:
        """Return the rule that discards a scenario, with its fixed decision; None if no rule does."""
        request = scenario.request
        tool = self._tools.get((request.server_name, request.tool_name))
        if tool is not None and argument_violations(tool.input_schema, request.arguments):
            return ARGUMENT_SCHEMA_RULE, Decision.DENY
        try:
            decided = self._policy.decide(request)
        except InvalidArgumentError:
            return ARGUMENT_SCHEMA_RULE, Decision.DENY
        if decided.by_invariant and not scenario.expected_decision.is_met_by(decided.decision):
            return decided.rule_id, decided.decision
        if self._closing is not None and scenario.expected_decision is Expectation.ALLOW:
            stopped = self._closing.decide(request)
            return (stopped.rule_id, stopped.decision) if stopped.rule_id else None
        return None


def request_key(request: ToolRequest) -> bytes:
    """Return a key that is equal for equal requests."""
    parts = [request.server_name, request.tool_name, dict(request.arguments), [*request.roles]]
    try:
        return engine.canonicalize(parts)
    except InvalidArgumentError:
        return repr(parts).encode("utf-8", "backslashreplace")  # the engine will reject it


def are_compatible(one: Expectation, other: Expectation) -> bool:
    """Return True if one decision can meet two expectations."""
    return any(one.is_met_by(decision) and other.is_met_by(decision) for decision in Decision)


def find_contradictions(
    scenarios: Iterable[TestScenario],
    existing: Iterable[TestScenario] = (),
) -> Iterator[tuple[TestScenario, TestScenario]]:
    """Yield pairs of scenarios with the same request and incompatible expectations.

    Yields:
        The earlier and the later scenario.
    """
    first = {request_key(scenario.request): scenario for scenario in existing}
    for scenario in scenarios:
        there = first.setdefault(request_key(scenario.request), scenario)
        if not are_compatible(there.expected_decision, scenario.expected_decision):
            yield there, scenario


def apply_corrections(
    scenarios: Iterable[TestScenario],
    corrections: Iterable[ScenarioCorrection],
) -> tuple[TestScenario, ...]:
    """Return the scenarios with corrections applied in place; handwritten ones are never changed."""
    wanted = {correction.scenario_description: correction for correction in corrections}
    return tuple(_apply_correction(scenario, wanted.get(scenario.description)) for scenario in scenarios)


def drop_repeated(
    scenarios: Iterable[TestScenario],
    existing: Sequence[TestScenario] = (),
) -> tuple[TestScenario, ...]:
    """Return the scenarios whose request is new among them and among the others.

    Only the request counts: a repeated request with another expectation is dropped. A used description gets a
    number.
    """
    requests = {request_key(scenario.request) for scenario in existing}
    fresh: list[TestScenario] = []
    for scenario in scenarios:
        key = request_key(scenario.request)
        if key not in requests:
            requests.add(key)
            fresh.append(scenario)
    return with_unique_descriptions(fresh, existing)


def with_unique_descriptions(
    scenarios: Iterable[TestScenario],
    existing: Iterable[TestScenario] = (),
) -> tuple[TestScenario, ...]:
    """Return the scenarios with a number appended to each used description."""
    names = {scenario.description for scenario in existing}
    last: dict[str, int] = {}
    apart: list[TestScenario] = []
    for scenario in scenarios:
        name = scenario.description
        while name in names:
            last[scenario.description] = number = last.get(scenario.description, 1) + 1
            name = f"{scenario.description} ({number})"
        names.add(name)
        apart.append(replace(scenario, description=name))
    return tuple(apart)


def merge_replacements(
    scenarios: Sequence[TestScenario],
    feedback: ScenarioFeedback,
    replacements: Iterable[TestScenario],
    *,
    replace_corrected: bool = False,
) -> tuple[TestScenario, ...]:
    """Return the scenarios after feedback: the remaining ones, followed by the new replacements.

    Discarded scenarios are removed, and so are corrected ones if replacements for them were requested.
    Handwritten scenarios always remain, and so does another scenario with the description of a discarded one.
    A replacement is dropped if its description or request belongs to a remaining scenario. It is also dropped
    if it has the request of a removed corrected scenario, but not the corrected expectation.

    Args:
        scenarios: the scenarios before, with corrections applied.
        feedback: the feedback that the author of the replacements received.
        replacements: the replacements.
        replace_corrected: True if corrected scenarios were to be replaced.
    """
    discarded = {_scenario_identity(one.scenario) for one in feedback.discarded}
    decided = {correction.scenario_description for correction in feedback.corrections}
    kept = [
        scenario
        for scenario in scenarios
        if scenario.source is ScenarioOrigin.HANDWRITTEN
        or not (
            _scenario_identity(scenario) in discarded
            or (replace_corrected and scenario.description in decided)
        )
    ]
    names = {scenario.description for scenario in kept}
    bound = {
        request_key(scenario.request): scenario.expected_decision
        for scenario in scenarios
        if scenario.description in decided
    }
    fitting = (
        new
        for new in replacements
        if new.description not in names
        and bound.get(request_key(new.request), new.expected_decision) is new.expected_decision
    )
    return (*kept, *drop_repeated(fitting, kept))


def _scenario_identity(scenario: TestScenario) -> tuple[str, bytes]:
    return scenario.description, request_key(scenario.request)


def _apply_correction(scenario: TestScenario, correction: ScenarioCorrection | None) -> TestScenario:
    if correction is None or scenario.source is ScenarioOrigin.HANDWRITTEN:
        return scenario
    return replace(
        scenario,
        expected_decision=correction.corrected_decision,
        reasoning=correction.corrected_reasoning,
    )

"""Merge of scenarios: replacements, corrections, deduplication and unique descriptions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety import sim
from peripety.errors import InvalidArgumentError
from peripety.policies.model import Decision, ScenarioSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.policies.model import (
        Expectation,
        ScenarioCorrection,
        ScenarioFeedback,
        TestScenario,
        ToolRequest,
    )

__all__ = [
    "are_met_together",
    "contradictions",
    "corrected",
    "merged",
    "named_apart",
    "request_key",
    "without_repetition",
]


def request_key(request: ToolRequest) -> bytes:
    """Return a key that is equal for equal requests."""
    parts = [request.server_name, request.tool_name, dict(request.arguments), [*request.roles]]
    try:
        return sim.canonical(parts)
    except InvalidArgumentError:
        return repr(parts).encode("utf-8", "backslashreplace")  # the engine will reject it


def are_met_together(one: Expectation, other: Expectation) -> bool:
    """Return True if one decision can meet two expectations."""
    return any(one.is_met_by(decision) and other.is_met_by(decision) for decision in Decision)


def contradictions(
    scenarios: Iterable[TestScenario], beside: Iterable[TestScenario] = ()
) -> Iterator[tuple[TestScenario, TestScenario]]:
    """Yield pairs of scenarios with the same request and incompatible expectations.

    Yields:
        The earlier and the later scenario.
    """
    first = {request_key(scenario.request): scenario for scenario in beside}
    for scenario in scenarios:
        there = first.setdefault(request_key(scenario.request), scenario)
        if not are_met_together(there.expected_decision, scenario.expected_decision):
            yield there, scenario


def corrected(
    scenarios: Iterable[TestScenario], corrections: Iterable[ScenarioCorrection]
) -> tuple[TestScenario, ...]:
    """Return the scenarios with corrections applied in place; handwritten ones are never changed."""
    wanted = {correction.scenario_description: correction for correction in corrections}
    return tuple(_with(scenario, wanted.get(scenario.description)) for scenario in scenarios)


def without_repetition(
    scenarios: Iterable[TestScenario], beside: Sequence[TestScenario] = ()
) -> tuple[TestScenario, ...]:
    """Return the scenarios whose request is new among them and among the others.

    Only the request counts: a repeated request with another expectation is dropped. A used description gets a
    number.
    """
    requests = {request_key(scenario.request) for scenario in beside}
    fresh: list[TestScenario] = []
    for scenario in scenarios:
        key = request_key(scenario.request)
        if key not in requests:
            requests.add(key)
            fresh.append(scenario)
    return named_apart(fresh, beside)


def named_apart(
    scenarios: Iterable[TestScenario], beside: Iterable[TestScenario] = ()
) -> tuple[TestScenario, ...]:
    """Return the scenarios with a number appended to each used description."""
    names = {scenario.description for scenario in beside}
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


def merged(
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
    discarded = {_identity(one.scenario) for one in feedback.discarded}
    decided = {correction.scenario_description for correction in feedback.corrections}
    kept = [
        scenario
        for scenario in scenarios
        if scenario.source is ScenarioSource.HANDWRITTEN
        or not (_identity(scenario) in discarded or (replace_corrected and scenario.description in decided))
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
    return (*kept, *without_repetition(fitting, kept))


def _identity(scenario: TestScenario) -> tuple[str, bytes]:
    return scenario.description, request_key(scenario.request)


def _with(scenario: TestScenario, correction: ScenarioCorrection | None) -> TestScenario:
    if correction is None or scenario.source is ScenarioSource.HANDWRITTEN:
        return scenario
    return replace(
        scenario,
        expected_decision=correction.corrected_decision,
        reasoning=correction.corrected_reasoning,
    )

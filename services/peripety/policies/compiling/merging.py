"""How scenarios come together: replacements take the place of what is gone, and nothing is said twice."""

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
    """What tells a request from others: the same bytes for the same request."""
    parts = [request.server_name, request.tool_name, dict(request.arguments), [*request.roles]]
    try:
        return sim.canonical(parts)
    except InvalidArgumentError:
        return repr(parts).encode("utf-8", "backslashreplace")  # the engine will refuse it


def are_met_together(one: Expectation, other: Expectation) -> bool:
    """Whether one decision can meet two expectations."""
    return any(one.is_met_by(decision) and other.is_met_by(decision) for decision in Decision)


def contradictions(
    scenarios: Iterable[TestScenario], beside: Iterable[TestScenario] = ()
) -> Iterator[tuple[TestScenario, TestScenario]]:
    """Each scenario that asks what another asks before it, and expects what that cannot allow for.

    Yields:
        The one that was there, and the one that came.
    """
    first = {request_key(scenario.request): scenario for scenario in beside}
    for scenario in scenarios:
        there = first.setdefault(request_key(scenario.request), scenario)
        if not are_met_together(there.expected_decision, scenario.expected_decision):
            yield there, scenario


def corrected(
    scenarios: Iterable[TestScenario], corrections: Iterable[ScenarioCorrection]
) -> tuple[TestScenario, ...]:
    """The scenarios with their corrections made, in their places; handwritten ones stay as they are."""
    wanted = {correction.scenario_description: correction for correction in corrections}
    return tuple(_with(scenario, wanted.get(scenario.description)) for scenario in scenarios)


def without_repetition(
    scenarios: Iterable[TestScenario], beside: Sequence[TestScenario] = ()
) -> tuple[TestScenario, ...]:
    """The scenarios whose request is new among them and beside others.

    Which request is asked is all that counts: one that is there already is not asked again with another
    expectation. A description that is taken gets a number.
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
    """The scenarios, with a number behind each description that is taken."""
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
    """The scenarios after feedback was answered: those that stay, then the replacements that are new.

    Discarded scenarios are gone, and so are corrected ones when replacements for them were asked for;
    handwritten ones never are, nor is another one that has the description of a discarded one. A replacement
    is left out when its description is one that stays, or its request is: also that of a corrected one that
    goes, unless it expects what the correction says.

    Args:
        scenarios: as they were, corrections made.
        feedback: what the author of the replacements was told.
        replacements: what was answered.
        replace_corrected: whether corrected scenarios were to be replaced.
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

"""The scenarios of a run: what is kept, what was thrown out, and how all of them fare."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.errors import Finding, Severity
from peripety.policies.compiling.filters import Filter
from peripety.policies.compiling.merging import contradictions, corrected, merged, without_repetition
from peripety.policies.model import ScenarioResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from peripety.policies.compiling.filters import Filtered
    from peripety.policies.model import (
        DiscardedScenario,
        ScenarioCorrection,
        ScenarioFeedback,
        TestScenario,
        ToolAnnotation,
    )
    from peripety.sim import Policy

__all__ = ["Suite", "fared"]


class Suite:
    """Scenarios under way.

    Args:
        foundation: what stands above all rules.
        tools: the tools that it is about.
        handwritten: scenarios that stay as they are.
        warn: told what a person should know.

    Attributes:
        scenarios: those that are kept, handwritten ones first.
        replaced: those that others took the place of. They passed, and no change of rules may fail them:
            who replaces a scenario must not be able to make the rules forget it.
    """

    def __init__(
        self,
        foundation: Policy,
        tools: Iterable[ToolAnnotation],
        handwritten: Iterable[TestScenario],
        warn: Callable[[Finding], None],
    ) -> None:
        self._filter = Filter(foundation, tools)
        self._warn = warn
        self.scenarios = tuple(handwritten)
        self.replaced: tuple[TestScenario, ...] = ()

    def sift(self, scenarios: Iterable[TestScenario]) -> Filtered:
        """Part scenarios into those that can be run and are new here, and those that are thrown out."""
        found = self._filter.apply(scenarios)
        fitting = self._agreeing(found.kept)
        return replace(found, kept=without_repetition(fitting, self.scenarios))

    def take(self, scenarios: Iterable[TestScenario]) -> None:
        """Take in scenarios that were sifted."""
        self.scenarios += tuple(scenarios)

    def correct(self, corrections: Iterable[ScenarioCorrection]) -> None:
        """Put expectations right, in their places."""
        self.scenarios = corrected(self.scenarios, corrections)

    def replace(
        self, feedback: ScenarioFeedback, replacements: Iterable[TestScenario], *, replace_corrected: bool
    ) -> tuple[DiscardedScenario, ...]:
        """Merge what was written in answer to feedback; those that cannot be run are returned."""
        found = self._filter.apply(replacements)
        before, fitting = self.scenarios, self._agreeing(found.kept)
        self.scenarios = merged(before, feedback, fitting, replace_corrected=replace_corrected)
        kept = {*map(id, self.scenarios)}
        self.replaced += tuple(scenario for scenario in before if id(scenario) not in kept)
        return found.discarded

    def _agreeing(self, scenarios: Iterable[TestScenario]) -> list[TestScenario]:
        """The scenarios without those that contradict what is there, or what one of them said before."""
        asked = [*scenarios]
        left_out = set()
        for there, new in contradictions(asked, (*self.replaced, *self.scenarios)):
            self._warn(_contradiction(there, new))
            left_out.add(id(new))
        return [scenario for scenario in asked if id(scenario) not in left_out]


def fared(policy: Policy, scenarios: Iterable[TestScenario]) -> tuple[ScenarioResult, ...]:
    """How scenarios fare on a policy, each in its place."""
    asked = [*scenarios]
    decisions = policy.decide_many([scenario.request for scenario in asked])
    return tuple(map(ScenarioResult, asked, decisions))


def _contradiction(there: TestScenario, new: TestScenario) -> Finding:
    message = (
        f'"{there.description}" expects {there.expected_decision.value} and stands; "{new.description}" asks'
        f" the same, expected {new.expected_decision.value} ({new.reasoning}), and was left out"
    )
    return Finding("SCENARIOS_CONTRADICT", "", message, Severity.WARNING)

"""The scenario suite of a run: current and replaced scenarios, and their results."""

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
    """The scenarios of a run.

    Args:
        foundation: the invariants, which precede all rules.
        tools: the tools of the policy.
        handwritten: scenarios that never change.
        warn: receives warnings for the author of the policy.

    Attributes:
        scenarios: the current ones, handwritten ones first.
        replaced: scenarios that were replaced by others. They passed, and no change of rules may fail them:
            replacing a scenario must not weaken the rules.
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
        """Split scenarios into runnable, new ones and discarded ones."""
        found = self._filter.apply(scenarios)
        fitting = self._agreeing(found.kept)
        return replace(found, kept=without_repetition(fitting, self.scenarios))

    def take(self, scenarios: Iterable[TestScenario]) -> None:
        """Add scenarios that were filtered."""
        self.scenarios += tuple(scenarios)

    def correct(self, corrections: Iterable[ScenarioCorrection]) -> None:
        """Apply corrections of expectations in place."""
        self.scenarios = corrected(self.scenarios, corrections)

    def replace(
        self, feedback: ScenarioFeedback, replacements: Iterable[TestScenario], *, replace_corrected: bool
    ) -> tuple[DiscardedScenario, ...]:
        """Merge replacements, and return those that cannot be run."""
        found = self._filter.apply(replacements)
        before, fitting = self.scenarios, self._agreeing(found.kept)
        self.scenarios = merged(before, feedback, fitting, replace_corrected=replace_corrected)
        kept = {*map(id, self.scenarios)}
        self.replaced += tuple(scenario for scenario in before if id(scenario) not in kept)
        return found.discarded

    def _agreeing(self, scenarios: Iterable[TestScenario]) -> list[TestScenario]:
        """Return the scenarios that contradict no existing scenario and no earlier one among them."""
        asked = [*scenarios]
        left_out = set()
        for there, new in contradictions(asked, (*self.replaced, *self.scenarios)):
            self._warn(_contradiction(there, new))
            left_out.add(id(new))
        return [scenario for scenario in asked if id(scenario) not in left_out]


def fared(policy: Policy, scenarios: Iterable[TestScenario]) -> tuple[ScenarioResult, ...]:
    """Return the results of scenarios on a policy, in the same order."""
    asked = [*scenarios]
    decisions = policy.decide_many([scenario.request for scenario in asked])
    return tuple(map(ScenarioResult, asked, decisions))


def _contradiction(there: TestScenario, new: TestScenario) -> Finding:
    message = (
        f'"{there.description}" expects {there.expected_decision.value} and remains; "{new.description}"'
        f" has the same request, expects {new.expected_decision.value} ({new.reasoning}), and was left out"
    )
    return Finding("SCENARIOS_CONTRADICT", "", message, Severity.WARNING)

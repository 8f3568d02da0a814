"""The scenarios of a run: what is kept, what was thrown out, and how all of them fare."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.policies.compiling.filters import Filter
from peripety.policies.compiling.merging import corrected, merged, without_repetition
from peripety.policies.model import ScenarioResult

if TYPE_CHECKING:
    from collections.abc import Iterable

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

    Attributes:
        scenarios: those that are kept, handwritten ones first.
    """

    def __init__(
        self, foundation: Policy, tools: Iterable[ToolAnnotation], handwritten: Iterable[TestScenario]
    ) -> None:
        self._filter = Filter(foundation, tools)
        self.scenarios = tuple(handwritten)

    def sift(self, scenarios: Iterable[TestScenario]) -> Filtered:
        """Part scenarios into those that can be run and are new here, and those that are thrown out."""
        found = self._filter.apply(scenarios)
        return replace(found, kept=without_repetition(found.kept, self.scenarios))

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
        self.scenarios = merged(self.scenarios, feedback, found.kept, replace_corrected=replace_corrected)
        return found.discarded


def fared(policy: Policy, scenarios: Iterable[TestScenario]) -> tuple[ScenarioResult, ...]:
    """How scenarios fare on a policy, each in its place."""
    asked = [*scenarios]
    decisions = policy.decide_many([scenario.request for scenario in asked])
    return tuple(map(ScenarioResult, asked, decisions))

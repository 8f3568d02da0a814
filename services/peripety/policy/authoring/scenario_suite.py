"""Scenario suite of a run: current and replaced scenarios, their results, and the final suite.

The final suite is completed, minimised and measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.errors import Finding, Severity
from peripety.policy.authoring.scenario_merge import (
    ScenarioFilter,
    apply_corrections,
    drop_repeated,
    find_contradictions,
    merge_replacements,
)
from peripety.policy.coverage_generation.gap_scenarios import complete_in_context
from peripety.policy.coverage_generation.minimize import minimize_suite
from peripety.policy.mutation.runner import MutationContext, TimeLimitReachedError
from peripety.policy.types import ScenarioOrigin, ScenarioResult
from peripety.policy.verification.verify import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from peripety.engine import Policy
    from peripety.policy.authoring.scenario_merge import FilterResult
    from peripety.policy.types import (
        AnnotatedTool,
        DiscardedScenario,
        ScenarioCorrection,
        ScenarioFeedback,
        TestScenario,
        VerificationReport,
    )


@dataclass(frozen=True, slots=True)
class FinalSuite:
    """The final suite.

    Attributes:
        scenarios: handwritten ones, then written ones that add coverage, then generated ones.
        generated: the scenarios that the engine generated for gaps.
        report: the verification report of all scenarios.
        skipped: the parts that the time limit skipped, each in a few words.
    """

    scenarios: tuple[TestScenario, ...]
    generated: tuple[TestScenario, ...]
    report: VerificationReport
    skipped: tuple[str, ...] = ()

    def findings(self) -> Iterator[Finding]:
        """Yield a warning if the time limit skipped a part."""
        if self.skipped:
            message = f"time limit reached; not determined: {'; '.join(self.skipped)}"
            yield Finding("MEASURED_IN_PART", "", message, Severity.WARNING)


def is_time_limit_finding(finding: Finding) -> bool:
    """Return True if a finding reports a part that the time limit skipped."""
    return finding.code == "MEASURED_IN_PART"


def finalize(
    policy: Policy,
    scenarios: Sequence[TestScenario],
    *,
    directed: bool = True,
    mutation: bool = True,
    is_late: Callable[[], bool] = lambda: False,
) -> FinalSuite:
    """Build the final suite from scenarios that all pass.

    If the time limit is reached during the selection, all scenarios are included and none is generated.

    Args:
        policy: the policy.
        scenarios: handwritten and written ones.
        directed: True to generate scenarios for coverage gaps.
        mutation: True to measure the mutation score.
        is_late: returns True once the time limit is reached.
    """
    subject = MutationContext(policy, is_late)
    left: tuple[str, ...] = ()
    try:
        kept = (complete_in_context if directed else minimize_suite)(subject, scenarios)
    except TimeLimitReachedError:
        kept, left = tuple(scenarios), ("the scenarios that add coverage",)
    done = measure(subject, kept, mutation=mutation)
    made = tuple(scenario for scenario in kept if scenario.source is ScenarioOrigin.DIRECTED)
    return FinalSuite(kept, made, done.report, (*left, *done.skipped))


class ScenarioSuite:
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
        tools: Iterable[AnnotatedTool],
        handwritten: Iterable[TestScenario],
        warn: Callable[[Finding], None],
    ) -> None:
        self._filter = ScenarioFilter(foundation, tools)
        self._warn = warn
        self.scenarios = tuple(handwritten)
        self.replaced: tuple[TestScenario, ...] = ()

    def close(self, closing: Policy) -> None:
        """Discard scenarios from now on that expect to be allowed what the rules of a policy stop."""
        self._filter.close(closing)

    def filter_new(self, scenarios: Iterable[TestScenario]) -> FilterResult:
        """Split scenarios into runnable, new ones and discarded ones."""
        found = self._filter.apply(scenarios)
        fitting = self._without_contradictions(found.accepted)
        return replace(found, accepted=drop_repeated(fitting, self.scenarios))

    def add(self, scenarios: Iterable[TestScenario]) -> None:
        """Add scenarios that were filtered."""
        self.scenarios += tuple(scenarios)

    def apply_corrections(self, corrections: Iterable[ScenarioCorrection]) -> None:
        """Apply corrections of expectations in place."""
        self.scenarios = apply_corrections(self.scenarios, corrections)

    def remove(self, scenarios: Iterable[TestScenario]) -> None:
        """Remove scenarios without replacements; the rules no longer have to meet them."""
        removed = {*map(id, scenarios)}
        self.scenarios = tuple(scenario for scenario in self.scenarios if id(scenario) not in removed)

    def replace(
        self,
        feedback: ScenarioFeedback,
        replacements: Iterable[TestScenario],
        *,
        replace_corrected: bool,
    ) -> tuple[DiscardedScenario, ...]:
        """Merge replacements, and return those that cannot be run."""
        found = self._filter.apply(replacements)
        before, fitting = self.scenarios, self._without_contradictions(found.accepted)
        self.scenarios = merge_replacements(before, feedback, fitting, replace_corrected=replace_corrected)
        kept = {*map(id, self.scenarios)}
        self.replaced += tuple(scenario for scenario in before if id(scenario) not in kept)
        return found.discarded

    def _without_contradictions(self, scenarios: Iterable[TestScenario]) -> list[TestScenario]:
        """Return the scenarios that contradict no existing scenario and no earlier one among them."""
        asked = [*scenarios]
        left_out = set()
        for there, new in find_contradictions(asked, (*self.replaced, *self.scenarios)):
            self._warn(_contradiction_warning(there, new))
            left_out.add(id(new))
        return [scenario for scenario in asked if id(scenario) not in left_out]


def evaluate_scenarios(policy: Policy, scenarios: Iterable[TestScenario]) -> tuple[ScenarioResult, ...]:
    """Return the results of scenarios on a policy, in the same order."""
    asked = [*scenarios]
    decisions = policy.decide_many([scenario.request for scenario in asked])
    return tuple(map(ScenarioResult, asked, decisions))


def _contradiction_warning(existing: TestScenario, new: TestScenario) -> Finding:
    message = (
        f'"{existing.description}" expects {existing.expected_decision.value} and remains; '
        f'"{new.description}"'
        f" has the same request, expects {new.expected_decision.value} ({new.reasoning}), and was left out"
    )
    return Finding("SCENARIOS_CONTRADICT", "", message, Severity.WARNING)

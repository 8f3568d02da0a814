"""A suite of scenarios that is run in one batch: passing scenarios, and those that a change would fail."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from peripety.policies.model import Expectation
from peripety.policies.verifying.outcomes import Outcomes
from peripety.sim import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.policies.model import TestScenario
    from peripety.policies.verifying.outcomes import Changed, Decisions
    from peripety.sim import Policy

__all__ = ["Suite"]

_TOGETHER = 1000


class Suite:
    """Scenarios with their results on the rules of a policy.

    Attributes:
        policy: the policy.
        scenarios: the given scenarios.
        requests: their prepared requests.
        outcomes: the decisions of the rules.
        passed: a bit for each passing scenario.
    """

    def __init__(self, policy: Policy, scenarios: Sequence[TestScenario]) -> None:
        """Run scenarios.

        Raises:
            InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
        """
        self.policy = policy
        self.scenarios = tuple(scenarios)
        self.requests = policy.prepare([scenario.request for scenario in scenarios])
        self.outcomes = Outcomes(policy, self.requests)
        self._against = {decision: self._expecting_else(decision) for decision in Decision}
        self.passed = ((1 << len(self.scenarios)) - 1) & ~self._failing(self.outcomes.decisions)

    def failing(self, changes: Iterable[Changed]) -> Iterator[int]:
        """Yield, for each change of the rules, a bit for each passing scenario that would fail."""
        remaining = iter(changes)
        while block := [*islice(remaining, _TOGETHER)]:
            for affected, decisions in self.outcomes.changed(block):
                yield affected & self.passed & self._failing(decisions)

    def _failing(self, decisions: Decisions) -> int:
        failing = 0
        for decision, against in self._against.items():
            failing |= decisions.about(decision) & against
        return failing

    def _expecting_else(self, decision: Decision) -> int:
        meets = {expectation: expectation.is_met_by(decision) for expectation in Expectation}
        digits = ("0" if meets[scenario.expected_decision] else "1" for scenario in reversed(self.scenarios))
        return int("".join(digits) or "0", 2)

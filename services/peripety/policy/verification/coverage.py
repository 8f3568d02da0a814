"""Coverage of a suite: rules, both values of clauses, and both sides of boundaries.

A suite runs in one batch. Decisions of rules are bit masks over its requests, including those of changed
rules, so that the scenarios which a change would fail are found without running them again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.core.mutation_testing import Coverage
from peripety.engine import Decision, canonicalize
from peripety.engine.schema_validation import format_pointer
from peripety.policy.analysis.equivalence import Reached, ReachTarget, Unreachable
from peripety.policy.analysis.lint import find_requests
from peripety.policy.rule_paths import rule_path
from peripety.policy.types import Expectation
from peripety.policy.verification.condition_clauses import boundary_points, iter_clauses

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from peripety.engine import Policy, PreparedRequests, RuleMatches
    from peripety.policy.analysis.equivalence import ReachResult
    from peripety.policy.types import TestScenario


RULE_COVERAGE, CONDITION_DECISION_COVERAGE, BOUNDARY_COVERAGE = COVERAGE_KINDS = (
    "rule",
    "condition_decision",
    "boundary",
)
"""The kinds of coverage."""


@dataclass(frozen=True, slots=True)
class CoverageTarget:
    """A coverage target.

    Attributes:
        kind: one of the `KINDS`.
        path: JSON Pointer of the part, with the wanted result as its last segment: `true` or `false` of a
            clause; `on`, `inside`, `outside`, `below` or `above` of a boundary. `/rules/-` means the requests
            that no rule applies to.
        ways: the alternative sets of requests that reach it.
        closer: the most significant of them, if it is narrower than a request needs to be.
    """

    kind: str
    path: str
    ways: tuple[ReachTarget, ...]
    closer: ReachTarget | None = None


def coverage_targets(policy: Policy) -> tuple[CoverageTarget, ...]:
    """Return all coverage targets of a policy, reachable or not."""
    conditions = [aim for index in range(len(policy.rules)) for aim in _condition_targets(policy, index)]
    return (*_rule_targets(policy), *conditions, *_boundary_targets(policy))


def _rule_targets(policy: Policy) -> Iterator[CoverageTarget]:
    for index in range(len(policy.rules)):
        yield CoverageTarget(
            RULE_COVERAGE,
            format_pointer(rule_path(policy, index)),
            (ReachTarget(index, decides=True),),
        )
    yield CoverageTarget(RULE_COVERAGE, "/rules/-", (ReachTarget(len(policy.rules)),))


def _condition_targets(policy: Policy, index: int) -> Iterator[CoverageTarget]:
    for question in iter_clauses(policy.rules[index]):
        place = format_pointer((*rule_path(policy, index), *question.place))
        asked = (question.condition,)
        true = ReachTarget(index, holds=question.holds + asked, fails=question.fails)
        false = ReachTarget(index, holds=question.holds, fails=question.fails + asked)
        yield CoverageTarget(CONDITION_DECISION_COVERAGE, f"{place}/true", (true,))
        yield CoverageTarget(CONDITION_DECISION_COVERAGE, f"{place}/false", (false,))


def _boundary_targets(policy: Policy) -> Iterator[CoverageTarget]:
    """Yield the targets of boundaries; one in a list is reached wherever the list is used."""
    found: dict[str, CoverageTarget] = {}
    lists = policy.spec.get("lists", {})
    for index, rule in enumerate(policy.rules):
        for question in iter_clauses(rule):
            for point in boundary_points(question, lists):
                place = point.place if point.in_list else (*rule_path(policy, index), *point.place)
                path = f"{format_pointer(place)}/{point.name}"
                way = ReachTarget(
                    index,
                    holds=(*question.holds, *point.holds),
                    fails=(*question.fails, *point.fails),
                )
                if path in found:
                    found[path] = replace(found[path], ways=(*found[path].ways, way))
                else:
                    closer = replace(way, holds=(*way.holds, point.closer)) if point.closer else None
                    found[path] = CoverageTarget(BOUNDARY_COVERAGE, path, (way,), closer)
    yield from found.values()


def reaching_scenarios(suite: EvaluatedSuite, targets: Sequence[CoverageTarget]) -> list[int]:
    """Return, for each coverage target, a bit for each passing scenario that reaches it."""
    conditions = [c for aim in targets for way in aim.ways for c in (*way.holds, *way.fails)]
    keys = {id(condition): canonicalize(condition) for condition in {id(c): c for c in conditions}.values()}
    distinct = {keys[id(condition)]: condition for condition in conditions}
    rules = [{"when": condition, "then": "allow"} for condition in distinct.values()]
    found = suite.policy.match_rules(suite.requests, rules) if rules else ()
    by_key = dict(zip(distinct, found, strict=True))
    matches = {number: by_key[key] for number, key in keys.items()}
    return [
        suite.passed & _union(_reaching_requests(suite, way, matches) for way in aim.ways) for aim in targets
    ]


def _union(reached: Iterable[int]) -> int:
    total = 0
    for requests in reached:
        total |= requests
    return total


def _reaching_requests(suite: EvaluatedSuite, way: ReachTarget, matches: Mapping[int, RuleMatches]) -> int:
    requests = suite.outcomes.reaching[way.rule]
    if way.decides:
        requests &= suite.outcomes.applying[way.rule]
    for condition in way.holds:
        requests &= matches[id(condition)].holds
    for condition in way.fails:
        found = matches[id(condition)]
        requests &= ~(found.holds | found.unevaluated)
    return requests


def coverage_by_kind(
    targets: Sequence[CoverageTarget],
    covered: Collection[str],
    unreachable: Collection[str],
) -> tuple[Coverage, ...]:
    """Return the coverage by kind.

    Args:
        targets: the coverage targets.
        covered: the paths of the reached targets.
        unreachable: the paths of the unreachable targets.
    """
    return tuple(
        _coverage_of_kind(kind, [aim.path for aim in targets if aim.kind == kind], covered, unreachable)
        for kind in COVERAGE_KINDS
    )


def _coverage_of_kind(
    kind: str,
    paths: Sequence[str],
    covered: Collection[str],
    unreachable: Collection[str],
) -> Coverage:
    reached = sum(path in covered for path in paths)
    missed = [path for path in paths if path not in covered and path not in unreachable]
    never = tuple(path for path in paths if path in unreachable)
    return Coverage(kind, reached, reached + len(missed), tuple(missed), never)


def find_reaching_requests(policy: Policy, targets: Sequence[CoverageTarget]) -> list[ReachResult]:
    """Return, for each target, a request that reaches it, a proof that none exists, or neither."""
    found = find_requests(policy, [way for aim in targets for way in aim.ways])
    return [_best_result([next(found) for _ in aim.ways]) for aim in targets]


def _best_result(ways: Sequence[ReachResult]) -> ReachResult:
    """Return a reaching request, or else the least certain result."""
    return min(
        ways,
        key=lambda way: 0 if isinstance(way, Reached) else 2 if isinstance(way, Unreachable) else 1,
    )


RuleReplacements: TypeAlias = Mapping[int, Mapping[str, Any] | None]
"""Replaced rules by their index in `Policy.rules`; None removes a rule."""

_NONZERO_BYTE = re.compile(rb"[^\0]")
_BITS_OF_BYTE = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


def iter_bits(numbers: int) -> Iterator[int]:
    """Yield the numbers of the set bits, lowest first."""
    for found in _NONZERO_BYTE.finditer(numbers.to_bytes((numbers.bit_length() + 7) // 8, "little")):
        first = 8 * found.start()
        for bit in _BITS_OF_BYTE[found[0][0]]:
            yield first + bit


def applying_requests(rule: Mapping[str, Any], matches: RuleMatches) -> int:
    """Return the requests that a rule applies to, if it is evaluated."""
    return matches.holds if rule["then"] == "allow" else matches.holds | matches.unevaluated


class DecisionSets:
    """The requests for each decision, as bit masks.

    Attributes:
        allowed: a bit for each allowed request.
        escalated: a bit for each escalated request. All others are denied.
    """

    __slots__ = ("allowed", "escalated")

    def __init__(self, allowed: int = 0, escalated: int = 0) -> None:
        self.allowed = allowed
        self.escalated = escalated

    def with_rule_in_front(self, takes: int, then: str) -> DecisionSets:
        """Return the decisions if a rule that applies to some requests is put in front."""
        rest = ~takes
        return DecisionSets(
            self.allowed & rest | (takes if then == "allow" else 0),
            self.escalated & rest | (takes if then == "escalate" else 0),
        )

    def requests_with(self, decision: Decision) -> int:
        """Return the requests with a decision; for denials, all bits above the requests are set as well."""
        match decision:
            case Decision.ALLOW:
                return self.allowed
            case Decision.ESCALATE:
                return self.escalated
            case Decision.DENY:
                return ~(self.allowed | self.escalated)


class RuleOutcomes:
    """The decisions of the rules of a policy for some requests, and of variants of the rules.

    Attributes:
        applying: for each rule, the requests that it applies to if it is evaluated.
        reaching: for each rule, the requests that no earlier rule applies to; at the end, those that no rule
            applies to. Requests with unknown tools are excluded.
        decisions: the decisions for all requests.
    """

    def __init__(self, policy: Policy, requests: PreparedRequests) -> None:
        self._policy = policy
        self._requests = requests
        found = policy.match_rules(requests)
        self._matches = {id(rule["when"]): matches for rule, matches in zip(policy.rules, found, strict=True)}
        self.applying = [
            applying_requests(rule, matches) for rule, matches in zip(policy.rules, found, strict=True)
        ]
        self.reaching = [
            *_iter_reaching(self.applying, _known_tool_mask(policy.find_deciding_rules(requests))),
        ]
        self._decided_from = _decisions_from_each_rule(policy.rules, self.applying)
        self.decisions = self._decided_from[0]

    def decide_changed(self, changes: Sequence[RuleReplacements]) -> Iterator[tuple[int, DecisionSets]]:
        """Yield, for each change of the rules, the affected requests and their decisions.

        Args:
            changes: for each change, replaced rules by their index; None removes a rule. All conditions that
                are new to the policy are evaluated in one batch.
        """
        rules = [rule for change in changes for rule in change.values() if rule is not None]
        new = {id(rule["when"]): rule for rule in rules if id(rule["when"]) not in self._matches}
        found = self._policy.match_rules(self._requests, [*new.values()]) if new else ()
        matches = self._matches | dict(zip(new, found, strict=True))
        for change in changes:
            yield self.reaching[min(change)], self._decide_change(change, matches)

    def _decide_change(self, change: RuleReplacements, matches: Mapping[int, RuleMatches]) -> DecisionSets:
        last = max(change)
        decisions = self._decided_from[last + 1]
        for index in range(last, min(change) - 1, -1):
            if index not in change:
                decisions = decisions.with_rule_in_front(
                    self.applying[index],
                    self._policy.rules[index]["then"],
                )
            elif (rule := change[index]) is not None:
                decisions = decisions.with_rule_in_front(
                    applying_requests(rule, matches[id(rule["when"])]),
                    rule["then"],
                )
        return decisions


def _known_tool_mask(deciding: Iterable[int]) -> int:
    unknown_tool = -2
    return int("".join("0" if index == unknown_tool else "1" for index in deciding)[::-1] or "0", 2)


def _iter_reaching(takes: Iterable[int], known: int) -> Iterator[int]:
    yield known
    for taken in takes:
        known &= ~taken
        yield known


def _decisions_from_each_rule(rules: Sequence[Mapping[str, Any]], takes: Sequence[int]) -> list[DecisionSets]:
    """Return, for each rule, the decisions if it were the first; at the end, those without rules."""
    found = [DecisionSets()]
    for rule, taken in zip(reversed(rules), reversed(takes), strict=True):
        found.append(found[-1].with_rule_in_front(taken, rule["then"]))
    return found[::-1]


_CHANGES_PER_BATCH = 1000


class EvaluatedSuite:
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
        self.outcomes = RuleOutcomes(policy, self.requests)
        self._expecting_other = {decision: self._expecting_other_mask(decision) for decision in Decision}
        self.passed = ((1 << len(self.scenarios)) - 1) & ~self._failing_mask(self.outcomes.decisions)

    def failing_by_change(self, changes: Iterable[RuleReplacements]) -> Iterator[int]:
        """Yield, for each change of the rules, a bit for each passing scenario that would fail."""
        remaining = iter(changes)
        while block := [*islice(remaining, _CHANGES_PER_BATCH)]:
            for affected, decisions in self.outcomes.decide_changed(block):
                yield affected & self.passed & self._failing_mask(decisions)

    def _failing_mask(self, decisions: DecisionSets) -> int:
        failing = 0
        for decision, against in self._expecting_other.items():
            failing |= decisions.requests_with(decision) & against
        return failing

    def _expecting_other_mask(self, decision: Decision) -> int:
        meets = {expectation: expectation.is_met_by(decision) for expectation in Expectation}
        digits = ("0" if meets[scenario.expected_decision] else "1" for scenario in reversed(self.scenarios))
        return int("".join(digits) or "0", 2)

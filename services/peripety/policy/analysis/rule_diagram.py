"""Decisions of an ordered rule list for one tool, as decision diagrams."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from peripety.policy.analysis.argument_variables import AnalysisCache
from peripety.policy.analysis.condition_logic import PolicyLists, ToolTerms
from peripety.policy.analysis.decision_diagram import NO, YES, TooLargeError
from peripety.policy.analysis.request_space import RequestSpace, ToolClasses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.engine.policies.policy import Policy
    from peripety.policy.analysis.condition_logic import ResolvedCondition
    from peripety.policy.analysis.request_space import ToolClass


DECISION_RESULTS = {"deny": 0, "allow": 1, "escalate": 2}
"""Decisions as results of diagrams."""


def results_differ(one: int, other: int) -> int:
    """Return `YES` if two results differ, for `Diagrams.apply`."""
    return YES if one != other else NO


class RuleDiagram:
    """An ordered rule list, for one tool.

    Args:
        space: the requests to the tool.
        terms: the tool, as annotated by the policy of the rules.
        rules: the rules.
        rule_numbers: the rules that can apply to the tool, in order; of thousands, few can.
    """

    def __init__(
        self,
        space: RequestSpace,
        terms: ToolTerms,
        rules: Sequence[Mapping[str, Any]],
        rule_numbers: Sequence[int],
    ) -> None:
        self.space = space
        self.terms = terms
        self.rules = rules
        self._rule_numbers = rule_numbers
        # The requests that reach each of the own rules, and the decisions from there on; and after the last
        # one.
        self._reaching_sets = [space.possible_set]
        self._decision_diagrams = [DECISION_RESULTS["deny"]]

    def applying_requests(self, rule: Mapping[str, Any]) -> int:
        """Return the requests that a rule applies to, regardless of its position."""
        holds, fails = self.condition_sets(rule["when"])
        return holds if rule["then"] == "allow" else self.space.diagrams.union(holds, fails)

    def condition_sets(self, when: Mapping[str, Any]) -> tuple[int, int]:
        """Return the requests for which a condition holds, and those for which it cannot be evaluated."""
        if not self.terms.can_apply(when):
            return NO, NO
        return self.space.condition_sets(self.terms.resolve(when))

    def reaching_requests(self, number: int) -> int:
        """Return the requests that reach the rule with an index: no earlier rule applies."""
        own = bisect_left(self._rule_numbers, number)
        while len(self._reaching_sets) <= own:
            takes = self.applying_requests(self.rules[self._rule_numbers[len(self._reaching_sets) - 1]])
            self._reaching_sets.append(self.space.diagrams.if_then_else(takes, NO, self._reaching_sets[-1]))
        return self._reaching_sets[own]

    def last_reached_rule(self) -> int | None:
        """Return the last rule that requests reach; None if no rule applies to some requests.

        The result is -1 if the set of requests is empty.
        """
        if self.reaching_requests(len(self.rules)) != NO:
            return None
        taken = self._reaching_sets.index(NO)
        return self._rule_numbers[taken - 1] if taken else -1

    def decisions_from(self, number: int) -> int:
        """Return the decisions of the rules from an index on."""
        behind = len(self._rule_numbers) - bisect_left(self._rule_numbers, number)
        while len(self._decision_diagrams) <= behind:
            rule = self.rules[self._rule_numbers[-len(self._decision_diagrams)]]
            self._decision_diagrams.append(self.decide_before([rule], self._decision_diagrams[-1]))
        return self._decision_diagrams[behind]

    def decide_before(self, rules: Sequence[Mapping[str, Any]], decided: int) -> int:
        """Return the decisions of rules that are put in front of a diagram of decisions."""
        for rule in reversed(rules):
            decided = self.space.diagrams.if_then_else(
                self.applying_requests(rule),
                DECISION_RESULTS[rule["then"]],
                decided,
            )
        return decided


def iter_rule_diagrams(
    policy: Policy,
    whens: Sequence[Mapping[str, Any]],
    changed: Iterable[int] | None = None,
) -> Iterator[tuple[ToolTerms, tuple[int, ...], RuleDiagram | None]]:
    """Yield the rule diagram of each tool class of a policy; tools of one class are decided alike.

    Args:
        policy: the policy.
        whens: all conditions that will be evaluated, including those of the policy.
        changed: the conditions that select the relevant tools; None for all tools.

    Yields:
        One tool of the class, the conditions that can hold for it, and its rule diagram. None replaces the
        diagram if the arguments have too many regions.
    """
    lists, memory = PolicyLists(policy.spec.get("lists", {})), AnalysisCache()
    seen: set[ToolClass] = set()
    kinds = ToolClasses(whens)
    own = ToolClasses([rule["when"] for rule in policy.rules])
    wanted = None if changed is None else kinds.groups_of(changed)
    for tool in policy.spec["tools"]:
        if wanted is not None and wanted.isdisjoint(
            kinds.groups_for_tool(tool["server_name"], tool["tool_name"]),
        ):
            continue
        terms = ToolTerms(tool, lists)
        kind = kinds.class_of(terms)
        if kind in seen:
            continue
        seen.add(kind)
        applying = kinds.applicable_conditions(kind)
        conditions = [terms.resolve(whens[at]) for at in applying]
        yield (
            terms,
            applying,
            _make_rule_diagram(
                policy,
                terms,
                conditions,
                own.applicable_conditions(own.class_of(terms)),
                memory,
            ),
        )


def _make_rule_diagram(
    policy: Policy,
    terms: ToolTerms,
    conditions: list[ResolvedCondition],
    own: Sequence[int],
    memory: AnalysisCache,
) -> RuleDiagram | None:
    try:
        return RuleDiagram(RequestSpace(terms, conditions, memory), terms, policy.rules, own)
    except (TooLargeError, RecursionError):
        return None

"""Engine replay: candidate requests are decided by the engine, which confirms every result of the analysis.

Candidates come from given regions, with variations of what opaque conditions read.
"""

from __future__ import annotations

from itertools import chain, islice, zip_longest
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.engine.policies.policy import Policy
    from peripety.engine.policies.types import RuleMatches, ToolRequest
    from peripety.policy.analysis.request_space import RequestSpace


_DecisionMasks: TypeAlias = tuple[int, int, int]
"""The requests that are allowed, denied and escalated."""

_DECISION_NAMES = ("allow", "deny", "escalate")


class EngineReplay:
    """A fixed list of requests, and the conditions that hold for them.

    A set of requests is a bit mask, with bit `n` for request `n`.

    Args:
        policy: the policy with the tools and lists of the conditions.
        requests: the requests.
    """

    def __init__(self, policy: Policy, requests: Sequence[ToolRequest]) -> None:
        self._policy = policy
        self._requests = policy.prepare(requests)
        self._all_requests = (1 << len(requests)) - 1
        self._known: dict[int, tuple[Mapping[str, Any], RuleMatches]] = {}
        self._own = frozenset(map(id, policy.rules))
        self._decisions_by_rule_cache: tuple[list[int], list[_DecisionMasks]] | None = None

    def evaluate(self, rules: Iterable[Mapping[str, Any]]) -> None:
        """Evaluate many rules in one batch, which is faster than one call for each."""
        new = {id(rule): rule for rule in rules if id(rule) not in self._known}
        if not self._own.isdisjoint(new):
            self._store_matches(self._policy.rules, self._policy.match_rules(self._requests))
        others = [rule for key, rule in new.items() if key not in self._known]
        if others:
            self._store_matches(others, self._policy.match_rules(self._requests, others))

    def _store_matches(self, rules: Iterable[Mapping[str, Any]], matches: Iterable[RuleMatches]) -> None:
        self._known |= {id(rule): (rule, one) for rule, one in zip(rules, matches, strict=True)}

    def applying_requests(self, rule: Mapping[str, Any]) -> int:
        """Return the requests that a rule applies to, regardless of its position."""
        matches = self._matches(rule)
        return matches.holds | (0 if rule["then"] == "allow" else matches.unevaluated)

    def holding_requests(self, rule: Mapping[str, Any]) -> int:
        """Return the requests for which the condition of a rule holds."""
        return self._matches(rule).holds

    def failing_requests(self, rule: Mapping[str, Any]) -> int:
        """Return the requests for which the condition of a rule can be evaluated and does not hold."""
        matches = self._matches(rule)
        return self._all_requests & ~(matches.holds | matches.unevaluated)

    def unmatched_requests(self, rules: Sequence[Mapping[str, Any]]) -> int:
        """Return the requests that none of the rules applies to."""
        left = self._all_requests
        for rule in rules:
            left &= ~self.applying_requests(rule)
        return left

    def decide(self, rules: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Return the requests for each decision of an ordered list of rules."""
        found = {"allow": 0, "deny": 0, "escalate": 0}
        left = self._all_requests
        for rule in rules:
            found[rule["then"]] |= left & self.applying_requests(rule)
            left &= ~self.applying_requests(rule)
        found["deny"] |= left
        return found

    def differing_requests(self, one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> int:
        """Return the requests that two lists of rules decide differently."""
        self.evaluate((*one, *other))
        first, second = self.decide(one), self.decide(other)
        return self._all_requests & ~sum(first[decision] & second[decision] for decision in first)

    def reaching_requests(self, number: int) -> int:
        """Return the requests that reach the rule with an index: no earlier rule of the policy applies."""
        return self._decisions_by_rule()[0][number]

    def changed_requests(self, first: int, end: int, window: Sequence[Mapping[str, Any]]) -> int:
        """Return the requests that are decided differently if some rules of the policy are replaced.

        Args:
            first: index of the first rule that is replaced.
            behind: index after the last rule that is replaced.
            window: the replacement.
        """
        self.evaluate(window)
        asked, decided = self._decisions_by_rule()
        before, after = decided[first], decided[end]
        for rule in reversed(window):
            after = _with_rule_in_front(after, rule["then"], self.applying_requests(rule))
        return asked[first] & ~sum(one & other for one, other in zip(before, after, strict=True))

    def _decisions_by_rule(self) -> tuple[list[int], list[_DecisionMasks]]:
        """Return, for each rule of the policy, the requests that reach it and the decisions from there on."""
        if self._decisions_by_rule_cache is None:
            rules = self._policy.rules
            self.evaluate(rules)
            asked, decided = [self._all_requests], [(0, self._all_requests, 0)]
            for rule in rules:
                asked.append(asked[-1] & ~self.applying_requests(rule))
            for rule in reversed(rules):
                decided.append(_with_rule_in_front(decided[-1], rule["then"], self.applying_requests(rule)))
            self._decisions_by_rule_cache = asked, decided[::-1]
        return self._decisions_by_rule_cache

    def _matches(self, rule: Mapping[str, Any]) -> RuleMatches:
        if id(rule) not in self._known:
            self.evaluate([rule])
        return self._known[id(rule)][1]


def _with_rule_in_front(decided: _DecisionMasks, then: str, takes: int) -> _DecisionMasks:
    """Return the decisions if a rule that applies to some requests is put in front."""
    allowed, denied, escalated = (
        one | takes if then == decision else one & ~takes
        for decision, one in zip(_DECISION_NAMES, decided, strict=True)
    )
    return allowed, denied, escalated


_MAX_PLAIN = 4
_MAX_VARIED = 252
# Batch sizes of the replay. Most often the first request is already right.
_BATCH_SIZES = (1, 15, 240)


def iter_candidates(space: RequestSpace, wanted: int, *, accepted: bool = True) -> Iterator[ToolRequest]:
    """Yield requests that are, or may be, in a set, the plainest first, without repeating the previous one.

    Args:
        space: the requests to a tool.
        wanted: the set.
        accepted: True to yield only requests whose arguments the tool accepts.
    """
    chosen = space.find_example(wanted)
    if chosen is None:
        return
    plain = (space.make_request(chosen, attempt) for attempt in range(_MAX_PLAIN))
    varied = space.iter_variations(chosen, Random(0), _MAX_VARIED)  # noqa: S311 - a fixed seed makes results reproducible
    previous: Any = None
    for request in chain(plain, varied):
        if request is not None and request != previous and (not accepted or space.accepts(request)):
            yield request
            previous = request


def find_in_sets(
    policy: Policy,
    where: Iterable[tuple[RequestSpace, int]],
    shows: Callable[[EngineReplay], int],
) -> ToolRequest | None:
    """Return the first request from some sets that has a property on the engine, or None.

    Args:
        policy: the policy.
        where: the sets, each with the space of its tool; the sets alternate.
        shows: returns the requests that have the property, as a mask.
    """
    in_turn = zip_longest(*(iter_candidates(space, wanted) for space, wanted in where))
    return find_first(policy, (one for turn in in_turn for one in turn if one is not None), shows)


def find_first(
    policy: Policy,
    requests: Iterator[ToolRequest],
    shows: Callable[[EngineReplay], int],
) -> ToolRequest | None:
    """Return the first request that has a property on the engine; None if none of the first 256 has it."""
    for size in _BATCH_SIZES:
        block = [*islice(requests, size)]
        if not block:
            break
        shown = shows(EngineReplay(policy, block))
        if shown:
            return block[(shown & -shown).bit_length() - 1]
    return None

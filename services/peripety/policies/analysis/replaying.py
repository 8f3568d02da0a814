"""Requests on the engine: what rules really say to them, whatever was found out about the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.sim.policies.policy import Policy
    from peripety.sim.policies.types import Matches, ToolRequest

__all__ = ["Replay"]

_Decided: TypeAlias = tuple[int, int, int]
"""The requests that are allowed, denied and escalated."""

_DECISIONS = ("allow", "deny", "escalate")


class Replay:
    """Some requests, and what conditions hold for them. Sets of requests are masks, bit `n` for number `n`.

    Args:
        policy: whose tools and lists the conditions use.
        requests: the requests.
    """

    def __init__(self, policy: Policy, requests: Sequence[ToolRequest]) -> None:
        self._policy = policy
        self._requests = policy.prepare(requests)
        self._everything = (1 << len(requests)) - 1
        self._known: dict[int, tuple[Mapping[str, Any], Matches]] = {}
        self._own = frozenset(map(id, policy.rules))
        self._standing: tuple[list[int], list[_Decided]] | None = None

    def ask(self, rules: Iterable[Mapping[str, Any]]) -> None:
        """Ask about many rules at once, which is quicker than one after the other."""
        new = {id(rule): rule for rule in rules if id(rule) not in self._known}
        if not self._own.isdisjoint(new):
            self._take_in(self._policy.rules, self._policy.matches(self._requests))
        others = [rule for key, rule in new.items() if key not in self._known]
        if others:
            self._take_in(others, self._policy.matches(self._requests, others))

    def _take_in(self, rules: Iterable[Mapping[str, Any]], matches: Iterable[Matches]) -> None:
        self._known |= {id(rule): (rule, one) for rule, one in zip(rules, matches, strict=True)}

    def takes(self, rule: Mapping[str, Any]) -> int:
        """The requests that a rule takes hold of, wherever it stands."""
        matches = self._matches(rule)
        return matches.holds | (0 if rule["then"] == "allow" else matches.unevaluated)

    def holds(self, rule: Mapping[str, Any]) -> int:
        """The requests that the condition of a rule holds for."""
        return self._matches(rule).holds

    def refuses(self, rule: Mapping[str, Any]) -> int:
        """The requests that the condition of a rule does not hold for, though it can be evaluated."""
        matches = self._matches(rule)
        return self._everything & ~(matches.holds | matches.unevaluated)

    def asked(self, rules: Sequence[Mapping[str, Any]]) -> int:
        """The requests that none of some rules takes hold of."""
        left = self._everything
        for rule in rules:
            left &= ~self.takes(rule)
        return left

    def decided(self, rules: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """For each decision the requests that rules, in their order, decide so."""
        found = {"allow": 0, "deny": 0, "escalate": 0}
        left = self._everything
        for rule in rules:
            found[rule["then"]] |= left & self.takes(rule)
            left &= ~self.takes(rule)
        found["deny"] |= left
        return found

    def differing(self, one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> int:
        """The requests that two sequences of rules decide differently."""
        self.ask((*one, *other))
        first, second = self.decided(one), self.decided(other)
        return self._everything & ~sum(first[decision] & second[decision] for decision in first)

    def reaching(self, number: int) -> int:
        """The requests that none of the policy's first rules takes hold of, so many of them."""
        return self._in_order()[0][number]

    def changed(self, first: int, behind: int, window: Sequence[Mapping[str, Any]]) -> int:
        """The requests that are decided otherwise with other rules in place of some of the policy's.

        Args:
            first: the first rule that is replaced.
            behind: the first rule that is not replaced again.
            window: what stands in their place.
        """
        self.ask(window)
        asked, decided = self._in_order()
        before, after = decided[first], decided[behind]
        for rule in reversed(window):
            after = _before(after, rule["then"], self.takes(rule))
        return asked[first] & ~sum(one & other for one, other in zip(before, after, strict=True))

    def _in_order(self) -> tuple[list[int], list[_Decided]]:
        """For each rule of the policy, the requests that get as far, and what is decided from there on."""
        if self._standing is None:
            rules = self._policy.rules
            self.ask(rules)
            asked, decided = [self._everything], [(0, self._everything, 0)]
            for rule in rules:
                asked.append(asked[-1] & ~self.takes(rule))
            for rule in reversed(rules):
                decided.append(_before(decided[-1], rule["then"], self.takes(rule)))
            self._standing = asked, decided[::-1]
        return self._standing

    def _matches(self, rule: Mapping[str, Any]) -> Matches:
        if id(rule) not in self._known:
            self.ask([rule])
        return self._known[id(rule)][1]


def _before(decided: _Decided, then: str, takes: int) -> _Decided:
    """What is decided when a rule that takes hold of some requests is asked before."""
    allowed, denied, escalated = (
        one | takes if then == decision else one & ~takes
        for decision, one in zip(_DECISIONS, decided, strict=True)
    )
    return allowed, denied, escalated

"""Requests on the engine: what rules really say to them, whatever was found out about the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.sim.policies.policy import Policy
    from peripety.sim.policies.types import Matches, ToolRequest

__all__ = ["Replay"]


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

    def ask(self, rules: Iterable[Mapping[str, Any]]) -> None:
        """Ask about many rules at once, which is quicker than one after the other."""
        new = {id(rule): rule for rule in rules if id(rule) not in self._known}
        own = self._policy.rules
        if any(id(rule) in new for rule in own):
            self._take_in(own, self._policy.matches(self._requests))
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

    def _matches(self, rule: Mapping[str, Any]) -> Matches:
        if id(rule) not in self._known:
            self.ask([rule])
        return self._known[id(rule)][1]

"""Replay of requests on the engine, which confirms every result of the analysis."""

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
    """A fixed list of requests, and the conditions that hold for them.

    A set of requests is a bit mask, with bit `n` for request `n`.

    Args:
        policy: the policy with the tools and lists of the conditions.
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
        """Evaluate many rules in one batch, which is faster than one call for each."""
        new = {id(rule): rule for rule in rules if id(rule) not in self._known}
        if not self._own.isdisjoint(new):
            self._take_in(self._policy.rules, self._policy.matches(self._requests))
        others = [rule for key, rule in new.items() if key not in self._known]
        if others:
            self._take_in(others, self._policy.matches(self._requests, others))

    def _take_in(self, rules: Iterable[Mapping[str, Any]], matches: Iterable[Matches]) -> None:
        self._known |= {id(rule): (rule, one) for rule, one in zip(rules, matches, strict=True)}

    def takes(self, rule: Mapping[str, Any]) -> int:
        """Return the requests that a rule applies to, regardless of its position."""
        matches = self._matches(rule)
        return matches.holds | (0 if rule["then"] == "allow" else matches.unevaluated)

    def holds(self, rule: Mapping[str, Any]) -> int:
        """Return the requests for which the condition of a rule holds."""
        return self._matches(rule).holds

    def refuses(self, rule: Mapping[str, Any]) -> int:
        """Return the requests for which the condition of a rule can be evaluated and does not hold."""
        matches = self._matches(rule)
        return self._everything & ~(matches.holds | matches.unevaluated)

    def asked(self, rules: Sequence[Mapping[str, Any]]) -> int:
        """Return the requests that none of the rules applies to."""
        left = self._everything
        for rule in rules:
            left &= ~self.takes(rule)
        return left

    def decided(self, rules: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Return the requests for each decision of an ordered list of rules."""
        found = {"allow": 0, "deny": 0, "escalate": 0}
        left = self._everything
        for rule in rules:
            found[rule["then"]] |= left & self.takes(rule)
            left &= ~self.takes(rule)
        found["deny"] |= left
        return found

    def differing(self, one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> int:
        """Return the requests that two lists of rules decide differently."""
        self.ask((*one, *other))
        first, second = self.decided(one), self.decided(other)
        return self._everything & ~sum(first[decision] & second[decision] for decision in first)

    def reaching(self, number: int) -> int:
        """Return the requests that reach the rule with an index: no earlier rule of the policy applies."""
        return self._in_order()[0][number]

    def changed(self, first: int, behind: int, window: Sequence[Mapping[str, Any]]) -> int:
        """Return the requests that are decided differently if some rules of the policy are replaced.

        Args:
            first: index of the first rule that is replaced.
            behind: index after the last rule that is replaced.
            window: the replacement.
        """
        self.ask(window)
        asked, decided = self._in_order()
        before, after = decided[first], decided[behind]
        for rule in reversed(window):
            after = _before(after, rule["then"], self.takes(rule))
        return asked[first] & ~sum(one & other for one, other in zip(before, after, strict=True))

    def _in_order(self) -> tuple[list[int], list[_Decided]]:
        """Return, for each rule of the policy, the requests that reach it and the decisions from there on."""
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
    """Return the decisions if a rule that applies to some requests is put in front."""
    allowed, denied, escalated = (
        one | takes if then == decision else one & ~takes
        for decision, one in zip(_DECISIONS, decided, strict=True)
    )
    return allowed, denied, escalated

"""Decisions of rules for many requests at once as bit masks, including those of changed rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.sim import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.sim import Matches, Policy, Requests

__all__ = ["Changed", "Decisions", "Outcomes", "bits", "taking"]

Changed: TypeAlias = Mapping[int, Mapping[str, Any] | None]
"""Replaced rules by their index in `Policy.rules`; None removes a rule."""

_SOME = re.compile(rb"[^\0]")
_OF_BYTE = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


def bits(numbers: int) -> Iterator[int]:
    """Yield the numbers of the set bits, lowest first."""
    for found in _SOME.finditer(numbers.to_bytes((numbers.bit_length() + 7) // 8, "little")):
        first = 8 * found.start()
        for bit in _OF_BYTE[found[0][0]]:
            yield first + bit


def taking(rule: Mapping[str, Any], matches: Matches) -> int:
    """Return the requests that a rule applies to, if it is evaluated."""
    return matches.holds if rule["then"] == "allow" else matches.holds | matches.unevaluated


class Decisions:
    """The requests for each decision, as bit masks.

    Attributes:
        allowed: a bit for each allowed request.
        escalated: a bit for each escalated request. All others are denied.
    """

    __slots__ = ("allowed", "escalated")

    def __init__(self, allowed: int = 0, escalated: int = 0) -> None:
        self.allowed = allowed
        self.escalated = escalated

    def after(self, takes: int, then: str) -> Decisions:
        """Return the decisions if a rule that applies to some requests is put in front."""
        rest = ~takes
        return Decisions(
            self.allowed & rest | (takes if then == "allow" else 0),
            self.escalated & rest | (takes if then == "escalate" else 0),
        )

    def about(self, decision: Decision) -> int:
        """Return the requests with a decision; for denials, all bits above the requests are set as well."""
        match decision:
            case Decision.ALLOW:
                return self.allowed
            case Decision.ESCALATE:
                return self.escalated
            case Decision.DENY:
                return ~(self.allowed | self.escalated)


class Outcomes:
    """The decisions of the rules of a policy for some requests, and of variants of the rules.

    Attributes:
        takes: for each rule, the requests that it applies to if it is evaluated.
        asked: for each rule, the requests that no earlier rule applies to; at the end, those that no rule
            applies to. Requests with unknown tools are excluded.
        decisions: the decisions for all requests.
    """

    def __init__(self, policy: Policy, requests: Requests) -> None:
        self._policy = policy
        self._requests = requests
        found = policy.matches(requests)
        self._matches = {id(rule["when"]): matches for rule, matches in zip(policy.rules, found, strict=True)}
        self.takes = [taking(rule, matches) for rule, matches in zip(policy.rules, found, strict=True)]
        self.asked = [*_asked(self.takes, _known(policy.deciding(requests)))]
        self._decided_from = _decided_from(policy.rules, self.takes)
        self.decisions = self._decided_from[0]

    def changed(self, changes: Sequence[Changed]) -> Iterator[tuple[int, Decisions]]:
        """Yield, for each change of the rules, the affected requests and their decisions.

        Args:
            changes: for each change, replaced rules by their index; None removes a rule. All conditions that
                are new to the policy are evaluated in one batch.
        """
        rules = [rule for change in changes for rule in change.values() if rule is not None]
        new = {id(rule["when"]): rule for rule in rules if id(rule["when"]) not in self._matches}
        found = self._policy.matches(self._requests, [*new.values()]) if new else ()
        matches = self._matches | dict(zip(new, found, strict=True))
        for change in changes:
            yield self.asked[min(change)], self._decided(change, matches)

    def _decided(self, change: Changed, matches: Mapping[int, Matches]) -> Decisions:
        last = max(change)
        decisions = self._decided_from[last + 1]
        for index in range(last, min(change) - 1, -1):
            if index not in change:
                decisions = decisions.after(self.takes[index], self._policy.rules[index]["then"])
            elif (rule := change[index]) is not None:
                decisions = decisions.after(taking(rule, matches[id(rule["when"])]), rule["then"])
        return decisions


def _known(deciding: Iterable[int]) -> int:
    unknown_tool = -2
    return int("".join("0" if index == unknown_tool else "1" for index in deciding)[::-1] or "0", 2)


def _asked(takes: Iterable[int], known: int) -> Iterator[int]:
    yield known
    for taken in takes:
        known &= ~taken
        yield known


def _decided_from(rules: Sequence[Mapping[str, Any]], takes: Sequence[int]) -> list[Decisions]:
    """Return, for each rule, the decisions if it were the first; at the end, those without rules."""
    found = [Decisions()]
    for rule, taken in zip(reversed(rules), reversed(takes), strict=True):
        found.append(found[-1].after(taken, rule["then"]))
    return found[::-1]

"""What rules decide about the requests to one tool, as diagrams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.policies.analysis.diagrams import NO, YES, TooLargeError
from peripety.policies.analysis.slots import Memory
from peripety.policies.analysis.spaces import Space
from peripety.policies.analysis.terms import Lists, Terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.policies.analysis.terms import Resolved
    from peripety.sim.policies.policy import Policy

__all__ = ["RESULTS", "Ruling", "different", "rulings"]

RESULTS = {"deny": 0, "allow": 1, "escalate": 2}
"""Decisions as results of diagrams."""


def different(one: int, other: int) -> int:
    """Whether two results differ, for `Diagrams.combine`."""
    return YES if one != other else NO


class Ruling:
    """Rules in their order, for one tool.

    Args:
        space: the requests to the tool.
        terms: the tool as the policy of the rules annotates it.
        rules: the rules.
    """

    def __init__(self, space: Space, terms: Terms, rules: Sequence[Mapping[str, Any]]) -> None:
        self.space = space
        self.terms = terms
        self.rules = rules
        self._asked = [space.possible]
        self._decided: dict[int, int] = {len(rules): RESULTS["deny"]}

    def takes(self, rule: Mapping[str, Any]) -> int:
        """The requests that a rule takes hold of, wherever it stands."""
        holds, fails = self.condition(rule["when"])
        return holds if rule["then"] == "allow" else self.space.diagrams.either(holds, fails)

    def condition(self, when: Mapping[str, Any]) -> tuple[int, int]:
        """The requests that a condition holds for, and those for which it cannot be evaluated."""
        if not self.terms.applies(when):
            return NO, NO
        return self.space.condition(self.terms.resolved(when))

    def asked(self, number: int) -> int:
        """The requests that none of the first rules takes hold of, so many of them."""
        while len(self._asked) <= number:
            takes = self.takes(self.rules[len(self._asked) - 1])
            self._asked.append(self.space.diagrams.choose(takes, NO, self._asked[-1]))
        return self._asked[number]

    def decided(self, number: int) -> int:
        """What the rules from one on decide."""
        if number not in self._decided:
            for at in range(len(self.rules) - 1, number - 1, -1):
                if at not in self._decided:
                    self._decided[at] = self.before(self.rules[at : at + 1], self._decided[at + 1])
        return self._decided[number]

    def before(self, rules: Sequence[Mapping[str, Any]], decided: int) -> int:
        """What rules decide, when something else decides what they do not."""
        for rule in reversed(rules):
            decided = self.space.diagrams.choose(self.takes(rule), RESULTS[rule["then"]], decided)
        return decided


def rulings(
    policy: Policy, whens: Sequence[Mapping[str, Any]], changed: Iterable[int] | None = None
) -> Iterator[tuple[Terms, tuple[int, ...], Ruling | None]]:
    """The rules of a policy for each kind of tools; tools of one kind are decided about alike.

    Args:
        policy: the policy.
        whens: all conditions that will be asked about, the policy's own among them.
        changed: which of the conditions tell tools that matter from others; None for all tools.

    Yields:
        One tool of the kind, which of the conditions can hold for it, and the ruling; None where there are
        too many regions.
    """
    lists, memory = Lists(policy.spec.get("lists", {})), Memory()
    seen: set[Any] = set()
    named = _Named(whens)
    wanted = None if changed is None else frozenset(changed)
    for tool in policy.spec["tools"]:
        about = named.about(tool["tool_name"])
        if wanted is not None and wanted.isdisjoint(about):
            continue
        terms = Terms(tool, lists)
        kind = terms.kind(whens, about)
        if kind in seen:
            continue
        seen.add(kind)
        applying: tuple[int, ...] = kind[0]
        yield terms, applying, _ruling(policy, terms, [terms.resolved(whens[at]) for at in applying], memory)


class _Named:
    """Conditions by the tools that they name: of thousands, few are about any one tool."""

    def __init__(self, whens: Sequence[Mapping[str, Any]]) -> None:
        self._all = [number for number, when in enumerate(whens) if "tools" not in when]
        self._by_tool: dict[str, list[int]] = {}
        for number, when in enumerate(whens):
            for tool in dict.fromkeys(when.get("tools", ())):
                self._by_tool.setdefault(tool, []).append(number)

    def about(self, tool: str) -> Sequence[int]:
        """The conditions that may be about a tool, in their order."""
        own = self._by_tool.get(tool)
        return self._all if own is None else sorted((*self._all, *own))


def _ruling(policy: Policy, terms: Terms, conditions: list[Resolved], memory: Memory) -> Ruling | None:
    try:
        return Ruling(Space(terms, conditions, memory), terms, policy.rules)
    except (TooLargeError, RecursionError):
        return None

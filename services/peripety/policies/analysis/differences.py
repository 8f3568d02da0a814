"""Semantic differences of two policies: changed rules, and one example request for each changed decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, Severity
from peripety.policies.analysis.diagrams import FIRST_NODE, NO, TooLargeError
from peripety.policies.analysis.kinds import Kinds
from peripety.policies.analysis.ruling import Ruling
from peripety.policies.analysis.searching import candidates
from peripety.policies.analysis.slots import Memory
from peripety.policies.analysis.spaces import Space
from peripety.policies.analysis.terms import Lists, Terms
from peripety.policies.model import Decision, DecisionChange, PolicyDifference
from peripety.policies.rule_changes import rule_changes
from peripety.sim.policies.types import NO_RULE, UNKNOWN_TOOL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.policies.analysis.kinds import Kind
    from peripety.sim.policies.policy import Policy

__all__ = ["difference"]

_Names = tuple[str, str]
_MOST_NAMED = 8
# The first result number that is neither yes nor no.
_FIRST = 2


@dataclass(slots=True)
class _Found:
    """The differences that were found so far.

    Attributes:
        changes: an example for each pair of rules, and whether the tool accepts its arguments.
        proved: True while no difference was left without an example.
        undecided: the tools for which the analysis is incomplete.
    """

    changes: dict[tuple[str, str], tuple[DecisionChange, bool]] = field(default_factory=dict)
    proved: bool = True
    undecided: list[str] = field(default_factory=list)


def difference(before: Policy, after: Policy, *, max_examples: int = 50) -> PolicyDifference:
    """Compare two policies over all possible requests, including arguments that the tools reject.

    Args:
        before: one policy.
        after: the other.
        max_examples: limit of examples. There is one for each pair of rules that decide differently; newly
            allowed requests come first, then those that are no longer allowed.

    Returns:
        The differences. The policies are reported as equivalent only if that is proved. A part that could not
        be
        decided is a warning `POLICY_UNDECIDED`.
    """
    found = _Found()
    for pair in _pairs(before, after):
        pair.look(found)
    changes = sorted((change for change, _ in found.changes.values()), key=_urgency)
    return PolicyDifference(
        found.proved and not changes,
        tuple(changes[:max_examples]),
        tuple(rule_changes(before.rules, after.rules)),
        tuple(_findings(found.undecided)),
    )


def _urgency(change: DecisionChange) -> int:
    if change.after.decision is Decision.ALLOW:
        return 0
    return 1 if change.before.decision is Decision.ALLOW else 2


def _findings(undecided: Sequence[str]) -> Iterator[Finding]:
    if undecided:
        more = len(undecided) - _MOST_NAMED
        named = ", ".join(undecided[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        message = f"the policies may also differ in ways for which no request was found, about {named}"
        yield Finding("POLICY_UNDECIDED", "/tools", message, Severity.WARNING)


def _pairs(before: Policy, after: Policy) -> Iterator[_Pair]:
    """Yield the tools of both policies. Tools of the same class in both policies are yielded once."""
    seen: set[Any] = set()
    memory = Memory()
    first, second = _Known(before), _Known(after)
    for names in {**first.tools, **second.tools}:
        one, other = first.side(names), second.side(names)
        kind = one.kind, other.kind
        if kind not in seen:
            seen.add(kind)
            yield _Pair(one, other, memory)


class _Known:
    """The tools of a policy, grouped into classes."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        lists = Lists(policy.spec.get("lists", {}))
        self.tools = {
            (tool["server_name"], tool["tool_name"]): Terms(tool, lists) for tool in policy.spec["tools"]
        }
        self._kinds = Kinds([rule["when"] for rule in policy.rules])

    def side(self, names: _Names) -> _Side:
        """Return a tool with the rules that can apply to it."""
        terms = self.tools.get(names)
        if terms is None:
            return _Side(self._policy)
        kind = self._kinds.kind(terms)
        return _Side(self._policy, terms, kind, self._kinds.applying(kind))


@dataclass(frozen=True, slots=True)
class _Side:
    """A tool in one of the two policies; without terms if the policy does not define it."""

    policy: Policy
    terms: Terms | None = None
    kind: Kind | None = None
    own: tuple[int, ...] = ()

    def rules(self) -> list[Mapping[str, Any]]:
        """Return the rules that can apply."""
        return [self.policy.rules[number] for number in self.own]

    def deciders(self) -> list[tuple[str, str]]:
        """Return the decision and id of each rule, followed by the default decision."""
        otherwise = UNKNOWN_TOOL if self.terms is None else NO_RULE
        return [*((rule["then"], rule["id"]) for rule in self.rules()), ("deny", otherwise)]


class _Pair:
    """A tool in two policies."""

    def __init__(self, before: _Side, after: _Side, memory: Memory) -> None:
        self._before = before
        self._after = after
        self._memory = memory
        self._terms = [side.terms for side in (after, before) if side.terms is not None]

    def look(self, found: _Found) -> None:
        """Find an example for each pair of rules that decide requests to the tool differently."""
        name = f"{self._terms[0].server}/{self._terms[0].tool}"
        try:
            complete = self._look(found)
        except (TooLargeError, RecursionError):
            complete = False
        if not complete:
            found.proved = False
            found.undecided.append(name)

    def _look(self, found: _Found) -> bool:
        sides = self._before, self._after
        conditions = [
            side.terms.resolved(rule["when"]) for side in sides if side.terms for rule in side.rules()
        ]
        space = Space(self._terms[0], conditions, self._memory, all_values=True)
        first, second = (side.rules() for side in sides)
        pairing = _Pairing([*self._before.deciders(), *self._after.deciders()])
        pairs = space.diagrams.combine(
            pairing.number,
            self._deciders(space, self._before, first, _FIRST),
            self._deciders(space, self._after, second, _FIRST + len(first) + 1),
        )
        pairs = space.diagrams.choose(space.possible, pairs, NO)
        complete = True
        for pair in sorted(space.diagrams.results(pairs) - {NO}):
            where = space.diagrams.where(pairs, pair)
            complete = self._example(space, where, pairing.named(pair), found) and complete
        return complete

    def _deciders(self, space: Space, side: _Side, rules: Sequence[Mapping[str, Any]], first: int) -> int:
        """Return a diagram of the deciding rule, numbered from `first`; the last number means no rule."""
        decided = first + len(rules)
        if side.terms is None:
            return decided
        ruling = Ruling(space, side.terms, side.policy.rules, side.own)
        for number in range(len(rules) - 1, -1, -1):
            decided = space.diagrams.choose(ruling.takes(rules[number]), first + number, decided)
        return decided

    def _example(self, space: Space, where: int, wanted: tuple[str, str], found: _Found) -> bool:
        """Find an example for a pair of rules in a set of requests; return False if it finds none."""
        requests = [*candidates(space, where, accepted=False)]
        decisions = zip(
            requests,
            self._before.policy.decide_many(requests),
            self._after.policy.decide_many(requests),
            strict=True,
        )
        for request, before, after in decisions:
            key = (before.rule_id, after.rule_id)
            known = found.changes.get(key)
            if before.decision is not after.decision and not (known and known[1]):
                accepted = space.accepts(request)
                if known is None or accepted:
                    found.changes[key] = DecisionChange(request, before, after), accepted
            if key == wanted:
                return True
        return False


class _Pairing:
    """Numbers for pairs of rules with different decisions, for use with `Diagrams.combine`.

    Args:
        deciders: the decision and rule id for each number, offset by `_FIRST`.
    """

    def __init__(self, deciders: Sequence[tuple[str, str]]) -> None:
        self._deciders = deciders
        self._numbers: dict[tuple[int, int], int] = {}
        self._names: list[tuple[str, str]] = []

    def number(self, one: int, other: int) -> int:
        """Return the number of a pair; `NO` if both decide alike."""
        (decision, name), (another, its_name) = self._deciders[one - _FIRST], self._deciders[other - _FIRST]
        if decision == another:
            return NO
        if (one, other) not in self._numbers:
            if len(self._names) >= FIRST_NODE - _FIRST:
                raise TooLargeError
            self._numbers[one, other] = _FIRST + len(self._names)
            self._names.append((name, its_name))
        return self._numbers[one, other]

    def named(self, pair: int) -> tuple[str, str]:
        """Return the ids of the rules of a pair."""
        return self._names[pair - _FIRST]

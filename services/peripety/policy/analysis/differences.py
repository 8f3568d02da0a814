"""Semantic differences of two policies: changed rules, and one example request for each changed decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.engine.policies.types import NO_RULE, UNKNOWN_TOOL, Decision
from peripety.errors import Finding, Severity
from peripety.policy.analysis.argument_variables import AnalysisCache
from peripety.policy.analysis.condition_logic import PolicyLists, ToolTerms
from peripety.policy.analysis.decision_diagram import FIRST_NODE, NO, TooLargeError
from peripety.policy.analysis.engine_replay import iter_candidates
from peripety.policy.analysis.request_space import RequestSpace, ToolClasses
from peripety.policy.analysis.rule_diagram import RuleDiagram
from peripety.policy.rule_paths import diff_renumbered
from peripety.policy.types import DecisionChange, PolicyDifference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.engine.policies.policy import Policy
    from peripety.policy.analysis.request_space import ToolClass


_ToolNames = tuple[str, str]
_MAX_LISTED_TOOLS = 8
# The first result number that is neither yes nor no.
_FIRST_RULE_NUMBER = 2


@dataclass(slots=True)
class _Findings:
    """The differences that were found so far.

    Attributes:
        changes: an example for each pair of rules, and whether the tool accepts its arguments.
        proved: True while no difference was left without an example.
        undecided: the tools for which the analysis is incomplete.
    """

    changes: dict[tuple[str, str], tuple[DecisionChange, bool]] = field(default_factory=dict)
    proved: bool = True
    undecided: list[str] = field(default_factory=list)


def find_differences(before: Policy, after: Policy, *, max_examples: int = 50) -> PolicyDifference:
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
    found = _Findings()
    for pair in _iter_tool_pairs(before, after):
        pair.find_examples(found)
    changes = sorted((change for change, _ in found.changes.values()), key=_urgency)
    return PolicyDifference(
        found.proved and not changes,
        tuple(changes[:max_examples]),
        tuple(diff_renumbered(before.rules, after.rules)),
        tuple(_undecided_findings(found.undecided)),
    )


def _urgency(change: DecisionChange) -> int:
    if change.after.decision is Decision.ALLOW:
        return 0
    return 1 if change.before.decision is Decision.ALLOW else 2


def _undecided_findings(undecided: Sequence[str]) -> Iterator[Finding]:
    if undecided:
        more = len(undecided) - _MAX_LISTED_TOOLS
        named = ", ".join(undecided[:_MAX_LISTED_TOOLS]) + (f" and {more} more" if more > 0 else "")
        message = f"the policies may also differ in ways for which no request was found, about {named}"
        yield Finding("POLICY_UNDECIDED", "/tools", message, Severity.WARNING)


def _iter_tool_pairs(before: Policy, after: Policy) -> Iterator[_ToolPair]:
    """Yield the tools of both policies. Tools of the same class in both policies are yielded once."""
    seen: set[Any] = set()
    memory = AnalysisCache()
    first, second = _PolicyTools(before), _PolicyTools(after)
    for names in {**first.tools, **second.tools}:
        one, other = first.side_of(names), second.side_of(names)
        kind = one.kind, other.kind
        if kind not in seen:
            seen.add(kind)
            yield _ToolPair(one, other, memory)


class _PolicyTools:
    """The tools of a policy, grouped into classes."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        lists = PolicyLists(policy.spec.get("lists", {}))
        self.tools = {
            (tool["server_name"], tool["tool_name"]): ToolTerms(tool, lists) for tool in policy.spec["tools"]
        }
        self._kinds = ToolClasses([rule["when"] for rule in policy.rules])

    def side_of(self, names: _ToolNames) -> _ToolSide:
        """Return a tool with the rules that can apply to it."""
        terms = self.tools.get(names)
        if terms is None:
            return _ToolSide(self._policy)
        kind = self._kinds.class_of(terms)
        return _ToolSide(self._policy, terms, kind, self._kinds.applicable_conditions(kind))


@dataclass(frozen=True, slots=True)
class _ToolSide:
    """A tool in one of the two policies; without terms if the policy does not define it."""

    policy: Policy
    terms: ToolTerms | None = None
    kind: ToolClass | None = None
    rule_numbers: tuple[int, ...] = ()

    def applicable_rules(self) -> list[Mapping[str, Any]]:
        """Return the rules that can apply."""
        return [self.policy.rules[number] for number in self.rule_numbers]

    def deciders(self) -> list[tuple[str, str]]:
        """Return the decision and id of each rule, followed by the default decision."""
        otherwise = UNKNOWN_TOOL if self.terms is None else NO_RULE
        return [*((rule["then"], rule["id"]) for rule in self.applicable_rules()), ("deny", otherwise)]


class _ToolPair:
    """A tool in two policies."""

    def __init__(self, before: _ToolSide, after: _ToolSide, memory: AnalysisCache) -> None:
        self._before = before
        self._after = after
        self._memory = memory
        self._terms = [side.terms for side in (after, before) if side.terms is not None]

    def find_examples(self, found: _Findings) -> None:
        """Find an example for each pair of rules that decide requests to the tool differently."""
        name = f"{self._terms[0].server}/{self._terms[0].tool}"
        try:
            complete = self._find_examples(found)
        except (TooLargeError, RecursionError):
            complete = False
        if not complete:
            found.proved = False
            found.undecided.append(name)

    def _find_examples(self, found: _Findings) -> bool:
        sides = self._before, self._after
        conditions = [
            side.terms.resolve(rule["when"])
            for side in sides
            if side.terms
            for rule in side.applicable_rules()
        ]
        space = RequestSpace(self._terms[0], conditions, self._memory, all_values=True)
        first, second = (side.applicable_rules() for side in sides)
        pairing = _PairNumbers([*self._before.deciders(), *self._after.deciders()])
        pairs = space.diagrams.apply(
            pairing.number_of,
            self._deciding_rule_diagram(space, self._before, first, _FIRST_RULE_NUMBER),
            self._deciding_rule_diagram(space, self._after, second, _FIRST_RULE_NUMBER + len(first) + 1),
        )
        pairs = space.diagrams.if_then_else(space.possible_set, pairs, NO)
        complete = True
        for pair in sorted(space.diagrams.results(pairs) - {NO}):
            where = space.diagrams.set_of_result(pairs, pair)
            complete = self._find_example(space, where, pairing.rules_of(pair), found) and complete
        return complete

    def _deciding_rule_diagram(
        self,
        space: RequestSpace,
        side: _ToolSide,
        rules: Sequence[Mapping[str, Any]],
        first: int,
    ) -> int:
        """Return a diagram of the deciding rule, numbered from `first`; the last number means no rule."""
        decided = first + len(rules)
        if side.terms is None:
            return decided
        ruling = RuleDiagram(space, side.terms, side.policy.rules, side.rule_numbers)
        for number in range(len(rules) - 1, -1, -1):
            decided = space.diagrams.if_then_else(
                ruling.applying_requests(rules[number]),
                first + number,
                decided,
            )
        return decided

    def _find_example(
        self,
        space: RequestSpace,
        where: int,
        wanted: tuple[str, str],
        found: _Findings,
    ) -> bool:
        """Find an example for a pair of rules in a set of requests; return False if it finds none."""
        requests = [*iter_candidates(space, where, accepted=False)]
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


class _PairNumbers:
    """Numbers for pairs of rules with different decisions, for use with `Diagrams.apply`.

    Args:
        deciders: the decision and rule id for each number, offset by `_FIRST_RULE_NUMBER`.
    """

    def __init__(self, deciders: Sequence[tuple[str, str]]) -> None:
        self._deciders = deciders
        self._numbers: dict[tuple[int, int], int] = {}
        self._names: list[tuple[str, str]] = []

    def number_of(self, one: int, other: int) -> int:
        """Return the number of a pair; `NO` if both decide alike."""
        (decision, name), (another, its_name) = (
            self._deciders[one - _FIRST_RULE_NUMBER],
            self._deciders[other - _FIRST_RULE_NUMBER],
        )
        if decision == another:
            return NO
        if (one, other) not in self._numbers:
            if len(self._names) >= FIRST_NODE - _FIRST_RULE_NUMBER:
                raise TooLargeError
            self._numbers[one, other] = _FIRST_RULE_NUMBER + len(self._names)
            self._names.append((name, its_name))
        return self._numbers[one, other]

    def rules_of(self, pair: int) -> tuple[str, str]:
        """Return the ids of the rules of a pair."""
        return self._names[pair - _FIRST_RULE_NUMBER]

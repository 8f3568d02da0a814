"""Policy lint: dead, overridden, shadowed and redundant rules.

A rule that can be reached has a request as example; for another, the analysis has a proof.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from peripety.policy.analysis.decision_diagram import NO, TooLargeError
from peripety.policy.analysis.engine_replay import EngineReplay, find_in_sets, iter_candidates
from peripety.policy.analysis.equivalence import Reached, Undecided, Unreachable
from peripety.policy.analysis.rule_diagram import DECISION_RESULTS, iter_rule_diagrams, results_differ
from peripety.policy.types import RuleIssue, RuleIssueKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.engine.policies.policy import Policy
    from peripety.engine.policies.types import ToolRequest
    from peripety.policy.analysis.equivalence import ReachResult, ReachTarget
    from peripety.policy.analysis.rule_diagram import RuleDiagram


@dataclass(slots=True)
class _RuleFacts:
    """The facts about one rule, over the tools that were analyzed.

    Attributes:
        matching_sets: the requests that it matches.
        decided_sets: the requests that it decides.
        earlier_deciders: earlier rules that decide requests that match this one as well.
        changes_decisions: True if some requests would be decided differently without it.
        later_deciders: later rules that would make the same decision.
        is_undecided: True if some tool was too large to analyze.
    """

    matching_sets: list[tuple[RuleDiagram, int]] = field(default_factory=list)
    decided_sets: list[tuple[RuleDiagram, int]] = field(default_factory=list)
    earlier_deciders: set[int] = field(default_factory=set)
    changes_decisions: bool = False
    later_deciders: set[int] = field(default_factory=set)
    is_undecided: bool = False


def find_rule_issues(policy: Policy) -> tuple[RuleIssue, ...]:
    """Find rules without effect, in the order of the rules.

    Each issue is proved, over the requests that the tools accept. If the analysis is undecided, it reports
    nothing.
    An invariant is not redundant if later rules would decide the same, because it takes precedence by design.
    """
    rules = policy.rules
    standings = [_RuleFacts() for _ in rules]
    for _, applying, ruling in iter_rule_diagrams(policy, [rule["when"] for rule in rules]):
        for number in applying:
            if ruling is None:
                standings[number].is_undecided = True
                continue
            try:
                _analyze_on_tool(ruling, number, applying, standings[number], policy.invariants)
            except (TooLargeError, RecursionError):
                standings[number].is_undecided = True
    found = (_make_issue(policy, number, standing) for number, standing in enumerate(standings))
    return tuple(issue for issue in found if issue is not None)


def _analyze_on_tool(
    ruling: RuleDiagram,
    number: int,
    applying: Sequence[int],
    standing: _RuleFacts,
    invariants: int,
) -> None:
    """Record the effect of a rule for one tool class."""
    diagrams, rules = ruling.space.diagrams, ruling.rules
    takes = diagrams.intersection(ruling.applying_requests(rules[number]), ruling.space.possible_set)
    if takes == NO:
        return
    standing.matching_sets.append((ruling, takes))
    decides = diagrams.intersection(ruling.reaching_requests(number), takes)
    if decides == NO:
        standing.earlier_deciders |= _find_deciders(ruling, (one for one in applying if one < number), takes)
        return
    standing.decided_sets.append((ruling, decides))
    if number < invariants or standing.changes_decisions:
        return
    result = DECISION_RESULTS[rules[number]["then"]]
    otherwise = diagrams.apply(results_differ, ruling.decisions_from(number + 1), result)
    if diagrams.intersection(decides, otherwise) != NO:
        standing.changes_decisions = True
    else:
        standing.later_deciders |= _find_deciders(ruling, (one for one in applying if one > number), decides)


def _find_deciders(ruling: RuleDiagram, numbers: Iterable[int], requests: int) -> set[int]:
    """Return the rules that decide requests of a set, evaluated in their order."""
    diagrams = ruling.space.diagrams
    found = set()
    for number in numbers:
        if requests == NO:
            break
        takes = ruling.applying_requests(ruling.rules[number])
        if diagrams.intersection(takes, requests) != NO:
            found.add(number)
            requests = diagrams.if_then_else(takes, NO, requests)
    return found


def _make_issue(policy: Policy, number: int, standing: _RuleFacts) -> RuleIssue | None:
    rule = policy.rules[number]
    if standing.is_undecided:
        return None
    if not standing.matching_sets:
        message = f"no request that the tools accept matches {rule['id']}"
        return RuleIssue(RuleIssueKind.DEAD, rule["id"], (), None, message)
    if not standing.decided_sets:
        overridden = all(one < policy.invariants for one in standing.earlier_deciders)
        kind = RuleIssueKind.OVERRIDDEN if overridden else RuleIssueKind.SHADOWED
        causes = tuple(policy.rules[one]["id"] for one in sorted(standing.earlier_deciders))
        witness = _find_witness(
            policy,
            standing.matching_sets,
            lambda replay: _decided_earlier(policy, replay, number),
        )
        verb = "decides" if len(causes) == 1 else "decide"
        message = f"{_join_names(causes)} {verb} every request that matches {rule['id']}"
        return RuleIssue(kind, rule["id"], causes, witness, message)
    if number < policy.invariants or standing.changes_decisions:
        return None
    causes = tuple(policy.rules[one]["id"] for one in sorted(standing.later_deciders))
    witness = _find_witness(
        policy,
        standing.decided_sets,
        lambda replay: _decided_alike_without(policy, replay, number),
    )
    instead = f"{_join_names(causes)} would" if causes else "no rule would take hold, which would"
    message = f"without {rule['id']} every decision would be the same: {instead} {rule['then']} as well"
    return RuleIssue(RuleIssueKind.REDUNDANT, rule["id"], causes, witness, message)


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _find_witness(
    policy: Policy,
    where: list[tuple[RuleDiagram, int]],
    shows: Callable[[EngineReplay], int],
) -> ToolRequest | None:
    """Return a request that shows an issue on the engine, if one is found."""
    return find_in_sets(policy, ((ruling.space, requests) for ruling, requests in where), shows)


def _decided_earlier(policy: Policy, replay: EngineReplay, number: int) -> int:
    """Return the requests that match a rule but are decided by an earlier one."""
    return replay.applying_requests(policy.rules[number]) & ~replay.unmatched_requests(policy.rules[:number])


def _decided_alike_without(policy: Policy, replay: EngineReplay, number: int) -> int:
    """Return the requests that a rule decides, and that are decided alike without it."""
    rules = policy.rules
    decides = replay.applying_requests(rules[number]) & replay.unmatched_requests(rules[:number])
    return decides & ~replay.differing_requests(rules, (*rules[:number], *rules[number + 1 :]))


_BLOCK = 512


def find_requests(policy: Policy, targets: Sequence[ReachTarget]) -> Iterator[ReachResult]:
    """Find a request for each target, or prove that none exists.

    Args:
        policy: the policy.
        targets: the targets. One call for many targets costs much less than one call for each.

    Yields:
        For each target, in order: a request that reaches it, a proof that none exists, or neither. Only
        requests that the tools accept count.
    """
    searches = [_RequestSearch(policy, target) for target in targets]
    whens = {id(rule["when"]): rule["when"] for rule in policy.rules}
    whens |= {id(when): when for one in searches for when in one.conditions}
    _search_tools(policy, whens, searches)
    doubted = []
    for start in range(0, len(searches), _BLOCK):
        doubted += _replay_likeliest(policy, searches[start : start + _BLOCK])
    # The likeliest request failed, so every tool counts. There may be many, so only these searches look at
    # them.
    for search in doubted:
        search.is_thorough = True
    if doubted:
        _search_tools(policy, whens, doubted)
    for search in searches:
        yield search.result()


def _search_tools(
    policy: Policy,
    whens: Mapping[int, Mapping[str, Any]],
    searches: Iterable[_RequestSearch],
) -> None:
    """Find the requests that reach the targets, tool class by tool class."""
    numbers = {when: number for number, when in enumerate(whens)}
    needing: dict[int, list[_RequestSearch]] = {}
    anywhere: list[_RequestSearch] = []
    for search in searches:
        if search.needed:
            needing.setdefault(numbers[id(search.needed[0])], []).append(search)
        else:
            anywhere.append(search)
    anywhere.sort(key=attrgetter("rule"))
    for _, applying, ruling in iter_rule_diagrams(policy, [*whens.values()]):
        known = frozenset(applying)
        asked = _count_reachable(anywhere, ruling)
        looking = [one for one in anywhere[:asked] if one.needs_more_tools]
        anywhere[:asked] = looking
        looking += (
            search
            for number in applying
            for search in needing.get(number, ())
            if search.needs_more_tools and all(numbers[id(when)] in known for when in search.needed)
        )
        for search in looking:
            search.search_tool(ruling)
        for search in looking:
            search.choose_likeliest()


def _count_reachable(searches: Sequence[_RequestSearch], ruling: RuleDiagram | None) -> int:
    """Return how many searches are for rules that requests to a tool can reach.

    The searches are sorted by rule.
    """
    try:
        last = None if ruling is None else ruling.last_reached_rule()
    except (TooLargeError, RecursionError):
        last = None
    return len(searches) if last is None else bisect_right(searches, last, key=attrgetter("rule"))


def _replay_likeliest(policy: Policy, block: Sequence[_RequestSearch]) -> list[_RequestSearch]:
    """Replay the likeliest requests on the engine; return the searches whose request fails."""
    chosen = [search for search in block if search.likeliest is not None]
    replay = EngineReplay(policy, [search.likeliest for search in chosen if search.likeliest is not None])
    replay.evaluate(rule for search in chosen for rule in search.replayed_rules)
    doubted = []
    for number, search in enumerate(chosen):
        search.is_reached = bool(search.reaching_requests(replay) >> number & 1)
        if not search.is_reached:
            doubted.append(search)
    return doubted


class _RequestSearch:
    """The search for one target.

    Attributes:
        rule: index of the rule that has to be evaluated.
        conditions: the conditions on requests besides the rules of the policy.
        needed: conditions that must all hold.
        likeliest: the request that is the likeliest to reach the target.
        is_reached: True if that request reaches it on the engine.
        is_thorough: True if the search continues although there is such a request.
    """

    def __init__(self, policy: Policy, target: ReachTarget) -> None:
        self._policy = policy
        self._target = target
        self._target_rules = policy.rules[target.rule : target.rule + 1] if target.decides else ()
        self._holds = [_condition_rule(when) for when in target.holds]
        self._fails = [_condition_rule(when) for when in target.fails]
        self._open: list[tuple[RuleDiagram, int]] = []
        self._tried_count = 0
        self._undecided_reason = ""
        self.rule = target.rule
        self.conditions = (*target.holds, *target.fails)
        self.needed = (*target.holds, *(rule["when"] for rule in self._target_rules))
        self.likeliest: ToolRequest | None = None
        self.is_reached = False
        self.is_thorough = False

    @property
    def replayed_rules(self) -> tuple[Mapping[str, Any], ...]:
        """Return all rules that have to be evaluated besides those before the target."""
        return (*self._target_rules, *self._holds, *self._fails)

    @property
    def needs_more_tools(self) -> bool:
        """Return True if more tools should be searched."""
        return self.is_thorough or self.likeliest is None

    def search_tool(self, ruling: RuleDiagram | None) -> None:
        """Find the requests that reach the target, for one tool class."""
        if ruling is None:
            self._undecided_reason = "a tool's arguments have too many regions"
            return
        diagrams = ruling.space.diagrams
        try:
            found = ruling.reaching_requests(self._target.rule)
            for rule in self._target_rules:
                found = diagrams.intersection(ruling.applying_requests(rule), found)
            for when in self._target.holds:
                found = diagrams.intersection(ruling.condition_sets(when)[0], found)
            for when in self._target.fails:
                found = diagrams.if_then_else(diagrams.union(*ruling.condition_sets(when)), NO, found)
        except (TooLargeError, RecursionError):
            self._undecided_reason = "the rules for a tool are too intricate"
            return
        if found != NO:
            self._open.append((ruling, found))

    def choose_likeliest(self) -> None:
        """Choose the request that is the likeliest to reach the target, from those that are known."""
        if self.likeliest is None:
            new = self._open[self._tried_count :]
            requests = (one for ruling, wanted in new for one in iter_candidates(ruling.space, wanted))
            self.likeliest = next(requests, None)
            self._tried_count = len(self._open)
            if self.likeliest is not None:
                self._open.clear()

    def reaching_requests(self, replay: EngineReplay) -> int:
        """Return the requests that reach the target on the engine."""
        replay.evaluate(self.replayed_rules)
        found = replay.reaching_requests(self.rule)
        for rule in self._target_rules:
            found &= replay.applying_requests(rule)
        for rule in self._holds:
            found &= replay.holding_requests(rule)
        for rule in self._fails:
            found &= replay.failing_requests(rule)
        return found

    def result(self) -> ReachResult:
        """Return the final result of the search."""
        if self.is_reached and self.likeliest is not None:
            return Reached(self.likeliest)
        if not self._open and not self._undecided_reason:
            return Unreachable()
        where = ((ruling.space, wanted) for ruling, wanted in self._open)
        request = find_in_sets(self._policy, where, self.reaching_requests)
        if request is not None:
            return Reached(request)
        return Undecided(self._undecided_reason or "it may be reached, but no request was found that does")


def _condition_rule(when: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a rule that consists of a condition only."""
    return {"id": "asked", "when": when, "then": "allow", "reason": "Search condition."}

"""Reachability of rules: a request that reaches a rule under conditions, or a proof of none."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from peripety.policies.analysis.diagrams import NO, TooLargeError
from peripety.policies.analysis.replaying import Replay
from peripety.policies.analysis.ruling import rulings
from peripety.policies.analysis.searching import candidates, first_where
from peripety.policies.analysis.verdicts import Reached, Undecided, Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.policies.analysis.ruling import Ruling
    from peripety.policies.analysis.verdicts import Reach, Target
    from peripety.sim.policies.policy import Policy
    from peripety.sim.policies.types import ToolRequest

__all__ = ["reach"]

_BLOCK = 512


def reach(policy: Policy, targets: Sequence[Target]) -> Iterator[Reach]:
    """Find a request for each target, or prove that none exists.

    Args:
        policy: the policy.
        targets: the targets. One call for many targets costs much less than one call for each.

    Yields:
        For each target, in order: a request that reaches it, a proof that none exists, or neither. Only
        requests that the tools accept count.
    """
    searches = [_Search(policy, target) for target in targets]
    whens = {id(rule["when"]): rule["when"] for rule in policy.rules}
    whens |= {id(when): when for one in searches for when in one.conditions}
    _look_through(policy, whens, searches)
    doubted = []
    for start in range(0, len(searches), _BLOCK):
        doubted += _replayed(policy, searches[start : start + _BLOCK])
    # The likeliest request failed, so every tool counts. There may be many, so only these searches look at
    # them.
    for search in doubted:
        search.is_thorough = True
    if doubted:
        _look_through(policy, whens, doubted)
    for search in searches:
        yield search.found()


def _look_through(
    policy: Policy, whens: Mapping[int, Mapping[str, Any]], searches: Iterable[_Search]
) -> None:
    """Find the requests that reach the targets, tool class by tool class."""
    numbers = {when: number for number, when in enumerate(whens)}
    needing: dict[int, list[_Search]] = {}
    anywhere: list[_Search] = []
    for search in searches:
        if search.needed:
            needing.setdefault(numbers[id(search.needed[0])], []).append(search)
        else:
            anywhere.append(search)
    anywhere.sort(key=attrgetter("rule"))
    for _, applying, ruling in rulings(policy, [*whens.values()]):
        known = frozenset(applying)
        asked = _asked(anywhere, ruling)
        looking = [one for one in anywhere[:asked] if one.is_open_to_more]
        anywhere[:asked] = looking
        looking += (
            search
            for number in applying
            for search in needing.get(number, ())
            if search.is_open_to_more and all(numbers[id(when)] in known for when in search.needed)
        )
        for search in looking:
            search.look(ruling)
        for search in looking:
            search.choose()


def _asked(searches: Sequence[_Search], ruling: Ruling | None) -> int:
    """Return how many searches are for rules that requests to a tool can reach.

    The searches are sorted by rule.
    """
    try:
        last = None if ruling is None else ruling.last_asked()
    except (TooLargeError, RecursionError):
        last = None
    return len(searches) if last is None else bisect_right(searches, last, key=attrgetter("rule"))


def _replayed(policy: Policy, block: Sequence[_Search]) -> list[_Search]:
    """Replay the likeliest requests on the engine; return the searches whose request fails."""
    chosen = [search for search in block if search.likeliest is not None]
    replay = Replay(policy, [search.likeliest for search in chosen if search.likeliest is not None])
    replay.ask(rule for search in chosen for rule in search.rules)
    doubted = []
    for number, search in enumerate(chosen):
        search.is_reached = bool(search.hits(replay) >> number & 1)
        if not search.is_reached:
            doubted.append(search)
    return doubted


class _Search:
    """The search for one target.

    Attributes:
        rule: index of the rule that has to be evaluated.
        conditions: the conditions on requests besides the rules of the policy.
        needed: conditions that must all hold.
        likeliest: the request that is the likeliest to reach the target.
        is_reached: True if that request reaches it on the engine.
        is_thorough: True if the search continues although there is such a request.
    """

    def __init__(self, policy: Policy, target: Target) -> None:
        self._policy = policy
        self._target = target
        self._own = policy.rules[target.rule : target.rule + 1] if target.decides else ()
        self._holds = [_asking(when) for when in target.holds]
        self._fails = [_asking(when) for when in target.fails]
        self._open: list[tuple[Ruling, int]] = []
        self._tried = 0
        self._why = ""
        self.rule = target.rule
        self.conditions = (*target.holds, *target.fails)
        self.needed = (*target.holds, *(rule["when"] for rule in self._own))
        self.likeliest: ToolRequest | None = None
        self.is_reached = False
        self.is_thorough = False

    @property
    def rules(self) -> tuple[Mapping[str, Any], ...]:
        """Return all rules that have to be evaluated besides those before the target."""
        return (*self._own, *self._holds, *self._fails)

    @property
    def is_open_to_more(self) -> bool:
        """Return True if more tools should be searched."""
        return self.is_thorough or self.likeliest is None

    def look(self, ruling: Ruling | None) -> None:
        """Find the requests that reach the target, for one tool class."""
        if ruling is None:
            self._why = "a tool's arguments have too many regions"
            return
        diagrams = ruling.space.diagrams
        try:
            found = ruling.asked(self._target.rule)
            for rule in self._own:
                found = diagrams.both(ruling.takes(rule), found)
            for when in self._target.holds:
                found = diagrams.both(ruling.condition(when)[0], found)
            for when in self._target.fails:
                found = diagrams.choose(diagrams.either(*ruling.condition(when)), NO, found)
        except (TooLargeError, RecursionError):
            self._why = "the rules for a tool are too intricate"
            return
        if found != NO:
            self._open.append((ruling, found))

    def choose(self) -> None:
        """Choose the request that is the likeliest to reach the target, from those that are known."""
        if self.likeliest is None:
            new = self._open[self._tried :]
            requests = (one for ruling, wanted in new for one in candidates(ruling.space, wanted))
            self.likeliest = next(requests, None)
            self._tried = len(self._open)
            if self.likeliest is not None:
                self._open.clear()

    def hits(self, replay: Replay) -> int:
        """Return the requests that reach the target on the engine."""
        replay.ask(self.rules)
        found = replay.reaching(self.rule)
        for rule in self._own:
            found &= replay.takes(rule)
        for rule in self._holds:
            found &= replay.holds(rule)
        for rule in self._fails:
            found &= replay.refuses(rule)
        return found

    def found(self) -> Reach:
        """Return the final result of the search."""
        if self.is_reached and self.likeliest is not None:
            return Reached(self.likeliest)
        if not self._open and not self._why:
            return Unreachable()
        where = ((ruling.space, wanted) for ruling, wanted in self._open)
        request = first_where(self._policy, where, self.hits)
        if request is not None:
            return Reached(request)
        return Undecided(self._why or "it may be reached, but no request was found that does")


def _asking(when: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a rule that consists of a condition only."""
    return {"id": "asked", "when": when, "then": "allow", "reason": "Search condition."}

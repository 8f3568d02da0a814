"""Whether, and how, a request can get as far as a rule and do there what is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.policies.analysis.diagrams import NO, TooLargeError
from peripety.policies.analysis.replaying import Replay
from peripety.policies.analysis.ruling import rulings
from peripety.policies.analysis.searching import candidates, first_where
from peripety.policies.analysis.verdicts import Reached, Undecided, Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.policies.analysis.ruling import Ruling
    from peripety.policies.analysis.verdicts import Reach, Target
    from peripety.sim.policies.policy import Policy
    from peripety.sim.policies.types import ToolRequest

__all__ = ["reach"]

_BLOCK = 64


def reach(policy: Policy, targets: Sequence[Target]) -> Iterator[Reach]:
    """Reach targets, if they can be reached.

    Args:
        policy: the policy.
        targets: what to reach. To ask for many at once costs much less than one after the other.

    Yields:
        For each target, in their order, a request that reaches it, or that there is none, or neither. Only
        requests that the tools accept count.
    """
    searches = [_Search(policy, target) for target in targets]
    whens = {id(when): when for one in searches for when in one.conditions}
    whens = {id(rule["when"]): rule["when"] for rule in policy.rules} | whens
    numbers = {when: number for number, when in enumerate(whens)}
    for _, applying, ruling in rulings(policy, [*whens.values()]):
        known = frozenset(applying)
        for search in searches:
            if all(numbers[id(when)] in known for when in search.needed):
                search.look(ruling)
    for start in range(0, len(searches), _BLOCK):
        block = searches[start : start + _BLOCK]
        firsts = [search.first() for search in block]
        replay = Replay(policy, [request for request in firsts if request is not None])
        replay.ask(rule for search in block for rule in search.rules)
        number = 0
        for search, request in zip(block, firsts, strict=True):
            if request is not None and search.hits(replay) >> number & 1:
                yield Reached(request)
            else:
                yield search.found()
            number += request is not None


class _Search:
    """The search for one target."""

    def __init__(self, policy: Policy, target: Target) -> None:
        self._policy = policy
        self._target = target
        self._before = policy.rules[: target.rule]
        self._own = policy.rules[target.rule : target.rule + 1] if target.decides else ()
        self._holds = [_asking(when) for when in target.holds]
        self._fails = [_asking(when) for when in target.fails]
        self._open: list[tuple[Ruling, int]] = []
        self._why = ""
        self.conditions = (*target.holds, *target.fails)
        self.needed = (*target.holds, *(rule["when"] for rule in self._own))

    @property
    def rules(self) -> tuple[Mapping[str, Any], ...]:
        """Everything that has to be asked of a request."""
        return (*self._before, *self._own, *self._holds, *self._fails)

    def look(self, ruling: Ruling | None) -> None:
        """Find the requests that reach the target, for the tools of one kind."""
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

    def first(self) -> ToolRequest | None:
        """The request that is the likeliest to reach the target."""
        requests = (one for ruling, wanted in self._open for one in candidates(ruling.space, wanted))
        return next(requests, None)

    def hits(self, replay: Replay) -> int:
        """Which requests do reach the target, on the engine."""
        replay.ask(self.rules)
        found = replay.asked(self._before)
        for rule in self._own:
            found &= replay.takes(rule)
        for rule in self._holds:
            found &= replay.holds(rule)
        for rule in self._fails:
            found &= replay.refuses(rule)
        return found

    def found(self) -> Reach:
        """What is known when the first request did not reach the target."""
        if not self._open and not self._why:
            return Unreachable()
        where = ((ruling.space, wanted) for ruling, wanted in self._open)
        request = first_where(self._policy, where, self.hits)
        if request is not None:
            return Reached(request)
        return Undecided(self._why or "it may be reached, but no request was found that does")


def _asking(when: Mapping[str, Any]) -> Mapping[str, Any]:
    """A rule that asks for nothing but a condition."""
    return {"id": "asked", "when": when, "then": "allow", "reason": "It is asked."}

"""As few scenarios as will do: which ones to keep so that nothing is lost."""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush
from itertools import accumulate
from operator import or_
from typing import TYPE_CHECKING

from peripety.policies.model import ScenarioSource
from peripety.policies.mutating.subject import Subject
from peripety.policies.verifying.coverage import reaching
from peripety.policies.verifying.outcomes import bits
from peripety.policies.verifying.suite import Suite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.policies.model import TestScenario
    from peripety.sim import Policy

__all__ = ["chosen", "gains", "least", "smallest"]


def smallest(policy: Policy, scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """The scenarios without those that add nothing: they kill and reach together what all of them do.

    Handwritten ones stay whatever they add, and so do those that fail: nothing is hidden. Of those that add
    as much, written ones are taken before directed ones.

    Returns:
        The handwritten ones, then the written ones, then the directed ones, each in the order in which they
        were given.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; some request is none.
    """
    return least(Subject(policy), scenarios)


def least(subject: Subject, scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """As `smallest`, with what is known of the policy.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; some request is none.
        OutOfTimeError: there was no time to find them.
    """
    subject.go_on()
    suite = Suite(subject.policy, _ranked(scenarios))
    kept = _kept(suite)
    killed = suite.failing(mutation.rules for mutation in subject.mutations)
    adds = gains([*killed, *reaching(suite, subject.aims)], len(scenarios))
    return tuple(suite.scenarios[number] for number in sorted([*kept, *chosen(adds, kept)]))


def _ranked(scenarios: Sequence[TestScenario]) -> list[TestScenario]:
    ranks = {ScenarioSource.HANDWRITTEN: 0, ScenarioSource.DIRECTED: 2}
    return sorted(scenarios, key=lambda scenario: ranks.get(scenario.source, 1))


def _kept(suite: Suite) -> list[int]:
    return [
        number
        for number, scenario in enumerate(suite.scenarios)
        if scenario.source is ScenarioSource.HANDWRITTEN or not suite.passed >> number & 1
    ]


def gains(reached_by: Sequence[int], count: int) -> list[int]:
    """What each scenario reaches, given who reaches each thing; a bit for each.

    Args:
        reached_by: for each thing, a bit for each scenario that reaches it.
        count: scenarios there are.
    """
    everyone = (1 << count) - 1
    found = [0] * count
    common = 0
    for thing, scenarios in enumerate(reached_by):
        which = 1 << thing
        most = 2 * scenarios.bit_count() > count
        if most:
            common |= which
        # It is less work to go through the few that are not like most.
        for number in bits(scenarios ^ everyone if most else scenarios):
            found[number] |= which
    return [gain ^ common for gain in found]


def chosen(adds: Sequence[int], kept: Sequence[int] = ()) -> list[int]:
    """Scenarios that reach, together with some that are kept anyhow, everything that all of them reach.

    The one that adds most is next, the first of several. Those that others made needless go again, and so do
    those that one other can stand in for.

    Args:
        adds: what each scenario reaches, a bit for each thing.
        kept: those that are kept.
    """
    reached = 0
    for number in kept:
        reached |= adds[number]
    taken = [*_greedily(adds, reached)]
    needed = set(_needed(adds, reached, sorted(taken)))
    return _traded(adds, reached, [number for number in taken if number in needed])


def _greedily(adds: Sequence[int], reached: int) -> Iterator[int]:
    waiting = [(-gain.bit_count(), number) for number, gain in enumerate(adds) if gain & ~reached]
    heapify(waiting)
    while waiting:
        promised, number = heappop(waiting)
        gain = adds[number] & ~reached
        if gain.bit_count() < -promised:  # others have taken of it since it was put there
            if gain:
                heappush(waiting, (-gain.bit_count(), number))
            continue
        reached |= gain
        yield number


def _needed(adds: Sequence[int], reached: int, taken: Sequence[int]) -> list[int]:
    """Those without which something is not reached; of several that would do, the last ones go."""
    alone = _alone(adds, reached, taken)
    needed = {number for number in taken if adds[number] & alone}
    doubted = [number for number in taken if number not in needed]
    others = reached
    for number in needed:
        others |= adds[number]
    before = [*accumulate((adds[number] for number in doubted), or_, initial=others)]
    behind = 0
    for place in range(len(doubted) - 1, -1, -1):
        if adds[doubted[place]] & ~(before[place] | behind):
            behind |= adds[doubted[place]]
            needed.add(doubted[place])
    return [number for number in taken if number in needed]


def _traded(adds: Sequence[int], reached: int, taken: list[int]) -> list[int]:
    """Put one in the place of two or more, wherever one reaches all that they alone do."""
    alone, owners, sizes = _owned(adds, reached, taken)
    for number, gain in enumerate(adds):
        covered = Counter(owners[thing] for thing in bits(gain & alone))
        replaced = [owner for owner, size in covered.items() if size == sizes[owner] and owner != number]
        if len(replaced) > 1 and number not in taken:
            others = [owner for owner in taken if owner not in replaced]
            fewer = _needed(adds, reached, [number, *others, *replaced])
            if len(fewer) < len(taken):
                taken = fewer
                alone, owners, sizes = _owned(adds, reached, taken)
    return taken


def _owned(
    adds: Sequence[int], reached: int, taken: Sequence[int]
) -> tuple[int, dict[int, int], Counter[int]]:
    """The things that only one of those taken reaches; which one; and how many of them each one has."""
    alone = _alone(adds, reached, taken)
    owners = {thing: number for number in taken for thing in bits(adds[number] & alone)}
    return alone, owners, Counter(owners.values())


def _alone(adds: Sequence[int], reached: int, taken: Sequence[int]) -> int:
    """The things that only one of those taken reaches."""
    once = more = 0
    for number in taken:
        more |= once & adds[number]
        once |= adds[number]
    return once & ~(more | reached)

"""Suite minimization: a small subset of scenarios with the same coverage and mutation score."""

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
    """Return the suite without scenarios that add neither coverage nor killed mutants.

    Handwritten scenarios always remain, and so do failing ones, so that no failure is hidden. Among equal
    scenarios, written ones are preferred to generated ones.

    Returns:
        The handwritten ones, then the written ones, then the generated ones, each in the given order.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
    """
    return least(Subject(policy), scenarios)


def least(subject: Subject, scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """Return the same as `smallest`, with cached facts about the policy.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
        OutOfTimeError: the time limit is reached.
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
    """Return the set of things that each scenario reaches, as bit masks, without those that all reach.

    Args:
        reached_by: for each thing, a bit for each scenario that reaches it.
        count: the number of scenarios.
    """
    everyone = (1 << count) - 1
    found = [0] * count
    common = 0
    for thing, scenarios in enumerate(reached_by):
        which = 1 << thing
        most = 2 * scenarios.bit_count() > count
        if most:
            common |= which
        # Iterating over the minority is cheaper.
        for number in bits(scenarios ^ everyone if most else scenarios):
            found[number] |= which
    return [gain ^ common for gain in found]


def chosen(adds: Sequence[int], kept: Sequence[int] = ()) -> list[int]:
    """Return scenarios that reach, together with fixed ones, everything that all of them reach.

    Greedy set cover: the scenario that adds most is next, the first of several. Redundant scenarios are then
    removed, and several are replaced by one where possible.

    Args:
        adds: the set of things that each scenario reaches, as a bit mask.
        kept: the fixed scenarios.
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
        if gain.bit_count() < -promised:  # others have reduced its gain since it was added
            if gain:
                heappush(waiting, (-gain.bit_count(), number))
            continue
        reached |= gain
        yield number


def _needed(adds: Sequence[int], reached: int, taken: Sequence[int]) -> list[int]:
    """Return the scenarios that are needed; of several alternatives, the last ones are dropped."""
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
    """Replace two or more scenarios by one that reaches everything that only they reach."""
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
    """Return the things that one chosen scenario alone reaches, their owners, and the number per owner."""
    alone = _alone(adds, reached, taken)
    owners = {thing: number for number in taken for thing in bits(adds[number] & alone)}
    return alone, owners, Counter(owners.values())


def _alone(adds: Sequence[int], reached: int, taken: Sequence[int]) -> int:
    """Return the things that exactly one of the chosen scenarios reaches."""
    once = more = 0
    for number in taken:
        more |= once & adds[number]
        once |= adds[number]
    return once & ~(more | reached)

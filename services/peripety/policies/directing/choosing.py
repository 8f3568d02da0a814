"""As few scenarios as will do: which ones to keep so that nothing is lost."""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from peripety.policies.model import ScenarioSource
from peripety.policies.mutating.operators import mutations
from peripety.policies.verifying.coverage import reaching
from peripety.policies.verifying.outcomes import bits
from peripety.policies.verifying.suite import Suite
from peripety.policies.verifying.targets import aims

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.policies.model import TestScenario
    from peripety.sim import Policy

__all__ = ["chosen", "gains", "smallest"]


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
    suite = Suite(policy, _ranked(scenarios))
    kept = _kept(suite)
    killed = suite.failing(mutation.rules for mutation in mutations(policy))
    adds = gains([*killed, *reaching(suite, aims(policy))], len(scenarios))
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
    found = [0] * count
    for thing, scenarios in enumerate(reached_by):
        for number in bits(scenarios):
            found[number] |= 1 << thing
    return found


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
    counts = Counter(thing for number in taken for thing in bits(adds[number] & ~reached))
    needed = []
    for number in reversed(taken):
        things = [*bits(adds[number] & ~reached)]
        if all(counts[thing] > 1 for thing in things):
            counts.subtract(things)
        else:
            needed.append(number)
    return needed[::-1]


def _traded(adds: Sequence[int], reached: int, taken: list[int]) -> list[int]:
    """Put one in the place of two or more, wherever one reaches all that they alone do."""
    alone = _alone(adds, reached, taken)
    sizes = Counter(alone.values())
    for number, gain in enumerate(adds):
        covered = Counter(alone[thing] for thing in bits(gain) if thing in alone)
        replaced = [owner for owner, size in covered.items() if size == sizes[owner] and owner != number]
        if len(replaced) > 1 and number not in taken:
            others = [owner for owner in taken if owner not in replaced]
            fewer = _needed(adds, reached, [number, *others, *replaced])
            if len(fewer) < len(taken):
                taken = fewer
                alone = _alone(adds, reached, taken)
                sizes = Counter(alone.values())
    return taken


def _alone(adds: Sequence[int], reached: int, taken: Sequence[int]) -> dict[int, int]:
    """The things that only one of those taken reaches, and which one."""
    counts = Counter(thing for number in taken for thing in bits(adds[number] & ~reached))
    return {
        thing: number for number in taken for thing in bits(adds[number] & ~reached) if counts[thing] == 1
    }

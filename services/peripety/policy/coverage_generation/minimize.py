"""Suite minimization: a small subset of scenarios with the same coverage and mutation score."""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush
from itertools import accumulate
from operator import or_
from typing import TYPE_CHECKING

from peripety.policy.mutation.runner import MutationContext
from peripety.policy.types import ScenarioOrigin
from peripety.policy.verification.coverage import EvaluatedSuite, iter_bits, reaching_scenarios

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.engine import Policy
    from peripety.policy.types import TestScenario


def minimal_suite(policy: Policy, scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """Return the suite without scenarios that add neither coverage nor killed mutants.

    Handwritten scenarios always remain, and so do failing ones, so that no failure is hidden. Among equal
    scenarios, written ones are preferred to generated ones.

    Returns:
        The handwritten ones, then the written ones, then the generated ones, each in the given order.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
    """
    return minimize_suite(MutationContext(policy), scenarios)


def minimize_suite(context: MutationContext, scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """Return the same as `minimal_suite`, with cached facts about the policy.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
        TimeLimitReachedError: the time limit is reached.
    """
    context.check_time()
    suite = EvaluatedSuite(context.policy, _sort_by_source(scenarios))
    kept = _fixed_scenarios(suite)
    killed = suite.failing_by_change(mutation.rules for mutation in context.mutations)
    adds = reached_by_scenario([*killed, *reaching_scenarios(suite, context.targets)], len(scenarios))
    return tuple(suite.scenarios[number] for number in sorted([*kept, *choose_scenarios(adds, kept)]))


def _sort_by_source(scenarios: Sequence[TestScenario]) -> list[TestScenario]:
    ranks = {ScenarioOrigin.HANDWRITTEN: 0, ScenarioOrigin.DIRECTED: 2}
    return sorted(scenarios, key=lambda scenario: ranks.get(scenario.source, 1))


def _fixed_scenarios(suite: EvaluatedSuite) -> list[int]:
    return [
        number
        for number, scenario in enumerate(suite.scenarios)
        if scenario.source is ScenarioOrigin.HANDWRITTEN or not suite.passed >> number & 1
    ]


def reached_by_scenario(reached_by: Sequence[int], count: int) -> list[int]:
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
        for number in iter_bits(scenarios ^ everyone if most else scenarios):
            found[number] |= which
    return [gain ^ common for gain in found]


def choose_scenarios(reach_sets: Sequence[int], fixed: Sequence[int] = ()) -> list[int]:
    """Return scenarios that reach, together with fixed ones, everything that all of them reach.

    Greedy set cover: the scenario that adds most is next, the first of several. Redundant scenarios are then
    removed, and several are replaced by one where possible.

    Args:
        reach_sets: the set of things that each scenario reaches, as a bit mask.
        fixed: the fixed scenarios.
    """
    reached = 0
    for number in fixed:
        reached |= reach_sets[number]
    taken = [*_choose_greedily(reach_sets, reached)]
    needed = set(_drop_redundant(reach_sets, reached, sorted(taken)))
    return _replace_several(reach_sets, reached, [number for number in taken if number in needed])


def _choose_greedily(adds: Sequence[int], reached: int) -> Iterator[int]:
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


def _drop_redundant(adds: Sequence[int], reached: int, chosen: Sequence[int]) -> list[int]:
    """Return the scenarios that are needed; of several alternatives, the last ones are dropped."""
    alone = _reached_once(adds, reached, chosen)
    needed = {number for number in chosen if adds[number] & alone}
    doubted = [number for number in chosen if number not in needed]
    others = reached
    for number in needed:
        others |= adds[number]
    before = [*accumulate((adds[number] for number in doubted), or_, initial=others)]
    behind = 0
    for place in range(len(doubted) - 1, -1, -1):
        if adds[doubted[place]] & ~(before[place] | behind):
            behind |= adds[doubted[place]]
            needed.add(doubted[place])
    return [number for number in chosen if number in needed]


def _replace_several(adds: Sequence[int], reached: int, chosen: list[int]) -> list[int]:
    """Replace two or more scenarios by one that reaches everything that only they reach."""
    alone, owners, sizes = _exclusive_owners(adds, reached, chosen)
    for number, gain in enumerate(adds):
        covered = Counter(owners[thing] for thing in iter_bits(gain & alone))
        replaced = [owner for owner, size in covered.items() if size == sizes[owner] and owner != number]
        if len(replaced) > 1 and number not in chosen:
            others = [owner for owner in chosen if owner not in replaced]
            fewer = _drop_redundant(adds, reached, [number, *others, *replaced])
            if len(fewer) < len(chosen):
                chosen = fewer
                alone, owners, sizes = _exclusive_owners(adds, reached, chosen)
    return chosen


def _exclusive_owners(
    adds: Sequence[int],
    reached: int,
    chosen: Sequence[int],
) -> tuple[int, dict[int, int], Counter[int]]:
    """Return the things that one chosen scenario alone reaches, their owners, and the number per owner."""
    alone = _reached_once(adds, reached, chosen)
    owners = {thing: number for number in chosen for thing in iter_bits(adds[number] & alone)}
    return alone, owners, Counter(owners.values())


def _reached_once(adds: Sequence[int], reached: int, chosen: Sequence[int]) -> int:
    """Return the things that exactly one of the chosen scenarios reaches."""
    once = more = 0
    for number in chosen:
        more |= once & adds[number]
        once |= adds[number]
    return once & ~(more | reached)

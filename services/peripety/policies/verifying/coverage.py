"""Coverage of a suite: reached targets by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.policies.verifying.targets import KINDS
from peripety.quality import Coverage
from peripety.sim import canonical

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from peripety.policies.analysis.verdicts import Target
    from peripety.policies.verifying.suite import Suite
    from peripety.policies.verifying.targets import Aim
    from peripety.sim import Matches

__all__ = ["coverage", "reaching"]


def reaching(suite: Suite, aims: Sequence[Aim]) -> list[int]:
    """Return, for each coverage target, a bit for each passing scenario that reaches it."""
    conditions = [c for aim in aims for way in aim.ways for c in (*way.holds, *way.fails)]
    keys = {id(condition): canonical(condition) for condition in {id(c): c for c in conditions}.values()}
    distinct = {keys[id(condition)]: condition for condition in conditions}
    rules = [{"when": condition, "then": "allow"} for condition in distinct.values()]
    found = suite.policy.matches(suite.requests, rules) if rules else ()
    by_key = dict(zip(distinct, found, strict=True))
    matches = {number: by_key[key] for number, key in keys.items()}
    return [suite.passed & _any(_reached(suite, way, matches) for way in aim.ways) for aim in aims]


def _any(reached: Iterable[int]) -> int:
    total = 0
    for requests in reached:
        total |= requests
    return total


def _reached(suite: Suite, way: Target, matches: Mapping[int, Matches]) -> int:
    requests = suite.outcomes.asked[way.rule]
    if way.decides:
        requests &= suite.outcomes.takes[way.rule]
    for condition in way.holds:
        requests &= matches[id(condition)].holds
    for condition in way.fails:
        found = matches[id(condition)]
        requests &= ~(found.holds | found.unevaluated)
    return requests


def coverage(
    aims: Sequence[Aim], covered: Collection[str], unreachable: Collection[str]
) -> tuple[Coverage, ...]:
    """Return the coverage by kind.

    Args:
        aims: the coverage targets.
        covered: the paths of the reached targets.
        unreachable: the paths of the unreachable targets.
    """
    return tuple(
        _of_kind(kind, [aim.path for aim in aims if aim.kind == kind], covered, unreachable) for kind in KINDS
    )


def _of_kind(
    kind: str, paths: Sequence[str], covered: Collection[str], unreachable: Collection[str]
) -> Coverage:
    reached = sum(path in covered for path in paths)
    missed = [path for path in paths if path not in covered and path not in unreachable]
    never = tuple(path for path in paths if path in unreachable)
    return Coverage(kind, reached, reached + len(missed), tuple(missed), never)

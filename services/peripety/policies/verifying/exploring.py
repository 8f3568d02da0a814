"""Which aims can be reached at all, and by what request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.policies.analysis.reaching import reach
from peripety.policies.analysis.verdicts import Reached, Unreachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.policies.analysis.verdicts import Reach
    from peripety.policies.verifying.targets import Aim
    from peripety.sim import Policy

__all__ = ["explore"]


def explore(policy: Policy, aims: Sequence[Aim]) -> list[Reach]:
    """For each aim, a request that reaches it, or that none can, or that nobody knows."""
    found = reach(policy, [way for aim in aims for way in aim.ways])
    return [_best([next(found) for _ in aim.ways]) for aim in aims]


def _best(ways: Sequence[Reach]) -> Reach:
    """A request; without one, what is least certain."""
    return min(
        ways, key=lambda way: 0 if isinstance(way, Reached) else 2 if isinstance(way, Unreachable) else 1
    )

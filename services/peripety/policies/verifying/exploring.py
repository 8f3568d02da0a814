"""Search for requests that reach coverage targets."""

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
    """Return, for each target, a request that reaches it, a proof that none exists, or neither."""
    found = reach(policy, [way for aim in aims for way in aim.ways])
    return [_best([next(found) for _ in aim.ways]) for aim in aims]


def _best(ways: Sequence[Reach]) -> Reach:
    """Return a reaching request, or else the least certain result."""
    return min(
        ways, key=lambda way: 0 if isinstance(way, Reached) else 2 if isinstance(way, Unreachable) else 1
    )

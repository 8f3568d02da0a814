"""A suite that misses nothing that can be reached, and is as small as it was found to be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.policies.directing.candidates import unlike
from peripety.policies.directing.choosing import smallest
from peripety.policies.directing.covering import cover
from peripety.policies.model import TestScenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.sim import Policy

__all__ = ["complete"]


def complete(policy: Policy, scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """Choose from some scenarios, and from directed ones, as few as do all that any of them can do.

    Unlike what `cover` adds, a directed scenario may take the place of several others.

    Returns:
        As `smallest`.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; some request is none.
    """
    names = {scenario.description for scenario in scenarios}
    made = (one for one in cover(policy, ()) if isinstance(one, TestScenario))
    named = (replace(one, description=unlike(names, one.description)) for one in made)
    return smallest(policy, [*scenarios, *named])

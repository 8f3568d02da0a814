"""A suite that misses nothing that can be reached, and is as small as it was found to be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.policies.directing.candidates import unlike
from peripety.policies.directing.choosing import least
from peripety.policies.directing.covering import directed
from peripety.policies.mutating.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.policies.model import TestScenario
    from peripety.sim import Policy

__all__ = ["complete", "completed"]


def complete(policy: Policy, scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """Choose from some scenarios, and from directed ones, as few as do all that any of them can do.

    Unlike what `cover` adds, a directed scenario may take the place of several others.

    Returns:
        As `smallest`.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; some request is none.
    """
    return completed(Subject(policy), scenarios)


def completed(subject: Subject, scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """As `complete`, with what is known of the policy.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; some request is none.
        OutOfTimeError: there was no time to find them.
    """
    names = {scenario.description for scenario in scenarios}
    made = directed(subject)
    named = (replace(one, description=unlike(names, one.description)) for one in made)
    return least(subject, [*scenarios, *named])

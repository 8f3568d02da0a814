"""Complete and minimal suites, from given and generated scenarios."""

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
    """Choose from given and generated scenarios a small suite that reaches all that any of them reaches.

    Unlike the result of `cover`, a generated scenario may replace several others.

    Returns:
        The same as `smallest`.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
    """
    return completed(Subject(policy), scenarios)


def completed(subject: Subject, scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """Return the same as `complete`, with cached facts about the policy.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
        OutOfTimeError: the time limit is reached.
    """
    names = {scenario.description for scenario in scenarios}
    made = directed(subject)
    named = (replace(one, description=unlike(names, one.description)) for one in made)
    return least(subject, [*scenarios, *named])

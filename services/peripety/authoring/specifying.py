"""Specification from a blueprint; valid for every blueprint, including incomplete ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.assembling.completing import whole
from peripety.authoring.assembling.document import document
from peripety.authoring.assembling.timing import timing
from peripety.authoring.assembling.world import world
from peripety.authoring.blueprint import Role
from peripety.authoring.calibrating.aims import aim
from peripety.authoring.calibrating.calibrating import calibrated
from peripety.authoring.calibrating.measures import Measures, first_measures, scales
from peripety.authoring.choices import Choices

if TYPE_CHECKING:
    from peripety.authoring.blueprint import Blueprint

__all__ = ["specification"]


def specification(blueprint: Blueprint, seed: int, *, spec_id: str) -> dict[str, Any]:
    """Return the ScenarioSpec 1.0 of a blueprint.

    Args:
        blueprint: the blueprint; missing parts are added by rules.
        seed: seed of the scenario and of all choices that the blueprint leaves open.
        spec_id: the id of the specification.
    """
    blueprint = whole(blueprint)
    number = Choices(spec_id, seed).number
    takes = timing(blueprint, number("horizon", 3))

    def spec_of(measures: Measures) -> dict[str, Any]:
        numbers = scales(blueprint, measures, number)
        return document(
            world(blueprint, numbers, takes, measures.due, measures.pressures), seed, spec_id=spec_id
        )

    first = first_measures(blueprint, takes.horizon)
    goals = sum(one.role is Role.GOAL for one in blueprint.quantities)
    return calibrated(first, aim(len(first.buffers) + bool(takes.due), goals, takes.horizon), spec_of)

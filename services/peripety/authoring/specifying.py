"""A blueprint becomes a specification: always a valid one, whatever the blueprint lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.blueprint import Role
from peripety.authoring.plot import TEMPOS
from peripety.authoring.texts import Casting, compose, identifiers

if TYPE_CHECKING:
    from peripety.authoring.blueprint import Blueprint

__all__ = ["specification"]


def specification(blueprint: Blueprint, seed: int, *, spec_id: str) -> dict[str, Any]:
    """The ScenarioSpec 1.0 of a blueprint.

    Args:
        blueprint: what there is; what it lacks is made up by rules.
        seed: seed of the scenario and of what the blueprint leaves open.
        spec_id: the id of the document.
    """
    by_role = {quantity.role: quantity.name for quantity in reversed(blueprint.quantities)}
    roles = [by_role.get(role, f"{blueprint.title[:32]} {role.value}".strip()) for role in Role]
    names = list(dict.fromkeys([*roles, *(quantity.name for quantity in blueprint.quantities)]))
    casting = Casting(
        roles=roles,
        surprise=names[-1],
        comfort=names[0],
        people=blueprint.people,
        ids=identifiers(q=names, p=blueprint.people),
        phrases=blueprint.phrases,
        has_deadline=blueprint.has_deadline,
        tempo=TEMPOS[seed % len(TEMPOS)],
    )
    return compose(casting, spec_id=spec_id, name=blueprint.title or names[0], seed=seed)

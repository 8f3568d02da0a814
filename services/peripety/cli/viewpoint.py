"""The point of view of a game."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PUBLIC", "Viewpoint", "viewpoint_of"]

_LISTED = 8


@dataclass(frozen=True)
class Viewpoint:
    """An entity as point of view.

    Attributes:
        entity_id: its id; empty for the public view.
        name: its name.
        description: its description in the scenario, including how it wins and loses.
    """

    entity_id: str
    name: str
    description: str


PUBLIC = Viewpoint("", "the public view", "")


def viewpoint_of(spec: bytes, wanted: str | None) -> Viewpoint:
    """Return the wanted point of view, or the only playable entity; the public view if that is ambiguous.

    Raises:
        InvalidArgumentError: the wanted entity is not playable.
    """
    entities = json.loads(spec).get("entities", [])
    playable = {entity["id"]: _seen_by(entity) for entity in entities if entity.get("playable")}
    if wanted is None:
        return next(iter(playable.values())) if len(playable) == 1 else PUBLIC
    if wanted not in playable:
        choices = ", ".join(list(playable)[:_LISTED])
        remedy = f"use one of {choices}" if choices else "the scenario has none; leave it out"
        reason = f"is not a playable entity: {remedy}"
        raise InvalidArgumentError(
            f"point of view '{wanted[:64]}' {reason}",
            code="UNKNOWN_ENTITY",
            violations=[FieldViolation("--pov", reason)],
        )
    return playable[wanted]


def _seen_by(entity: Mapping[str, Any]) -> Viewpoint:
    return Viewpoint(entity["id"], entity.get("name", entity["id"]), entity.get("description", ""))

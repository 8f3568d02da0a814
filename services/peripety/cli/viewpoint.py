"""Through whose eyes a game is played."""

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
    """An entity whose point of view is taken.

    Attributes:
        entity_id: its id; empty for the public view.
        name: what it is called.
        description: what the scenario says of it: who it is, what it wins and loses by.
    """

    entity_id: str
    name: str
    description: str


PUBLIC = Viewpoint("", "the public view", "")


def viewpoint_of(spec: bytes, wanted: str | None) -> Viewpoint:
    """Return the view of the wanted entity, or of the only playable one; the public view where it is open.

    Raises:
        InvalidArgumentError: the wanted entity is not one that can be played.
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

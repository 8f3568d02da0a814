"""The input of a turn, a random player, and the point of view of a game."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from peripety.api.common.v1 import engine_pb2
from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_WAIT_SHARE, _SPEAK_SHARE = 0.1, 0.3


@dataclass(frozen=True)
class TurnInput:
    """The input of a turn: actions, free text, or neither."""

    actions: list[engine_pb2.ActionCall] = field(default_factory=list)
    words: str = ""


class GamePlayer(Protocol):
    """A source of choices."""

    def choose(self, turn: int, legal: Sequence[engine_pb2.LegalAction]) -> TurnInput | None:
        """Return the choice for this turn; None to stop playing."""


class RandomPlayer:
    """Random player: takes an action, writes free text, or waits.

    Args:
        seed: determines all choices.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a game, no secret

    def choose(self, turn: int, legal: Sequence[engine_pb2.LegalAction]) -> TurnInput:  # noqa: ARG002 - the port's
        """Return a random choice."""
        drawn = self._random.random()
        if not legal or drawn < _WAIT_SHARE:
            return TurnInput()
        action = self._random.choice(legal)
        if drawn < _WAIT_SHARE + _SPEAK_SHARE:
            return TurnInput(words=f"{action.name}. {action.description}".strip())
        params = {param.name: self._random_value(param) for param in action.params}
        return TurnInput([engine_pb2.ActionCall(action_id=action.action_id, params=params)])

    def _random_value(self, param: engine_pb2.Param) -> engine_pb2.ParamValue:
        if param.choices:
            return self._random.choice(param.choices)
        if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
            return engine_pb2.ParamValue(flag=self._random.random() < 0.5)  # noqa: PLR2004 - as likely as not
        if param.type == engine_pb2.PARAM_TYPE_STRING:
            return engine_pb2.ParamValue(text="")
        number = self._random.uniform(param.minimum, param.maximum)
        is_whole = param.type == engine_pb2.PARAM_TYPE_INTEGER
        return engine_pb2.ParamValue(number=float(round(number)) if is_whole else number)


_MAX_LISTED = 8


@dataclass(frozen=True)
class PointOfView:
    """An entity as point of view.

    Attributes:
        entity_id: its id; empty for the public view.
        name: its name.
        description: its description in the scenario, including how it wins and loses.
    """

    entity_id: str
    name: str
    description: str


PUBLIC_VIEW = PointOfView("", "the public view", "")


def select_point_of_view(spec: bytes, wanted: str | None) -> PointOfView:
    """Return the wanted point of view, or the only playable entity; the public view if that is ambiguous.

    Raises:
        InvalidArgumentError: the wanted entity is not playable.
    """
    entities = json.loads(spec).get("entities", [])
    playable = {entity["id"]: _to_point_of_view(entity) for entity in entities if entity.get("playable")}
    if wanted is None:
        return next(iter(playable.values())) if len(playable) == 1 else PUBLIC_VIEW
    if wanted not in playable:
        choices = ", ".join(list(playable)[:_MAX_LISTED])
        remedy = f"use one of {choices}" if choices else "the scenario has none; leave it out"
        reason = f"is not a playable entity: {remedy}"
        raise InvalidArgumentError(
            f"point of view '{wanted[:64]}' {reason}",
            code="UNKNOWN_ENTITY",
            violations=[FieldViolation("--pov", reason)],
        )
    return playable[wanted]


def _to_point_of_view(entity: Mapping[str, Any]) -> PointOfView:
    return PointOfView(entity["id"], entity.get("name", entity["id"]), entity.get("description", ""))

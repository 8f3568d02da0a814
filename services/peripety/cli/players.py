"""The input of a turn, automatic players, and the point of view of a game."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from peripety.api.common.v1 import engine_pb2
from peripety.cli.output import one_line
from peripety.errors import FailedPreconditionError, FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.api.session.v1 import session_pb2
    from peripety.cli.game import Game


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


_RUNS = 64
_MAX_CANDIDATES = 24
# Forecasts that differ by less are equal: the less frequent action is chosen, for a varied story.
_TOLERANCE = 0.04
_SURVIVAL_WORTH = 0.5


class ForecastPlayer:
    """Player that compares forecasts of all legal actions, each with the random persona after it."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    async def choose(self, game: Game) -> TurnInput:
        """Return the action whose futures are won most often; no action if none is legal."""
        rated: list[tuple[float, engine_pb2.ActionCall]] = []
        for call in list(_candidates(game))[:_MAX_CANDIDATES]:
            try:
                rated.append((_rate(await game.forecast(_RUNS, call)), call))
            except FailedPreconditionError:
                continue
        if not rated:
            return TurnInput()
        best = max(rate for rate, _ in rated)
        good = [(rate, call) for rate, call in rated if rate >= best - _TOLERANCE]
        _, chosen = min(good, key=lambda pair: (self._taken[pair[1].action_id], -pair[0]))
        self._taken[chosen.action_id] += 1
        return TurnInput([chosen])


def _rate(forecast: session_pb2.ForecastOutcomesResponse) -> float:
    won = sum(end.rate.value for end in forecast.outcomes if end.kind == engine_pb2.RUN_STATUS_KIND_WON)
    return won + _SURVIVAL_WORTH * forecast.survived.value


def _candidates(game: Game) -> Iterator[engine_pb2.ActionCall]:
    """Yield calls of the legal actions; of each parameter every choice, or its least and greatest value."""
    for action in game.legal_actions:
        calls = [engine_pb2.ActionCall(action_id=action.action_id)]
        for param in action.params:
            calls = [_with_value(call, param.name, value) for call in calls for value in _values(param)]
        yield from calls


def _with_value(
    call: engine_pb2.ActionCall, name: str, value: engine_pb2.ParamValue
) -> engine_pb2.ActionCall:
    extended = engine_pb2.ActionCall()
    extended.CopyFrom(call)
    extended.params[name].CopyFrom(value)
    return extended


def _values(param: engine_pb2.Param) -> list[engine_pb2.ParamValue]:
    if param.choices:
        return list(param.choices)
    if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
        return [engine_pb2.ParamValue(flag=flag) for flag in (True, False)]
    if param.type == engine_pb2.PARAM_TYPE_STRING:
        return [engine_pb2.ParamValue(text="")]
    return [engine_pb2.ParamValue(number=number) for number in dict.fromkeys((param.minimum, param.maximum))]


def parse_value(param: engine_pb2.Param, typed: str) -> engine_pb2.ParamValue:
    """Parse a value as it was typed. The engine checks whether it is legal.

    Raises:
        ValueError: the text is not a value of this type.
    """
    if param.type == engine_pb2.PARAM_TYPE_STRING:
        return engine_pb2.ParamValue(text=typed)
    if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
        return engine_pb2.ParamValue(flag=bool(["no", "yes"].index(typed.lower())))
    is_whole = param.type == engine_pb2.PARAM_TYPE_INTEGER
    return engine_pb2.ParamValue(number=int(typed) if is_whole else float(typed))


def describe_domain(param: engine_pb2.Param) -> str:
    """Return the values that a parameter may have, in words."""
    if param.choices:
        return ", ".join(format_value(choice) for choice in param.choices)
    if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
        return "yes or no"
    if param.type == engine_pb2.PARAM_TYPE_STRING:
        return f"at most {param.max_length} characters" if param.HasField("max_length") else "text"
    return f"{param.minimum:g} to {param.maximum:g}"


def format_value(value: engine_pb2.ParamValue) -> str:
    """Return a value as it is typed."""
    match value.WhichOneof("kind"):
        case "number":
            return f"{value.number:g}"
        case "flag":
            return "yes" if value.flag else "no"
        case _:
            return one_line(value.text)


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

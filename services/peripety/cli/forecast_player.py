"""Automatic player of `peripety play --auto`: it takes the action with the best forecast."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from peripety.api.common.v1 import engine_pb2
from peripety.cli.players import TurnInput
from peripety.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.api.session.v1 import session_pb2
    from peripety.cli.game import Game


_RUNS = 96
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

"""Sign analysis of derived values, for any state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._pure import border
from peripety.sim._pure.canonical import canonical
from peripety.sim.proofs.budget import Budget, SpentError
from peripety.sim.proofs.declared import domains, in_order
from peripety.sim.proofs.domain import ANY, BOTTOM, LARGEST, NUMBER, OBJECT, Object, Value, number
from peripety.sim.proofs.evaluation import Evaluation

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["signs"]

_MOST_STEPS = 100_000


def signs(rule: Mapping[str, Any]) -> dict[str, int]:
    """Return the sign of each derived value of an action or event: 1, -1, or 0 if unknown.

    The state is not restricted. A value that may be 0 has the sign of its other values.
    """
    # Parsed as the engine parses it, so that every number is a float.
    derives, params = border.parse(canonical([rule.get("derives", {}), rule.get("params", {})]))
    budget = Budget(_MOST_STEPS)
    known: dict[str, Value] = {}
    try:
        for name in in_order(derives):
            known[name] = Evaluation(budget).result(derives[name], _data(params, known))
    except SpentError:
        pass
    return {name: _sign(known.get(name, ANY)) for name in derives}


def _data(params: dict[str, Any], known: dict[str, Value]) -> Value:
    fields = {
        "state": ANY,
        "params": domains(params),
        "derives": Value(OBJECT, object=Object(dict(known), BOTTOM)),
        "turn": number(1, LARGEST, whole=True),
        "entities": ANY,
    }
    return Value(OBJECT, object=Object(fields, BOTTOM))


def _sign(value: Value) -> int:
    if value.kinds != NUMBER:
        return 0
    return 1 if value.low >= 0 else -1 if value.high <= 0 else 0

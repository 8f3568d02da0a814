"""Scenarios of known odds, and what it takes to compile and to read them."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from peripety import engine
from support.specs import at_most, event, never, spec

if TYPE_CHECKING:
    from peripety.engine import Program


Json = dict[str, Any]


def chance(rate: float, **budget: Any) -> Json:
    """A scenario that is lost with exactly this chance, in as few turns as weights allow."""
    turns = math.ceil(math.log(1 - rate) / math.log(1 - 0.3))
    weight = 1 - (1 - rate) ** (1 / turns)
    strike = event("strike", [{"op": "set", "path": "state.a", "value": 0}], weight=weight)
    return spec(
        state={"a": 1},
        actions=[{"id": "wait", "params": {}, "preconditions": {}, "effects": []}],
        random_events=[strike],
        loss_conditions=[at_most("gone", "state.a", 0), never("never")],
        negativity_budget={"min_fail_rate": 0.25, **budget},
        horizon=turns,
    )


def siege(**budget: Any) -> Json:
    """A scenario whose numbers decide: what falls by itself and by chance, and what helps."""
    return spec(
        state={"a": 20, "b": 0},
        actions=[{"id": "wait", "params": {}, "preconditions": {}, "effects": []}],
        random_events=[
            event("blow", [{"op": "dec", "path": "state.a", "value": 4}], weight=0.2),
            event("swell", [{"op": "inc", "path": "state.b", "value": 3}], weight=0.2),
            event("balm", [{"op": "inc", "path": "state.a", "value": 2}], weight=0.1),
        ],
        loss_conditions=[
            at_most("a_gone", "state.a", 0),
            {"id": "b_full", "when": {">=": [{"var": "state.b"}, 12]}},
        ],
        negativity_budget={"decay_per_turn": {"state.a": 0.5}, **({"min_fail_rate": 0.25} | budget)},
        horizon=15,
    )


def document(value: Json) -> bytes:
    """A scenario as bytes."""
    return json.dumps(value).encode()


def program(value: Json) -> Program:
    """A scenario, compiled."""
    return engine.compile(document(value))

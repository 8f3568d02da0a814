"""A small scenario that passes every gate: it is lost about as often as it should be."""

from __future__ import annotations

import json

from support.specs import action, at_most, event, spec

ROUNDS = 12


def playable() -> bytes:
    """The specification; one gauge falls by itself, one action raises it, one event lowers it."""
    return json.dumps(
        spec(
            state={"a": 12, "b": 9},
            actions=[
                action("raise", [{"op": "inc", "path": "state.a", "value": 1}]),
                action("spend", [{"op": "dec", "path": "state.b", "value": 1}]),
            ],
            random_events=[event("drop", [{"op": "dec", "path": "state.a", "value": 2}])],
            loss_conditions=[at_most("a_gone", "state.a", 0), at_most("b_gone", "state.b", 0)],
            negativity_budget={"min_fail_rate": 0.2, "decay_per_turn": {"state.a": 1}},
            horizon=ROUNDS,
        ),
    ).encode()

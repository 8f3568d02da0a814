"""Small hand-written scenario specifications."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from peripety import engine

if TYPE_CHECKING:
    from peripety.engine import Program


def action(name: str = "act", effects: list[Json] | None = None, **more: Any) -> Json:
    """Return an action that is always legal."""
    return {"id": name, "params": {}, "preconditions": {}, "effects": effects or [], **more}


def event(name: str = "event", effects: list[Json] | None = None, **more: Any) -> Json:
    """An event that may always happen."""
    return {"id": name, "weight": 0.3, "when": {}, "effects": effects or [], **more}


def never(name: str) -> Json:
    """A condition that never holds."""
    return {"id": name, "when": {"<": [1, 0]}}


def at_most(name: str, path: str, limit: float) -> Json:
    """A condition that holds once a number is at most a limit."""
    return {"id": name, "when": {"<=": [{"var": path}, limit]}}


def spec(**parts: Any) -> Json:
    """Return a valid scenario; `parts` replace its sections."""
    return {
        "spec_version": "1.0",
        "id": "alpha",
        "name": "Alpha",
        "seed": 7,
        "state": {"a": 10, "b": 2, "list": [1, 2], "tree": {"x": 1}, "flag": False, "note": "n"},
        "actions": [action("act", [{"op": "inc", "path": "state.a", "value": 1}])],
        "random_events": [],
        "loss_conditions": [never("first"), never("second")],
        "negativity_budget": {"min_fail_rate": 0.25},
        **parts,
    }


def document(**parts: Any) -> bytes:
    """`spec` as bytes."""
    return json.dumps(spec(**parts)).encode("utf-8")


def full_spec() -> Json:
    """A valid scenario in which everything that may be there is there."""
    number = {"type": "integer", "minimum": 0, "maximum": 3}
    effects: list[Json] = [
        {"op": "set", "path": "state.made", "value": {"p": [None]}},
        {"op": "inc", "path": "state.a", "value": 1},
        {"op": "inc", "path": "state.a", "value": "much"},
        {"op": "dec", "path": "state.a", "value": 0.5},
        {"op": "dec", "path": "state.a", "value": "much"},
        {"op": "mul", "path": "state.a", "value": 2},
        {"op": "mul", "path": "state.a", "value": "much"},
        {"op": "patch", "path": "state.tree", "value": {"y": 1}},
        {"op": "patch", "path": "state.tree", "value": "much"},
        {"op": "push", "path": "state.list", "value": 3},
        {"op": "pop", "path": "state.list"},
        {"op": "addlog", "message": "done"},
        {"op": "schedule", "id": "later", "at": 5, "effects": [{"op": "addlog", "message": "due"}]},
        {"op": "schedule", "id": "later", "at": "1d", "effects": [{"op": "addlog", "message": "due"}]},
        {"op": "schedule", "id": "later", "after": 2, "effects": [{"op": "addlog", "message": "due"}]},
        {"op": "schedule", "id": "later", "after": "2h", "effects": [{"op": "addlog", "message": "due"}]},
    ]
    more: Json = {"name": "Name", "derives": {"much": {"+": [1, 2]}}}
    params = {
        "n": number,
        "text": {"type": "string", "maxLength": 5},
        "flag": {"type": "boolean"},
        "choice": {"type": "number", "enum": [1, 2.5]},
        "word": {"type": "string", "enum": ["low", "high"]},
        "yes": {"type": "boolean", "enum": [True]},
    }
    return spec(
        entities=[{"id": "x", "name": "X", "kind": "one", "description": "First.", "playable": True}],
        actions=[{**action("act", effects, description="Acts.", params=params), **more}],
        random_events=[{**event("event", effects, duration="3h"), **more}],
        loss_conditions=[never("first") | {"message": "over"}, never("second")],
        win_conditions=[at_most("won", "state.b", 0)],
        negativity_budget={
            "min_fail_rate": 0.25,
            "max_fail_rate": 0.75,
            "decay_per_turn": {"state.a": 0.5},
            "max_positive_drift": 1,
        },
        clock={"turn": "1h"},
        horizon=20,
        visibility=[
            {"path": "state.a", "to": "hidden"},
            {"path": "state.b", "to": ["x"]},
        ],
        narrator_scope=[{"path": "state.a", "ops": ["inc", "set"], "max_magnitude": 2}],
    )


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


def as_bytes(value: Json) -> bytes:
    """A scenario as bytes."""
    return json.dumps(value).encode()


def program(value: Json) -> Program:
    """A scenario, compiled."""
    return engine.compile(as_bytes(value))

"""Fixtures of the session benchmarks: an endless scenario and its narrators."""

from __future__ import annotations

import json
from typing import Any

from support.engine.specs import action, at_most, event, spec

ACTION = "hold"
PARAMETER = "mark"
POV = "alpha"

_FIELDS = 24
_START = 20
_PROSE = (
    "The gauge holds for now, and the others look on while it does. Nothing is said for some time;"
    " then the counters move, one after the other, as they have done before. What was spent is spent."
    " A little is left of it, which is more than was to be expected, and less than anybody had hoped for."
)


def mark(session: int) -> str:
    """The word by which a session is known in every prompt about it."""
    return f"session-{session:03}."


def marked(prompt: str) -> int | None:
    """The session that a prompt is about; None when it is about none."""
    _, found, rest = prompt.rpartition("session-")
    return int(rest[:3]) if found else None


def scenario() -> bytes:
    """Return a scenario in which `hold` undoes every loss, so that repeating it plays for ever."""
    fields = {f"f{number}": _START + number for number in range(_FIELDS)}
    spend = [
        action(f"spend{number}", [_effect("dec", "gauge", 3), _effect("inc", f"fields.f{number}", 1)])
        for number in range(5)
    ]
    held = [_set("gauge", _START), _set("reserve", _START), _effect("inc", "fields.f0", 1)]
    return json.dumps(
        spec(
            entities=[
                {"id": POV, "name": "Alpha", "kind": "one", "playable": True},
                {"id": "beta", "name": "Beta", "kind": "one"},
            ],
            state={
                "public": {"gauge": _START, "reserve": _START, "fields": fields},
                "private": {POV: {"aim": 3}, "beta": {"aim": 5}},
            },
            actions=[
                action(
                    ACTION,
                    held,
                    params={PARAMETER: {"type": "string", "maxLength": len(mark(0))}},
                ),
                *spend,
            ],
            random_events=[
                event("wear", [_effect("dec", "gauge", 4), _effect("dec", "fields.f1", 0.5)]),
                event("leak", [_effect("dec", "reserve", 6), _effect("mul", "fields.f2", 0.99)]),
                event("turn", [_effect("inc", "fields.f3", 0.25)]),
            ],
            loss_conditions=[
                at_most("gauge_gone", "state.public.gauge", 0),
                at_most("reserve_gone", "state.public.reserve", 0),
            ],
            negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.public.gauge": 1}},
            horizon=40,
        ),
    ).encode()


def narrator(pace: dict[str, Any] | None) -> dict[str, Any]:
    """Return a script that narrates every turn correctly, at once or at a pace."""
    answer = {"narrative": _PROSE, "state_changes": []}
    response = {"json": answer, **({} if pace is None else {"pace": pace})}
    return {"clock": "real", "responses": [{"pattern": {"type": "any"}, "response": response}]}


def rolling_narrator(pace: dict[str, Any] | None) -> dict[str, Any]:
    """Return a script in which the narrator casts a die before it narrates a turn."""
    told, *_ = narrator(pace)["responses"]
    asked = {"type": "any", "tool_result": {"type": "regex", "pattern": "."}}
    die = {"tool_calls": [{"tool": "roll", "input": {"kind": "luck", "difficulty": 10}}]}
    cast = {"pattern": {"type": "any"}, "response": die}
    return {"clock": "real", "responses": [{**told, "pattern": asked}, cast]}


def _effect(op: str, field: str, value: float) -> dict[str, Any]:
    return {"op": op, "path": f"state.public.{field}", "value": value}


def _set(field: str, value: float) -> dict[str, Any]:
    return _effect("set", field, value)

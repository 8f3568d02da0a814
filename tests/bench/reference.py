"""The reference scenario of the benchmarks: twelve numbers, six actions, five events, three losses."""

from __future__ import annotations

import json
from typing import Any

FIELDS = 12


def numeric_spec() -> bytes:
    """A scenario whose rules are numeric, about half of whose runs last to the horizon."""
    return json.dumps(
        {
            "spec_version": "1.0",
            "id": "reference",
            "name": "Reference",
            "seed": 1,
            "state": {"low": _fields(0, 6), "high": _fields(6, FIELDS)},
            "actions": [_action(n) for n in range(6)],
            "random_events": [_event(n) for n in range(5)],
            "loss_conditions": [{"id": f"loss{n}", "when": {"<=": [{"var": _path(n)}, 0]}} for n in range(3)],
            "negativity_budget": {"min_fail_rate": 0.25, "decay_per_turn": {_path(3): 0.25, _path(7): 0.5}},
        }
    ).encode("utf-8")


def _fields(first: int, end: int) -> dict[str, float]:
    return {f"f{n}": 20.0 + n for n in range(first, end)}


def _path(field: int) -> str:
    field %= FIELDS
    return f"state.{'low' if field < 6 else 'high'}.f{field}"


def _action(n: int) -> dict[str, Any]:
    return {
        "id": f"action{n}",
        "params": {},
        "preconditions": {"and": [{">": [{"var": _path(n)}, 2]}, {"<": [{"var": _path(n + 6)}, 60]}]},
        "effects": [
            {"op": "dec", "path": _path(n), "value": 1.5},
            {"op": "inc", "path": _path(n + 1), "value": 1},
            {"op": "inc", "path": _path(n + 6), "value": 0.5},
        ],
    }


def _event(n: int) -> dict[str, Any]:
    return {
        "id": f"event{n}",
        "weight": 0.1 + n * 0.05,
        "when": {">": [{"var": _path(n + 2)}, 1]},
        "effects": [
            {"op": "dec", "path": _path(n), "value": 2 + n},
            {"op": "mul", "path": _path(n + 6), "value": 0.95},
        ],
    }

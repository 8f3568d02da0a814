"""Small scenario documents for tests."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


def action(name: str = "act", effects: list[Json] | None = None, **more: Any) -> Json:
    """An action that can always be taken."""
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
    """A scenario that is valid as it stands; `parts` replace its sections."""
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

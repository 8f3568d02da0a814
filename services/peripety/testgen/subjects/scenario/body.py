"""Body of a scenario test, as JSON and as parsed steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.errors import PeripetyError, SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BODY_SCHEMA", "MAX_ACTIONS", "MAX_STEPS", "Body", "PlayedAction", "Step", "read_body"]

MAX_STEPS = 100
MAX_ACTIONS = 16
_NULLS = frozenset({"", "null", "none"})

BODY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "The turns to play from the beginning of the scenario, with expectations.",
    "properties": {
        "seed": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": 2**53 - 1,
            "description": "Seed of random events; null for the scenario's own.",
        },
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "description": "One turn.",
                "properties": {
                    "actions": {
                        "type": "array",
                        "description": "The actions of the turn, in order; may be empty.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "action_id": {"type": "string"},
                                "params": {
                                    "type": ["string", "object", "null"],
                                    "description": "A JSON object, or its text: a value for each parameter.",
                                },
                            },
                            "required": ["action_id", "params"],
                            "additionalProperties": False,
                        },
                    },
                    "accepted": {
                        "type": ["boolean", "null"],
                        "description": "True if all actions must be accepted, false if rejected; or null.",
                    },
                    "expect": {
                        "type": ["string", "object", "null"],
                        "description": "JSONLogic, or its text, that must hold after the turn. It sees state,"
                        " turn, status ('ongoing', 'won' or 'lost'), ending and event (an id, or null).",
                    },
                },
                "required": ["actions", "accepted", "expect"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["seed", "steps"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class PlayedAction:
    """An action and its parameters."""

    action_id: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One turn.

    Attributes:
        actions: the actions, in order.
        accepted: whether all of them must be accepted, or rejected; None for no expectation.
        expect: the condition after the turn, as JSONLogic; None for none.
        rule: the same, compiled; its value is a boolean.
    """

    actions: tuple[PlayedAction, ...]
    accepted: bool | None = None
    expect: Any = None
    rule: sim.Rule | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """A parsed test: turns, and a seed, None for that of the scenario."""

    seed: int | None
    steps: tuple[Step, ...]


def read_body(body: Mapping[str, Any]) -> Body:
    """Parse a body.

    Raises:
        PeripetyError: a text is not JSON, or not JSONLogic within the engine's limits.
    """
    seed = body.get("seed")
    return Body(int(seed) if seed is not None else None, tuple(map(_step, body.get("steps") or ())))


def _step(step: Mapping[str, Any]) -> Step:
    actions = tuple(
        PlayedAction(str(action["action_id"]), _value(action.get("params")) or {})
        for action in step.get("actions") or ()
    )
    expect = _value(step.get("expect"))
    rule = None if expect is None else sim.rule({"!!": [expect]})
    return Step(actions, step.get("accepted"), expect, rule)


def _value(given: Any) -> Any:
    """Return a JSON value, which may be encoded as text; None for null in any form."""
    if not isinstance(given, str):
        return given
    if given.strip().lower() in _NULLS:
        return None
    try:
        return sim.parse(given)
    except SpecError as error:
        raise PeripetyError(f"is not JSON: {error.findings[0].message}", code="NOT_JSON") from None

"""The body of a test on a scenario, as JSON and as it is played."""

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
    "description": "Play, and what has to hold: turns in order, from the beginning of the scenario.",
    "properties": {
        "seed": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": 2**53 - 1,
            "description": "Decides about random events; null for the scenario's own.",
        },
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "description": "One turn.",
                "properties": {
                    "actions": {
                        "type": "array",
                        "description": "What is done in the turn, in order; may be empty.",
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
                        "description": "Whether all actions must be carried out, or all rejected; or null.",
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
        actions: what is done, in order.
        accepted: whether all of it must be carried out, or must be rejected; None for either.
        expect: what must hold after the turn; None for nothing.
        rule: the same, so that it can be evaluated; its value is a truth.
    """

    actions: tuple[PlayedAction, ...]
    accepted: bool | None = None
    expect: Any = None
    rule: sim.Rule | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """A test: a seed, None for the scenario's own, and turns."""

    seed: int | None
    steps: tuple[Step, ...]


def read_body(body: Mapping[str, Any]) -> Body:
    """A body as it is played.

    Raises:
        PeripetyError: what stands in a text is no JSON, or no JSONLogic within the engine's limits.
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
    """JSON, which may stand in a text; None when it is null, however it is written."""
    if not isinstance(given, str):
        return given
    if given.strip().lower() in _NULLS:
        return None
    try:
        return sim.parse(given)
    except SpecError as error:
        raise PeripetyError(f"is not JSON: {error.findings[0].message}", code="NOT_JSON") from None

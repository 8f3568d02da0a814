"""Parser of our own prompts: the JSON object in the last user message.

a scenario   {"description": TEXT, "seed": NUMBER?}; any later message requests another attempt
a turn       {"facts": {turn, actions, changes, log, event, status}, "history": [{"told": TEXT?}, ...]}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.errors import InvalidArgumentError
from peripety.sim.schema import check

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Description", "Turn", "description_in", "object_in", "turn_in"]

_NAMED = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "name": {"type": ["string", "null"]},
        "params": {"type": "object"},
    },
    "required": ["id"],
}
_FACTS = {
    "type": "object",
    "properties": {
        "actions": {"type": "array", "items": _NAMED},
        "changes": {
            "type": "array",
            "items": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
        "log": {"type": "array", "items": {"type": "string"}},
        "event": {"anyOf": [_NAMED, {"type": "null"}]},
        "status": {
            "type": "object",
            "properties": {"kind": {"type": "string"}, "message": {"type": ["string", "null"]}},
            "required": ["kind"],
        },
    },
    "required": ["actions", "changes"],
}
_TOLD = {"type": "object", "properties": {"told": {"type": "string"}}}
_TURN = {
    "type": "object",
    "properties": {"facts": _FACTS, "history": {"type": "array", "items": _TOLD}},
    "required": ["facts"],
}


@dataclass(frozen=True, slots=True)
class Description:
    """A requested scenario; `tries` counts the rejected answers."""

    text: str
    seed: int | None
    tries: int


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn to narrate: its facts, and the narration of earlier turns."""

    facts: dict[str, Any]
    history: tuple[str, ...]


def description_in(said: Sequence[str]) -> Description:
    """Return the last description among the user's messages.

    Without the usual object, the first message is one.
    """
    for position in range(len(said) - 1, -1, -1):
        value = _object(said[position])
        if isinstance(value.get("description"), str):
            seed = value.get("seed")
            whole = seed if isinstance(seed, int) and not isinstance(seed, bool) else None
            return Description(value["description"], whole, len(said) - 1 - position)
    return Description(said[0] if said else "", None, max(len(said) - 1, 0))


def turn_in(said: Sequence[str]) -> Turn:
    """Return the last turn among the user's messages.

    Raises:
        InvalidArgumentError: no message contains the facts of a turn; the violations name the problems.
    """
    value = next((found for text in reversed(said) if "facts" in (found := _object(text))), {})
    findings = check(_TURN, value)
    if findings:
        raise InvalidArgumentError(
            "the last message must be a JSON object with the facts of a turn",
            code="FACTS_INVALID",
            violations=[finding.violation for finding in findings],
        )
    return Turn(
        value["facts"], tuple(before["told"] for before in value.get("history", ()) if "told" in before)
    )


def object_in(text: str, schema: Mapping[str, Any], where: str, about: str) -> dict[str, Any]:
    """Parse a text as a JSON object with a schema.

    Args:
        text: the text.
        schema: its schema.
        where: its location, for messages.
        about: its purpose, for messages.

    Raises:
        InvalidArgumentError: it is not such an object; the violations name the problems.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    findings = check(schema, value)
    if findings:
        raise InvalidArgumentError(
            f"{where} must be a JSON object with the input of an answer about {about}",
            code="MATERIAL_INVALID",
            violations=[finding.violation for finding in findings],
        )
    return dict(value)


def _object(text: str) -> dict[str, Any]:
    """Return the JSON object in a text; empty for any other text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

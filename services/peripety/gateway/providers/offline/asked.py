"""What was asked: the JSON object that scenarios and sessions put into the last user message.

a scenario   {"description": TEXT, "seed": NUMBER?}; any message after it asks for another try
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
    """A scenario that was asked for; `tries` counts the answers that did not do."""

    text: str
    seed: int | None
    tries: int


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that is to be told: what was decided, and what was told of the turns before."""

    facts: dict[str, Any]
    history: tuple[str, ...]


def description_in(said: Sequence[str]) -> Description:
    """The last description among the user's messages; without the usual object, the first message is one."""
    for position in range(len(said) - 1, -1, -1):
        value = _object(said[position])
        if isinstance(value.get("description"), str):
            seed = value.get("seed")
            whole = seed if isinstance(seed, int) and not isinstance(seed, bool) else None
            return Description(value["description"], whole, len(said) - 1 - position)
    return Description(said[0] if said else "", None, max(len(said) - 1, 0))


def turn_in(said: Sequence[str]) -> Turn:
    """The last turn among the user's messages.

    Raises:
        InvalidArgumentError: no message holds the facts of a turn; the violations say what is wrong.
    """
    value = next((found for text in reversed(said) if "facts" in (found := _object(text))), {})
    findings = check(_TURN, value)
    if findings:
        raise InvalidArgumentError(
            "the last message has to be a JSON object with the facts of a turn",
            code="FACTS_INVALID",
            violations=[finding.violation for finding in findings],
        )
    return Turn(
        value["facts"], tuple(before["told"] for before in value.get("history", ()) if "told" in before)
    )


def object_in(text: str, schema: Mapping[str, Any], where: str, about: str) -> dict[str, Any]:
    """The JSON object that a text has to be.

    Args:
        text: the text.
        schema: what has to be in it.
        where: where it stands, for a person.
        about: what an answer is made about of it, for a person.

    Raises:
        InvalidArgumentError: it is none; the violations say what is wrong.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    findings = check(schema, value)
    if findings:
        raise InvalidArgumentError(
            f"{where} has to be a JSON object with what an answer about {about} is made of",
            code="MATERIAL_INVALID",
            violations=[finding.violation for finding in findings],
        )
    return dict(value)


def _object(text: str) -> dict[str, Any]:
    """The JSON object that a text is; empty for any other text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

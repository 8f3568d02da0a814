"""Action matching: finds the action that a player's words name literally, without a model."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from peripety.authoring.reading.scripts import HAN, KATAKANA, UNSPACED, classes, cleaned
from peripety.gateway.model import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.gateway.model import Tool

__all__ = ["ACTION", "meant_by", "name_of"]

ACTION = "action:"
"""Prefix of the tool names of actions; the action's id follows."""

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)")
_SENTENCE = re.compile(r"(?<=[.!?…])\s")
_WITHOUT_SPACES = frozenset({HAN, KATAKANA, UNSPACED})


def meant_by(words: str, tools: Sequence[Tool]) -> ToolCall | None:
    """Return the unambiguous action call for a player's words, or None.

    A candidate is an action whose name or id occurs in the words; the longest match wins if it is unique. The
    words must supply every parameter that leaves a choice, with numbers within their bounds.

    Args:
        words: the player's words.
        tools: the offered tools, actions among them.
    """
    said = cleaned(words).casefold()
    fitting = [(length, tool) for tool in tools if (length := _longest(tool, said))]
    most = max((length for length, _ in fitting), default=0)
    meant = [tool for length, tool in fitting if length == most]
    if len(meant) != 1:
        return None
    given = _given(meant[0].input_schema.get("properties", {}), said)
    return None if given is None else ToolCall("offline", meant[0].name, json.dumps(given))


def name_of(tool: Tool) -> str:
    """Return the name of an action, the start of its description."""
    return _SENTENCE.split(tool.description, maxsplit=1)[0].rstrip(".!?…") or tool.name


def _longest(tool: Tool, said: str) -> int:
    """Return the length of the matched name or id of an action; 0 without a match."""
    if not tool.name.startswith(ACTION):
        return 0
    spoken = frozenset(_WORD.findall(said))
    name = cleaned(name_of(tool)).casefold()
    phrases = (_WORD.findall(name), _WORD.findall(tool.name.removeprefix(ACTION).casefold()))
    lengths = [len("".join(phrase)) for phrase in phrases if phrase and spoken.issuperset(phrase)]
    if name in said and _WITHOUT_SPACES.intersection(classes(name)):
        lengths.append(len(name))
    return max(lengths, default=0)


def _given(params: Mapping[str, Mapping[str, Any]], said: str) -> dict[str, Any] | None:
    """Return a value for each parameter; None if one would have to be guessed."""
    given = {name: _only_value(schema) for name, schema in params.items()}
    open_ones = [name for name, value in given.items() if value is None]
    numbers = [_number(digits) for digits in _NUMBER.findall(said)] if open_ones else []
    if len(numbers) != len(open_ones):
        return None
    for name, number in zip(open_ones, numbers, strict=True):
        if not _takes(params[name], number):
            return None
        given[name] = number
    return given


def _number(digits: str) -> float:
    """Parse a number as people write it, with leading zeros and digits of other scripts."""
    number = float(digits)
    return int(number) if number.is_integer() else number


def _only_value(schema: Mapping[str, Any]) -> Any:
    """Return the value of a parameter that has only one possible value; None for any other parameter."""
    values = list(_values(schema))
    return values[0] if len(values) == 1 else None


def _values(schema: Mapping[str, Any]) -> Iterator[Any]:
    if "enum" in schema:
        yield from schema["enum"]
    elif "minimum" in schema and schema["minimum"] == schema.get("maximum"):
        yield schema["minimum"]


def _takes(schema: Mapping[str, Any], number: float) -> bool:
    if "enum" in schema:
        return number in schema["enum"]
    match schema:
        case {"type": "integer" | "number" as kind, "minimum": least, "maximum": most}:
            return bool(least <= number <= most) and (kind == "number" or number == int(number))
        case _:
            return False

"""Sizes of JSON values, and the size limits of a run's state."""

from __future__ import annotations

from typing import Any, NamedTuple

from peripety.sim._core import CoreError
from peripety.sim._pure.border import MAX_DEPTH, MAX_STRING_BYTES

__all__ = [
    "MAX_LOG_LINES",
    "MAX_PENDING",
    "MAX_ROLLS",
    "MAX_STATE_NODES",
    "MAX_STATE_TEXT",
    "Size",
    "byte_length",
    "check_limits",
    "measure",
    "steps_for",
]

MAX_LOG_LINES = 256
MAX_PENDING = 256
MAX_STATE_NODES = 10_000
MAX_STATE_TEXT = 1 << 20
# For all kinds together, in one turn.
MAX_ROLLS = 256

_BYTES_PER_STEP = 1024


class Size(NamedTuple):
    """Size of JSON values: count, depth, bytes of text including keys, bytes of the longest string."""

    nodes: int = 0
    deepest: int = 0
    text: int = 0
    longest: int = 0


_SCALAR = Size(nodes=1)


def steps_for(nodes: int, text: int) -> int:
    """Return the cost of handling values: 1 for each, and 1 for each full 1,024 bytes of text."""
    return nodes + text // _BYTES_PER_STEP


def measure(root: Any, most_steps: float = float("inf")) -> Size:
    """Measure a JSON value; stop once its cost exceeds `most_steps`."""
    if not isinstance(root, str | list | dict):
        return _SCALAR
    nodes = deepest = text = longest = 0
    level: list[Any] = [root]
    while level and steps_for(nodes, text) <= most_steps:
        below: list[Any] = []
        for value in level:
            if isinstance(value, str):
                length = byte_length(value)
                text += length
                longest = max(longest, length)
            elif isinstance(value, dict):
                text += sum(map(byte_length, value))
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        nodes += len(level)
        deepest += any(isinstance(value, dict | list) for value in level)
        level = below
    return Size(nodes, deepest, text, longest)


def byte_length(text: str) -> int:
    """Return the length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def check_limits(size: Size) -> None:
    """Raise if a state, including scheduled entries, exceeds its limits.

    Raises:
        CoreError: `STATE_LIMIT`.
    """
    if size.longest > MAX_STRING_BYTES:
        raise CoreError("STATE_LIMIT", f"a string is longer than {MAX_STRING_BYTES} bytes")
    if size.deepest > MAX_DEPTH:
        raise CoreError("STATE_LIMIT", f"the state is nested deeper than {MAX_DEPTH} levels")
    if size.nodes > MAX_STATE_NODES:
        raise CoreError("STATE_LIMIT", f"the state has more than {MAX_STATE_NODES} values")
    if size.text > MAX_STATE_TEXT:
        raise CoreError("STATE_LIMIT", f"the state holds more than {MAX_STATE_TEXT} bytes of text")

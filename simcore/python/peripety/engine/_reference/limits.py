"""Limits of values: sizes of JSON values and of a run's state, literals that look like code, durations.

Durations are ISO 8601 (`P7D`, `PT12H`) or short (`7d`, `12h`, `7d12h`, `30m`, `7d/12h`), and are converted
to turns. Some keys are dangerous to clients and rejected.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from peripety.engine._reference.jsonlogic_operators import OPERATORS
from peripety.engine.backend_protocol import EngineError
from peripety.engine.paths import FORBIDDEN_KEYS
from peripety.engine.strict_json import MAX_DEPTH, MAX_STRING_BYTES

DEFAULT_TURN_MINUTES = 60

_ISO = re.compile(r"P(?:([0-9]{1,6})W)?(?:([0-9]{1,6})D)?(?:T(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?)?")
_SHORT = re.compile(r"()(?:([0-9]{1,6})d)?/?(?:([0-9]{1,6})h)?/?(?:([0-9]{1,6})m)?")
_UNIT_MINUTES = (7 * 24 * 60, 24 * 60, 60, 1)


def duration_in_minutes(text: str) -> int:
    """Return the length of a duration in minutes.

    Raises:
        EngineError: `BAD_DURATION` if the text is not a duration.
    """
    match = _ISO.fullmatch(text) or _SHORT.fullmatch(text)
    if match is None or not any(match.groups()):
        raise EngineError(
            "BAD_DURATION",
            f"'{text[:32]}' is not a duration; write P7D, PT12H, 7d, 12h, 7d12h or 30m",
        )
    return sum(int(count) * unit for count, unit in zip(match.groups(), _UNIT_MINUTES, strict=True) if count)


def duration_in_turns(duration: str | float, turn_minutes: int) -> int:
    """Convert a duration, or a number of turns, to turns: rounded up, at least 1."""
    if isinstance(duration, float):
        return int(duration)
    return max(1, -(-duration_in_minutes(duration) // turn_minutes))


_TEMPLATE = re.compile(r"\{\{|\$\{|\{%|<%")


def looks_like_code(value: Any) -> bool:
    """Return True if a value contains an operation, or a text that resembles a template."""
    if isinstance(value, str):
        return _TEMPLATE.search(value) is not None
    if isinstance(value, list):
        return any(looks_like_code(item) for item in value)
    if isinstance(value, dict):
        return (len(value) == 1 and next(iter(value)) in OPERATORS) or any(
            looks_like_code(item) for item in value.values()
        )
    return False


def find_forbidden_key(value: Any) -> str | None:
    """Return the first dangerous key of a value, depth first and in key order."""
    if isinstance(value, dict):
        for key in sorted(value):
            found = key if key in FORBIDDEN_KEYS else find_forbidden_key(value[key])
            if found is not None:
                return found
    if isinstance(value, list):
        return next((key for item in value if (key := find_forbidden_key(item)) is not None), None)
    return None


MAX_LOG_LINES = 256
MAX_PENDING = 256
MAX_STATE_NODES = 10_000
MAX_STATE_TEXT = 1 << 20
# For all kinds together, in one turn.
MAX_ROLLS = 256

_BYTES_PER_STEP = 1024


class JsonSize(NamedTuple):
    """Size of JSON values: count, depth, bytes of text including keys, bytes of the longest string."""

    nodes: int = 0
    depth: int = 0
    text: int = 0
    longest_text: int = 0


_SCALAR = JsonSize(nodes=1)


def handling_cost(nodes: int, text: int) -> int:
    """Return the cost of handling values: 1 for each, and 1 for each full 1,024 bytes of text."""
    return nodes + text // _BYTES_PER_STEP


def measure(root: Any, max_steps: float = float("inf")) -> JsonSize:
    """Measure a JSON value; stop once its cost exceeds `max_steps`."""
    if not isinstance(root, str | list | dict):
        return _SCALAR
    nodes = deepest = text = longest = 0
    level: list[Any] = [root]
    while level and handling_cost(nodes, text) <= max_steps:
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
    return JsonSize(nodes, deepest, text, longest)


def byte_length(text: str) -> int:
    """Return the length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def check_limits(size: JsonSize) -> None:
    """Raise if a state, including scheduled entries, exceeds its limits.

    Raises:
        EngineError: `STATE_LIMIT`.
    """
    if size.longest_text > MAX_STRING_BYTES:
        raise EngineError("STATE_LIMIT", f"a string is longer than {MAX_STRING_BYTES} bytes")
    if size.depth > MAX_DEPTH:
        raise EngineError("STATE_LIMIT", f"the state is nested deeper than {MAX_DEPTH} levels")
    if size.nodes > MAX_STATE_NODES:
        raise EngineError("STATE_LIMIT", f"the state has more than {MAX_STATE_NODES} values")
    if size.text > MAX_STATE_TEXT:
        raise EngineError("STATE_LIMIT", f"the state holds more than {MAX_STATE_TEXT} bytes of text")

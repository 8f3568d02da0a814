"""Paths into a state tree: `state.a.b[2]["odd key"]`.

Conditions also accept the JSONLogic notation `state.a.b.2`, in which digits are an index into an array and a
key of an object.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from peripety.engine import strict_json
from peripety.engine.backend_protocol import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Path = tuple[str | int, ...]

FORBIDDEN_KEYS = frozenset({"__proto__", "constructor", "prototype"})
MISSING: Final = object()
# Equal to the limit in the schema.
MAX_PATH_CHARACTERS = 512

_ROOT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEP = re.compile(r'\.([A-Za-z_][A-Za-z0-9_]*)|\[(0|[1-9][0-9]{0,9})\]|\[("(?:[^"\\]|\\.)*")\]')
_LOOSE_STEP = re.compile(r'\.([^.\[\]"]*)|\[(0|[1-9][0-9]{0,9})\]|\[("(?:[^"\\]|\\.)*")\]')
_DIGITS = re.compile(r"0|[1-9][0-9]{0,9}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@lru_cache(maxsize=4096)
def parse_path(text: str) -> Path:
    """Parse the path of an effect into its segments, including the root.

    Raises:
        EngineError: `BAD_PATH` if the text is not a path.
    """
    root = _ROOT.match(text)
    if root is None:
        raise _path_error(text)
    return (root.group(), *_parse_segments(text, root.end(), _STEP))


@lru_cache(maxsize=4096)
def parse_state_path(text: str) -> Path:
    """Parse a path into the state; each segment must be a key or index that a document may have.

    Raises:
        EngineError: `BAD_PATH`, `FORBIDDEN_KEY` (dangerous to clients in other languages) or `KEY_TOO_LONG`
            (a snapshot with such a key could not be read).
    """
    if len(text) > MAX_PATH_CHARACTERS:
        raise EngineError("BAD_PATH", f"'{text[:80]}…' has more than {MAX_PATH_CHARACTERS} characters")
    path = parse_path(text)
    if path[0] != "state":
        raise EngineError("BAD_PATH", f"'{text[:80]}' must start with 'state'")
    if FORBIDDEN_KEYS.intersection(path):
        raise EngineError("FORBIDDEN_KEY", f"'{text[:80]}' uses a key that is dangerous to clients")
    if any(isinstance(key, str) and len(key.encode("utf-8")) > strict_json.MAX_KEY_BYTES for key in path):
        message = f"'{text[:80]}' uses a key that is longer than {strict_json.MAX_KEY_BYTES} bytes"
        raise EngineError("KEY_TOO_LONG", message)
    return path


def split_variable(text: str) -> Path:
    """Split a JSONLogic variable at dots and brackets; malformed brackets are split at dots only."""
    if text == "":
        return ()
    if "[" not in text:
        return tuple(text.split("."))
    try:
        return _parse_segments("." + text, 0, _LOOSE_STEP)
    except EngineError:
        return tuple(text.split("."))


def _parse_segments(text: str, at: int, step: re.Pattern[str]) -> Path:
    segments: list[str | int] = []
    while at < len(text):
        match = step.match(text, at)
        if match is None:
            raise _path_error(text)
        name, index, quoted = match.groups()
        if name is not None:
            segments.append(name)
        elif index is not None:
            segments.append(int(index))
        else:
            segments.append(_unquote(quoted, text))
        at = match.end()
    return tuple(segments)


def _unquote(quoted: str, text: str) -> str:
    try:
        return str(strict_json.parse(quoted.encode("utf-8")))
    except EngineError:
        raise _path_error(text) from None


def _path_error(text: str) -> EngineError:
    shown = text if len(text) <= 80 else text[:80] + "…"  # noqa: PLR2004 - what fits a line
    return EngineError("BAD_PATH", f"'{shown}' is not a path; write state.a.b[2] or state[\"odd key\"]")


@lru_cache(maxsize=4096)
def format_path(path: Path) -> str:
    """Format a path; the inverse of `parse_path`."""
    parts = [str(path[0])]
    for segment in path[1:]:
        if isinstance(segment, int):
            parts.append(f"[{segment}]")
        elif _IDENTIFIER.match(segment):
            parts.append(f".{segment}")
        else:
            parts.append(f"[{json.dumps(segment, ensure_ascii=False)}]")
    return "".join(parts)


def lookup(root: Any, path: Path) -> Any:
    """Return the value at a path, or `MISSING`."""
    value = root
    for segment in path:
        value = get_child(value, segment)
        if value is MISSING:
            break
    return value


def lookup_variable(root: Any, path: Path) -> Any:
    """Return the value as `lookup`, but with digits as an index if the value is an array."""
    value = root
    for segment in path:
        value = get_child(value, resolve_segment(value, segment))
        if value is MISSING:
            break
    return value


def resolve_segment(value: Any, segment: str | int) -> str | int:
    """Return a segment of a variable as a key or index into a value."""
    is_index = isinstance(value, list) and isinstance(segment, str) and _DIGITS.fullmatch(segment)
    return int(segment) if is_index else segment


def get_child(value: Any, segment: str | int) -> Any:
    """Return the value at a key of an object or an index of an array, or `MISSING`."""
    if isinstance(value, dict):
        return value.get(segment, MISSING)
    if isinstance(value, list) and isinstance(segment, int) and segment < len(value):
        return value[segment]
    return MISSING


def variable_to_path(name: str) -> str:
    """Convert a variable of a condition to a path of effects.

    `state.a.2` becomes `state.a["2"]`; a variable that reads all data becomes "".
    """
    segments = split_variable(name)
    return format_path(segments) if segments else ""


def list_read_paths(logic: Any) -> Iterator[str]:
    """Yield the paths that an expression reads, as effects write them."""
    if isinstance(logic, list):
        for item in logic:
            yield from list_read_paths(item)
    elif isinstance(logic, dict):
        for operator, operand in logic.items():
            name = operand[0] if isinstance(operand, list) and operand else operand
            if operator == "var" and isinstance(name, str):
                yield variable_to_path(name)
            else:
                yield from list_read_paths(operand)
            if operator in {"missing", "missing_some"}:
                yield from (variable_to_path(text) for text in _list_texts(operand))


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _list_texts(item)
    elif isinstance(value, str):
        yield value


def are_related(written: Iterable[str], read: Iterable[str]) -> bool:
    """Return True if a written path of the state is one that is read, or is above or below it."""
    ways = [[parse_path(text) for text in paths if text.startswith("state")] for paths in (written, read)]
    return any(one[: len(other)] == other[: len(one)] for one in ways[0] for other in ways[1])

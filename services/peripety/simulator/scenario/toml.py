"""TOML writer for plain values, formatted for reading."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

__all__ = ["to_toml"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"[^'\x00-\x1f\x7f]+")
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
_ESCAPED_IN_LINES = re.compile(r'\\|"(?="")|"\Z|[\x00-\x08\x0b-\x1f\x7f]')
_SHORT = {"\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r", '"': r"\"", "\\": r"\\"}


def to_toml(document: Mapping[str, Any], *, sections: Collection[str] = ()) -> str:
    """Format a document as TOML.

    Args:
        document: tables of text, numbers, booleans, times, and arrays and tables of these.
        sections: keys whose tables, and arrays of tables, get headers of their own; others are inline.
    """
    return "".join(f"{line}\n" for line in _table((), document, sections)).lstrip("\n")


def _table(path: tuple[str, ...], table: Mapping[str, Any], sections: Collection[str]) -> Iterator[str]:
    later = []
    for key, value in table.items():
        if key in sections and isinstance(value, dict):
            later.append((f"[{_header(path, key)}]", key, value))
        elif key in sections and isinstance(value, list):
            later.extend((f"[[{_header(path, key)}]]", key, item) for item in value)
        else:
            yield f"{_key(key)} = {_value(value, lines=True)}"
    for header, key, value in later:
        yield ""
        yield header
        yield from _table((*path, key), value, sections)


def _header(path: tuple[str, ...], key: str) -> str:
    return ".".join(map(_key, (*path, key)))


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _basic(key)


def _value(value: Any, *, lines: bool = False) -> str:
    match value:
        case str():
            return _text(value, lines=lines)
        case dict():
            return _inline(value)
        case list():
            return _array(value, lines=lines)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case int() | float():  # bool is a subclass of int and differs only in case
            return repr(value).lower()
    raise TypeError(f"TOML has no {type(value).__name__}")


def _array(items: list[Any], *, lines: bool) -> str:
    if lines and any(isinstance(item, dict) for item in items):
        return "".join(["[\n", *(f"    {_value(item)},\n" for item in items), "]"])
    return f"[{', '.join(map(_value, items))}]"


def _inline(table: Mapping[str, Any]) -> str:
    fields = ", ".join(f"{_key(key)} = {_value(value)}" for key, value in table.items())
    return f"{{ {fields} }}" if fields else "{}"


def _text(text: str, *, lines: bool) -> str:
    if lines and "\n" in text:
        return f'"""\n{_ESCAPED_IN_LINES.sub(_escape, text)}"""'
    if ("\\" in text or '"' in text) and _LITERAL.fullmatch(text):
        return f"'{text}'"
    return _basic(text)


def _basic(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT.get(character) or f"\\u{ord(character):04x}"

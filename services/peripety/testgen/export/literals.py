"""Values as source text of Python, safe for any text: literals, and JSON in raw strings."""

from __future__ import annotations

import json
import math
import textwrap
from typing import Any


def to_one_line(text: str) -> str:
    """Return a text without line breaks and invisible characters."""
    return "".join(
        one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in " ".join(text.split())
    )


def to_text_literal(text: str) -> str:
    """Return a string literal on one line, in double quotes if the text has none."""
    if '"' in text:
        return repr(text)
    # A text with a single quote is represented in double quotes, so one is added and removed again.
    return '"' + repr("'" + text)[2:]


def to_literal(value: Any, indent: int, width: int) -> str:
    """Return a literal, on one line if it fits, or else with its parts on separate lines.

    The parts of a text are its lines.

    Args:
        value: a value of JSON, or a tuple.
        indent: spaces before the lines that follow the first one.
        width: the longest line.
    """
    line = _to_line(value)
    if len(line) <= width - indent or not value or not isinstance(value, dict | list | tuple | str):
        return line
    if isinstance(value, str):
        lines = value.split("\n")
        rows = [f"{one}\n" for one in lines[:-1]] + [one for one in lines[-1:] if one]
        inner = "".join(f"{' ' * (indent + 4)}{to_text_literal(row)}\n" for row in rows)
        return line if len(rows) == 1 else f"(\n{inner}{' ' * indent})"
    if isinstance(value, dict):
        parts = [
            f"{to_text_literal(key)}: {to_literal(part, indent + 4, width)}" for key, part in value.items()
        ]
    else:
        parts = [to_literal(part, indent + 4, width) for part in value]
    opened, closed = _brackets(value)
    inner = "".join(f"{' ' * (indent + 4)}{part},\n" for part in parts)
    return f"{opened}\n{inner}{' ' * indent}{closed}"


def _to_line(value: Any) -> str:
    if isinstance(value, str):
        return to_text_literal(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if not isinstance(value, dict | list | tuple):
        return repr(value)
    if isinstance(value, dict):
        parts = [f"{to_text_literal(key)}: {_to_line(part)}" for key, part in value.items()]
    else:
        parts = [_to_line(part) for part in value]
    opened, closed = _brackets(value)
    single = "," if isinstance(value, tuple) and len(value) == 1 else ""
    return f"{opened}{', '.join(parts)}{single}{closed}"


def _brackets(value: Any) -> tuple[str, str]:
    if isinstance(value, dict):
        return "{", "}"
    return ("(", ")") if isinstance(value, tuple) else ("[", "]")


def to_json_literal(value: Any, indent: int, width: int) -> str:
    """Return a raw string literal with a value as JSON.

    JSON never contains three quotes in a row, because quotes inside strings are escaped.

    Args:
        value: the value.
        indent: spaces before each line.
        width: the longest line, unless a text is longer.
    """
    written = _layout_json(value, width - indent)
    # Invisible characters, and those that UTF-8 cannot encode, become JSON escapes.
    written = "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in written)
    return f'r"""\n{textwrap.indent(written, " " * indent)}\n{" " * indent}"""'


def _layout_json(value: Any, width: int) -> str:
    """Return JSON with each value on one line if it fits, or else with its parts on separate lines."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= width or not value or not isinstance(value, dict | list):
        return line
    if isinstance(value, dict):
        heads = [f"{json.dumps(key, ensure_ascii=False)}: " for key in value]
        parts, (opened, closed) = [*value.values()], "{}"
    else:
        heads, parts, (opened, closed) = [""] * len(value), value, "[]"
    told = (head + _layout_json(part, width - 2 - len(head)) for head, part in zip(heads, parts, strict=True))
    # Only a newline ends a line: a text may contain other line separators.
    inner = ",\n".join(told).replace("\n", "\n  ")
    return f"{opened}\n  {inner}\n{closed}"

"""Safe embedding of untrusted text in Python source."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

__all__ = ["comment", "in_one_line", "json_literal", "names"]

_WIDTH = 95
_LONGEST = 600
_LONGEST_NAME = 60


def in_one_line(text: str) -> str:
    """Return a text without line breaks and invisible characters."""
    return "".join(
        one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in " ".join(text.split())
    )


def comment(text: str) -> list[str]:
    """Return the lines of a comment, without indentation; a long text is shortened."""
    shown = textwrap.shorten(in_one_line(text), _LONGEST, placeholder=" ...")
    return [f"# {line}" for line in textwrap.wrap(shown, _WIDTH)]


def json_literal(value: Any, indent: int) -> str:
    """Return a raw string literal with a value as JSON.

    JSON never contains three quotes in a row, because quotes inside strings are escaped.

    Args:
        value: the value.
        indent: spaces before each line.
    """
    written = _laid_out(value, _WIDTH - indent)
    # Invisible characters, and those that UTF-8 cannot encode, become JSON escapes.
    written = "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in written)
    return f'r"""\n{textwrap.indent(written, " " * indent)}\n{" " * indent}"""'


def _laid_out(value: Any, width: int) -> str:
    """Return JSON with each value on one line if it fits, or else with its parts on separate lines."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= width or not value or not isinstance(value, dict | list):
        return line
    if isinstance(value, dict):
        heads = [f"{json.dumps(key, ensure_ascii=False)}: " for key in value]
        parts, (opened, closed) = [*value.values()], "{}"
    else:
        heads, parts, (opened, closed) = [""] * len(value), value, "[]"
    told = (head + _laid_out(part, width - 2 - len(head)) for head, part in zip(heads, parts, strict=True))
    inner = textwrap.indent(",\n".join(told), "  ")
    return f"{opened}\n{inner}\n{closed}"


def names(texts: list[str]) -> list[str]:
    """Return a unique test function name for each text."""
    made: dict[str, None] = {}
    for text in texts:
        base = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()[:_LONGEST_NAME] or "unnamed"
        name, number = f"test_{base}", 1
        while name in made:
            number += 1
            name = f"test_{base}_{number}"
        made[name] = None
    return [*made]

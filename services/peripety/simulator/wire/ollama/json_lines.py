"""Lines of JSON as Go writes them, in which Ollama is written."""

from __future__ import annotations

from typing import Any

from peripety.simulator.wire.json_text import compact

__all__ = ["line"]

# None of these characters is anything but content in JSON, so that they can be replaced wherever they are. Go
# does so for browsers' sake; that its lines hold no line separators matters to clients that split at them.
_ESCAPES = tuple(
    (character.encode(), f"\\u{ord(character):04x}".encode())
    for character in ("<", ">", "&", "\u2028", "\u2029")
)


def line(value: Any) -> bytes:
    """The JSON text of a value, on a line."""
    written = compact(value)
    for character, escape in _ESCAPES:
        written = written.replace(character, escape)
    return written + b"\n"

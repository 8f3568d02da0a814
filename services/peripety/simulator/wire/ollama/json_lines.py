"""JSON lines in the format of Go's encoder, which Ollama uses."""

from __future__ import annotations

from typing import Any

from peripety.simulator.wire.json_text import compact

__all__ = ["line"]

# In JSON, these characters only occur in content, so a plain replacement is safe. Go escapes them for
# browsers; without line separators, clients can split at them.
_ESCAPES = tuple(
    (character.encode(), f"\\u{ord(character):04x}".encode())
    for character in ("<", ">", "&", "\u2028", "\u2029")
)


def line(value: Any) -> bytes:
    """Return the JSON text of a value, as a line."""
    written = compact(value)
    for character, escape in _ESCAPES:
        written = written.replace(character, escape)
    return written + b"\n"

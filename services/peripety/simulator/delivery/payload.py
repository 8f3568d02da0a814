"""The JSON inside a frame, and inside a document: found and changed, whichever API wrote it."""

from __future__ import annotations

import json
import re
from typing import Any

from peripety.simulator.wire.json_text import compact

__all__ = ["replaced", "without_usage"]

# An event has its data on one line after its name, a line of JSON is all data.
_FRAME = re.compile(rb"(?P<head>(?:event: [^\r\n]*\r?\n)?data: |)(?P<data>[^\r\n]*)(?P<newline>\r?\n)")
_USAGE = frozenset({"usage", "usageMetadata", "prompt_eval_count", "eval_count"})
_NESTED = ("message", "response")


def replaced(frame: bytes, text: str) -> bytes:
    """A frame of the same form that carries another text."""
    found = _FRAME.match(frame)
    if found is None:
        return text.encode()
    separator = found["newline"] + (b"data: " if found["head"] else b"")
    lines = separator.join(text.encode().splitlines() or [b""])
    return found["head"] + lines + frame[found.end("data") :]


def without_usage(text: bytes) -> bytes:
    """A document or a frame without the token counts that it has."""
    found = _FRAME.match(text)
    data = text if found is None else found["data"]
    try:
        value = json.loads(data)
    except ValueError:
        return text
    stripped = _strip(value)
    return text if stripped == value else text.replace(data, compact(stripped), 1)


def _strip(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kept = {name: each for name, each in value.items() if name not in _USAGE}
    return kept | {name: _strip(kept[name]) for name in _NESTED if name in kept}

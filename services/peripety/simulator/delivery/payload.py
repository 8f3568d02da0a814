"""Edits of the JSON inside a frame or a document, for any API."""

from __future__ import annotations

import json
from typing import Any

from peripety.simulator.wire.json_text import compact

__all__ = ["replaced", "without_usage"]

_USAGE = frozenset({"usage", "usageMetadata", "prompt_eval_count", "eval_count"})
_NESTED = ("message", "response")
_EVENT = b"data: "


def replaced(frame: bytes, text: str) -> bytes:
    """Return a frame of the same form with another text."""
    before, _, after = _parts(frame)
    newline = b"\n" + _EVENT if before.endswith(_EVENT) else b"\n"
    return before + newline.join(text.encode().splitlines()) + after


def without_usage(text: bytes) -> bytes:
    """Return a document or frame without its token counts."""
    before, data, after = _parts(text)
    value = json.loads(data) if data else None
    stripped = _strip(value)
    return text if stripped == value else before + compact(stripped) + after


def _parts(frame: bytes) -> tuple[bytes, bytes, bytes]:
    """Split a frame into the text before its object, the object, and the text after it."""
    begin = frame.find(b"{")
    end = frame.rfind(b"}") + 1
    return (frame[:begin], frame[begin:end], frame[end:]) if begin >= 0 else (b"", b"", frame)


def _strip(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kept = {name: each for name, each in value.items() if name not in _USAGE}
    return kept | {name: _strip(kept[name]) for name in _NESTED if name in kept}

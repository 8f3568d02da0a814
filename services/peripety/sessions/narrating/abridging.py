"""Truncation of JSON values to a size limit, so that prompts do not grow with the state."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["abridged", "clipped", "size", "text_of"]

# Limits on items of a container and characters of a string, from generous to sparse.
_GENEROSITY = (
    (64, 400),
    (48, 240),
    (32, 160),
    (24, 120),
    (16, 80),
    (12, 60),
    (8, 48),
    (6, 40),
    (4, 32),
    (2, 24),
    (1, 24),
)
_CUT = "\u2026"


def text_of(value: Any) -> str:
    """Encode a JSON value as sent to a model."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def size(value: Any) -> int:
    """Return the size of a JSON value in a prompt, in bytes."""
    return len(text_of(value).encode())


def clipped(text: str, limit: int) -> str:
    """Truncate a text to `limit` characters and mark the cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}{_CUT}"


def abridged(value: Any, room: int) -> Any:
    """Truncate long strings and containers to fit a value into `room` bytes; return None if impossible."""
    for items, characters in _GENEROSITY:
        shown = _sparse(value, items, characters)
        if size(shown) <= room:
            return shown
    return None


def _sparse(value: Any, items: int, characters: int) -> Any:
    if isinstance(value, str):
        return clipped(value, characters)
    if isinstance(value, list):
        # Lists grow at the end, so both ends are shown.
        head, tail = items - items // 2, items // 2
        shown = value if len(value) <= items else [*value[:head], _CUT, *value[len(value) - tail :]]
        return [_sparse(item, items, characters) for item in shown]
    if isinstance(value, dict):
        kept = {key: _sparse(value[key], items, characters) for key in list(value)[:items]}
        return kept | {_CUT: _CUT} if len(value) > items else kept
    return value

"""Complete members of a truncated object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jiter

from peripety.gateway.objects.json_text import documents_begun

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["whole_members"]

_OPEN_MEMBER, _OPEN_PART = 2, 3


def whole_members(text: str, divisible: Collection[str]) -> dict[str, Any] | None:
    """Return the members of a truncated object that are complete, exactly as the model wrote them.

    Nothing is completed: a member without its end is removed as a whole. Members named as divisible retain
    their complete elements.

    Args:
        text: the model's text, with anything around the object.
        divisible: keys whose arrays or objects may be cut between elements.

    Returns:
        The object, not validated; None if no member is complete.
    """
    begun = list(documents_begun(text))[-1:]
    value = _parsed(begun[0].document) if begun else None
    if not isinstance(value, dict):
        return None
    if begun[0].depth >= _OPEN_MEMBER:
        key = next(reversed(value))
        if key not in divisible:
            del value[key]
        elif begun[0].depth >= _OPEN_PART:
            _drop_last(value[key])
    return value or None


def _parsed(document: str) -> Any:
    try:
        # It preserves the order of keys, which identifies the last one.
        return jiter.from_json(document.encode(), catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError:
        return None


def _drop_last(parts: Any) -> None:
    if isinstance(parts, dict):
        parts.popitem()
    else:
        parts.pop()

"""What is whole of an object that was cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jiter

from peripety.gateway.objects.json_text import documents_begun

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["whole_members"]

_OPEN_MEMBER, _OPEN_PART = 2, 3


def whole_members(text: str, divisible: Collection[str]) -> dict[str, Any] | None:
    """The members of an object that a model had finished when it was cut off, exactly as it wrote them.

    Nothing is completed: where the end of a member is missing, all of the member is left out. Only of those
    that are made of parts, the parts stay that were finished.

    Args:
        text: what the model wrote, with whatever stands around the object.
        divisible: the keys whose values, arrays or objects, are made of parts.

    Returns:
        The object, which may be valid against nothing; None when nothing of it is whole.
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
        # It keeps the order of the keys, by which the last one is known.
        return jiter.from_json(document.encode(), catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError:
        return None


def _drop_last(parts: Any) -> None:
    if isinstance(parts, dict):
        parts.popitem()
    else:
        parts.pop()

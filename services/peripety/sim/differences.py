"""Structural diff of two JSON values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.sim._pure.canonical import canonical
from peripety.sim.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["differences", "shown"]

_MOST_SHOWN = 60


def differences(
    one: Any, other: Any, place: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """Yield the smallest differing parts as (path, one, other), in key order.

    A part that only one value has is `ABSENT` in the other. Lists of different lengths differ as a whole.
    """
    match one, other:
        case dict(), dict():
            for key in sorted(one.keys() | other.keys()):
                yield from differences(one.get(key, ABSENT), other.get(key, ABSENT), (*place, key))
        case list(), list() if len(one) == len(other):
            for index, (first, second) in enumerate(zip(one, other, strict=True)):
                yield from differences(first, second, (*place, index))
        case _ if not _same(one, other):
            yield place, one, other


def shown(value: Any) -> str:
    """Format a part for use in a sentence."""
    if value is ABSENT:
        return "nothing"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _same(one: Any, other: Any) -> bool:
    if one is ABSENT or other is ABSENT:
        return one is other
    # Python treats True and 1 as equal, JSON does not.
    return canonical(one) == canonical(other)

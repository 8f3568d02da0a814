"""A smaller JSON value with the same property, for people to read."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Test = Callable[[Any], bool]

__all__ = ["shrunk"]


def shrunk(case: dict[str, Any], has_property: Test, seconds: float) -> dict[str, Any]:
    """The smallest case found in some time by leaving out parts, or by putting a part in place of the whole.

    Args:
        case: what has the property; its members stay, and become smaller.
        has_property: whether a candidate has it; a member of it may be anything.
        seconds: how much processor time to spend.
    """
    until = time.process_time() + seconds

    def keeps(candidate: Any) -> bool:
        return time.process_time() < until and has_property(candidate)

    before = None
    while case != before:
        before = case
        for name in case:
            case = _with_part_reduced(case, name, keeps)
    return case


def _reduced(value: Any, keeps: Test) -> Any:
    """One pass over a value and all of its parts."""
    if isinstance(value, list | dict):
        value = _replaced_by_a_part(value, keeps)
    if isinstance(value, list):
        value = _without_items(value, keeps)
        for at in range(len(value)):
            value = _with_part_reduced(value, at, keeps)
    elif isinstance(value, dict):
        for key in sorted(value, key=lambda key: len(json.dumps(value[key])), reverse=True):
            rest = {other: item for other, item in value.items() if other != key}
            value = rest if keeps(rest) else _with_part_reduced(value, key, keeps)
    else:
        value = _simpler(value, keeps)
    return value


def _replaced_by_a_part(value: Any, keeps: Test) -> Any:
    for part in value.values() if isinstance(value, dict) else value:
        if keeps(part):
            return part
    return value


def _without_items(value: list[Any], keeps: Test) -> list[Any]:
    size = len(value)
    while size > 0:
        start = 0
        while start < len(value):
            rest = value[:start] + value[start + size :]
            if keeps(rest):
                value = rest
            else:
                start += size
        size //= 2
    return value


def _with_part_reduced(value: Any, key: Any, keeps: Test) -> Any:
    """A value with one item or member reduced."""

    def changed(part: Any) -> Any:
        copy = value.copy()
        copy[key] = part
        return copy

    return changed(_reduced(value[key], lambda part: keeps(changed(part))))


def _simpler(value: Any, keeps: Test) -> Any:
    if isinstance(value, str):
        while value and keeps(value[: len(value) // 2]):
            value = value[: len(value) // 2]
    elif isinstance(value, int | float) and value not in {0, 1} and keeps(1):
        value = 1
    return value

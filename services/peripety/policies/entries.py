"""What stands next to the entries and numbers of a condition."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "LARGEST_INTEGER",
    "MOST_ENTRIES",
    "below_path",
    "parent_path",
    "pattern_of",
    "smallest_step",
    "some",
]

MOST_ENTRIES = 32
"""How many entries of one list are looked at one by one; of longer lists, some."""

LARGEST_INTEGER = 2**53 - 1
"""No document has larger ones."""

_Item = TypeVar("_Item")


def some(items: Sequence[_Item]) -> list[tuple[int, _Item]]:
    """Items with their places: all, or of very many some, spread evenly from the first to the last."""
    last = len(items) - 1
    if last < MOST_ENTRIES:
        return [*enumerate(items)]
    steps = MOST_ENTRIES - 1
    return [(index, items[index]) for index in (last * step // steps for step in range(MOST_ENTRIES))]


def parent_path(entry: str) -> str | None:
    """The path that a path stands in; None for the root."""
    kept: list[str] = []
    for segment in entry.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in {"", "."}:
            kept.append(segment)
    return f"/{'/'.join(kept[:-1])}" if kept else None


def below_path(entry: str, name: str) -> str:
    """A path below another."""
    return f"{entry.rstrip('/')}/{name}"


def pattern_of(kind: str, entry: str) -> tuple[str, str, str]:
    """A domain or an address in parts: what is before the `@`, if there is one; `*.` or nothing; the host."""
    local, _, host = entry.rpartition("@") if kind == "email" else ("", "", entry)
    below = "*." if host.startswith("*.") else ""
    return local, below, host.removeprefix(below)


def smallest_step(number: float) -> int | float:
    """One for an integer, else one of the last decimal that a number is written with."""
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return float(Decimal(1).scaleb(exponent)) if isinstance(exponent, int) and exponent < 0 else 1

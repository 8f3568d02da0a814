"""Mutants of a document, rebuilt from their descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.mutations.changes import GONE, changed
from peripety.sim.schema import segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["mistake", "part_at", "path_of", "variants"]

_CUT = "…"
_RULE = 2
"""The path length of a whole rule: its section, and its index."""


def variants(
    document: Mapping[str, Any], survivors: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each mutant with its description; mutants with an incomplete description are skipped.

    A replaced rule means a swap with the next rule.

    Args:
        document: the original.
        survivors: the description of each: `mutant`, `before`, `after`, and `path` unless its id contains it.
    """
    for survivor in survivors:
        try:
            yield survivor, _variant(document, survivor)
        except (KeyError, IndexError, TypeError, ValueError):
            continue


def path_of(survivor: Mapping[str, Any]) -> str:
    """Return the JSON Pointer to the mutated part."""
    path = survivor.get("path")
    return str(survivor["mutant"]).partition(":")[2].rpartition(":")[0] if path is None else str(path)


def part_at(document: Any, path: str) -> Any:
    """Return the part at a JSON Pointer; raises KeyError, IndexError or ValueError if missing."""
    for key in segments(path):
        document = document[int(key) if isinstance(document, list) else key]
    return document


def mistake(survivor: Mapping[str, Any]) -> str:
    """Return one sentence about the mutation."""
    after = survivor.get("after")
    if after is None:
        return f"Without {path_of(survivor)} it would fail."
    return f"It would fail if {path_of(survivor)} were {after!r} instead of {survivor.get('before')!r}."


def _variant(document: Mapping[str, Any], survivor: Mapping[str, Any]) -> Mapping[str, Any]:
    keys = segments(path_of(survivor))
    place: list[str | int] = []
    part: Any = document
    for number, key in enumerate(keys):
        place.append(int(key) if isinstance(part, list) else key)
        part = part[place[-1]] if number + 1 < len(keys) else None
    after = survivor["after"]
    if after is None:
        return dict(changed(document, tuple(place), GONE))
    if len(place) == _RULE and isinstance(place[1], int):
        return _exchanged(document, str(place[0]), place[1])
    if isinstance(after, str) and after.endswith(_CUT):
        raise ValueError("only the beginning of it is known")
    return dict(changed(document, tuple(place), after))


def _exchanged(document: Mapping[str, Any], section: str, index: int) -> Mapping[str, Any]:
    rules = [*document[section]]
    rules[index], rules[index + 1] = rules[index + 1], rules[index]
    return {**document, section: rules}

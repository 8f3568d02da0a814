"""References within a JSON Schema: what they point to, and whether a part contains itself by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Place", "place_of_loop", "target_of"]

Place: TypeAlias = tuple[str | int, ...]
"""The keys and indices from the root of a document to a part of it."""


def target_of(document: Mapping[str, Any], reference: str) -> Any:
    """What a reference within a document points to; an empty schema where that is nothing."""
    target: Any = document
    for segment in _steps(reference):
        target = target.get(segment, {}) if isinstance(target, dict) else {}
    return target


def place_of_loop(document: Mapping[str, Any]) -> Place | None:
    """The place of a reference by which a part contains itself, if there is one."""
    passed: set[str] = set()

    def search(node: Any, place: Place, inside: frozenset[str]) -> Place | None:
        if not isinstance(node, (dict, list)):
            return None
        reference = node.get("$ref") if isinstance(node, dict) else None
        if isinstance(reference, str):
            if reference in inside:
                return (*place, "$ref")
            if reference not in passed:
                found = search(target_of(document, reference), _steps(reference), inside | {reference})
                if found is not None:
                    return found
                passed.add(reference)
        each = node.items() if isinstance(node, dict) else enumerate(node)
        places = (search(inner, (*place, key), inside) for key, inner in each)
        return next((found for found in places if found is not None), None)

    return search(document, (), frozenset({"#"}))


def _steps(reference: str) -> Place:
    return tuple(reference.split("/")[1:])

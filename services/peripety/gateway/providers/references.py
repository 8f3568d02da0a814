"""References within a JSON Schema: their targets, and the detection of recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Place", "place_of_loop", "target_of"]

Place: TypeAlias = tuple[str | int, ...]
"""Path from the root of a document to a part of it: keys and indices."""


def target_of(document: Mapping[str, Any], reference: str) -> Any:
    """Return the target of a reference within a document; an empty schema if the target does not exist."""
    target: Any = document
    for segment in _steps(reference):
        target = target.get(segment, {}) if isinstance(target, dict) else {}
    return target


def place_of_loop(document: Mapping[str, Any]) -> Place | None:
    """Return the path of a reference that makes a part recursive, if there is one."""
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

"""Cost estimate of JSON Schema validation: shared references can make it grow exponentially."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from peripety.sim.schema import segments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["MAX_LOOKS", "looks"]

MAX_LOOKS = 4_096
"""Maximum number of subschemas that may be applied to one value."""

_LISTS = ("allOf", "anyOf", "oneOf")
_ALONE = ("not", "if", "then", "else")
_NAMED = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_EACH = (
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
)


def looks(schema: Mapping[str, Any]) -> int:
    """Return the maximum number of subschemas applied to one value, capped at `MAX_LOOKS` + 1.

    A recursive reference inside a nested value counts once, because the depth of the value bounds it.

    Args:
        schema: a parsed JSON document.
    """
    known = _Places(schema)
    counts: dict[int, int] = {}
    inner_of: dict[int, tuple[list[Any], list[list[Any]]]] = {}
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting[-1]
        place = id(part)
        if place not in inner_of:  # first visit: count the referenced parts before this one
            counts[place] = 1
            inner_of[place] = (same, choices) = [*_of_same_value(part, known)], [*_of_inner_values(part)]
            waiting += (one for one in (*same, *chain(*choices)) if id(one) not in inner_of)
            continue
        waiting.pop()
        same, choices = inner_of[place]
        total = 1 + sum(counts[id(one)] for one in same)
        total += sum(max((counts[id(one)] for one in choice), default=0) for choice in choices)
        counts[place] = min(total, MAX_LOOKS + 1)
    return counts[id(schema)]


class _Places:
    """Resolver of references inside a schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._named: dict[str, Any] = {}
        waiting: list[Any] = [schema]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict):
                for key, prefix in (("$anchor", "#"), ("$dynamicAnchor", "#"), ("$id", "")):
                    if isinstance(part.get(key), str):
                        self._named[prefix + part[key]] = part
                waiting += part.values()
            elif isinstance(part, list):
                waiting += part

    def of(self, reference: Any) -> Any:
        """Return the part that a reference resolves to, or None if it is unknown."""
        if not isinstance(reference, str):
            return None
        if reference in self._named:
            return self._named[reference]
        base, _, path = reference.partition("#")
        part: Any = self._named.get(base, self._root)
        for segment in segments(path):
            if isinstance(part, dict):
                part = part.get(segment)
            elif isinstance(part, list) and segment.isdecimal() and int(segment) < len(part):
                part = part[int(segment)]
            else:
                return None
        return part


def _of_same_value(part: Mapping[str, Any], known: _Places) -> Iterator[Any]:
    """Yield the subschemas that apply to the same value."""
    found = [one for key in _LISTS for one in _listed(part.get(key))]
    found += [part.get(key) for key in _ALONE]
    found += [one for key in _NAMED for one in _valued(part.get(key))]
    found += [known.of(part.get(key)) for key in _REFERENCES]
    yield from (one for one in found if isinstance(one, dict))


def _of_inner_values(part: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield groups of subschemas for nested values; of each group, at most one applies to a given value."""
    choices = [_valued(part.get("properties")), _listed(part.get("prefixItems")), _listed(part.get("items"))]
    choices += [[one] for one in _valued(part.get("patternProperties"))]
    choices += [[part.get(key)] for key in _EACH]
    for choice in choices:
        schemas = [one for one in choice if isinstance(one, dict)]
        if schemas:
            yield schemas


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _valued(value: Any) -> list[Any]:
    return [*value.values()] if isinstance(value, dict) else []

"""Validation of a partial value: whether it can still become valid against a schema."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["UnfitError", "fitting"]

_KINDS: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


class UnfitError(Exception):
    """Raised when no continuation of a value can be valid."""


def fitting(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the part of a partial value that is certain to be in the complete one, if that becomes valid.

    Only types and keys are checked, and only where the schema determines them unconditionally (`properties`,
    `additionalProperties`, `items`, `prefixItems`, `allOf`, and `$ref` inside of the schema). Alternatives
    cannot be decided before the end, so their values are returned unchanged. A null at a key that the schema
    does not name is left out, because it may represent an absent key.

    Raises:
        UnfitError: a type is wrong, or a key is not in the schema.
    """
    return _Fitting(schema).of([schema], value)


class _Fitting:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def of(self, schemas: Iterable[Any], value: Any) -> Any:
        """Validate a value against all schemas of its position."""
        holding = list(self._holding(schemas))
        if not all(_has_type(schema, value) for schema in holding):
            raise UnfitError
        match value:
            case dict():
                return dict(self._members(holding, value))
            case list():
                return [self.of(_of_item(holding, index), item) for index, item in enumerate(value)]
            case float() if not math.isfinite(value):
                raise UnfitError
        return value

    def _members(
        self, holding: Sequence[Mapping[str, Any]], value: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any]]:
        for key, member in value.items():
            schemas = _of_key(holding, key)
            if member is not None:
                yield key, self.of(schemas, member)
            elif _takes_null(list(self._holding(schemas))):
                yield key, None

    def _holding(self, schemas: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the schemas, with all that they reference or combine: each has to be met."""
        pending = list(schemas)
        seen: set[int] = set()
        while pending:
            schema = pending.pop()
            if schema is False:
                raise UnfitError
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            seen.add(id(schema))
            yield schema
            pending += schema.get("allOf", ())
            if "$ref" in schema:
                pending.append(self._referred(schema["$ref"]))

    def _referred(self, reference: str) -> Any:
        """Return the target of a reference; True, which accepts everything, unless it is a JSON Pointer."""
        root, *names = reference.split("/")
        found: Any = self._document if root == "#" else True
        for name in names:
            key = name.replace("~1", "/").replace("~0", "~")
            found = found.get(key, True) if isinstance(found, dict) else True
        return found


def _has_type(schema: Mapping[str, Any], value: Any) -> bool:
    named = _types(schema)
    if not named:
        return True
    kind = _KINDS[type(value)]
    whole = kind == "number" and value.is_integer()
    return kind in named or (kind == "integer" and "number" in named) or (whole and "integer" in named)


def _types(schema: Mapping[str, Any]) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else types


def _takes_null(holding: Sequence[Mapping[str, Any]]) -> bool:
    return any(_types(schema) for schema in holding) and all(_has_type(schema, None) for schema in holding)


def _of_key(holding: Iterable[Mapping[str, Any]], key: str) -> Iterator[Any]:
    for schema in holding:
        if key in schema.get("properties", {}):
            yield schema["properties"][key]
        elif "patternProperties" not in schema:
            yield schema.get("additionalProperties", True)


def _of_item(holding: Iterable[Mapping[str, Any]], index: int) -> Iterator[Any]:
    for schema in holding:
        first = schema.get("prefixItems", ())
        yield first[index] if index < len(first) else schema.get("items", True)

"""Whether the beginning of a value can still become valid against a schema."""

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
    """However the value goes on, it will not be valid."""


def fitting(schema: Mapping[str, Any], value: Any) -> Any:
    """What of the beginning of a value is sure to be in the whole one, if that is going to be valid.

    Types and keys are looked at, as far as the schema says of a place what has to hold there whatever else
    does (`properties`, `additionalProperties`, `items`, `prefixItems`, `allOf`, and `$ref` inside of the
    schema). What it leaves to a choice is not known before the end, and is taken as it stands. A null at a
    key is left out where the schema does not name it: it may stand for a key that is not there.

    Raises:
        UnfitError: a type is wrong, or a key is one that the schema does not have.
    """
    return _Fitting(schema).of([schema], value)


class _Fitting:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def of(self, schemas: Iterable[Any], value: Any) -> Any:
        """Hold a value against all schemas of its place."""
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
        """The schemas, with those that they refer to and hold together: each has to be met."""
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
        """What a reference points at; True, which everything meets, when it is none by place."""
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

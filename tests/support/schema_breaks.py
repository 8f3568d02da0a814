"""A valid value, broken in every way that its JSON Schema forbids."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Schema = Mapping[str, Any]
    Break = tuple[str, Any]

__all__ = ["breaks", "constraints"]

_OF_TYPE = {
    "string": "x",
    "number": 0.5,
    "integer": 1,
    "boolean": True,
    "object": {},
    "array": [],
    "null": None,
}


def constraints(schema: Schema) -> Iterator[str]:
    """What the schema forbids: a label for each keyword at each place of the schema."""
    pending: list[tuple[str, Any]] = [("#", schema)]
    while pending:
        place, node = pending.pop()
        if not isinstance(node, dict):
            continue
        for keyword in _BROKEN:
            if keyword in node and (keyword != "additionalProperties" or node[keyword] is False):
                yield f"{place}/{keyword}"
        for key, inner in _children(node):
            pending.append((f"{place}/{key}", inner))


def _children(node: Schema) -> Iterator[tuple[str, Any]]:
    for keyword in ("properties", "$defs"):
        yield from ((f"{keyword}/{name}", inner) for name, inner in node.get(keyword, {}).items())
    for keyword in ("oneOf", "anyOf"):
        yield from ((f"{keyword}/{index}", inner) for index, inner in enumerate(node.get(keyword, [])))
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            yield keyword, node[keyword]


def breaks(schema: Schema, value: Any) -> Iterator[Break]:
    """Values that break one constraint each, with its label."""
    yield from _Breaker(schema).of("#", schema, value)


class _Breaker:
    """Walks a schema beside a value that fits it."""

    def __init__(self, root: Schema) -> None:
        self.root = root

    def of(self, place: str, schema: Schema, value: Any) -> Iterator[Break]:
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            yield from self.of(f"#/$defs/{name}", self.root["$defs"][name], value)
            return
        for keyword in ("oneOf", "anyOf"):
            yield from self._of_choice(f"{place}/{keyword}", schema.get(keyword, []), value)
        for keyword in _BROKEN:
            if keyword in schema:
                for broken in _broken(keyword, schema[keyword], value):
                    yield f"{place}/{keyword}", broken
        for key, where, inner in _parts(schema, value):
            for label, broken in self.of(f"{place}/{where}", inner, value[key]):
                changed = copy.copy(value)
                changed[key] = broken
                yield label, changed

    def _of_choice(self, place: str, branches: list[Schema], value: Any) -> Iterator[Break]:
        for index, branch in enumerate(branches):
            if self._names(branch, value):
                for label, broken in self.of(f"{place}/{index}", branch, value):
                    if not any(self._names(other, broken) for other in branches if other is not branch):
                        yield label, broken

    def _names(self, branch: Schema, value: Any) -> bool:
        """Whether a value is of the type of a branch, and of its operation."""
        if "$ref" in branch:
            branch = self.root["$defs"][branch["$ref"].removeprefix("#/$defs/")]
        if not _is_of(branch.get("type", "object"), value) or (
            "enum" in branch and value not in branch["enum"]
        ):
            return False
        operation = branch.get("properties", {}).get("op", {}).get("const")
        return operation is None or value.get("op") == operation


def _is_of(kind: str, value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return kind == ("boolean" if value is not None else "null")
    if isinstance(value, int | float):
        return kind == "number" or (kind == "integer" and value == int(value))
    return (kind, type(value)) in {("string", str), ("array", list), ("object", dict)}


def _parts(schema: Schema, value: Any) -> Iterator[tuple[Any, str, Schema]]:
    """Each part of a value: its key or index, and where in the schema which schema is for it."""
    if isinstance(value, list):
        yield from ((index, "items", schema.get("items", {})) for index in range(len(value)))
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        for key in value:
            if key in known:
                yield key, f"properties/{key}", known[key]
            else:
                yield key, "additionalProperties", schema.get("additionalProperties") or {}


def _broken(keyword: str, limit: Any, value: Any) -> list[Any]:
    """Values that break one keyword of a schema."""
    if keyword == "additionalProperties" and limit is not False:
        return []
    return _BROKEN[keyword](limit, value)


def _other_types(kind: str, value: Any) -> list[Any]:
    others = [copy.deepcopy(other) for other in _OF_TYPE.values() if not _is_of(kind, other)]
    return [*others, value + 0.5] if kind == "integer" else others


_BROKEN: dict[str, Callable[[Any, Any], list[Any]]] = {
    "type": _other_types,
    "const": lambda _, value: ["", f"{value}x"],
    "enum": lambda _, value: ["", f"{value}x"],
    "pattern": lambda _, __: ["-a", "é", "a b", "a\n", "a/b", ".a", "aé", "a\u0000"],
    "minLength": lambda least, _: ["x" * length for length in range(least)],
    "maxLength": lambda most, _: ["x" * (most + 1), "é" * (most + 1)],
    "minimum": lambda least, _: [least - 1, least - 1e-9],
    "exclusiveMinimum": lambda least, _: [least, least - 1],
    "maximum": lambda most, _: [most + 1, most * 1.5, 1e300],
    "minItems": lambda least, value: [value[:length] for length in range(least)],
    "maxItems": lambda most, value: [[*value, *[copy.deepcopy(value[-1])] * most]],
    "maxProperties": lambda most, value: [
        {**value, **{f"k{index}": next(iter(value.values())) for index in range(most)}},
    ],
    "required": lambda keys, value: [
        {key: item for key, item in value.items() if key != missing} for missing in keys
    ],
    "additionalProperties": lambda _, value: [{**value, key: None} for key in ("zz", "", "id ")],
}

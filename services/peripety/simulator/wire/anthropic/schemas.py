"""The JSON Schema subset of structured answers and strict tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.wire.anthropic.wording import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.simulator.wire.reading import Path

__all__ = ["check_schema"]

_REFUSED = {
    "array": ("maxItems", "uniqueItems", "contains"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength"),
    "object": ("minProperties", "maxProperties", "patternProperties"),
}
_MAPS = ("properties", "$defs", "definitions")
_LISTS = ("anyOf", "allOf", "oneOf")


def check_schema(schema: Any, path: Path) -> None:
    """Reject a schema that the provider does not support.

    Args:
        schema: the schema, or a part of it.
        path: the path of the schema in error messages.

    Raises:
        ApiError: the schema uses an unsupported keyword, or leaves an object open.
    """
    if not isinstance(schema, dict):
        return
    types = schema.get("type")
    for type_ in types if isinstance(types, list) else [types]:
        _check_type(schema, type_, path)
    for inner in _within(schema):
        check_schema(inner, path)


def _check_type(schema: dict[str, Any], type_: Any, path: Path) -> None:
    keywords = _REFUSED.get(type_, ()) if isinstance(type_, str) else ()
    if refused := next((keyword for keyword in keywords if keyword in schema), None):
        raise invalid(f"For '{type_}' type, property '{refused}' is not supported", path)
    if type_ == "object" and schema.get("additionalProperties") is not False:
        raise invalid("For 'object' type, 'additionalProperties' must be explicitly set to false", path)
    if type_ == "array" and schema.get("minItems", 0) not in (0, 1):
        raise invalid("For 'array' type, 'minItems' values other than 0 or 1 are not supported", path)


def _within(schema: dict[str, Any]) -> Iterator[Any]:
    for name in _MAPS:
        if isinstance(members := schema.get(name), dict):
            yield from members.values()
    for name in _LISTS:
        if isinstance(choices := schema.get(name), list):
            yield from choices
    yield schema.get("items")

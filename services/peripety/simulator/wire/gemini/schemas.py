"""Conversion of Gemini schemas, a subset of OpenAPI, to JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["json_schema"]

_NAMES = {
    "title": "title",
    "description": "description",
    "format": "format",
    "default": "default",
    "required": "required",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "additional_properties": "additionalProperties",
    "minimum": "minimum",
    "maximum": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "ref": "$ref",
}
_UNSPECIFIED = "TYPE_UNSPECIFIED"


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a parsed `Schema` message to JSON Schema."""
    written = {_NAMES[name]: value for name, value in schema.items() if name in _NAMES}
    nullable = schema.get("nullable", False)
    if (kind := schema.get("type", _UNSPECIFIED)) != _UNSPECIFIED:
        written["type"] = [kind.lower(), "null"] if nullable else kind.lower()
    if "enum" in schema:
        written["enum"] = [*schema["enum"], None] if nullable else schema["enum"]
    if "items" in schema:
        written["items"] = json_schema(schema["items"])
    if "any_of" in schema:
        written["anyOf"] = [json_schema(each) for each in schema["any_of"]]
    for name, keyword in (("properties", "properties"), ("defs", "$defs")):
        if name in schema:
            written[keyword] = {key: json_schema(each) for key, each in schema[name].items()}
    return written

"""The JSON Schema subset of strict tools and structured answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["fault"]

_UNSUPPORTED = (
    "allOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "oneOf",
    "patternProperties", "unevaluatedProperties", "propertyNames", "contains", "uniqueItems",
)  # fmt: skip
_NESTING = 10

Context = tuple[str, ...]


def fault(schema: Mapping[str, Any]) -> str | None:
    """Return the reason that a schema is not strict, in OpenAI's words; None if it is strict."""
    if schema.get("type") != "object":
        given = schema.get("type")
        shown = 'type: "None"' if given is None else f'type: "{given}"'
        return f"schema must be a JSON Schema of 'type: \"object\"', got '{shown}'."
    return _fault(schema, (), 0)


def _fault(schema: Any, context: Context, depth: int) -> str | None:
    if not isinstance(schema, dict):
        return f"In context={context}, the schema is not an object."
    if depth > _NESTING:
        return f"In context={context}, the schema is nested deeper than {_NESTING} levels."
    for name in _UNSUPPORTED:
        if name in schema:
            return f"In context={context}, '{name}' is not permitted."
    own = _object_fault(schema, context) if "properties" in schema or _is(schema, "object") else None
    if own is None and _is(schema, "array") and "items" not in schema:
        own = f"In context={context}, array schema missing items."
    if own is not None:
        return own
    for at, nested in _nested(schema):
        found = _fault(nested, (*context, *at), depth + (at[0] == "properties"))
        if found is not None:
            return found
    return None


def _is(schema: Mapping[str, Any], name: str) -> bool:
    kind = schema.get("type")
    return kind == name or (isinstance(kind, list) and name in kind)


def _object_fault(schema: Mapping[str, Any], context: Context) -> str | None:
    if schema.get("additionalProperties") is not False:
        return f"In context={context}, 'additionalProperties' is required to be supplied and to be false."
    properties = schema.get("properties", {})
    required = schema.get("required", [] if not properties else None)
    wanted = (
        f"In context={context}, 'required' is required to be supplied and to be an array including every key "
        "in properties."
    )
    if not isinstance(properties, dict) or not isinstance(required, list):
        return wanted
    missing = next((name for name in properties if name not in required), None)
    if missing is not None:
        return f"{wanted} Missing '{missing}'."
    extra = next((name for name in required if name not in properties), None)
    return f"{wanted} Extra required key '{extra}' supplied." if extra is not None else None


def _nested(schema: Mapping[str, Any]) -> list[tuple[Context, Any]]:
    found: list[tuple[Context, Any]] = []
    for name in ("properties", "$defs", "definitions"):
        members = schema.get(name)
        if isinstance(members, dict):
            found += [((name, member), nested) for member, nested in members.items()]
    if "items" in schema:
        found.append((("items",), schema["items"]))
    if isinstance(schema.get("anyOf"), list):
        found += [(("anyOf", str(at)), nested) for at, nested in enumerate(schema["anyOf"])]
    return found

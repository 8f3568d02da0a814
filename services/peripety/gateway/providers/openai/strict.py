"""A JSON Schema as OpenAI's strict mode takes it, and what had to be left out for that.

Strict mode makes the sampler follow the schema, but knows only a part of JSON Schema: every object is
closed, every key is required, and many keywords are refused. A bound that it lacks is left out, which lets
the model write more than the schema allows; an optional key may be null, which is read as left out. A shape
that it cannot say at all, such as an object with keys of any name, leaves strict mode out for the whole
answer. The answer is checked against the original schema in either case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, Severity
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["to_strict_schema"]

_KEPT = frozenset(
    {"type", "enum", "const", "description", "pattern", "multipleOf", "minItems", "maxItems"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
# They say how the schema is read or described, and nothing about the answer.
_SILENT = frozenset({"$schema", "$id", "$comment", "title", "examples", "default", "deprecated"})
_OBJECT = frozenset({"properties", "required", "additionalProperties"})
_CHOICES = frozenset({"anyOf", "oneOf"})
_DEFINITIONS = frozenset({"$defs", "definitions"})
_NEEDS_NO_TYPE = frozenset({"type", "anyOf", "$ref"})
_SAYS_WHAT_IT_IS = frozenset({"type", "enum", "const", "$ref"}) | _CHOICES
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
# Some models take ten levels; all of them take five.
_MAX_DEPTH = 5
_MAX_KEYS = 5000

Place = tuple[str | int, ...]


class _InexpressibleError(Exception):
    """Strict mode cannot say it: the message says what, the place where."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(problem)
        self.place = place


def to_strict_schema(document: Mapping[str, Any]) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
    """Bring a schema into the form that strict mode takes.

    Args:
        document: the JSON Schema (2020-12) of an answer.

    Returns:
        The schema, or None when strict mode cannot express it; and, as warnings with places in `document`,
        what it does not say any more, or why there is none.
    """
    rewriting = _Rewriting(document)
    try:
        return rewriting.run(), tuple(rewriting.dropped)
    except _InexpressibleError as error:
        return None, (_warning("NOT_STRICT", error.place, f"strict mode cannot be used: {error}"),)


class _Rewriting:
    """One walk over a schema."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._keys = 0
        self.dropped: list[Finding] = []

    def run(self) -> dict[str, Any]:
        if self._document.get("type") != "object":
            raise _InexpressibleError((), "the answer has to be an object")
        return self._schema(self._document, (), 0)

    def _schema(self, node: Any, place: Place, depth: int) -> dict[str, Any]:
        if not isinstance(node, dict) or not (_SAYS_WHAT_IT_IS & node.keys()):
            raise _InexpressibleError(place, "this part may be anything; give it a type")
        kinds = _types(node)
        if "array" in kinds and "items" not in node:
            raise _InexpressibleError(place, "the items of this array may be anything; give it items")
        if "properties" in node and "object" not in kinds:
            raise _InexpressibleError(place, "this part may be more than an object; give it a type")
        written: dict[str, Any] = {}
        for keyword in node:
            self._keyword(node, keyword, place, depth, written)
        if "object" in kinds:
            self._object(node, place, depth, written)
        if not _NEEDS_NO_TYPE & written.keys():
            written["type"] = _types_of(node, place)
        return written

    def _keyword(
        self, node: Mapping[str, Any], keyword: str, place: Place, depth: int, written: dict[str, Any]
    ) -> None:
        value, here = node[keyword], (*place, keyword)
        if keyword in _KEPT or (keyword == "format" and value in _FORMATS):
            written[keyword] = value
        elif keyword in _CHOICES:
            self._choice(node, keyword, place, depth, written)
        elif keyword == "items":
            written[keyword] = self._schema(value, here, depth + 1)
        elif keyword == "$ref":
            written[keyword] = _reference(value, here)
        elif keyword in _DEFINITIONS:
            written[keyword] = {
                name: self._schema(inner, (*here, name), depth) for name, inner in value.items()
            }
        elif keyword not in _OBJECT | _SILENT:
            self._drop(here, f"strict mode does not know '{keyword}'; the answer is checked for it")

    def _choice(
        self, node: Mapping[str, Any], keyword: str, place: Place, depth: int, written: dict[str, Any]
    ) -> None:
        here = (*place, keyword)
        if not place:
            raise _InexpressibleError(here, "the answer itself may not be a choice")
        if keyword == "oneOf":
            if "anyOf" in node:
                self._drop(
                    here, "strict mode takes one choice in a place; the answer is checked for this one"
                )
                return
            self._drop(
                here, "strict mode lets several of the choices hold at once; the answer is checked for that"
            )
        branches = node[keyword]
        first = [next(iter(self._resolved(branch).get("properties", ())), None) for branch in branches]
        named = [key for key in first if key is not None]
        if len(set(named)) < len(named):
            raise _InexpressibleError(here, "two of the choices begin with the same key")
        written["anyOf"] = [
            self._schema(branch, (*here, index), depth) for index, branch in enumerate(branches)
        ]

    def _object(self, node: Mapping[str, Any], place: Place, depth: int, written: dict[str, Any]) -> None:
        if depth >= _MAX_DEPTH:
            raise _InexpressibleError(place, f"objects are nested deeper than {_MAX_DEPTH} levels")
        properties, extra = node.get("properties", {}), node.get("additionalProperties", True)
        if "patternProperties" in node:
            raise _InexpressibleError(place, "this object takes keys by pattern")
        if extra is not False:
            if isinstance(extra, dict) or not properties:
                raise _InexpressibleError(place, "this object takes keys of any name")
            self._drop((*place, "additionalProperties"), "strict mode lets the model write no other keys")
        self._keys += len(properties)
        if self._keys > _MAX_KEYS:
            raise _InexpressibleError(place, f"there are more than {_MAX_KEYS} keys")
        required = set(node.get("required", ()))
        if not required <= properties.keys():
            raise _InexpressibleError((*place, "required"), "a key is required that has no schema")
        written["properties"] = {}
        for key, value in properties.items():
            schema = self._schema(value, (*place, "properties", key), depth + 1)
            written["properties"][key] = schema if key in required else _nullable(schema)
        written["required"] = list(properties)
        written["additionalProperties"] = False

    def _resolved(self, node: Any) -> Mapping[str, Any]:
        """The node, or the one that it refers to."""
        target: Any = node
        if isinstance(node, dict) and "$ref" in node:
            target = self._document
            for segment in node["$ref"].split("/")[1:]:
                target = target.get(segment, {}) if isinstance(target, dict) else {}
        return target if isinstance(target, dict) else {}

    def _drop(self, place: Place, problem: str) -> None:
        self.dropped.append(_warning("NOT_TOLD", place, problem))


def _reference(target: str, place: Place) -> str:
    if target != "#" and not target.startswith(("#/$defs/", "#/definitions/")):
        raise _InexpressibleError(place, f"{target} is neither the root nor one of the $defs")
    return target


def _types(node: Mapping[str, Any]) -> Iterable[str]:
    kinds = node.get("type", ())
    return (kinds,) if isinstance(kinds, str) else kinds


def _types_of(node: Mapping[str, Any], place: Place) -> list[str]:
    """The types of the values that are allowed, which strict mode wants to be told."""
    values = [node["const"]] if "const" in node else node["enum"]
    kinds = {_NAMES.get(type(value)) for value in values}
    if None in kinds:
        raise _InexpressibleError(
            place, "an object or an array is one of the values; describe it by its keys"
        )
    return sorted(kind for kind in kinds if kind is not None)


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "null" in _types(schema) and "enum" not in schema and "const" not in schema:
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def _warning(code: str, place: Place, message: str) -> Finding:
    return Finding(code, pointer(place), message, Severity.WARNING)

"""Schema dialects: conversion of a JSON Schema to the subset that a provider supports.

Providers whose samplers follow a schema support only a part of JSON Schema, and reject the rest. An
unsupported bound is dropped, which allows the model more than the schema. An unsupported shape, such as an
object with arbitrary keys, disables the sampler for the whole answer. The answer is validated against the
original schema in either case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, Severity
from peripety.gateway.providers.references import place_of_loop, target_of
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from peripety.gateway.providers.references import Place

__all__ = ["Subset", "Written", "anything", "write_schema"]

# Keywords that only describe the schema and do not constrain the answer.
_SILENT = frozenset({"$schema", "$id", "$comment", "title", "examples", "default", "deprecated"})
_OBJECT = frozenset({"properties", "required", "additionalProperties"})
_CHOICES = frozenset({"anyOf", "oneOf"})
_DEFINITIONS = frozenset({"$defs", "definitions"})
_NEEDS_NO_TYPE = frozenset({"type", "anyOf", "$ref"})
_SAYS_WHAT_IT_IS = frozenset({"type", "enum", "const", "$ref"}) | _CHOICES
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def anything(_value: Any) -> bool:
    """Return True: any value of a keyword is supported."""
    return True


@dataclass(frozen=True, slots=True)
class Subset:
    """The subset of JSON Schema that a provider supports.

    Attributes:
        name: name of the enforcement, for messages: "strict mode".
        keywords: the keywords that are passed on unchanged, with a predicate for their values.
        leaves_out: whether keys can be optional; else every key is required, and an optional one may be null.
        object_root: whether the root must be an object, and not a union.
        recursive: whether recursion is supported.
        parts_choices: whether alternatives may start with the same key.
        open: whether a part may be unconstrained, and objects have arbitrary keys; else every part has a type
            and every object is closed.
        max_depth: the maximum nesting of objects.
        max_keys: the maximum number of keys.
    """

    name: str
    keywords: Mapping[str, Callable[[Any], bool]]
    leaves_out: bool
    object_root: bool
    recursive: bool
    parts_choices: bool
    open: bool = False
    max_depth: int | None = None
    max_keys: int | None = None

    def takes(self, keyword: str, value: Any) -> bool:
        """Return True if a keyword is passed on unchanged."""
        return keyword in self.keywords and self.keywords[keyword](value)


@dataclass(frozen=True, slots=True)
class Written:
    """A schema converted to a subset.

    Attributes:
        schema: the schema; None if the subset cannot express it.
        dropped: the dropped constraints, or the reason for None, as warnings with paths in the original.
        optional: the number of optional keys.
        unions: the number of parts with several types.
    """

    schema: dict[str, Any] | None
    dropped: tuple[Finding, ...]
    optional: int = 0
    unions: int = 0


def write_schema(document: Mapping[str, Any], subset: Subset) -> Written:
    """Convert a schema (2020-12) to a subset."""
    writing = _Writing(document, subset)
    try:
        schema = writing.run()
    except _InexpressibleError as error:
        problem = f"{subset.name} cannot be used: {error}"
        return Written(None, (_warning("NOT_STRICT", error.place, problem),))
    return Written(schema, tuple(writing.dropped), writing.optional, writing.unions)


class _InexpressibleError(Exception):
    """Raised when the subset cannot express a part: its message describes the problem, its place the part."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(problem)
        self.place = place


class _Writing:
    """One pass over a schema."""

    def __init__(self, document: Mapping[str, Any], subset: Subset) -> None:
        self._document = document
        self._subset = subset
        self._keys = 0
        self.dropped: list[Finding] = []
        self.optional = 0
        self.unions = 0

    def run(self) -> dict[str, Any]:
        if self._subset.object_root and self._document.get("type") != "object":
            raise _InexpressibleError((), "the answer must be an object")
        if not self._subset.recursive and (place := place_of_loop(self._document)) is not None:
            raise _InexpressibleError(place, "this part is recursive")
        return self._schema(self._document, (), 0)

    def _schema(self, node: Any, place: Place, depth: int) -> dict[str, Any]:
        if self._subset.open:
            return self._open_schema(node, place, depth)
        if not isinstance(node, dict) or not (_SAYS_WHAT_IT_IS & node.keys()):
            raise _InexpressibleError(place, "this part may be anything; give it a type")
        kinds = _types(node)
        if "array" in kinds and "items" not in node:
            raise _InexpressibleError(place, "the items of this array may be anything; give it items")
        if "properties" in node and "object" not in kinds:
            raise _InexpressibleError(place, "this part may be more than an object; give it a type")
        written = self._keywords(node, place, depth)
        if "object" in kinds and "$ref" not in node:
            self._object(node, place, depth, written)
        if not _NEEDS_NO_TYPE & written.keys():
            written["type"] = _types_of(node, place)
        self.unions += "anyOf" in written or len(list(_types(written))) > 1
        return written

    def _open_schema(self, node: Any, place: Place, depth: int) -> dict[str, Any]:
        if not isinstance(node, dict):
            if node is False:
                self._drop(place, f"{self._subset.name} cannot express that no value is valid")
            return {}
        written = self._keywords(node, place, depth)
        for keyword in [each for each in node if each in _OBJECT and "$ref" not in node]:
            value, here = node[keyword], (*place, keyword)
            if keyword == "properties":
                value = {key: self._schema(each, (*here, key), depth + 1) for key, each in value.items()}
            elif keyword == "additionalProperties" and isinstance(value, dict):
                value = self._schema(value, here, depth + 1)
            written[keyword] = value
        return written

    def _keywords(self, node: Mapping[str, Any], place: Place, depth: int) -> dict[str, Any]:
        """Return the keywords other than an object's keys; a reference excludes all others."""
        written: dict[str, Any] = {}
        for keyword in node:
            if "$ref" not in node or keyword.startswith("$"):
                self._keyword(node, keyword, place, depth, written)
            elif keyword not in _SILENT | {"description"}:
                here = (*place, keyword)
                self._drop(
                    here, f"beside $ref, {self._subset.name} takes no keyword; the answer is checked for it"
                )
        return written

    def _keyword(
        self, node: Mapping[str, Any], keyword: str, place: Place, depth: int, written: dict[str, Any]
    ) -> None:
        value, here = node[keyword], (*place, keyword)
        if self._subset.takes(keyword, value):
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
        elif keyword == "const" and self._subset.takes("enum", [value]):
            written["enum"] = [value]
        elif keyword not in _OBJECT | _SILENT:
            self._drop(
                here, f"{self._subset.name} does not support this '{keyword}'; the answer is checked for it"
            )

    def _choice(
        self, node: Mapping[str, Any], keyword: str, place: Place, depth: int, written: dict[str, Any]
    ) -> None:
        here = (*place, keyword)
        if not place and self._subset.object_root:
            raise _InexpressibleError(here, "the answer itself must not be a choice")
        if keyword == "oneOf":
            if "anyOf" in node:
                self._drop(here, "only one choice per part is supported; the answer is checked for this one")
                return
            self._drop(here, "several of the choices may hold at once; the answer is checked for that")
        branches = node[keyword]
        if not self._subset.parts_choices:
            self._require_parted(branches, here)
        written["anyOf"] = [
            self._schema(branch, (*here, index), depth) for index, branch in enumerate(branches)
        ]

    def _require_parted(self, branches: Iterable[Any], here: Place) -> None:
        first = [next(iter(self._resolved(branch).get("properties", ())), None) for branch in branches]
        named = [key for key in first if key is not None]
        if len(set(named)) < len(named):
            raise _InexpressibleError(here, "two of the choices begin with the same key")

    def _object(self, node: Mapping[str, Any], place: Place, depth: int, written: dict[str, Any]) -> None:
        subset = self._subset
        if subset.max_depth is not None and depth >= subset.max_depth:
            raise _InexpressibleError(place, f"objects are nested deeper than {subset.max_depth} levels")
        properties, extra = node.get("properties", {}), node.get("additionalProperties", True)
        if "patternProperties" in node:
            raise _InexpressibleError(place, "this object has keys by pattern")
        if extra is not False:
            if isinstance(extra, dict) or not properties:
                raise _InexpressibleError(place, "this object has keys of any name")
            self._drop((*place, "additionalProperties"), f"{subset.name} lets the model write no other keys")
        self._keys += len(properties)
        if subset.max_keys is not None and self._keys > subset.max_keys:
            raise _InexpressibleError(place, f"there are more than {subset.max_keys} keys")
        required = set(node.get("required", ()))
        if not required <= properties.keys():
            raise _InexpressibleError((*place, "required"), "a key is required that has no schema")
        written["properties"] = {}
        for key, value in properties.items():
            schema = self._schema(value, (*place, "properties", key), depth + 1)
            as_it_is = key in required or subset.leaves_out
            written["properties"][key] = schema if as_it_is else _nullable(schema)
        told = required if subset.leaves_out else properties.keys()
        written["required"] = [key for key in properties if key in told]
        self.optional += len(properties) - len(told)
        written["additionalProperties"] = False

    def _resolved(self, node: Any) -> Mapping[str, Any]:
        """Return the node, or the target of its reference."""
        target = (
            target_of(self._document, node["$ref"]) if isinstance(node, dict) and "$ref" in node else node
        )
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
    """Return the types of the allowed values, which providers require."""
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

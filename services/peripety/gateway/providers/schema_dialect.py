"""Schema dialects: conversion of a JSON Schema to the subset that a provider supports.

Providers whose samplers follow a schema support only a part of JSON Schema, and reject the rest. An
unsupported bound is dropped, which allows the model more than the schema. An unsupported shape, such as an
object with arbitrary keys, disables the sampler for the whole answer. The answer is validated against the
original schema in either case.

`adapt_call` selects the method of structured output: the sampler, a tool for the answer, or a hint in the
prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.engine.schema_validation import format_pointer
from peripety.errors import Finding, Severity
from peripety.gateway.models.model_data import Capability
from peripety.gateway.structured_output.validator import schema_hint
from peripety.gateway.types.message import Text, Tool, ToolChoice, ToolChoiceMode
from peripety.gateway.types.response import SchemaMethod, SchemaReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from peripety.gateway.providers.provider import ProviderCall
    from peripety.gateway.types.request import GenerateRequest, ResponseSchema


SchemaPath: TypeAlias = tuple[str | int, ...]
"""Path from the root of a document to a part of it: keys and indices."""


def resolve_reference(document: Mapping[str, Any], reference: str) -> Any:
    """Return the target of a reference within a document; an empty schema if the target does not exist."""
    target: Any = document
    for segment in _split_pointer(reference):
        target = target.get(segment, {}) if isinstance(target, dict) else {}
    return target


def find_recursion(document: Mapping[str, Any]) -> SchemaPath | None:
    """Return the path of a reference that makes a part recursive, if there is one."""
    passed: set[str] = set()

    def search(node: Any, place: SchemaPath, inside: frozenset[str]) -> SchemaPath | None:
        if not isinstance(node, (dict, list)):
            return None
        reference = node.get("$ref") if isinstance(node, dict) else None
        if isinstance(reference, str):
            if reference in inside:
                return (*place, "$ref")
            if reference not in passed:
                found = search(
                    resolve_reference(document, reference),
                    _split_pointer(reference),
                    inside | {reference},
                )
                if found is not None:
                    return found
                passed.add(reference)
        each = node.items() if isinstance(node, dict) else enumerate(node)
        places = (search(inner, (*place, key), inside) for key, inner in each)
        return next((found for found in places if found is not None), None)

    return search(document, (), frozenset({"#"}))


def _split_pointer(reference: str) -> SchemaPath:
    return tuple(reference.split("/")[1:])


ANSWER_TOOL = "give_answer"
"""Answer tool of `SchemaMethod.TOOL`; the arguments of its call become the answer's text."""

ConvertSchema: TypeAlias = "Callable[[ResponseSchema], tuple[Mapping[str, Any] | None, tuple[Finding, ...]]]"
"""Converts a schema to a provider's structured output, or to None, and reports what is lost."""


@dataclass(frozen=True, slots=True)
class StructuredCall:
    """A call adapted to its schema.

    Attributes:
        call: the call, with the tools or messages for its schema.
        native_schema: the schema for the provider's native structured output; None if that is not used.
        report: how the schema was adapted, if there is one.
    """

    call: ProviderCall
    native_schema: Mapping[str, Any] | None = None
    report: SchemaReport | None = None


def adapt_call(call: ProviderCall, convert: ConvertSchema) -> StructuredCall:
    """Adapt a call so that its answer matches its schema as well as possible."""
    request, schema = call.request, call.request.schema
    if schema is None:
        return StructuredCall(call)
    can_be_told = Capability.NATIVE_SCHEMA in call.data.capabilities
    told, dropped = convert(schema) if can_be_told else (None, ())
    method = schema_method_of(call, native=told is not None) or SchemaMethod.EXTRACTION
    match method:
        case SchemaMethod.TOOL:
            request = with_answer_tool(request, schema)
        case SchemaMethod.EXTRACTION:
            request = with_schema_hint(request, schema)
        case SchemaMethod.NATIVE | SchemaMethod.GRAMMAR:
            pass
    return StructuredCall(replace(call, request=request), told, SchemaReport(method, dropped))


def schema_method_of(call: ProviderCall, *, native: bool = True) -> SchemaMethod | None:
    """Return the method by which the answer is made to match its schema; None without a schema.

    Args:
        call: the call.
        native: whether the provider's native structured output can express the schema.
    """
    schema, can, traits = call.request.schema, call.data.capabilities, call.data.traits
    if schema is None:
        return None
    if native and Capability.NATIVE_SCHEMA in can:
        return SchemaMethod.NATIVE
    is_object = schema.document.get("type") == "object"
    # A forced answer tool would prevent calls of the client's own tools.
    if is_object and Capability.TOOLS in can and traits.forced_tool_choice and not call.request.tools:
        return SchemaMethod.TOOL
    return SchemaMethod.GRAMMAR if Capability.GRAMMAR in can else SchemaMethod.EXTRACTION


def with_answer_tool(request: GenerateRequest, schema: ResponseSchema) -> GenerateRequest:
    """Return the request with one required answer tool in place of the schema."""
    tool = Tool(ANSWER_TOOL, f"Gives the whole answer ({schema.name}). Call it once.", schema.document)
    choice = ToolChoice(ToolChoiceMode.NAMED, ANSWER_TOOL, disable_parallel=True)
    return replace(request, schema=None, tools=(tool,), tool_choice=choice)


def is_hint_in_prefix(request: GenerateRequest) -> bool:
    """Return True if the text that describes a schema belongs to the prefix of later requests."""
    return request.cache.expected_reuse > 0


def with_schema_hint(request: GenerateRequest, schema: ResponseSchema) -> GenerateRequest:
    """Return the request with its schema described in words.

    If more requests will share the prefix, the description ends the cached system text. Otherwise it ends the
    messages, so that the cached prefix stays valid. It is then a separate text, the last part of the last
    message, which is the user's. It starts with a new paragraph, because providers may merge the texts of a
    message.
    """
    hint = schema_hint(schema.document)
    if is_hint_in_prefix(request):
        return replace(request, system=f"{request.system}\n\n{hint}" if request.system else hint)
    *before, last = request.messages
    told = replace(last, parts=(*last.parts, Text(f"\n\n{hint}")))
    return replace(request, messages=(*before, told))


# Keywords that only describe the schema and do not constrain the answer.
_ANNOTATIONS = frozenset({"$schema", "$id", "$comment", "title", "examples", "default", "deprecated"})
_OBJECT_KEYWORDS = frozenset({"properties", "required", "additionalProperties"})
_CHOICE_KEYWORDS = frozenset({"anyOf", "oneOf"})
_DEFINITION_KEYWORDS = frozenset({"$defs", "definitions"})
_TYPELESS_KEYWORDS = frozenset({"type", "anyOf", "$ref"})
_TYPE_KEYWORDS = frozenset({"type", "enum", "const", "$ref"}) | _CHOICE_KEYWORDS
_TYPE_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def is_any(_value: Any) -> bool:
    """Return True: any value of a keyword is supported."""
    return True


@dataclass(frozen=True, slots=True)
class SchemaDialect:
    """The subset of JSON Schema that a provider supports.

    Attributes:
        name: name of the enforcement, for messages: "strict mode".
        keywords: the keywords that are passed on unchanged, with a predicate for their values.
        allows_optional_keys: whether keys can be optional; else every key is required, and an optional
            one may be null.
        object_root: whether the root must be an object, and not a union.
        allows_recursion: whether recursion is supported.
        allows_overlapping_choices: whether alternatives may start with the same key.
        allows_any: whether a part may be unconstrained, and objects have arbitrary keys; else every part
            has a type
            and every object is closed.
        max_depth: the maximum nesting of objects.
        max_keys: the maximum number of keys.
    """

    name: str
    keywords: Mapping[str, Callable[[Any], bool]]
    allows_optional_keys: bool
    object_root: bool
    allows_recursion: bool
    allows_overlapping_choices: bool
    allows_any: bool = False
    max_depth: int | None = None
    max_keys: int | None = None

    def supports(self, keyword: str, value: Any) -> bool:
        """Return True if a keyword is passed on unchanged."""
        return keyword in self.keywords and self.keywords[keyword](value)


@dataclass(frozen=True, slots=True)
class ConvertedSchema:
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


def convert_schema(document: Mapping[str, Any], dialect: SchemaDialect) -> ConvertedSchema:
    """Convert a schema (2020-12) to a subset."""
    writing = _SchemaConverter(document, dialect)
    try:
        schema = writing.run()
    except _UnsupportedSchemaError as error:
        problem = f"{dialect.name} cannot be used: {error}"
        return ConvertedSchema(None, (_warning("NOT_STRICT", error.place, problem),))
    return ConvertedSchema(schema, tuple(writing.dropped), writing.optional, writing.unions)


class _UnsupportedSchemaError(Exception):
    """Raised when the subset cannot express a part: its message describes the problem, its place the part."""

    def __init__(self, place: SchemaPath, problem: str) -> None:
        super().__init__(problem)
        self.place = place


class _SchemaConverter:
    """One pass over a schema."""

    def __init__(self, document: Mapping[str, Any], dialect: SchemaDialect) -> None:
        self._document = document
        self._dialect = dialect
        self._keys = 0
        self.dropped: list[Finding] = []
        self.optional = 0
        self.unions = 0

    def run(self) -> dict[str, Any]:
        if self._dialect.object_root and self._document.get("type") != "object":
            raise _UnsupportedSchemaError((), "the answer must be an object")
        if not self._dialect.allows_recursion and (place := find_recursion(self._document)) is not None:
            raise _UnsupportedSchemaError(place, "this part is recursive")
        return self._schema(self._document, (), 0)

    def _schema(self, node: Any, place: SchemaPath, depth: int) -> dict[str, Any]:
        if self._dialect.allows_any:
            return self._open_schema(node, place, depth)
        if not isinstance(node, dict) or not (_TYPE_KEYWORDS & node.keys()):
            raise _UnsupportedSchemaError(place, "this part may be anything; give it a type")
        kinds = _types(node)
        if "array" in kinds and "items" not in node:
            raise _UnsupportedSchemaError(place, "the items of this array may be anything; give it items")
        if "properties" in node and "object" not in kinds:
            raise _UnsupportedSchemaError(place, "this part may be more than an object; give it a type")
        written = self._keywords(node, place, depth)
        if "object" in kinds and "$ref" not in node:
            self._object(node, place, depth, written)
        if not _TYPELESS_KEYWORDS & written.keys():
            written["type"] = _types_of(node, place)
        self.unions += "anyOf" in written or len(list(_types(written))) > 1
        return written

    def _open_schema(self, node: Any, place: SchemaPath, depth: int) -> dict[str, Any]:
        if not isinstance(node, dict):
            if node is False:
                self._drop(place, f"{self._dialect.name} cannot express that no value is valid")
            return {}
        written = self._keywords(node, place, depth)
        for keyword in [each for each in node if each in _OBJECT_KEYWORDS and "$ref" not in node]:
            value, here = node[keyword], (*place, keyword)
            if keyword == "properties":
                value = {key: self._schema(each, (*here, key), depth + 1) for key, each in value.items()}
            elif keyword == "additionalProperties" and isinstance(value, dict):
                value = self._schema(value, here, depth + 1)
            written[keyword] = value
        return written

    def _keywords(self, node: Mapping[str, Any], place: SchemaPath, depth: int) -> dict[str, Any]:
        """Return the keywords other than an object's keys; a reference excludes all others."""
        written: dict[str, Any] = {}
        for keyword in node:
            if "$ref" not in node or keyword.startswith("$"):
                self._keyword(node, keyword, place, depth, written)
            elif keyword not in _ANNOTATIONS | {"description"}:
                here = (*place, keyword)
                self._drop(
                    here,
                    f"beside $ref, {self._dialect.name} takes no keyword; the answer is checked for it",
                )
        return written

    def _keyword(
        self,
        node: Mapping[str, Any],
        keyword: str,
        place: SchemaPath,
        depth: int,
        written: dict[str, Any],
    ) -> None:
        value, here = node[keyword], (*place, keyword)
        if self._dialect.supports(keyword, value):
            written[keyword] = value
        elif keyword in _CHOICE_KEYWORDS:
            self._choice(node, keyword, place, depth, written)
        elif keyword == "items":
            written[keyword] = self._schema(value, here, depth + 1)
        elif keyword == "$ref":
            written[keyword] = _checked_reference(value, here)
        elif keyword in _DEFINITION_KEYWORDS:
            written[keyword] = {
                name: self._schema(inner, (*here, name), depth) for name, inner in value.items()
            }
        elif keyword == "const" and self._dialect.supports("enum", [value]):
            written["enum"] = [value]
        elif keyword not in _OBJECT_KEYWORDS | _ANNOTATIONS:
            self._drop(
                here,
                f"{self._dialect.name} does not support this '{keyword}'; the answer is checked for it",
            )

    def _choice(
        self,
        node: Mapping[str, Any],
        keyword: str,
        place: SchemaPath,
        depth: int,
        written: dict[str, Any],
    ) -> None:
        here = (*place, keyword)
        if not place and self._dialect.object_root:
            raise _UnsupportedSchemaError(here, "the answer itself must not be a choice")
        if keyword == "oneOf":
            if "anyOf" in node:
                self._drop(here, "only one choice per part is supported; the answer is checked for this one")
                return
            self._drop(here, "several of the choices may hold at once; the answer is checked for that")
        branches = node[keyword]
        if not self._dialect.allows_overlapping_choices:
            self._require_distinct_choices(branches, here)
        written["anyOf"] = [
            self._schema(branch, (*here, index), depth) for index, branch in enumerate(branches)
        ]

    def _require_distinct_choices(self, branches: Iterable[Any], here: SchemaPath) -> None:
        first = [next(iter(self._resolved(branch).get("properties", ())), None) for branch in branches]
        named = [key for key in first if key is not None]
        if len(set(named)) < len(named):
            raise _UnsupportedSchemaError(here, "two of the choices begin with the same key")

    def _object(
        self,
        node: Mapping[str, Any],
        place: SchemaPath,
        depth: int,
        written: dict[str, Any],
    ) -> None:
        subset = self._dialect
        if subset.max_depth is not None and depth >= subset.max_depth:
            raise _UnsupportedSchemaError(place, f"objects are nested deeper than {subset.max_depth} levels")
        properties, extra = node.get("properties", {}), node.get("additionalProperties", True)
        if "patternProperties" in node:
            raise _UnsupportedSchemaError(place, "this object has keys by pattern")
        if extra is not False:
            if isinstance(extra, dict) or not properties:
                raise _UnsupportedSchemaError(place, "this object has keys of any name")
            self._drop((*place, "additionalProperties"), f"{subset.name} lets the model write no other keys")
        self._keys += len(properties)
        if subset.max_keys is not None and self._keys > subset.max_keys:
            raise _UnsupportedSchemaError(place, f"there are more than {subset.max_keys} keys")
        required = set(node.get("required", ()))
        if not required <= properties.keys():
            raise _UnsupportedSchemaError((*place, "required"), "a key is required that has no schema")
        written["properties"] = {}
        for key, value in properties.items():
            schema = self._schema(value, (*place, "properties", key), depth + 1)
            as_it_is = key in required or subset.allows_optional_keys
            written["properties"][key] = schema if as_it_is else _to_nullable(schema)
        told = required if subset.allows_optional_keys else properties.keys()
        written["required"] = [key for key in properties if key in told]
        self.optional += len(properties) - len(told)
        written["additionalProperties"] = False

    def _resolved(self, node: Any) -> Mapping[str, Any]:
        """Return the node, or the target of its reference."""
        target = (
            resolve_reference(self._document, node["$ref"])
            if isinstance(node, dict) and "$ref" in node
            else node
        )
        return target if isinstance(target, dict) else {}

    def _drop(self, place: SchemaPath, problem: str) -> None:
        self.dropped.append(_warning("NOT_TOLD", place, problem))


def _checked_reference(target: str, place: SchemaPath) -> str:
    if target != "#" and not target.startswith(("#/$defs/", "#/definitions/")):
        raise _UnsupportedSchemaError(place, f"{target} is neither the root nor one of the $defs")
    return target


def _types(node: Mapping[str, Any]) -> Iterable[str]:
    kinds = node.get("type", ())
    return (kinds,) if isinstance(kinds, str) else kinds


def _types_of(node: Mapping[str, Any], place: SchemaPath) -> list[str]:
    """Return the types of the allowed values, which providers require."""
    values = [node["const"]] if "const" in node else node["enum"]
    kinds = {_TYPE_NAMES.get(type(value)) for value in values}
    if None in kinds:
        raise _UnsupportedSchemaError(
            place,
            "an object or an array is one of the values; describe it by its keys",
        )
    return sorted(kind for kind in kinds if kind is not None)


def _to_nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "null" in _types(schema) and "enum" not in schema and "const" not in schema:
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def _warning(code: str, place: SchemaPath, message: str) -> Finding:
    return Finding(code, format_pointer(place), message, Severity.WARNING)

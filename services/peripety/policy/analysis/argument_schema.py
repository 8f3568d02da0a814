"""Argument schema: the constraints of a tool's schema on one argument, and paths to arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.policy.rule_paths import argument_violations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


Path: TypeAlias = tuple[str, ...]


def is_inside(path: Path, outer: Path) -> bool:
    """Return True if a path leads to a part of the value at another path."""
    return len(outer) < len(path) and path[: len(outer)] == outer


def set_at_path(arguments: dict[str, Any], path: Path, value: Any) -> bool:
    """Set the value at a path; return False if a value on the way is not an object."""
    at: Any = arguments
    for segment in path[:-1]:
        at = at.setdefault(segment, {})
        if not isinstance(at, dict):
            return False
    at[path[-1]] = value
    return True


JSON_TYPES = ("null", "boolean", "number", "string", "array", "object")
ANY_SCHEMA: Mapping[str, Any] = {}
EMPTY_SCHEMA: Mapping[str, Any] = {"enum": []}

# Keywords whose meaning depends on each other.
_KEYWORD_GROUPS = (
    {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties"},
    {"items", "prefixItems", "unevaluatedItems"},
)
_MAX_DEPTH = 16
_MAX_LISTED_INTEGERS = 32
_SAMPLE_STRINGS = ("text", "a", "some longer text that is not about anything", "2030-01-01", "0")


@dataclass(frozen=True, slots=True)
class ArgumentConstraint:
    """The constraints on the value at one path of the arguments.

    Attributes:
        schema: the schema of the value.
        optional: True if the value may be missing.
    """

    schema: Mapping[str, Any]
    optional: bool


def _json_type(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    known = ((str, "string"), (dict, "object"), (list, "array"))
    return next((name for kind, name in known if isinstance(value, kind)), "number")


def _list_small_domain(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return all values that fit a schema without choices, if they are few."""
    match schema.get("type"):
        case "null":
            return [None]
        case "boolean":
            return [False, True]
        case "integer":
            least, most = schema.get("minimum"), schema.get("maximum")
            if isinstance(least, int) and isinstance(most, int) and most - least < _MAX_LISTED_INTEGERS:
                return [*range(least, most + 1)]
    return None


def _merge_schemas(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema that combines two; if both use a keyword group, that of the first wins."""
    known = {*one}
    for together in _KEYWORD_GROUPS:
        if known & together:
            known |= together
    return {**{key: value for key, value in other.items() if key not in known}, **one}


class ArgumentSchema:
    """The schema of the arguments of a tool.

    Args:
        document: JSON Schema; None accepts every object.
    """

    def __init__(self, document: Mapping[str, Any] | None) -> None:
        self._root: Mapping[str, Any] = {} if document is None else document
        self._accepts_everything = not self._root
        self._shared = {key: self._root[key] for key in ("$defs", "definitions") if key in self._root}
        self._known: dict[tuple[int, str], bool] = {}

    def accepts_arguments(self, arguments: Mapping[str, Any]) -> bool:
        """Return True if the tool accepts the arguments."""
        return self._accepts_everything or not argument_violations(self._root, arguments)

    def accepts(self, schema: Mapping[str, Any], value: Any) -> bool:
        """Return True if a value fits a part of the schema."""
        if not schema:
            return True
        key = (id(schema), repr(value))
        if key not in self._known:
            try:
                self._known[key] = not argument_violations({**schema, **self._shared}, value)
            except ValueError:  # a reference to the whole document, which is validated in the end
                self._known[key] = True
        return self._known[key]

    def constraint_at(self, path: Path) -> ArgumentConstraint:
        """Return the constraints on the value at a path."""
        schema: Mapping[str, Any] = self._root
        optional = False
        for depth, segment in enumerate(path):
            types = {"object"} if depth == 0 else {*self.accepted_types(schema)}
            if "array" in types and segment.isdecimal():
                return ArgumentConstraint(ANY_SCHEMA, optional=True)
            if "object" not in types:
                return ArgumentConstraint(EMPTY_SCHEMA, optional=True)
            schema = self.narrow_to_type(schema, "object")
            optional = optional or types != {"object"} or segment not in schema.get("required", ())
            schema = self._property_schema(schema, segment)
        return ArgumentConstraint(schema, optional)

    def _property_schema(self, schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        inner = schema.get("properties", {}).get(name)
        if inner is None:
            inner = True if "patternProperties" in schema else schema.get("additionalProperties", True)
        if isinstance(inner, bool):
            return ANY_SCHEMA if inner else EMPTY_SCHEMA
        found: Mapping[str, Any] = inner
        return found

    def accepted_types(self, schema: Mapping[str, Any], depth: int = 0) -> frozenset[str]:
        """Return the types of values that fit; `integer` counts as `number`."""
        found = frozenset(JSON_TYPES)
        if depth > _MAX_DEPTH:
            return found
        for listed in ([schema["const"]] if "const" in schema else None, schema.get("enum")):
            if isinstance(listed, list):
                found &= {_json_type(value) for value in listed}
        declared = schema.get("type")
        if declared is not None:
            names = [declared] if isinstance(declared, str) else declared
            found &= {"number" if name == "integer" else name for name in names}
        for choice in ("anyOf", "oneOf"):
            if isinstance(schema.get(choice), list):
                found &= {
                    name
                    for one in self._subschemas(schema[choice])
                    for name in self.accepted_types(one, depth + 1)
                }
        for part in (*self._subschemas(schema.get("allOf", ())), *self._resolve_reference(schema)):
            found &= self.accepted_types(part, depth + 1)
        return found

    def narrow_to_type(self, schema: Mapping[str, Any], name: str, depth: int = 0) -> Mapping[str, Any]:
        """Return the constraints on values of one type, without those that depend on choices."""
        found = schema
        if depth > _MAX_DEPTH:
            return found
        for part in self._resolve_reference(schema):
            found = _merge_schemas(found, self.narrow_to_type(part, name, depth + 1))
        for choice in ("anyOf", "oneOf"):
            parts = [
                one for one in self._subschemas(schema.get(choice, ())) if name in self.accepted_types(one)
            ]
            if len(parts) == 1:
                found = _merge_schemas(found, self.narrow_to_type(parts[0], name, depth + 1))
        return found

    def accepts_only_integers(self, schema: Mapping[str, Any]) -> bool:
        """Return True if all numbers that fit are integers."""
        declared = self.narrow_to_type(schema, "number").get("type", ())
        return "integer" in declared and "number" not in declared

    def list_values(self, schema: Mapping[str, Any], depth: int = 0) -> list[Any] | None:
        """Return all values that fit, if they can be listed."""
        if depth > _MAX_DEPTH:
            return None
        if "const" in schema:
            return [schema["const"]]
        if isinstance(schema.get("enum"), list):
            return [*schema["enum"]]
        for part in self._resolve_reference(schema):
            return self.list_values(part, depth + 1)
        choices = schema.get("anyOf", schema.get("oneOf"))
        if not isinstance(choices, list):
            return _list_small_domain(schema)
        listed = [self.list_values(one, depth + 1) for one in self._subschemas(choices)]
        return [value for values in listed if values for value in values] if all(listed) else None

    def iter_samples(self, schema: Mapping[str, Any], depth: int = 0) -> Iterator[Any]:
        """Yield some values that fit; possibly none."""
        return (value for value in self._iter_guesses(schema, depth) if self.accepts(schema, value))

    def with_required(self, schema: Mapping[str, Any], value: Any, depth: int = 0) -> Any:
        """Return a value with the members added that its schema requires, if values for them are found."""
        if not isinstance(value, dict) or depth > _MAX_DEPTH:
            return value
        whole = self.narrow_to_type(schema, "object")
        filled = {
            name: self.with_required(self._property_schema(whole, name), one, depth + 1)
            for name, one in value.items()
        }
        for name in whole.get("required", ()):
            if name not in filled:
                for sample in self.iter_samples(self._property_schema(whole, name), depth + 1):
                    filled[name] = sample
                    break
        return filled

    def fill_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments with the members added that the tool requires, if values for them are found."""
        filled: dict[str, Any] = self.with_required(self._root, arguments)
        return filled

    def _iter_guesses(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        listed = self.list_values(schema)
        if listed is not None:
            yield from listed
            return
        yield from (schema[key] for key in ("default",) if key in schema)
        yield from (one for key in ("examples",) for one in schema.get(key, ()))
        types = self.accepted_types(schema) if depth <= _MAX_DEPTH else frozenset()
        if "string" in types:
            yield from _SAMPLE_STRINGS
            yield "x" * min(int(self.narrow_to_type(schema, "string").get("minLength", 0)), 1 << 14)
        if "number" in types:
            part = self.narrow_to_type(schema, "number")
            yield from (part[key] for key in ("minimum", "maximum", "multipleOf") if key in part)
            yield from (0, 1, 0.5, -1, part.get("exclusiveMinimum", 0) + 1)
        if "boolean" in types:
            yield from (False, True)
        if "array" in types:
            part = self.narrow_to_type(schema, "array")
            items = part.get("items", ANY_SCHEMA)
            inner = next(self.iter_samples(items, depth + 1), None) if isinstance(items, dict) else None
            yield [inner] * min(int(part.get("minItems", 0)), 64)
        if "object" in types:
            yield self.with_required(schema, {}, depth + 1)
        if "null" in types:
            yield None

    def _subschemas(self, parts: Any) -> list[Mapping[str, Any]]:
        return [one for one in parts if isinstance(one, dict)] + [ANY_SCHEMA for one in parts if one is True]

    def _resolve_reference(self, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return
        found: Any = self._root
        for segment in reference[2:].split("/"):
            name = segment.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, dict):
            yield found

"""Values that follow from a JSON Schema: at its boundaries, and just outside of them.

Each value is validated, so a keyword that is not known here never gives a wrong one. References lead to the
`components` or `$defs` of the schema.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.engine.schema_validation import parse_pointer, validate_against_schema
from peripety.testgen.subjects.command.baseline.values import iterate_matches, iterate_near_misses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_MAX_STRING_LENGTH = 60_000
_MAX_DEPTH = 5
_MAX_VALUES = 12
_MAX_NEAR_MISSES = 24
_MAX_LENGTH = 1_000
_FORMATS = {
    "date": "2020-02-29",
    "time": "12:30:00Z",
    "date-time": "2020-02-29T12:30:00Z",
    "duration": "P1D",
    "email": "a@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/a",
    "uuid": "00000000-0000-4000-8000-000000000001",
    "byte": "YQ==",
}
_WRONG_TYPES: Mapping[str, Any] = {
    "string": 1,
    "integer": "x",
    "number": "x",
    "boolean": "x",
    "array": "x",
    "object": "x",
}


def valid_values(schema: Mapping[str, Any]) -> list[Any]:
    """Return values of a schema, the most usual one first, then those at its boundaries."""
    found: list[Any] = []
    for value in _iterate_values(schema, schema, 0):
        if not any(_is_same(value, other) for other in found) and _is_valid(schema, value):
            found.append(value)
        if len(found) >= _MAX_VALUES:
            break
    return found


def invalid_values(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return values that a schema rejects, each with the JSON Pointer of the keyword that rejects it."""
    found: list[tuple[str, Any]] = []
    for keyword, value in _iterate_violations(schema, schema, 0):
        is_known = any(keyword == other for other, _ in found)
        if not is_known and not _is_valid(schema, value):
            found.append((keyword, value))
    return found


def boundary_values(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """Yield the boundary values of a schema, or a plain value of its type. They are not validated."""
    if schema.get("enum"):
        yield from schema["enum"]
        return
    if "const" in schema:
        yield schema["const"]
        return
    yield from schema.get("examples") or ()
    match _type_of(schema):
        case "boolean":
            yield from (True, False)
        case "integer" | "number":
            bounds = [schema[name] for name in ("minimum", "maximum") if name in schema]
            yield from bounds or (0, 1)
        case "string" if not schema.get("examples"):
            yield "a" * min(max(1, schema.get("minLength") or 0), _MAX_STRING_LENGTH)
        case "array":
            items = schema.get("items") or {"type": "string"}
            if isinstance(items, dict):
                items = resolve_schema(items, root or schema)
                inner = next(boundary_values(items, root or schema), None)
                yield [] if inner is None else [inner]


def _iterate_values(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Iterator[Any]:
    schema = resolve_schema(schema, root)
    if depth > _MAX_DEPTH:
        return
    if "example" in schema:
        yield schema["example"]
    for name in ("oneOf", "anyOf"):
        for part in schema.get(name) or ():
            yield from _iterate_values(
                {**_without(schema, name), **resolve_schema(part, root)}, root, depth + 1
            )
    match _type_of(schema):
        case "object":
            yield from _iterate_objects(schema, root, depth)
            return
        case "array":
            yield from _iterate_arrays(schema, root, depth)
            return
        case "string" if "enum" not in schema and "const" not in schema:
            yield from _iterate_strings(schema)
        case "integer" | "number" if "enum" not in schema and "const" not in schema:
            yield from _iterate_numbers(schema)
    yield from boundary_values(schema, root)
    if schema.get("type") is None or "null" in schema["type"]:
        yield None


def _iterate_numbers(schema: Mapping[str, Any]) -> Iterator[Any]:
    step = schema.get("multipleOf") or 1
    low, high = _bounds_of(schema)
    if low is None and high is None:
        yield from (step, 0, 2 * step, 10 * step, -step)
        return
    limits = [
        one for one in (low, None if low is None else low + step, high, None if high is None else high - step)
        if one is not None
    ]  # fmt: skip
    yield from (0 if one == 0 else one for one in limits)


def _bounds_of(schema: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the least and the greatest value; None without a limit."""
    step = schema.get("multipleOf") or 1
    low, high = schema.get("minimum"), schema.get("maximum")
    if schema.get("exclusiveMinimum") is not None:
        low = schema["exclusiveMinimum"] + step
    if schema.get("exclusiveMaximum") is not None:
        high = schema["exclusiveMaximum"] - step
    return low, high


def _iterate_strings(schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("format") in _FORMATS:
        yield _FORMATS[schema["format"]]
        return
    if "pattern" in schema:
        yield from islice(iterate_matches(schema["pattern"]), _MAX_VALUES // 2)
    least, most = schema.get("minLength") or 0, schema.get("maxLength")
    usual = max(least, 1 if most is None else min(most, 3))
    for length in dict.fromkeys((usual, least, least + 1, *([] if most is None else [most]))):
        if length <= _MAX_STRING_LENGTH:
            yield "abc"[:length] if length <= 3 else "a" * length  # noqa: PLR2004 - the length of the text
    yield from ("é" * max(least, 1), " ".join("ab" for _ in range(max(1, least))))


def _iterate_arrays(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Iterator[Any]:
    items = schema.get("items")
    inner = [*islice(_iterate_values(items, root, depth + 1), 3)] if isinstance(items, dict) else ["a", "b"]
    least, most = schema.get("minItems") or 0, schema.get("maxItems")
    if not inner:
        yield []
        return
    for length in dict.fromkeys((max(least, 1), least, least + 1, *([] if most is None else [most]))):
        if most is None or length <= most:
            yield [inner[index % len(inner)] for index in range(min(length, _MAX_LENGTH))]


def _iterate_objects(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Iterator[Any]:
    """Yield an object with all members, the required ones only, and each other value of a member."""
    properties = {
        name: part for name, part in (schema.get("properties") or {}).items() if isinstance(part, dict)
    }
    required = {*(schema.get("required") or ())}
    values = {
        name: [*islice(_iterate_values(part, root, depth + 1), _MAX_VALUES // 2)]
        for name, part in properties.items()
        if not resolve_schema(part, root).get("readOnly")
    }
    whole = {name: own[0] for name, own in values.items() if own}
    yield whole
    yield {name: value for name, value in whole.items() if name in required}
    longest = max(map(len, values.values()), default=0)
    for index in range(1, longest):
        for name, own in values.items():
            if index < len(own):
                yield {**whole, name: own[index]}


def _iterate_violations(
    schema: Mapping[str, Any],
    root: Mapping[str, Any],
    depth: int,
    path: str = "",
) -> Iterator[tuple[str, Any]]:
    schema = resolve_schema(schema, root)
    kind = _type_of(schema)
    if depth > _MAX_DEPTH or schema.get("oneOf") or schema.get("anyOf"):
        return
    if kind in _WRONG_TYPES:
        yield f"{path}/type", _WRONG_TYPES[kind]
    if "enum" in schema:
        yield f"{path}/enum", "no-such-value"
    if kind in {"integer", "number"}:
        yield from _iterate_outside(schema, path)
    elif kind == "string":
        yield from _iterate_wrong_strings(schema, path)
    elif kind == "array":
        yield from _iterate_wrong_arrays(schema, root, depth, path)
    elif kind == "object":
        yield from _iterate_wrong_objects(schema, root, depth, path)


def _iterate_wrong_strings(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    if schema.get("minLength"):
        yield f"{path}/minLength", "a" * (schema["minLength"] - 1)
    if schema.get("maxLength", _MAX_STRING_LENGTH) < _MAX_STRING_LENGTH:
        yield f"{path}/maxLength", "a" * (schema["maxLength"] + 1)
    if "pattern" in schema:
        for text in islice(iterate_near_misses(schema["pattern"]), _MAX_NEAR_MISSES):
            yield f"{path}/pattern", text


def _iterate_wrong_arrays(
    schema: Mapping[str, Any],
    root: Mapping[str, Any],
    depth: int,
    path: str,
) -> Iterator[tuple[str, Any]]:
    items = schema.get("items")
    first = next(_iterate_values(items, root, depth + 1), None) if isinstance(items, dict) else "a"
    if schema.get("minItems"):
        yield f"{path}/minItems", [first] * (schema["minItems"] - 1)
    if schema.get("maxItems", _MAX_LENGTH) < _MAX_LENGTH:
        yield f"{path}/maxItems", [first] * (schema["maxItems"] + 1)
    if isinstance(items, dict):
        for keyword, value in _iterate_violations(items, root, depth + 1, f"{path}/items"):
            yield keyword, [value]


def _iterate_outside(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    step = schema.get("multipleOf") or 1
    for name, side in (
        ("minimum", -step),
        ("maximum", step),
        ("exclusiveMinimum", 0),
        ("exclusiveMaximum", 0),
    ):
        if schema.get(name) is not None:
            yield f"{path}/{name}", schema[name] + side
    if schema.get("multipleOf") not in {None, 1}:
        yield f"{path}/multipleOf", schema["multipleOf"] / 2


def _iterate_wrong_objects(
    schema: Mapping[str, Any],
    root: Mapping[str, Any],
    depth: int,
    path: str,
) -> Iterator[tuple[str, Any]]:
    whole: Mapping[str, Any] = next(_iterate_objects(schema, root, depth), {})
    for name in schema.get("required") or ():
        yield f"{path}/required/{name}", {key: value for key, value in whole.items() if key != name}
    for name, part in (schema.get("properties") or {}).items():
        if name in whole and isinstance(part, dict):
            for keyword, value in _iterate_violations(part, root, depth + 1, f"{path}/properties/{name}"):
                yield keyword, {**whole, name: value}
    if schema.get("additionalProperties") is False:
        yield f"{path}/additionalProperties", {**whole, "no_such_member": 1}


def _type_of(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind is None and "properties" in schema:
        return "object"
    return str(kind or "")


def resolve_schema(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without a reference at its top, and with the parts of `allOf` in one."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        part: Any = root
        for key in parse_pointer(schema["$ref"].removeprefix("#")):
            part = part.get(key) if isinstance(part, dict) else None
        schema = {**(part if isinstance(part, dict) else {}), **_without(schema, "$ref")}
    if not isinstance(schema, dict):
        return {}
    if not schema.get("allOf"):
        return schema
    parts = [_without(schema, "allOf"), *(resolve_schema(part, root) for part in schema["allOf"])]
    merged = {key: value for part in parts for key, value in part.items()}
    properties = {name: value for part in parts for name, value in (part.get("properties") or {}).items()}
    required = [name for part in parts for name in part.get("required") or ()]
    return {**merged, **({"properties": properties} if properties else {}), "required": required}


def _without(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != name}


def _is_valid(schema: Mapping[str, Any], value: Any) -> bool:
    try:
        return not validate_against_schema(schema, value)
    except ValueError:
        return False


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other

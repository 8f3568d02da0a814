"""JSON Schema (2020-12) validation with actionable findings.

The library decides validity. The messages are written in this module, so that each names the path and the
fix.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import jsonschema_rs


MAX_FINDINGS = 50
_MAX_LISTED = 24
_MAX_SHOWN = 60
_MAX_REASON = 300
_MAX_PATTERN_BYTES = 1 << 20
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}


def validate_against_schema(
    schema: Mapping[str, Any],
    instance: Any,
    *,
    linear: bool = False,
) -> list[Finding]:
    """Return the violations of a schema, sorted by path, at most `MAX_FINDINGS`.

    Args:
        schema: a JSON Schema document.
        instance: a parsed JSON value.
        linear: match patterns in time linear in the text, for schemas and instances from untrusted sources;
            patterns with look-around or back-references are then rejected.

    Raises:
        ValueError: the schema is invalid, refers outside itself, or has a rejected pattern.
    """
    validator = _validator(json.dumps(schema, sort_keys=True), linear=linear)
    found = {f: None for error in validator.iter_errors(instance) for f in _to_findings(error, schema)}
    return sorted(found, key=_sort_key)[:MAX_FINDINGS]


def find_schema_defects(schema: Mapping[str, Any]) -> list[Finding]:
    """Return the reasons why `check` rejects a schema with `linear`; empty if it does not."""
    import jsonschema_rs  # noqa: PLC0415 - as below

    try:
        _validator(json.dumps(schema, sort_keys=True), linear=True)
    except jsonschema_rs.ValidationError as error:
        return [Finding("BAD_SCHEMA", format_pointer(error.instance_path), _describe_defect(error))]
    return []


def _describe_defect(error: jsonschema_rs.ValidationError) -> str:
    if error.kind.as_dict().get("format") == "regex":
        return f"{_format_value(error.instance)} is not a pattern that can be matched in linear time"
    return f"not a self-contained JSON Schema: {error.message}"[:_MAX_REASON]


def drop_invalid_nulls(schema: Mapping[str, Any], instance: Any) -> Any:
    """Return a copy of the instance without the keys whose null value the schema rejects."""
    validator = _validator(json.dumps(schema, sort_keys=True), linear=False)
    refused = {tuple(error.instance_path) for error in _all_errors(validator.iter_errors(instance))}
    return _drop_paths(instance, refused, ())


def _all_errors(errors: Iterable[jsonschema_rs.ValidationError]) -> Iterator[jsonschema_rs.ValidationError]:
    """Yield the errors, including those of the alternatives of a choice."""
    for error in errors:
        yield error
        for branch in getattr(error.kind, "context", ()):
            yield from _all_errors(branch)


def _drop_paths(value: Any, refused: set[tuple[str | int, ...]], place: tuple[str | int, ...]) -> Any:
    if isinstance(value, dict):
        return {
            key: _drop_paths(inner, refused, (*place, key))
            for key, inner in value.items()
            if inner is not None or (*place, key) not in refused
        }
    if isinstance(value, list):
        return [_drop_paths(inner, refused, (*place, index)) for index, inner in enumerate(value)]
    return value


def _sort_key(finding: Finding) -> list[tuple[int, str]]:
    """Return the sort key of a pointer: indices by number, keys by text."""
    segments = finding.path.split("/")
    return [(int(segment), "") if segment.isdecimal() else (-1, segment) for segment in segments]


def format_pointer(segments: Iterable[str | int]) -> str:
    """Format a JSON Pointer (RFC 6901) from its segments."""
    return "".join("/" + str(segment).replace("~", "~0").replace("/", "~1") for segment in segments)


def parse_pointer(path: str) -> tuple[str, ...]:
    """Parse a JSON Pointer into its segments, with indices as text; the inverse of `pointer`."""
    return tuple(segment.replace("~1", "/").replace("~0", "~") for segment in path.split("/")[1:])


@lru_cache(maxsize=512)
def _validator(schema: str, *, linear: bool) -> jsonschema_rs.Validator:
    import jsonschema_rs  # noqa: PLC0415 - costs 3 MB, only needed for validation

    engine = (
        jsonschema_rs.RegexOptions(size_limit=_MAX_PATTERN_BYTES, dfa_size_limit=_MAX_PATTERN_BYTES)
        if linear
        else jsonschema_rs.FancyRegexOptions()
    )
    return jsonschema_rs.validator_for(
        json.loads(schema),
        retriever=_reject_reference,
        pattern_options=engine,
    )


def _reject_reference(uri: str) -> Any:
    """Reject references outside the schema: nothing is read or fetched for it."""
    raise ValueError(f"a schema must not refer outside itself: {uri[:80]}")


def _to_findings(error: jsonschema_rs.ValidationError, schema: Mapping[str, Any]) -> Iterator[Finding]:
    kind = error.kind
    path = format_pointer(error.instance_path)
    if kind.name in {"oneOf", "anyOf"}:
        yield from _to_choice_findings(error, schema)
    elif kind.name == "additionalProperties":
        known = _known_keys(schema, error.schema_path)
        for key in kind.as_dict()["unexpected"]:
            yield Finding("UNKNOWN_KEY", f"{path}{format_pointer([key])}", _describe_unknown_key(key, known))
    elif kind.name == "required":
        key = kind.as_dict()["property"]
        yield Finding("MISSING_KEY", path, f"the key '{key}' is missing")
    else:
        code, message = _describe_violation(kind.name, kind.as_dict(), error.instance)
        yield Finding(code, path, message)


def _to_choice_findings(error: jsonschema_rs.ValidationError, schema: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the findings of a value that matches none of several shapes.

    They are about the shape that its tag or type selects.
    """
    branches: list[list[jsonschema_rs.ValidationError]] = getattr(error.kind, "context")  # noqa: B009 - not in the stubs
    fitting = [branch for branch in branches if not any(_is_other_shape(e, error) for e in branch)]
    if len(fitting) == 1:
        for inner in fitting[0]:
            yield from _to_findings(inner, schema)
        return
    path = format_pointer(error.instance_path)
    tags = sorted({tag for branch in branches for tag in _tags(branch)})
    if isinstance(error.instance, dict) and tags:
        given = error.instance.get("op")
        problem = (
            "the key 'op' is missing" if given is None else f"{_format_value(given)} is not an operation"
        )
        yield Finding("UNKNOWN_OP", path, f"{problem}; use one of {', '.join(tags)}")
        return
    wanted = sorted({kind for branch in branches for kind in _types(branch)})
    detail = f"; expected {' or '.join(wanted)}" if wanted else ""
    yield Finding("WRONG_VALUE", path, f"{_format_value(error.instance)} is not allowed{detail}")


def _is_other_shape(inner: jsonschema_rs.ValidationError, outer: jsonschema_rs.ValidationError) -> bool:
    depth = len(outer.instance_path)
    own = len(inner.instance_path) == depth
    tag = list(inner.instance_path[depth:]) == ["op"]
    return (tag and inner.kind.name == "const") or (own and inner.kind.name in {"type", "const", "enum"})


def _tags(branch: Sequence[jsonschema_rs.ValidationError]) -> Iterator[str]:
    for error in branch:
        if error.kind.name == "const":
            yield str(error.kind.as_dict()["expected_value"])


def _types(branch: Sequence[jsonschema_rs.ValidationError]) -> Iterator[str]:
    for error in branch:
        if error.kind.name == "type":
            yield from (str(kind) for kind in error.kind.as_dict()["types"])


def _known_keys(schema: Mapping[str, Any], schema_path: Sequence[str | int]) -> list[str]:
    node: Any = schema
    for segment in list(schema_path)[:-1]:
        node = node[segment]
    return list(node.get("properties", {}))


def _describe_unknown_key(key: str, known: list[str]) -> str:
    close = get_close_matches(key, known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"allowed: {', '.join(known[:_MAX_LISTED])}"
    return f"unknown key {_format_value(key)}; {hint}"


def _format_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


def _describe_violation(name: str, facts: dict[str, Any], instance: Any) -> tuple[str, str]:
    limit = facts.get("limit")
    if name in _BOUNDS:
        return "OUT_OF_RANGE", f"{_format_value(instance)} must be {_BOUNDS[name]} {limit}"
    match name:
        case "type":
            return "WRONG_TYPE", f"{_format_value(instance)} is not of type {' or '.join(facts['types'])}"
        case "minLength" | "minItems" | "minProperties":
            return "TOO_SHORT", f"needs at least {limit} {_unit(name)}"
        case "maxLength" | "maxItems" | "maxProperties":
            return "TOO_LONG", f"may have at most {limit} {_unit(name)}"
        case "pattern":
            return "WRONG_FORMAT", f"{_format_value(instance)} does not match {facts['pattern']}"
        case _:
            return "WRONG_VALUE", f"{_format_value(instance)} {_describe_expectation(name, facts)}"


def _describe_expectation(name: str, facts: dict[str, Any]) -> str:
    if name == "enum":
        return (
            f"is not one of {', '.join(_format_value(option) for option in facts['options'][:_MAX_LISTED])}"
        )
    if name == "const":
        return f"must be {_format_value(facts['expected_value'])}"
    return f"breaks the schema's rule '{name}'"


def _unit(name: str) -> str:
    return {"Length": "characters", "Items": "items", "Properties": "keys"}[name[3:]]

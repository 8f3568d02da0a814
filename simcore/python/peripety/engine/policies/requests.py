"""Encoding of tool requests for the engine: shapes are checked, and sizes limited, before JSON is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from peripety.engine._backend import ACTIVE_BACKEND
from peripety.engine.backend_protocol import EngineError
from peripety.engine.strict_json import MAX_BYTES, MAX_NODES
from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.engine.policies.types import ToolRequest


_MAX_VIOLATIONS = 50
_ENCODING_ERRORS = (EngineError, TypeError, ValueError, RecursionError)
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def encode_requests(requests: Sequence[ToolRequest]) -> list[bytes]:
    """Return the JSON of each request; the backend checks its limits when it parses it.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`: a request has a wrong shape, or is not JSON.
    """
    try:
        return [_encode_request(request) for request in requests]
    except _ENCODING_ERRORS:
        raise invalid_requests_error(requests) from None


def invalid_requests_error(requests: Sequence[ToolRequest]) -> InvalidArgumentError:
    """Return the exception for requests of which at least one is invalid."""
    violations: list[FieldViolation] = []
    for number, request in enumerate(requests):
        violations += _find_violations(request, f"requests[{number}]")
        if len(violations) >= _MAX_VIOLATIONS:
            break
    # The caller owns the objects and may have changed them meanwhile, so that no violation is left.
    first, *_ = violations = violations or [FieldViolation("requests", "changed while they were read")]
    message = f"invalid request: {first.field}: {first.reason}"
    return InvalidArgumentError(message, code="REQUEST_INVALID", violations=violations[:_MAX_VIOLATIONS])


def _encode_request(request: ToolRequest) -> bytes:
    if any(_find_wrong_types(request)):
        raise TypeError
    members = {
        "server_name": request.server_name,
        "tool_name": request.tool_name,
        "arguments": dict(request.arguments),
        "roles": [*request.roles],
    }
    _check_size(members)
    return _encode(members).encode("utf-8")


def _check_size(value: Any) -> None:
    """Raise if the JSON would be too large; shared objects can make it much larger than the value in memory.

    Raises:
        EngineError: too many values or characters, or keys that are not strings.
    """
    values, size, pending = 1, 0, [value]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            size += len(value)
            if size > MAX_BYTES:
                raise EngineError("DOCUMENT_TOO_LARGE", f"the texts have more than {MAX_BYTES} characters")
        elif isinstance(value, dict | list | tuple):
            values += len(value)
            if values > MAX_NODES:
                raise EngineError("TOO_MANY_NODES", f"more than {MAX_NODES} values")
            if isinstance(value, dict):
                # The keys 1, True and "1" are different in Python and equal in JSON.
                if not all(isinstance(key, str) for key in value):
                    raise EngineError("NOT_JSON", "the keys of an object are strings")
                pending += [text for member in value.items() for text in member]
            else:
                pending += value


def _find_wrong_types(request: ToolRequest) -> Iterator[tuple[str, str]]:
    """Yield the fields with a wrong type, each with the requirement."""
    if not isinstance(request.server_name, str):
        yield "server_name", "must be a text"
    if not isinstance(request.tool_name, str):
        yield "tool_name", "must be a text"
    if not isinstance(request.arguments, Mapping):
        yield "arguments", "must be an object"
    roles = request.roles
    if not isinstance(roles, list | tuple) or not all(isinstance(role, str) for role in roles):
        yield "roles", "must be a list of texts"


def _find_violations(request: ToolRequest, place: str) -> Iterator[FieldViolation]:
    shapes = [FieldViolation(f"{place}.{field}", reason) for field, reason in _find_wrong_types(request)]
    if shapes:
        yield from shapes
        return
    try:
        members = {"arguments": dict(request.arguments), "roles": [*request.roles]}
        names = {"server_name": request.server_name, "tool_name": request.tool_name}
        for field, value in {**names, **members}.items():
            where, problem = _find_limit_violation(value, f"{place}.{field}")
            if problem is not None:
                yield FieldViolation(where, f"{problem.code}: {problem.message}")
                return
        ACTIVE_BACKEND.parse(_encode_request(request))
    except EngineError as error:
        yield FieldViolation(place, f"{error.code}: {error.message}")
    except _ENCODING_ERRORS:
        # An instance of a subclass may behave differently when it is encoded.
        yield FieldViolation(place, "NOT_JSON: cannot be written as JSON")


def _find_limit_violation(value: Any, place: str) -> tuple[str, EngineError | None]:
    """Return the innermost path with an unacceptable value and its error; None without an error."""
    try:
        # Wrapped in a list, because bytes alone would be parsed as JSON.
        ACTIVE_BACKEND.parse_data([value], EngineError)
    except EngineError as error:
        for step, part in _iter_children(value) if error.code != "TOO_DEEP" else ():
            where, problem = _find_limit_violation(part, place + step)
            if problem is not None:
                return where, problem
        return place, error
    return place, None


def _iter_children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            is_plain = isinstance(key, str) and key.isascii() and key.isidentifier()
            yield f".{key}" if is_plain else f"[{key!a:.40}]", part
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield f"[{index}]", part

"""Error messages of DeepSeek."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.wire.openai.answers import Shape
from peripety.simulator.wire.reading import Kind, bracketed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.wire.reading import Path

__all__ = ["Wording", "invalid", "shape"]

_NAMES = {
    Kind.STRING: "string",
    Kind.INTEGER: "integer",
    Kind.NUMBER: "floating point",
    Kind.BOOLEAN: "boolean",
    Kind.OBJECT: "map",
    Kind.ARRAY: "sequence",
    Kind.NULL: "null",
}

_TYPES = {
    ErrorKind.AUTHENTICATION: (401, "authentication_error"),
    ErrorKind.BILLING: (402, "unknown_error"),
    ErrorKind.PERMISSION: (403, "permission_error"),
    ErrorKind.NOT_FOUND: (404, "invalid_request_error"),
    ErrorKind.METHOD_NOT_ALLOWED: (405, "invalid_request_error"),
    ErrorKind.CONFLICT: (409, "invalid_request_error"),
    ErrorKind.TOO_LARGE: (413, "invalid_request_error"),
    ErrorKind.RATE_LIMIT: (429, "rate_limit_error"),
    ErrorKind.SERVER: (500, "internal_error"),
    ErrorKind.UNAVAILABLE: (503, "service_unavailable_error"),
    ErrorKind.OVERLOADED: (503, "service_unavailable_error"),
    ErrorKind.TIMEOUT: (504, "internal_error"),
}


class Wording:
    """Error messages in the words of `api.deepseek.com`."""

    def not_json(self, reason: str) -> ApiError:
        """Return the error for a body that is not JSON."""
        return invalid(f"Failed to parse the request body as JSON: {reason}")

    def missing(self, path: Path) -> ApiError:
        """Return the error for a missing required member."""
        return _unread(path[:-1], f"missing field `{path[-1]}`")

    def mistyped(self, path: Path, wanted: Sequence[Kind], value: Any) -> ApiError:
        """Return the error for a value of the wrong type."""
        expected = " or ".join(f"a {_NAMES[kind]}" for kind in wanted)
        return _unread(path, f"invalid type: {_NAMES[Kind.of(value)]}, expected {expected}")

    def not_among(self, path: Path, choices: Sequence[str], value: str) -> ApiError:
        """Return the error for a text that is not an allowed value."""
        quoted = ", ".join(f"`{choice}`" for choice in choices)
        expected = f"one of {quoted}" if len(choices) > 1 else quoted
        return _unread(path, f"unknown variant `{value}`, expected {expected}")

    def unexpected(self, path: Path) -> None:
        """Ignore unknown members."""


def invalid(message: str) -> ApiError:
    """Return an invalid request error."""
    return ApiError(ErrorKind.INVALID_REQUEST, message)


def shape(error: ApiError) -> Shape:
    """Return the format of an error."""
    status, name = _TYPES.get(error.kind, (400, "invalid_request_error"))
    return Shape(status, name, "invalid_request_error")


def _unread(path: Path, reason: str) -> ApiError:
    place = f"{bracketed(path)}: " if path else ""
    return invalid(f"Failed to deserialize the JSON body into the target type: {place}{reason}")

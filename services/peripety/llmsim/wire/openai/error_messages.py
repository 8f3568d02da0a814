"""Error messages of OpenAI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.llmsim.types import ApiError, ApiErrorKind
from peripety.llmsim.wire.request_parser import JsonType, bracketed_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.llmsim.wire.request_parser import Fields, Path


_NAMES = {
    JsonType.STRING: "a string",
    JsonType.INTEGER: "an integer",
    JsonType.NUMBER: "a decimal",
    JsonType.BOOLEAN: "a boolean",
    JsonType.OBJECT: "an object",
    JsonType.ARRAY: "an array",
    JsonType.NULL: "null",
}
_NAME_LENGTH = 64
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class OpenAiErrorMessages:
    """Error messages in the words of `api.openai.com`."""

    def not_json(self, reason: str) -> ApiError:
        """Return the error for a body that is not JSON."""
        return invalid_request(
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using "
            "your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not "
            f"valid JSON: {reason}.)",
        )

    def missing_member(self, path: Path) -> ApiError:
        """Return the error for a missing required member."""
        if path == ("model",):
            return invalid_request("you must provide a model parameter")
        return invalid_request(
            f"Missing required parameter: '{bracketed_path(path)}'.",
            path,
            "missing_required_parameter",
        )

    def wrong_type(self, path: Path, wanted: Sequence[JsonType], value: Any) -> ApiError:
        """Return the error for a value of the wrong type."""
        names = [_NAMES[kind] for kind in wanted]
        expected = f"one of {', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
        at = bracketed_path(path) or "body"
        message = (
            f"Invalid type for '{at}': expected {expected}, but got "
            f"{_NAMES[JsonType.of_value(value)]} instead."
        )
        return invalid_request(message, path, "invalid_type")

    def invalid_choice(self, path: Path, choices: Sequence[str], value: str) -> ApiError:
        """Return the error for a text that is not an allowed value."""
        quoted = [f"'{choice}'" for choice in choices]
        if len(quoted) > 2:  # noqa: PLR2004 - three are a list with commas
            quoted = [", ".join(quoted[:-1]) + ",", quoted[-1]]
        message = f"Invalid value: '{value}'. Supported values are: {' and '.join(quoted)}."
        return invalid_request(message, path, "invalid_value")

    def unexpected_member(self, path: Path) -> ApiError:
        """Return the error for an unknown member."""
        return invalid_request(f"Unknown parameter: '{bracketed_path(path)}'.", path, "unknown_parameter")


def invalid_request(message: str, path: Path | str | None = None, code: str | None = None) -> ApiError:
    """Return an invalid request error with its own message."""
    param = path if isinstance(path, str) else bracketed_path(path) if path else None
    return ApiError(ApiErrorKind.INVALID_REQUEST, message, param=param, code=code)


def unsupported_parameter(name: str, instead: str | None = None) -> ApiError:
    """Return the error for a parameter that the model does not support."""
    message = f"Unsupported parameter: '{name}' is not supported with this model."
    if instead is not None:
        message += f" Use '{instead}' instead."
    return invalid_request(message, name, "unsupported_parameter")


def unsupported_value(name: str, value: Any, only: Any) -> ApiError:
    """Return the error for a value that the model does not support."""
    message = (
        f"Unsupported value: '{name}' does not support {value} with this model. Only the default ({only}) "
        "value is supported."
    )
    return invalid_request(message, name, "unsupported_value")


def check_bounds(
    fields: Fields,
    name: str,
    low: float,
    high: float | None = None,
    *,
    whole: bool = False,
) -> None:
    """Reject a member that is not a number within bounds; a missing member is valid."""
    if fields.value.get(name) is None:
        return
    value = fields.integer(name) if whole else fields.number(name)
    if low <= value and (high is None or value <= high):
        return
    kind = "integer" if whole else "decimal"
    below = value < low
    side, sign, bound = ("below minimum", ">=", low) if below else ("above maximum", "<=", high)
    path = fields.path_of(name)
    message = (
        f"Invalid '{bracketed_path(path)}': {kind} {side} value. Expected a value {sign} "
        f"{bound}, but got {value} "
        "instead."
    )
    raise invalid_request(message, path, f"{kind}_{'below_min' if below else 'above_max'}_value")


def check_length(path: Path, items: Sequence[Any], low: int, high: int) -> None:
    """Reject an array that is too short or too long."""
    count = len(items)
    if low <= count <= high:
        return
    if count == 0:
        what, side, bound, got, code = "empty array", "minimum", low, "an empty array", "empty_array"
    elif count < low:
        what, side, bound, code = "array too short", "minimum", low, "array_below_min_length"
        got = f"an array with length {count}"
    else:
        what, side, bound, code = "array too long", "maximum", high, "array_above_max_length"
        got = f"an array with length {count}"
    message = (
        f"Invalid '{bracketed_path(path)}': {what}. Expected an array with {side} length "
        f"{bound}, but got {got} "
        "instead."
    )
    raise invalid_request(message, path, code)


def read_name(fields: Fields, name: str = "name") -> str:
    """Return the name of a tool or schema: up to 64 letters, digits, underscores and dashes."""
    value = fields.text(name)
    path = fields.path_of(name)
    where = bracketed_path(path)
    if not value:
        raise invalid_request(
            f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got an empty "
            "string instead.",
            path,
            "empty_string",
        )
    if len(value) > _NAME_LENGTH:
        raise invalid_request(
            f"Invalid '{where}': string too long. Expected a string with maximum length {_NAME_LENGTH}, but "
            f"got a string with length {len(value)} instead.",
            path,
            "string_above_max_length",
        )
    if not _NAME_CHARACTERS.issuperset(value):
        raise invalid_request(
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            path,
            "invalid_value",
        )
    return value

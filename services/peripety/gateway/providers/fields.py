"""Typed access to JSON fields of providers.

A known field of the wrong type is an error; unknown fields are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jiter

from peripety.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["count_in", "list_in", "malformed", "object_in", "parse_object", "text_in", "truncated"]

_MOST = 10**12
"""Upper bound of a count: more than any call reports, and sums still fit into 64-bit integers."""


def parse_object(data: str) -> Mapping[str, Any]:
    """Parse an event's data, which must be a JSON object.

    Raises:
        UnavailableError: it is not (code STREAM_MALFORMED), as in all functions of this module.
    """
    try:
        return object_in(jiter.from_json(data.encode()))
    except ValueError:
        raise malformed("an event is not JSON") from None


def object_in(value: Any) -> Mapping[str, Any]:
    """Return the object in a field; an empty one if the field is absent."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise malformed("an object is missing where one belongs")
    return value


def list_in(value: Any) -> list[Any]:
    """Return the list in a field; an empty one if the field is absent."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise malformed("a list is missing where one belongs")
    return value


def text_in(value: Any) -> str:
    """Return the text in a field; an empty one if the field is absent."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise malformed("a text is missing where one belongs")
    return value


def count_in(value: Any) -> int:
    """Return the count in a field.

    0 if it is absent or invalid, because usage figures must not fail an answer.
    """
    return value if isinstance(value, int) and 0 < value <= _MOST else 0


def malformed(problem: str) -> UnavailableError:
    """Return the error of a malformed stream."""
    return UnavailableError(f"malformed response stream: {problem}", code="STREAM_MALFORMED")


def truncated(missing: str) -> UnavailableError:
    """Return the error of a truncated stream."""
    return UnavailableError(
        f"answer truncated: the stream ended {missing}; try again", code="STREAM_TRUNCATED"
    )

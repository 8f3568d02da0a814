"""Reads what a provider sends: a known field of the wrong type is an error, an unknown one is passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jiter

from peripety.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["count_in", "list_in", "malformed", "object_in", "parse_object", "text_in", "truncated"]

_MOST = 10**12
"""More than any call counts; sums of such figures still fit into the 64 bits that a database has for them."""


def parse_object(data: str) -> Mapping[str, Any]:
    """Parse an event's data, which has to be a JSON object.

    Raises:
        UnavailableError: it is not (code STREAM_MALFORMED), like in all functions of this module.
    """
    try:
        return object_in(jiter.from_json(data.encode()))
    except ValueError:
        raise malformed("an event is not JSON") from None


def object_in(value: Any) -> Mapping[str, Any]:
    """The object in a field; an empty one when there is none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise malformed("an object is missing where one belongs")
    return value


def list_in(value: Any) -> list[Any]:
    """The list in a field; an empty one when there is none."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise malformed("a list is missing where one belongs")
    return value


def text_in(value: Any) -> str:
    """The text in a field; an empty one when there is none."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise malformed("a text is missing where one belongs")
    return value


def count_in(value: Any) -> int:
    """The count in a field; 0 when there is none that can be: figures are no reason to refuse an answer."""
    return value if isinstance(value, int) and 0 < value <= _MOST else 0


def malformed(problem: str) -> UnavailableError:
    """The error of a stream that cannot be understood."""
    return UnavailableError(f"The server's stream cannot be read: {problem}", code="STREAM_MALFORMED")


def truncated(missing: str) -> UnavailableError:
    """The error of a stream that ended too early."""
    return UnavailableError(
        f"The answer was cut off: the stream ended {missing}; try again", code="STREAM_TRUNCATED"
    )

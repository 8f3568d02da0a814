"""Tolerant parser of tests in model responses; it never guesses the meaning."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from peripety.gateway.objects.json_text import readings
from peripety.testgen.model import Draft

__all__ = ["Unreadable", "read_draft", "read_object"]

_NULLS = frozenset({"null", "none", "nil", "undefined"})
_UNSURE = 0.5
_EXPECTED = ("expected_output", "expectedOutput")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of a response that is not a test.

    Attributes:
        reason: the reason, for display and for the model.
    """

    reason: str


def read_object(text: str) -> Draft | Unreadable:
    """Parse the test in the text of one object."""
    last = None
    for reading in readings(text):
        last = reading
    if last is None or last.document is None:
        found = last.findings[0].message if last and last.findings else "empty text"
        return Unreadable(f"it is not JSON: {found}")
    return read_draft(last.value)


def read_draft(value: Any) -> Draft | Unreadable:
    """Parse a test from a JSON value.

    Nulls that are written as words count as null; numbers and objects in place of a text become their JSON; a
    confidence outside of its range becomes the nearest bound.
    """
    if not isinstance(value, dict):
        return Unreadable("it is not an object")
    given = _text(value.get("input"))
    if given is None or not given.strip():
        return Unreadable("it has no input")
    body = _body(value.get("body"))
    if isinstance(body, Unreadable):
        return body
    expected = next((value[name] for name in _EXPECTED if name in value), None)
    return Draft(
        name=_text(value.get("id")) or "",
        input=given,
        expected_output=_expected(expected, unquoted=body is None),
        reasoning=_text(value.get("reasoning")) or "",
        confidence=_confidence(value.get("confidence")),
        body=body,
        category=_text(value.get("category")),
    )


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _expected(value: Any, *, unquoted: bool) -> str | None:
    text = _text(value)
    if text is None or (isinstance(value, str) and text.strip().lower() in _NULLS):
        return None
    if not unquoted:
        return text
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return inner if isinstance(inner, str) else text


def _confidence(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return _UNSURE
    return _UNSURE if math.isnan(number) else min(max(number, 0.0), 1.0)


def _body(value: Any) -> dict[str, Any] | Unreadable | None:
    """Parse the body, also if it is an object encoded as a string."""
    if isinstance(value, str):
        if value.strip().lower() in _NULLS | {""}:
            return None
        documents = [reading.value for reading in readings(value) if reading.document is not None]
        value = documents[-1] if documents else value
    if value is None or isinstance(value, dict):
        return value
    return Unreadable("its body is not an object")

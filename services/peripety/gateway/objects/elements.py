"""Incremental extraction of JSON objects from a growing text, each as soon as it is complete."""

from __future__ import annotations

import re
from enum import Enum, auto

__all__ = ["ObjectReader"]

_ARRAY = re.compile(r"\[\s*(?=[{\]])")
_ARRAY_MAY_FOLLOW = re.compile(r"\[\s*\Z")
_OUTSIDE_STRING = re.compile(r'[^"{}\[\]]*')
_INSIDE_STRING = re.compile(r'[^"\\]*')


class _Place(Enum):
    """Position in the text."""

    BEFORE = auto()
    BETWEEN = auto()
    """Between two objects."""
    INSIDE = auto()
    """Inside an object."""
    STRING = auto()
    ESCAPE = auto()
    """After a backslash in a string."""
    BEHIND = auto()


class ObjectReader:
    """Incremental reader that releases the text of each object when its last bracket arrives.

    Only brackets and quotes are examined. Whether an object is valid JSON is decided by its parser; an
    invalid object does not affect the others. The work is linear in the text, regardless of chunking.

    Args:
        in_array: whether to release the elements of the first array of objects, wherever it is; else the text
            is one object, surrounded by prose only.
    """

    def __init__(self, *, in_array: bool) -> None:
        self._in_array = in_array
        self._place = _Place.BEFORE if in_array else _Place.BETWEEN
        self._waiting = ""
        self._pieces: list[str] = []
        self._depth = 0

    @property
    def rest(self) -> str:
        """Return the beginning of an incomplete object; empty outside of one."""
        return "".join(self._pieces)

    def feed(self, text: str) -> list[str]:
        """Add the next piece of text; return the objects that it completes."""
        whole: list[str] = []
        if self._place is _Place.BEFORE:
            text = self._behind_bracket(text)
        position = 0
        while position < len(text) and self._place is not _Place.BEHIND:
            start = position
            position = self._step(text, position)
            if self._depth or self._pieces:
                self._pieces.append(text[start:position])
            if self._pieces and not self._depth:
                whole.append("".join(self._pieces))
                self._pieces.clear()
                self._place = _Place.BETWEEN if self._in_array else _Place.BEHIND
        return whole

    def _behind_bracket(self, text: str) -> str:
        """Return the text after the bracket that opens the array; empty before there is one."""
        text = self._waiting + text
        found = _ARRAY.search(text)
        if found is None:
            begun = _ARRAY_MAY_FOLLOW.search(text)
            self._waiting = begun.group() if begun else ""
            return ""
        self._place = _Place.BETWEEN
        self._waiting = ""
        return text[found.end() :]

    def _step(self, text: str, position: int) -> int:
        match self._place:
            case _Place.ESCAPE:
                self._place = _Place.STRING
                return position + 1
            case _Place.STRING:
                return self._through_string(text, position)
            case _Place.INSIDE:
                return self._through_object(text, position)
            case _:
                return self._to_object(text, position)

    def _to_object(self, text: str, position: int) -> int:
        if text[position] == "{":
            self._depth = 1
            self._place = _Place.INSIDE
        elif text[position] == "]" and self._in_array:
            self._place = _Place.BEHIND
        return position + 1

    def _through_object(self, text: str, position: int) -> int:
        position = _skip(_OUTSIDE_STRING, text, position)
        if position == len(text):
            return position
        match text[position]:
            case '"':
                self._place = _Place.STRING
            case "{" | "[":
                self._depth += 1
            case _:
                self._depth -= 1
        return position + 1

    def _through_string(self, text: str, position: int) -> int:
        position = _skip(_INSIDE_STRING, text, position)
        if position == len(text):
            return position
        self._place = _Place.INSIDE if text[position] == '"' else _Place.ESCAPE
        return position + 1


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return the position after a match of `pattern` at `position`.

    The pattern also matches the empty text.
    """
    found = pattern.match(text, position)
    return position if found is None else found.end()

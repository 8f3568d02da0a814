"""A JSON value that can be looked at while it is still being written."""

from __future__ import annotations

import re
from typing import Any

import jiter

__all__ = ["GrowingValue"]

_OPENER = re.compile(r"[{\[]")
_MARKS = ',:{}[]"'
_FIRST_LOOK = 64
_GROWTH = 1.25


class GrowingValue:
    """Shows the part of a value that is complete so far.

    A whole look costs the whole text, so the next one waits until the text has grown by a quarter: all looks
    together cost no more than a few readings of the final text.
    """

    def __init__(self) -> None:
        self._text = ""
        self._next_look = _FIRST_LOOK
        self._shown: Any = None

    def feed(self, text: str) -> Any | None:
        """Take the next piece of text; return the value so far when there is more of it to see."""
        self._text += text
        if len(self._text) < self._next_look:
            return None
        self._next_look = int(len(self._text) * _GROWTH)
        value = self._look()
        if value is None or value == self._shown:
            return None
        self._shown = value
        return value

    def _look(self) -> Any | None:
        start = _OPENER.search(self._text)
        if start is None:
            return None
        # Behind the last mark there may be half a number, which looks like a whole one.
        end = max(self._text.rfind(mark) for mark in _MARKS) + 1
        try:
            return jiter.from_json(self._text[start.start() : end].encode(), partial_mode=True)
        except ValueError:
            return None

"""A JSON value that can be looked at while it is still being written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jiter

from peripety.gateway.objects.fitting import UnfitError, fitting
from peripety.gateway.objects.json_text import documents_begun

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GrowingValue"]

_STEP = 16
_GROWTH = 1.25


class GrowingValue:
    """Shows the part of a value that is complete so far.

    What was shown once stays, and only grows: whole strings, numbers and words, by the schema of the right
    type, at keys that the schema has. It is the first document in the text that fits; once it no longer
    does, nothing more is shown.

    A look costs the whole text, so the next one waits until the text has grown by a quarter: all looks
    together cost no more than a few readings of the final text, and so does all that they show.

    Args:
        schema: what the whole value has to be valid against.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self.restart()

    def restart(self) -> None:
        """Forget what came so far: the value is written anew."""
        self._pieces: list[str] = []
        self._size = 0
        self._next_look = _STEP
        self._start: int | None = None
        self._shown: Any = None

    def feed(self, text: str) -> Any | None:
        """Take the next piece of text; return the value so far when there is more of it to see."""
        self._pieces.append(text)
        self._size += len(text)
        if self._size < self._next_look:
            return None
        self._next_look = max(self._size + _STEP, int(self._size * _GROWTH))
        value = self._look()
        if not value or value == self._shown or not _goes_on(self._shown, value):
            return None
        self._shown = value
        return value

    def _look(self) -> Any | None:
        text = "".join(self._pieces)
        self._pieces = [text]
        for begun in documents_begun(text):
            value = self._beginning(begun.document)
            if value and self._start is None:
                self._start = begun.start
            if begun.start == self._start:
                return value
        return None

    def _beginning(self, document: str) -> Any | None:
        """The value of what is whole of a document, if it fits the schema."""
        try:
            value = jiter.from_json(document.encode(), catch_duplicate_keys=True, allow_inf_nan=False)
            return fitting(self._schema, value)
        except (ValueError, UnfitError):
            return None


def _goes_on(shown: Any, value: Any) -> bool:
    """Whether everything that was shown is still there."""
    match shown, value:
        case dict(), dict():
            return all(key in value and _goes_on(shown[key], value[key]) for key in shown)
        case list(), list():
            return len(shown) <= len(value) and all(map(_goes_on, shown, value))
        case _:
            return shown is None or bool(shown == value)

"""Incremental view of a JSON value while its text arrives."""

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
    """Incremental view: the part of a value that is complete so far.

    Released content is stable and only grows: whole strings, numbers and words, of the type in the schema, at
    keys in the schema. The value is the first document in the text that fits. Once it no longer fits, nothing
    more is released.

    A look parses the whole text. The next one therefore waits until the text has grown by a quarter, so the
    total cost is that of a few parses of the final text.

    Args:
        schema: the JSON Schema of the whole value.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self.restart()

    def restart(self) -> None:
        """Discard the text so far: the value restarts."""
        self._pieces: list[str] = []
        self._size = 0
        self._next_look = _STEP
        self._start: int | None = None
        self._shown: Any = None

    def feed(self, text: str) -> Any | None:
        """Add the next piece of text; return the value so far if more of it is visible."""
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
        """Return the value of the complete part of a document, if it fits the schema."""
        try:
            value = jiter.from_json(document.encode(), catch_duplicate_keys=True, allow_inf_nan=False)
            return fitting(self._schema, value)
        except (ValueError, UnfitError):
            return None


def _goes_on(shown: Any, value: Any) -> bool:
    """Return True if everything that was released is still present."""
    match shown, value:
        case dict(), dict():
            return all(key in value and _goes_on(shown[key], value[key]) for key in shown)
        case list(), list():
            return len(shown) <= len(value) and all(map(_goes_on, shown, value))
        case _:
            return shown is None or bool(shown == value)

"""Incremental reader of one string field of a growing JSON object.

A narrator answers with an object, and its prose is one field of it. The reader releases the field's text
while the model writes it, and nothing else of the object.
"""

from __future__ import annotations

import re
from enum import Enum, auto

__all__ = ["StringFieldReader"]

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[-+.0-9A-Za-z]*")
_BETWEEN_BRACKETS = re.compile(r'[^"{}\[\]]*')
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UNICODE_ESCAPE = re.compile(r"u[0-9a-fA-F]{4}")
_UNICODE_ESCAPE_LENGTH = 5
_HIGH_SURROGATES = range(0xD800, 0xDC00)
_LOW_SURROGATES = range(0xDC00, 0xE000)


class _NotJsonError(Exception):
    """Raised when the text cannot be JSON any more."""


class _StringDecoder:
    """Decoder of one JSON string after its opening quote."""

    def __init__(self) -> None:
        self.closed = False
        self._escape: str | None = None
        self._high_surrogate: int | None = None

    def read(self, text: str, position: int) -> tuple[str, int]:
        """Decode from `position` on; return the decoded text and the end of the string or of the input."""
        decoded: list[str] = []
        while position < len(text) and not self.closed:
            if self._escape is None:
                position = self._read_plain(text, position, decoded)
            else:
                decoded.append(self._read_escape(text[position]))
                position += 1
        return "".join(decoded), position

    def _read_plain(self, text: str, position: int, decoded: list[str]) -> int:
        end = _skip(_PLAIN, text, position)
        decoded.append(text[position:end])
        if end == len(text):
            self._forbid_half_pair(unless=end == position)
            return end
        self._forbid_half_pair(unless=end == position and text[end] == "\\")
        if text[end] == '"':
            self.closed = True
        elif text[end] == "\\":
            self._escape = ""
        else:
            raise _NotJsonError
        return end + 1

    def _forbid_half_pair(self, *, unless: bool) -> None:
        if self._high_surrogate is not None and not unless:
            raise _NotJsonError

    def _read_escape(self, character: str) -> str:
        escape = (self._escape or "") + character
        if escape[0] != "u":
            self._forbid_half_pair(unless=False)
            if escape not in _ESCAPES:
                raise _NotJsonError
            self._escape = None
            return _ESCAPES[escape]
        if len(escape) < _UNICODE_ESCAPE_LENGTH:
            self._escape = escape
            return ""
        if not _UNICODE_ESCAPE.fullmatch(escape):
            raise _NotJsonError
        self._escape = None
        return self._join_surrogates(int(escape[1:], 16))

    def _join_surrogates(self, unit: int) -> str:
        high, self._high_surrogate = self._high_surrogate, None
        if (high is not None) != (unit in _LOW_SURROGATES):
            raise _NotJsonError
        if high is not None:
            return chr(0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00))
        if unit in _HIGH_SURROGATES:
            self._high_surrogate = unit
            return ""
        return chr(unit)


class _Place(Enum):
    """The expected next element."""

    OBJECT = auto()
    KEY_OR_END = auto()
    KEY = auto()
    STRING = auto()
    COLON = auto()
    VALUE = auto()
    SCALAR = auto()
    NESTED = auto()
    COMMA_OR_END = auto()
    NOTHING = auto()


class StringFieldReader:
    """Incremental reader that releases the text of one top-level string field.

    Text before the object (prose, a code fence) is skipped. If the text is not JSON, the reader stops
    releasing; reporting the error is left to the validation of the whole answer. The work is linear in the
    text, regardless of chunking.

    Args:
        field: name of the field.
    """

    def __init__(self, field: str) -> None:
        self._field = field
        self._place = _Place.OBJECT
        self._key = ""
        self._nesting = 0
        self._string = _StringDecoder()
        self._after_string = _Place.COLON
        self._released: list[str] = []
        self._begun = False

    @property
    def begun(self) -> bool:
        """Return True if the field's text has started; all members before it are then complete."""
        return self._begun

    def feed(self, text: str) -> str:
        """Add the next piece of the object's text; return the new text of the field."""
        position = 0
        try:
            while position < len(text) and self._place is not _Place.NOTHING:
                position = self._step(text, position)
        except _NotJsonError:
            self._place = _Place.NOTHING
        released = "".join(self._released)
        self._released.clear()
        return released

    def _step(self, text: str, position: int) -> int:
        match self._place:
            case _Place.OBJECT:
                return self._find_object(text, position)
            case _Place.STRING:
                return self._read_string(text, position)
            case _Place.SCALAR:
                return self._skip_scalar(text, position)
            case _Place.NESTED:
                return self._skip_nested(text, position)
            case _:
                position = _skip(_SPACE, text, position)
                if position < len(text):
                    self._place = self._follow(text[position])
                    # A scalar has no opening mark: its first character is part of it.
                    return position + (self._place is not _Place.SCALAR)
                return position

    def _find_object(self, text: str, position: int) -> int:
        start = text.find("{", position)
        if start < 0:
            return len(text)
        self._place = _Place.KEY_OR_END
        return start + 1

    def _follow(self, character: str) -> _Place:
        """Return the state after `character` at the top level of the object."""
        match self._place, character:
            case (_Place.KEY_OR_END | _Place.KEY, '"'):
                self._key = ""
                place = self._open_string(_Place.COLON)
            case (_Place.COLON, ":"):
                place = _Place.VALUE
            case (_Place.VALUE, '"'):
                self._begun = self._begun or self._key == self._field
                place = self._open_string(_Place.COMMA_OR_END)
            case (_Place.VALUE, "{" | "["):
                self._nesting = 1
                place = _Place.NESTED
            case (_Place.VALUE, _) if _SCALAR.fullmatch(character):
                place = _Place.SCALAR
            case (_Place.COMMA_OR_END, ","):
                place = _Place.KEY
            case (_Place.KEY_OR_END | _Place.COMMA_OR_END, "}"):
                place = _Place.NOTHING
            case _:
                raise _NotJsonError
        return place

    def _open_string(self, after: _Place) -> _Place:
        self._string = _StringDecoder()
        self._after_string = after
        return _Place.STRING

    def _read_string(self, text: str, position: int) -> int:
        decoded, position = self._string.read(text, position)
        if self._nesting:
            following = _Place.NESTED
        else:
            following = self._after_string
            self._keep(decoded)
        if self._string.closed:
            self._place = following
        return position

    def _keep(self, decoded: str) -> None:
        if self._after_string is _Place.COLON:
            # One character more than the name is enough to recognize another key.
            self._key = (self._key + decoded)[: len(self._field) + 1]
        elif self._key == self._field:
            self._released.append(decoded)

    def _skip_scalar(self, text: str, position: int) -> int:
        position = _skip(_SCALAR, text, position)
        if position < len(text):
            self._place = _Place.COMMA_OR_END
        return position

    def _skip_nested(self, text: str, position: int) -> int:
        position = _skip(_BETWEEN_BRACKETS, text, position)
        if position == len(text):
            return position
        if text[position] == '"':
            self._place = self._open_string(_Place.NESTED)
        else:
            self._nesting += 1 if text[position] in "{[" else -1
            self._place = _Place.NESTED if self._nesting else _Place.COMMA_OR_END
        return position + 1


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return the position after a match of `pattern` at `position`.

    The pattern also matches the empty text.
    """
    found = pattern.match(text, position)
    return position if found is None else found.end()

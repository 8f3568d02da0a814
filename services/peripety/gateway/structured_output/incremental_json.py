"""One incremental JSON reader (jiter partial mode): strings, elements, whole value.

Incremental extraction of JSON objects from a growing text, each as soon as it is complete.

Incremental view of a JSON value while its text arrives.

Incremental reader of one string field of a growing JSON object.

A narrator answers with an object, and its prose is one field of it. The reader releases the field's text
while the model writes it, and nothing else of the object.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import jiter

from peripety.gateway.structured_output.json_repair import find_partial_documents
from peripety.gateway.structured_output.validator import PrefixMismatchError, validate_prefix

if TYPE_CHECKING:
    from collections.abc import Mapping


_ARRAY = re.compile(r"\[\s*(?=[{\]])")
_ARRAY_MAY_FOLLOW = re.compile(r"\[\s*\Z")
_OUTSIDE_STRING = re.compile(r'[^"{}\[\]]*')
_INSIDE_STRING = re.compile(r'[^"\\]*')


class _ObjectReaderState(Enum):
    """Position in the text."""

    BEFORE = auto()
    BETWEEN = auto()
    """Between two objects."""
    INSIDE = auto()
    """Inside an object."""
    STRING = auto()
    ESCAPE = auto()
    """After a backslash in a string."""
    AFTER = auto()


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
        self._state = _ObjectReaderState.BEFORE if in_array else _ObjectReaderState.BETWEEN
        self._waiting = ""
        self._pieces: list[str] = []
        self._depth = 0

    @property
    def incomplete_object(self) -> str:
        """Return the beginning of an incomplete object; empty outside of one."""
        return "".join(self._pieces)

    def feed(self, text: str) -> list[str]:
        """Add the next piece of text; return the objects that it completes."""
        whole: list[str] = []
        if self._state is _ObjectReaderState.BEFORE:
            text = self._after_array_start(text)
        position = 0
        while position < len(text) and self._state is not _ObjectReaderState.AFTER:
            start = position
            position = self._step(text, position)
            if self._depth or self._pieces:
                self._pieces.append(text[start:position])
            if self._pieces and not self._depth:
                whole.append("".join(self._pieces))
                self._pieces.clear()
                self._state = _ObjectReaderState.BETWEEN if self._in_array else _ObjectReaderState.AFTER
        return whole

    def _after_array_start(self, text: str) -> str:
        """Return the text after the bracket that opens the array; empty before there is one."""
        text = self._waiting + text
        found = _ARRAY.search(text)
        if found is None:
            begun = _ARRAY_MAY_FOLLOW.search(text)
            self._waiting = begun.group() if begun else ""
            return ""
        self._state = _ObjectReaderState.BETWEEN
        self._waiting = ""
        return text[found.end() :]

    def _step(self, text: str, position: int) -> int:
        match self._state:
            case _ObjectReaderState.ESCAPE:
                self._state = _ObjectReaderState.STRING
                return position + 1
            case _ObjectReaderState.STRING:
                return self._scan_string(text, position)
            case _ObjectReaderState.INSIDE:
                return self._scan_object(text, position)
            case _:
                return self._find_object(text, position)

    def _find_object(self, text: str, position: int) -> int:
        if text[position] == "{":
            self._depth = 1
            self._state = _ObjectReaderState.INSIDE
        elif text[position] == "]" and self._in_array:
            self._state = _ObjectReaderState.AFTER
        return position + 1

    def _scan_object(self, text: str, position: int) -> int:
        position = _skip(_OUTSIDE_STRING, text, position)
        if position == len(text):
            return position
        match text[position]:
            case '"':
                self._state = _ObjectReaderState.STRING
            case "{" | "[":
                self._depth += 1
            case _:
                self._depth -= 1
        return position + 1

    def _scan_string(self, text: str, position: int) -> int:
        position = _skip(_INSIDE_STRING, text, position)
        if position == len(text):
            return position
        self._state = _ObjectReaderState.INSIDE if text[position] == '"' else _ObjectReaderState.ESCAPE
        return position + 1


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return the position after a match of `pattern` at `position`.

    The pattern also matches the empty text.
    """
    found = pattern.match(text, position)
    return position if found is None else found.end()


_MIN_GROWTH = 16
_GROWTH_FACTOR = 1.25


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
        self._next_look = _MIN_GROWTH
        self._start: int | None = None
        self._shown: Any = None

    def feed(self, text: str) -> Any | None:
        """Add the next piece of text; return the value so far if more of it is visible."""
        self._pieces.append(text)
        self._size += len(text)
        if self._size < self._next_look:
            return None
        self._next_look = max(self._size + _MIN_GROWTH, int(self._size * _GROWTH_FACTOR))
        value = self._parse()
        if not value or value == self._shown or not _is_extension(self._shown, value):
            return None
        self._shown = value
        return value

    def _parse(self) -> Any | None:
        text = "".join(self._pieces)
        self._pieces = [text]
        for begun in find_partial_documents(text):
            value = self._complete_part(begun.document)
            if value and self._start is None:
                self._start = begun.start
            if begun.start == self._start:
                return value
        return None

    def _complete_part(self, document: str) -> Any | None:
        """Return the value of the complete part of a document, if it fits the schema."""
        try:
            value = jiter.from_json(document.encode(), catch_duplicate_keys=True, allow_inf_nan=False)
            return validate_prefix(self._schema, value)
        except (ValueError, PrefixMismatchError):
            return None


def _is_extension(released: Any, value: Any) -> bool:
    """Return True if everything that was released is still present."""
    match released, value:
        case dict(), dict():
            return all(key in value and _is_extension(released[key], value[key]) for key in released)
        case list(), list():
            return len(released) <= len(value) and all(map(_is_extension, released, value))
        case _:
            return released is None or bool(released == value)


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
        end = _skip_match(_PLAIN, text, position)
        decoded.append(text[position:end])
        if end == len(text):
            self._reject_lone_surrogate(unless=end == position)
            return end
        self._reject_lone_surrogate(unless=end == position and text[end] == "\\")
        if text[end] == '"':
            self.closed = True
        elif text[end] == "\\":
            self._escape = ""
        else:
            raise _NotJsonError
        return end + 1

    def _reject_lone_surrogate(self, *, unless: bool) -> None:
        if self._high_surrogate is not None and not unless:
            raise _NotJsonError

    def _read_escape(self, character: str) -> str:
        escape = (self._escape or "") + character
        if escape[0] != "u":
            self._reject_lone_surrogate(unless=False)
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


class _FieldReaderState(Enum):
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
        self._state = _FieldReaderState.OBJECT
        self._key = ""
        self._nesting = 0
        self._string = _StringDecoder()
        self._after_string = _FieldReaderState.COLON
        self._released: list[str] = []
        self._has_started = False

    @property
    def has_started(self) -> bool:
        """Return True if the field's text has started; all members before it are then complete."""
        return self._has_started

    def feed(self, text: str) -> str:
        """Add the next piece of the object's text; return the new text of the field."""
        position = 0
        try:
            while position < len(text) and self._state is not _FieldReaderState.NOTHING:
                position = self._step(text, position)
        except _NotJsonError:
            self._state = _FieldReaderState.NOTHING
        released = "".join(self._released)
        self._released.clear()
        return released

    def _step(self, text: str, position: int) -> int:
        match self._state:
            case _FieldReaderState.OBJECT:
                return self._find_object(text, position)
            case _FieldReaderState.STRING:
                return self._read_string(text, position)
            case _FieldReaderState.SCALAR:
                return self._skip_scalar(text, position)
            case _FieldReaderState.NESTED:
                return self._skip_nested(text, position)
            case _:
                position = _skip_match(_SPACE, text, position)
                if position < len(text):
                    self._state = self._next_state(text[position])
                    # A scalar has no opening mark: its first character is part of it.
                    return position + (self._state is not _FieldReaderState.SCALAR)
                return position

    def _find_object(self, text: str, position: int) -> int:
        start = text.find("{", position)
        if start < 0:
            return len(text)
        self._state = _FieldReaderState.KEY_OR_END
        return start + 1

    def _next_state(self, character: str) -> _FieldReaderState:
        """Return the state after `character` at the top level of the object."""
        match self._state, character:
            case (_FieldReaderState.KEY_OR_END | _FieldReaderState.KEY, '"'):
                self._key = ""
                place = self._open_string(_FieldReaderState.COLON)
            case (_FieldReaderState.COLON, ":"):
                place = _FieldReaderState.VALUE
            case (_FieldReaderState.VALUE, '"'):
                self._has_started = self._has_started or self._key == self._field
                place = self._open_string(_FieldReaderState.COMMA_OR_END)
            case (_FieldReaderState.VALUE, "{" | "["):
                self._nesting = 1
                place = _FieldReaderState.NESTED
            case (_FieldReaderState.VALUE, _) if _SCALAR.fullmatch(character):
                place = _FieldReaderState.SCALAR
            case (_FieldReaderState.COMMA_OR_END, ","):
                place = _FieldReaderState.KEY
            case (_FieldReaderState.KEY_OR_END | _FieldReaderState.COMMA_OR_END, "}"):
                place = _FieldReaderState.NOTHING
            case _:
                raise _NotJsonError
        return place

    def _open_string(self, after: _FieldReaderState) -> _FieldReaderState:
        self._string = _StringDecoder()
        self._after_string = after
        return _FieldReaderState.STRING

    def _read_string(self, text: str, position: int) -> int:
        decoded, position = self._string.read(text, position)
        if self._nesting:
            following = _FieldReaderState.NESTED
        else:
            following = self._after_string
            self._release_text(decoded)
        if self._string.closed:
            self._state = following
        return position

    def _release_text(self, decoded: str) -> None:
        if self._after_string is _FieldReaderState.COLON:
            # One character more than the name is enough to recognize another key.
            self._key = (self._key + decoded)[: len(self._field) + 1]
        elif self._key == self._field:
            self._released.append(decoded)

    def _skip_scalar(self, text: str, position: int) -> int:
        position = _skip_match(_SCALAR, text, position)
        if position < len(text):
            self._state = _FieldReaderState.COMMA_OR_END
        return position

    def _skip_nested(self, text: str, position: int) -> int:
        position = _skip_match(_BETWEEN_BRACKETS, text, position)
        if position == len(text):
            return position
        if text[position] == '"':
            self._state = self._open_string(_FieldReaderState.NESTED)
        else:
            self._nesting += 1 if text[position] in "{[" else -1
            self._state = _FieldReaderState.NESTED if self._nesting else _FieldReaderState.COMMA_OR_END
        return position + 1


def _skip_match(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return the position after a match of `pattern` at `position`.

    The pattern also matches the empty text.
    """
    found = pattern.match(text, position)
    return position if found is None else found.end()

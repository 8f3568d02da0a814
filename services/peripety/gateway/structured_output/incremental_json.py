"""Incremental readers of JSON: complete objects, one string field, and the value so far.

One scanner finds brackets and strings, wherever the text is split. It is lenient: an answer that is not JSON
may still be repaired when it is complete. Strings and values are decoded by jiter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import jiter

from peripety.gateway.structured_output.json_repair import find_partial_documents
from peripety.gateway.structured_output.validator import PrefixMismatchError, validate_prefix

if TYPE_CHECKING:
    from collections.abc import Mapping


_OBJECT_OR_ARRAY_END = re.compile(r"[{\]]")
_OUTSIDE_STRING = re.compile(r'[^"{}\[\]]*')
_INSIDE_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)


class _ObjectScanner:
    """Incremental scanner of the brackets and strings of JSON objects.

    The work is linear in the text, regardless of chunking.

    Args:
        in_array: whether the objects are elements of an array, which ends the text; else there is one object,
            surrounded by prose only.
    """

    def __init__(self, *, in_array: bool) -> None:
        self._in_array = in_array
        self._is_finished = False
        self._depth = 0
        self._in_string = False
        self._is_escaped = False

    def _find_object(self, text: str, position: int) -> int:
        """Return the position after the first bracket of the next object, or after the array."""
        found = _OBJECT_OR_ARRAY_END.search(text, position)
        if found is None:
            return len(text)
        if found.group() == "{":
            self._depth = 1
        elif self._in_array:
            self._is_finished = True
        return found.end()

    def _scan(self, text: str, position: int) -> int:
        """Return the end of the next token of an object.

        A token is a bracket, an opening quote, a piece of a string (with its closing quote), or other text.
        """
        if self._in_string:
            end = _skip(_INSIDE_STRING, text, position + self._is_escaped)
            # Without a quote, the text ends here: behind a backslash or not.
            self._is_escaped = end < len(text) and text[end] == "\\"
            self._in_string = end == len(text) or self._is_escaped
            return min(end + 1, len(text))
        end = _skip(_OUTSIDE_STRING, text, position)
        if end > position:
            return end
        match text[position]:
            case '"':
                self._in_string = True
            case "{" | "[":
                self._depth += 1
            case _:
                self._depth -= 1
        return position + 1


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return the position after a match of `pattern` at `position`.

    The pattern also matches the empty text.
    """
    found = pattern.match(text, position)
    return position if found is None else found.end()


_ARRAY = re.compile(r"\[\s*(?=[{\]])")
_ARRAY_MAY_FOLLOW = re.compile(r"\[\s*\Z")


class ObjectReader(_ObjectScanner):
    """Incremental reader that releases the text of each object when its last bracket arrives.

    Only brackets and quotes are examined. Whether an object is valid JSON is decided by its parser; an
    invalid object does not affect the others.

    Args:
        in_array: whether to release the elements of the first array of objects, wherever it is; else the text
            is one object, surrounded by prose only.
    """

    def __init__(self, *, in_array: bool) -> None:
        super().__init__(in_array=in_array)
        self._before_array: str | None = "" if in_array else None
        self._pieces: list[str] = []

    @property
    def incomplete_object(self) -> str:
        """Return the beginning of an incomplete object; empty outside of one."""
        return "".join(self._pieces)

    def feed(self, text: str) -> list[str]:
        """Add the next piece of text; return the objects that it completes."""
        whole: list[str] = []
        if self._before_array is not None:
            text = self._find_array(self._before_array + text)
        position = 0
        while position < len(text) and not self._is_finished:
            if not self._depth:
                position = self._find_object(text, position)
                self._pieces = ["{"] * self._depth
                continue
            start, position = position, self._scan(text, position)
            self._pieces.append(text[start:position])
            if not self._depth:
                whole.append("".join(self._pieces))
                self._pieces = []
                self._is_finished = not self._in_array
        return whole

    def _find_array(self, text: str) -> str:
        """Return the text after the bracket that opens the array; empty before there is one."""
        found = _ARRAY.search(text)
        if found is None:
            may_follow = _ARRAY_MAY_FOLLOW.search(text)
            self._before_array = may_follow.group() if may_follow else ""
            return ""
        self._before_array = None
        return text[found.end() :]


# The top level of an object in outline: each string is one quote, each nested value its first bracket.
_WHOLE_MEMBERS = re.compile(
    r'(?:[ \t\r\n]*"[ \t\r\n]*:[ \t\r\n]*(?:["{\[]|[-+.0-9A-Za-z]+)[ \t\r\n]*,)*',
)
_KEY_FOLLOWS = re.compile(r"[ \t\r\n]*")
_VALUE_FOLLOWS = re.compile(r'[ \t\r\n]*"[ \t\r\n]*:[ \t\r\n]*')
_WHOLE_CHARACTERS = re.compile(
    r"(?:[^\\]+|\\[^u]|\\u(?![dD][89abAB]).{4}|\\u.{4}\\u.{4})*",
    re.DOTALL,
)
_MAX_INCOMPLETE_CHARACTER = len(r"\ud83d\ude0")


class StringFieldReader(_ObjectScanner):
    """Incremental reader that releases the text of one top-level string field.

    A narrator answers with an object, and its prose is one field of it. The text of this field is released
    while the model writes it.

    Text before the object (prose, a code fence) is skipped. If the text is not JSON, the reader stops
    releasing; reporting the error is left to the validation of the whole answer.

    Args:
        field: name of the field.
    """

    def __init__(self, field: str) -> None:
        super().__init__(in_array=False)
        self._field = field
        self._outline: list[str] = []
        self._in_key = False
        self._key = ""
        self._incomplete = ""
        self._has_started = False

    @property
    def has_started(self) -> bool:
        """Return True if the field's text has started; all members before it are then complete."""
        return self._has_started

    def feed(self, text: str) -> str:
        """Add the next piece of the object's text; return the new text of the field."""
        released: list[str] = []
        position = 0
        try:
            while position < len(text) and not self._is_finished:
                if self._depth:
                    position = self._read_token(text, position, released)
                else:
                    position = self._find_object(text, position)
        except ValueError:
            self._is_finished = True
        return "".join(released)

    def _read_token(self, text: str, position: int, released: list[str]) -> int:
        was_in_string, depth = self._in_string, self._depth
        end = self._scan(text, position)
        if was_in_string:
            decoded = self._decode(text[position:end])
            if depth == 1 and self._in_key:
                # One character more than the name is enough to recognize another key.
                self._key = (self._key + decoded)[: len(self._field) + 1]
            elif depth == 1 and self._key == self._field:
                released.append(decoded)
        elif depth == 1:
            if self._in_string:
                self._begin_string()
            self._outline.append(text[position:end])
            self._is_finished = not self._depth
        return end

    def _begin_string(self) -> None:
        """Find out from the outline whether a string is a key or a value.

        Raises:
            ValueError: no string can follow.
        """
        outline = "".join(self._outline)
        incomplete = outline[_skip(_WHOLE_MEMBERS, outline, 0) :]
        self._outline = [incomplete]
        self._in_key = _KEY_FOLLOWS.fullmatch(incomplete) is not None
        if self._in_key:
            self._key = ""
        elif not _VALUE_FOLLOWS.fullmatch(incomplete):
            raise ValueError(incomplete)
        elif self._key == self._field:
            self._has_started = True

    def _decode(self, token: str) -> str:
        """Decode the next piece of a string, up to an incomplete escape or half of a surrogate pair.

        Raises:
            ValueError: the string is not JSON.
        """
        text = self._incomplete + (token if self._in_string else token[:-1])
        end = _skip(_WHOLE_CHARACTERS, text, 0)
        if not self._in_string or len(text) - end > _MAX_INCOMPLETE_CHARACTER:
            end = len(text)
        self._incomplete = text[end:]
        decoded: str = jiter.from_json(f'"{text[:end]}"'.encode())
        return decoded


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

"""Strict JSON parser, the only one that reads a document.

It is stricter than RFC 8259 where parsers disagree: duplicate keys, lone surrogates, numbers outside
binary64, integers beyond 2^53 - 1, and anything over the limits are errors. It reports the first error in
document order.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from peripety.engine.backend_protocol import EngineError

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_NODES = 100_000
MAX_STRING_BYTES = 1 << 16
MAX_KEY_BYTES = 256
MAX_SAFE_INTEGER = (1 << 53) - 1

# Output of the engine may be longer than the source document, and it wraps the deepest values.
MAX_CANONICAL_BYTES = 1 << 26
MAX_CANONICAL_DEPTH = MAX_DEPTH + 16

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HIGH_SURROGATES = range(0xD800, 0xDC00)
_LOW_SURROGATES = range(0xDC00, 0xE000)
_WORDS = {"true": True, "false": False, "null": None}


def parse(document: bytes) -> Any:
    """Parse a JSON document strictly.

    Args:
        document: UTF-8 bytes, at most `MAX_BYTES`.

    Returns:
        The value; every number is a float.

    Raises:
        EngineError: with line and column (both from 1, columns in code points).
    """
    return _Parser(_decode(document, MAX_BYTES)).document()


def parse_canonical(document: bytes) -> Any:
    """Parse output of `canonical`: as `parse`, with the limits of results, and long integers as floats.

    Canonical form writes 1e17 as an integer literal, which `parse` rejects.
    """
    return _Parser(_decode(document, MAX_CANONICAL_BYTES), canonical=True).document()


def _decode(document: bytes, max_bytes: int) -> str:
    if len(document) > max_bytes:
        raise EngineError(
            "DOCUMENT_TOO_LARGE",
            f"the document has {len(document)} bytes; at most {max_bytes} are accepted",
        )
    try:
        return document.decode("utf-8")
    except UnicodeDecodeError as error:
        raise EngineError("INVALID_UTF8", f"not valid UTF-8 at byte {error.start}") from None


class _Parser:
    """Recursive-descent parser; MAX_DEPTH bounds the recursion."""

    def __init__(self, text: str, *, canonical: bool = False) -> None:
        self.text = text
        self.any_integer = canonical
        self.max_depth = MAX_CANONICAL_DEPTH if canonical else MAX_DEPTH
        self.at = 0
        self.nodes = 0

    def document(self) -> Any:
        self.skip_space()
        value = self.value(0)
        self.skip_space()
        if self.at < len(self.text):
            self.fail("INVALID_JSON", "expected the end of the document")
        return value

    def value(self, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.fail("TOO_MANY_NODES", f"more than {MAX_NODES} values")
        first = self.text[self.at : self.at + 1]
        if first == "{":
            return self.object(depth + 1)
        if first == "[":
            return self.array(depth + 1)
        if first == '"':
            return self.string(MAX_STRING_BYTES, "STRING_TOO_LONG")
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        return self.number()

    def object(self, depth: int) -> dict[str, Any]:
        self.enter(depth)
        result: dict[str, Any] = {}
        if self.accept("}"):
            return result
        while True:
            start = self.at
            if not self.text.startswith('"', start):
                self.fail("INVALID_JSON", "expected a key in double quotes")
            key = self.string(MAX_KEY_BYTES, "KEY_TOO_LONG")
            if key in result:
                self.fail("DUPLICATE_KEY", f"the key {_format_key(key)} appears twice in one object", start)
            self.skip_space()
            if not self.accept(":"):
                self.fail("INVALID_JSON", "expected ':' after the key")
            self.skip_space()
            result[key] = self.value(depth)
            self.skip_space()
            if self.accept("}"):
                return result
            if not self.accept(","):
                self.fail("INVALID_JSON", "expected ',' or '}'")
            self.skip_space()

    def array(self, depth: int) -> list[Any]:
        self.enter(depth)
        result: list[Any] = []
        if self.accept("]"):
            return result
        while True:
            result.append(self.value(depth))
            self.skip_space()
            if self.accept("]"):
                return result
            if not self.accept(","):
                self.fail("INVALID_JSON", "expected ',' or ']'")
            self.skip_space()

    def enter(self, depth: int) -> None:
        if depth > self.max_depth:
            self.fail("TOO_DEEP", f"nested deeper than {self.max_depth} levels")
        self.at += 1
        self.skip_space()

    def string(self, limit: int, code: str) -> str:
        start = self.at
        self.at += 1
        parts: list[str] = []
        while True:
            plain = _PLAIN.match(self.text, self.at)
            assert plain is not None  # noqa: S101 - the pattern matches the empty string
            parts.append(plain.group())
            self.at = plain.end()
            stop = self.text[self.at : self.at + 1]
            if stop == '"':
                break
            if stop == "":
                self.fail("INVALID_JSON", "the string is never closed", start)
            if stop != "\\":
                self.fail("INVALID_JSON", "control characters must be escaped in a string")
            parts.append(self.escape())
        self.at += 1
        value = "".join(parts)
        if len(value.encode("utf-8")) > limit:
            self.fail(code, f"longer than {limit} bytes", start)
        return value

    def escape(self) -> str:
        start = self.at
        kind = self.text[start + 1 : start + 2]
        if kind in _ESCAPES:
            self.at = start + 2
            return _ESCAPES[kind]
        unit = self.code_unit(start)
        if unit in _HIGH_SURROGATES and self.text.startswith("\\u", self.at):
            low = self.code_unit(self.at)
            if low in _LOW_SURROGATES:
                return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
        if unit in _HIGH_SURROGATES or unit in _LOW_SURROGATES:
            self.fail("LONE_SURROGATE", "a lone surrogate is not a character", start)
        return chr(unit)

    def code_unit(self, start: int) -> int:
        digits = _HEX4.match(self.text, start + 2)
        if not self.text.startswith("\\u", start) or digits is None:
            self.fail("INVALID_JSON", "unknown escape in a string", start)
        self.at = start + 6
        return int(digits.group(), 16)

    def number(self) -> float:
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            self.fail("INVALID_JSON", "expected a value")
        literal = match.group()
        value = float(literal)
        is_integer = match.group(1) is None and match.group(2) is None
        if is_integer and abs(value) > MAX_SAFE_INTEGER and not self.any_integer:
            self.fail("NUMBER_RANGE", "an integer must lie within ±9007199254740991")
        if value in {float("inf"), float("-inf")}:
            self.fail("NUMBER_RANGE", "the number does not fit binary64")
        self.at = match.end()
        return value + 0.0  # -0 becomes 0

    def skip_space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match is not None  # noqa: S101 - the pattern matches the empty string
        self.at = match.end()

    def accept(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += 1
            return True
        return False

    def fail(self, code: str, message: str, at: int | None = None) -> NoReturn:
        position = self.at if at is None else at
        before = self.text[:position]
        line = before.count("\n") + 1
        column = position - (before.rfind("\n") + 1) + 1
        raise EngineError(code, f"{message} (line {line}, column {column})")


def _format_key(key: str) -> str:
    """Format a key for a message: truncated, printable ASCII only."""
    safe = "".join(c if " " < c < "\x7f" else "?" for c in key[:40])
    return f"'{safe}'"

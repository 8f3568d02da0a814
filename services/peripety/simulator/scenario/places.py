"""Source positions: line and column of each field of a TOML or JSON text.

Parsers do not report positions, so the text is scanned again when there is a problem to report. The scanners
know only enough of the grammars to separate keys from values. They rely on a text that the real parser has
accepted.
"""

from __future__ import annotations

import json
import re
import tomllib
from abc import ABC, abstractmethod
from bisect import bisect_right
from typing import TYPE_CHECKING

from peripety.simulator.scenario.problems import Place

if TYPE_CHECKING:
    from peripety.simulator.scenario.problems import FieldPath

__all__ = ["Places"]

_DEEPEST = 64  # problems of deeper fields are reported at this depth

_JSON_SKIP = re.compile(r"[ \t\r\n,:]*+")
_JSON_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_JSON_SCALAR = re.compile(rf"{_JSON_STRING.pattern}|[^\s,\]}}]++")

_TOML_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_TOML_BETWEEN = re.compile(r"(?:[ \t\r\n,]++|#[^\n]*+)*+")
_TOML_KEY = re.compile(r"""[ \t]*+([A-Za-z0-9_-]++|"(?:[^"\\]++|\\.)*+"|'[^']*+')[ \t]*+""")
_TOML_SCALAR = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']++|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\]++|\\.)*+"'
    r"|'[^']*+'"
    r"|[^,\]}#\r\n]++",
    re.DOTALL,
)


class Places:
    """The positions of the fields of a valid text.

    Args:
        text: the text.
        format: `toml` or `json`.

    Attributes:
        repeated: fields that a JSON text defines more than once.
    """

    def __init__(self, text: str, *, format: str) -> None:  # noqa: A002 - the word for it
        scanner = _Toml(text) if format == "toml" else _Json(text)
        scanner.document()
        self._offsets = scanner.offsets
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.repeated = tuple(scanner.repeated)

    def find(self, path: FieldPath) -> Place:
        """Return the position of a field: its key, or for an array item the item.

        A field that is not in the text has the position of its nearest ancestor.
        """
        while path and path not in self._offsets:
            path = path[:-1]
        offset = self._offsets.get(path, 0)
        line = bisect_right(self._lines, offset)
        return Place(line, offset - self._lines[line - 1] + 1)


class _Scanner(ABC):
    """Scanner that records the offset of each field."""

    between: re.Pattern[str]  # text allowed between the items of a container
    scalar: re.Pattern[str]

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.offsets: dict[FieldPath, int] = {}
        self.repeated: list[FieldPath] = []

    @abstractmethod
    def document(self) -> None:
        """Scan the whole text."""

    @abstractmethod
    def key(self, table: FieldPath) -> FieldPath:
        """Read a key and the separator before its value."""

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None, "the text was accepted by its parser"  # noqa: S101
        self.at = match.end()
        return match[0]

    def value(self, path: FieldPath) -> None:
        """Scan a value. Iterative, because deep nesting would exhaust the stack."""
        inside: list[
            tuple[FieldPath, int | None]
        ] = []  # open containers: their path, and the next index of arrays
        while True:
            opening = self.text[self.at]
            if opening in "[{":
                self.at += 1
                inside.append((path[:_DEEPEST], 0 if opening == "[" else None))
            else:
                self.skip(self.scalar)
            while inside:
                self.skip(self.between)
                if self.text[self.at] not in "]}":
                    break
                self.at += 1
                inside.pop()
            if not inside:
                return
            container, index = inside[-1]
            if index is None:
                path = self.key(container)
            else:
                inside[-1] = (container, index + 1)
                path = (*container, index)
                self.offsets.setdefault(path, self.at)


class _Json(_Scanner):
    between = _JSON_SKIP
    scalar = _JSON_SCALAR

    def document(self) -> None:
        self.skip(_JSON_SKIP)
        self.value(())

    def key(self, table: FieldPath) -> FieldPath:
        start = self.at
        path = (*table, json.loads(self.skip(_JSON_STRING)))
        if path in self.offsets:
            self.repeated.append(path)
        self.offsets[path] = start
        self.skip(_JSON_SKIP)
        return path


class _Toml(_Scanner):
    between = _TOML_BETWEEN
    scalar = _TOML_SCALAR

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.arrays: dict[FieldPath, int] = {}  # number of tables per array of tables

    def document(self) -> None:
        table: FieldPath = ()
        self.skip(_TOML_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.value(self.key(table))
            self.skip(_TOML_BLANK)

    def header(self) -> FieldPath:
        start = self.at
        repeats = self.text.startswith("[[", start)
        self.at += 1 + repeats
        *outer, last = self.keys()
        self.at += 1 + repeats
        path: FieldPath = ()
        for key in outer:
            path = self.latest((*path, key))
            self.offsets.setdefault(path, start)
        path = (*path, last)
        self.offsets.setdefault(path, start)
        if repeats:
            self.arrays[path] = self.arrays.get(path, 0) + 1
            path = self.latest(path)
            self.offsets[path] = start
        return path

    def latest(self, path: FieldPath) -> FieldPath:
        """Return the path of a table; for an array of tables, of its last table."""
        return (*path, self.arrays[path] - 1) if path in self.arrays else path

    def key(self, table: FieldPath) -> FieldPath:
        start = self.at
        path = table
        for key in self.keys():
            path = (*path, key)
            self.offsets.setdefault(path, start)
        self.at += 1  # the equals sign
        self.skip(_TOML_BLANK)
        return path

    def keys(self) -> list[str]:
        """Read a key as its dotted parts."""
        found = [self.one_key()]
        while self.text[self.at] == ".":
            self.at += 1
            found.append(self.one_key())
        return found

    def one_key(self) -> str:
        word = self.skip(_TOML_KEY).strip(" \t")
        if word[0] == '"':
            return next(iter(tomllib.loads(f"{word} = 0")))
        return word.strip("'")

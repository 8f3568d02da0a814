"""Sources of a script: parsed TOML or JSON, referenced files, and errors with file, line and field.

`{"$file": "relative/path"}` is replaced by the content of the file.

Parsers do not report positions, so the text is scanned again when there is a problem to report. The
scanners know only enough of the grammars to separate keys from values. They rely on a text that the real
parser has accepted.
"""

from __future__ import annotations

import json
import re
import tomllib
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


FieldPath = tuple[str | int, ...]
"""Path to a field from the root of a document: keys, and array indices from 0."""

_BARE = re.compile(r"[A-Za-z_$][A-Za-z0-9_-]*")
_MAX_SHOWN_PROBLEMS = 20


@dataclass(frozen=True, slots=True, order=True)
class SourcePosition:
    """A line and a column of a text, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class ScriptProblem:
    """A problem of a script.

    Attributes:
        path: the field; empty for the whole document.
        message: the problem and its remedy.
        position: the position; None if the script was not text.
    """

    path: FieldPath
    message: str
    position: SourcePosition | None = None

    @property
    def field_name(self) -> str:
        """The field as shown in messages, such as `responses[3].turns[0].expect.text`."""
        return format_field_path(self.path)


class ScriptError(InvalidArgumentError):
    """A script is not valid.

    Attributes:
        source: the file, or another name of the origin.
        problems: all problems, in the order of the text.
    """

    default_code = "SCENARIO_INVALID"

    def __init__(self, source: str, problems: Sequence[ScriptProblem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        many = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(
            f"script {source} is not valid: {many}",
            violations=[
                FieldViolation(p.field_name or "/", f"{p.message} ({self.format_position(p)})")
                for p in problems
            ],
        )

    def format_position(self, problem: ScriptProblem) -> str:
        """Return the position of a problem in the form that editors recognise: `file:line:column`."""
        place = problem.position
        return self.source if place is None else f"{self.source}:{place.line}:{place.column}"

    def __str__(self) -> str:
        """Return all problems, one per line; a long list is truncated, with a note."""
        lines = [self.message]
        for problem in self.problems[:_MAX_SHOWN_PROBLEMS]:
            field = f"{problem.field_name}: " if problem.path else ""
            lines.append(f"  {self.format_position(problem)}: {field}{problem.message}")
        if len(self.problems) > _MAX_SHOWN_PROBLEMS:
            lines.append(f"  ... and {len(self.problems) - _MAX_SHOWN_PROBLEMS} more")
        return "\n".join(lines)


def format_field_path(path: FieldPath) -> str:
    """Format a path for messages, such as `responses[3].turns[0].expect.text`."""
    name = ""
    for step in path:
        if isinstance(step, str) and _BARE.fullmatch(step):
            name += f".{step}" if name else step
        else:
            name += f"[{step!r}]"
    return name


_MAX_DEPTH = 64  # problems of deeper fields are reported at this depth

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


class SourcePositions:
    """The positions of the fields of a valid text.

    Args:
        text: the text.
        format: `toml` or `json`.

    Attributes:
        repeated: fields that a JSON text defines more than once.
    """

    def __init__(self, text: str, *, format: str) -> None:  # noqa: A002 - the word for it
        scanner = _Toml(text) if format == "toml" else _Json(text)
        scanner.scan_document()
        self._offsets = scanner.offsets
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.repeated = tuple(scanner.repeated)

    def position_of(self, path: FieldPath) -> SourcePosition:
        """Return the position of a field: its key, or for an array item the item.

        A field that is not in the text has the position of its nearest ancestor.
        """
        while path and path not in self._offsets:
            path = path[:-1]
        offset = self._offsets.get(path, 0)
        line = bisect_right(self._lines, offset)
        return SourcePosition(line, offset - self._lines[line - 1] + 1)


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
    def scan_document(self) -> None:
        """Scan the whole text."""

    @abstractmethod
    def scan_key(self, table: FieldPath) -> FieldPath:
        """Read a key and the separator before its value."""

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None, "the text was accepted by its parser"  # noqa: S101
        self.at = match.end()
        return match[0]

    def scan_value(self, path: FieldPath) -> None:
        """Scan a value. Iterative, because deep nesting would exhaust the stack."""
        inside: list[
            tuple[FieldPath, int | None]
        ] = []  # open containers: their path, and the next index of arrays
        while True:
            opening = self.text[self.at]
            if opening in "[{":
                self.at += 1
                inside.append((path[:_MAX_DEPTH], 0 if opening == "[" else None))
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
                path = self.scan_key(container)
            else:
                inside[-1] = (container, index + 1)
                path = (*container, index)
                self.offsets.setdefault(path, self.at)


class _Json(_Scanner):
    between = _JSON_SKIP
    scalar = _JSON_SCALAR

    def scan_document(self) -> None:
        self.skip(_JSON_SKIP)
        self.scan_value(())

    def scan_key(self, table: FieldPath) -> FieldPath:
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

    def scan_document(self) -> None:
        table: FieldPath = ()
        self.skip(_TOML_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.scan_header()
            else:
                self.scan_value(self.scan_key(table))
            self.skip(_TOML_BLANK)

    def scan_header(self) -> FieldPath:
        start = self.at
        repeats = self.text.startswith("[[", start)
        self.at += 1 + repeats
        *outer, last = self.read_dotted_key()
        self.at += 1 + repeats
        path: FieldPath = ()
        for key in outer:
            path = self.latest_table((*path, key))
            self.offsets.setdefault(path, start)
        path = (*path, last)
        self.offsets.setdefault(path, start)
        if repeats:
            self.arrays[path] = self.arrays.get(path, 0) + 1
            path = self.latest_table(path)
            self.offsets[path] = start
        return path

    def latest_table(self, path: FieldPath) -> FieldPath:
        """Return the path of a table; for an array of tables, of its last table."""
        return (*path, self.arrays[path] - 1) if path in self.arrays else path

    def scan_key(self, table: FieldPath) -> FieldPath:
        start = self.at
        path = table
        for key in self.read_dotted_key():
            path = (*path, key)
            self.offsets.setdefault(path, start)
        self.at += 1  # the equals sign
        self.skip(_TOML_BLANK)
        return path

    def read_dotted_key(self) -> list[str]:
        """Read a key as its dotted parts."""
        found = [self.read_key_part()]
        while self.text[self.at] == ".":
            self.at += 1
            found.append(self.read_key_part())
        return found

    def read_key_part(self) -> str:
        word = self.skip(_TOML_KEY).strip(" \t")
        if word[0] == '"':
            return next(iter(tomllib.loads(f"{word} = 0")))
        return word.strip("'")


_TOML_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_DOCUMENT_START = SourcePosition(1, 1)  # used if the parser reports no position


class ScriptSyntaxError(Exception):
    """A parse error with its position and its reason."""

    def __init__(self, position: SourcePosition, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.message = message


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML text to a table.

    Raises:
        ScriptSyntaxError: the text is not valid.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ScriptSyntaxError(_DOCUMENT_START, "not valid TOML: nested too deeply") from None
    except ValueError as error:
        reason = str(error)
        place = _DOCUMENT_START
        if found := _TOML_POSITION.search(reason):
            place = SourcePosition(int(found[1]), int(found[2])) if found[1] else _end_position(text)
        raise ScriptSyntaxError(place, f"not valid TOML: {_TOML_POSITION.sub('', reason)}") from None


def parse_json(text: str) -> Any:
    """Parse JSON text. Duplicate keys are errors.

    Raises:
        ScriptSyntaxError: the text is not valid.
    """
    repeats = False

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        values = dict(pairs)
        repeats |= len(values) < len(pairs)
        return values

    try:
        value = json.loads(text, object_pairs_hook=table)
    except RecursionError:
        raise ScriptSyntaxError(_DOCUMENT_START, "not valid JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ScriptSyntaxError(
            SourcePosition(error.lineno, error.colno),
            f"not valid JSON: {error.msg}",
        ) from None
    except ValueError as error:
        raise ScriptSyntaxError(_DOCUMENT_START, f"not valid JSON: {error}") from None
    if repeats:
        places = SourcePositions(text, format="json")
        path = places.repeated[0]
        raise ScriptSyntaxError(places.position_of(path), f"not valid JSON: the key {path[-1]!r} is repeated")
    return value


def _end_position(text: str) -> SourcePosition:
    return SourcePosition(text.count("\n") + 1, len(text) - text.rfind("\n"))


MAX_BYTES = 16 * 2**20


class ScriptFileError(Exception):
    """A file that cannot be used; the message has the reason and the remedy."""


class ReferencedFiles:
    """Cache of the files in one directory and below; each file is read once.

    Args:
        directory: the root of relative paths, which they cannot leave; None if no files are available.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory and directory.resolve()
        self._texts: dict[str, str] = {}

    def read_value(self, name: str) -> Any:
        """Return the content of a file: the parsed value of a `.json`, else the text.

        Raises:
            ScriptFileError: the file cannot be used.
        """
        text = self.read_text(name)
        if not name.endswith(".json"):
            return text
        try:
            return parse_json(text)
        except ScriptSyntaxError as error:
            place = f"{name}:{error.position.line}:{error.position.column}"
            raise ScriptFileError(f"{place}: {error.message}") from None

    def read_text(self, name: str) -> str:
        """Return the text of a file.

        Raises:
            ScriptFileError: the file cannot be used.
        """
        if name not in self._texts:
            self._texts[name] = self._read(name)
        return self._texts[name]

    def _read(self, name: str) -> str:
        if self._directory is None:
            raise ScriptFileError("`$file` needs a script that was read from a file")
        try:
            path = (self._directory / name).resolve()
            if not path.is_relative_to(self._directory):
                raise ScriptFileError(f"{name!r} is outside the directory of the script; move it there")
            if not path.is_file():
                raise ScriptFileError(f"{name!r} does not exist in {self._directory}")
            if path.stat().st_size > MAX_BYTES:
                raise ScriptFileError(f"{name!r} is larger than {MAX_BYTES // 2**20} MiB")
            return path.read_bytes().decode()
        except UnicodeDecodeError:
            raise ScriptFileError(f"{name!r} is not UTF-8 text") from None
        except (OSError, ValueError) as error:
            raise ScriptFileError(f"{name!r} cannot be read: {error}") from None

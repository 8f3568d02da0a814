"""Readers of script values: each converts one value and records its problems.

A reader returns None after a problem and the reading continues, so that an author sees all problems at once.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Protocol

from peripety.simulator.scenario.documents import DocumentError, parse_json
from peripety.simulator.scenario.files import FileError
from peripety.simulator.scenario.problems import FieldPath, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from peripety.simulator.scenario.files import Files

__all__ = [
    "FILE",
    "JSON",
    "Fault",
    "Reader",
    "Reading",
    "Table",
    "Tagged",
    "array",
    "boolean",
    "choice",
    "integer",
    "json_value",
    "number",
    "shorthand",
    "shown",
    "string",
    "text",
]

FILE = "$file"
"""The only key of a table that refers to a file."""
JSON = "$json"
"""The only key of a table that holds JSON text, for values that TOML cannot express."""

_DEEPEST = 64
_SHOWN = 40
_SEVERAL = 2


class Reading:
    """State while a document is read.

    Args:
        files: the files that it may refer to.

    Attributes:
        problems: the problems so far.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.problems: list[Problem] = []

    def wrong(self, path: FieldPath, sentence: str) -> None:
        """Record a problem of a field."""
        self.problems.append(Problem(path, sentence))


class Reader(Protocol):
    """Converter of one value; returns None after recording a problem."""

    def __call__(self, value: Any, path: FieldPath, reading: Reading, /) -> Any: ...  # noqa: D102


# ---- tables


Fault = tuple[FieldPath, str]
"""A problem of a field of a table: the path from the table, and a message."""


def _right(_given: Mapping[str, Any]) -> Iterable[Fault]:
    return ()


@dataclass(frozen=True)
class Table:
    """Reader of a table with known fields.

    Attributes:
        name: the name of such a table in messages, with its article.
        make: creates the value from the given fields.
        fields: the fields and their readers.
        required: the required fields.
        check: yields problems between fields; an invalid field is passed as None.
        meant: common wrong names of a field.
    """

    name: str
    make: Callable[..., Any]
    fields: Mapping[str, Reader]
    required: tuple[str, ...] = ()
    check: Callable[[Mapping[str, Any]], Iterable[Fault]] = _right
    meant: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, value: Any, path: FieldPath, reading: Reading) -> Any:
        """Read a table."""
        if not isinstance(value, dict):
            reading.wrong(path, f"{self.name} must be a table, not {shown(value)}")
            return None
        before = len(reading.problems)
        given, tried = {}, set()
        for key, item in value.items():
            reader = self.fields.get(key)
            if reader is not None:
                given[key] = reader(item, (*path, key), reading)
            else:
                tried.add(meant := self._meant(key))
                reading.wrong((*path, key), self._unknown(key, meant))
        for key in self.required:
            if key not in value and key not in tried:
                reading.wrong(path, f"{self.name} needs the field `{key}`")
        for within, sentence in self.check(given):
            reading.wrong((*path, *within), sentence)
        return self.make(**given) if len(reading.problems) == before else None

    def _meant(self, key: str) -> str | None:
        meant = self.meant.get(key)
        return meant if meant in self.fields else _closest(key, self.fields)

    def _unknown(self, key: str, meant: str | None) -> str:
        if meant is not None:
            return f"{self.name} has no field `{key}`; did you mean `{meant}`?"
        return f"{self.name} has no field `{key}`; {_listed(self.fields)}"


@dataclass(frozen=True)
class Tagged:
    """Reader of a table whose field `type` selects its other fields.

    Attributes:
        name: the name of such a table in messages, with its article.
        tables: the readers by type.
    """

    name: str
    tables: Mapping[str, Table]

    def __call__(self, value: Any, path: FieldPath, reading: Reading) -> Any:
        """Read a table."""
        if not isinstance(value, dict):
            example = next(iter(self.tables))
            reading.wrong(
                path, f'{self.name} is a table like {{ type = "{example}", … }}, not {shown(value)}'
            )
            return None
        others = {**value}
        tag = others.pop("type", None)
        if isinstance(tag, str) and tag in self.tables:
            return self.tables[tag](others, path, reading)
        if tag is None:
            reading.wrong(path, f"{self.name} needs the field `type`; {_listed(self.tables)}")
        else:
            reading.wrong((*path, "type"), _no_choice(tag, self.tables))
        return None


def shorthand(make: Callable[[str], Any], table: Reader) -> Reader:
    """Return a reader that accepts a table, or one text as a shorthand."""

    def read(value: Any, path: FieldPath, reading: Reading) -> Any:
        if isinstance(value, dict):
            return table(value, path, reading)
        if isinstance(value, str):
            return None if (found := string(value, path, reading)) is None else make(found)
        reading.wrong(path, f"expected text or a table, not {shown(value)}")
        return None

    return read


# ---- values


def array(item: Reader) -> Reader:
    """Return a reader of an array as a tuple."""

    def read(value: Any, path: FieldPath, reading: Reading) -> Any:
        if isinstance(value, list):
            return tuple([item(each, (*path, index), reading) for index, each in enumerate(value)])
        reading.wrong(path, f"expected an array, not {shown(value)}")
        return None

    return read


def string(value: Any, path: FieldPath, reading: Reading) -> str | None:
    """Read a text that can be encoded in UTF-8."""
    if not isinstance(value, str):
        reading.wrong(path, f"expected text, not {shown(value)}")
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        reading.wrong(path, "text contains a lone surrogate (not valid Unicode); remove it")
        return None
    return value


def text(value: Any, path: FieldPath, reading: Reading) -> str | None:
    """Read a text, or `{"$file": …}` for the text of a file."""
    if isinstance(value, dict) and value.keys() == {FILE}:
        found: str | None = _file(value[FILE], (*path, FILE), reading, reading.files.text)
        return found
    if isinstance(value, dict):
        reading.wrong(path, f'expected text or {{ "{FILE}" = "path" }}, not another table')
        return None
    return string(value, path, reading)


def boolean(value: Any, path: FieldPath, reading: Reading) -> bool | None:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    reading.wrong(path, f"expected true or false, not {shown(value)}")
    return None


def integer(least: int, most: int) -> Reader:
    """Return a reader of an integer within bounds."""

    def read(value: Any, path: FieldPath, reading: Reading) -> int | None:
        if not isinstance(value, int) or isinstance(value, bool):
            reading.wrong(path, f"expected a whole number, not {shown(value)}")
            return None
        return value if _within(value, least, most, path, reading) else None

    return read


def number(least: float, most: float) -> Reader:
    """Return a reader of a number within bounds, as a float."""

    def read(value: Any, path: FieldPath, reading: Reading) -> float | None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            reading.wrong(path, f"expected a number, not {shown(value)}")
            return None
        return float(value) if _within(value, least, most, path, reading) else None

    return read


def choice(choices: Mapping[str, Any]) -> Reader:
    """Return a reader that maps a word to its value."""

    def read(value: Any, path: FieldPath, reading: Reading) -> Any:
        if isinstance(value, str) and value in choices:
            return choices[value]
        reading.wrong(path, _no_choice(value, choices))
        return None

    return read


def json_value(value: Any, path: FieldPath, reading: Reading) -> Any:
    """Read a JSON value; tables with the key `$file` or `$json` are replaced by what they refer to."""
    if isinstance(value, dict) and value.keys() == {FILE}:
        return _plain(_file(value[FILE], (*path, FILE), reading, reading.files.value), path, reading)
    if isinstance(value, dict) and value.keys() == {JSON}:
        return _plain(_parsed(value[JSON], (*path, JSON), reading), path, reading)
    return _inside(value, path, reading, json_value)


def _plain(value: Any, path: FieldPath, reading: Reading) -> Any:
    """Read a JSON value without replacements."""
    return _inside(value, path, reading, _plain)


def _inside(value: Any, path: FieldPath, reading: Reading, read: Reader) -> Any:
    if isinstance(value, dict | list) and len(path) > _DEEPEST:
        reading.wrong(path, f"nested more than {_DEEPEST} levels deep")
    elif isinstance(value, dict):
        return {string(key, path, reading): read(item, (*path, key), reading) for key, item in value.items()}
    elif isinstance(value, list):
        return [read(item, (*path, index), reading) for index, item in enumerate(value)]
    elif isinstance(value, str):
        return string(value, path, reading)
    elif isinstance(value, float) and not math.isfinite(value):
        reading.wrong(path, f"{value} is not a JSON number")
    elif value is None or isinstance(value, bool | int | float):
        return value
    else:
        reading.wrong(path, f'JSON has no {type(value).__name__}; write it as text: "{value}"')
    return None


def _file(name: Any, path: FieldPath, reading: Reading, read: Callable[[str], Any]) -> Any:
    if string(name, path, reading) is None:
        return None
    try:
        return read(name)
    except FileError as error:
        reading.wrong(path, str(error))
        return None


def _parsed(value: Any, path: FieldPath, reading: Reading) -> Any:
    if string(value, path, reading) is None:
        return None
    try:
        return parse_json(value)
    except DocumentError as error:
        reading.wrong(path, f"{error.sentence} (line {error.place.line}, column {error.place.column} of it)")
        return None


# ---- words


def shown(value: Any) -> str:
    """Format a value for messages, shortened."""
    match value:
        case dict():
            return "a table"
        case list():
            return "an array"
        case str():
            cut = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
            return json.dumps(cut, ensure_ascii=False)
        case bool() | None:
            return json.dumps(value)
        case _:
            return f"{value}"[:_SHOWN]


def _within(value: float, least: float, most: float, path: FieldPath, reading: Reading) -> bool:
    if least <= value <= most:
        return True
    bounds = f"at least {least:g}" if most == math.inf else f"from {least} to {most}"
    reading.wrong(path, f"{shown(value)} is out of range; expected {bounds}")
    return False


def _no_choice(value: Any, choices: Iterable[str]) -> str:
    close = _closest(value, choices) if isinstance(value, str) else None
    way_out = f'did you mean "{close}"?' if close else _listed(choices)
    return f"{shown(value)} is not a valid choice; {way_out}"


def _closest(word: str, words: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(word, list(words), n=1)), None)


def _listed(words: Iterable[str]) -> str:
    """Return the valid words as the remedy of a message."""
    quoted = [f"`{word}`" for word in words]
    if len(quoted) < _SEVERAL:
        return f"use {quoted[0]}" if quoted else "no value is valid"
    return f"use {', '.join(quoted[:-1])} or {quoted[-1]}"

"""Schema of a script file: every table, its fields, and the constraints between them.

A reader converts one value and records its problems. After a problem it returns None and the reading
continues, so that an author sees all problems at once.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from peripety.engine.patterns.syntax import Pattern, PatternError, TextKind, TextPattern, parse_pattern
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.sources import (
    FieldPath,
    ScriptFileError,
    ScriptProblem,
    ScriptSyntaxError,
    parse_json,
)
from peripety.llmsim.script.types import (
    ClockMode,
    CountScope,
    Fault,
    Pace,
    RateLimit,
    Script,
    ScriptedCall,
    ScriptedUsage,
    ScriptResponse,
    ScriptRule,
    ScriptTurn,
)
from peripety.llmsim.types import SimStopReason
from peripety.llmsim.wire.base import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from peripety.llmsim.faults.kinds import FaultKind, FaultSetting
    from peripety.llmsim.script.sources import ReferencedFiles


FILE_KEY = "$file"
"""The only key of a table that refers to a file."""
JSON_KEY = "$json"
"""The only key of a table that holds JSON text, for values that TOML cannot express."""

_MAX_NESTING = 64
_MAX_SHOWN = 40
_MIN_LIST = 2


class ReadContext:
    """State while a document is read.

    Args:
        files: the files that it may refer to.

    Attributes:
        problems: the problems so far.
    """

    def __init__(self, files: ReferencedFiles) -> None:
        self.files = files
        self.problems: list[ScriptProblem] = []

    def add_problem(self, path: FieldPath, message: str) -> None:
        """Record a problem of a field."""
        self.problems.append(ScriptProblem(path, message))


class ValueReader(Protocol):
    """Converter of one value; returns None after recording a problem."""

    def __call__(self, value: Any, path: FieldPath, reading: ReadContext, /) -> Any: ...  # noqa: D102


# ---- tables


FieldProblem = tuple[FieldPath, str]
"""A problem of a field of a table: the path from the table, and a message."""


def _no_problems(_given: Mapping[str, Any]) -> Iterable[FieldProblem]:
    return ()


@dataclass(frozen=True)
class TableReader:
    """Reader of a table with known fields.

    Attributes:
        name: the name of such a table in messages, with its article.
        make: creates the value from the given fields.
        fields: the fields and their readers.
        required: the required fields.
        check: yields problems between fields; an invalid field is passed as None.
        aliases: common wrong names of a field.
    """

    name: str
    make: Callable[..., Any]
    fields: Mapping[str, ValueReader]
    required: tuple[str, ...] = ()
    check: Callable[[Mapping[str, Any]], Iterable[FieldProblem]] = _no_problems
    aliases: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, value: Any, path: FieldPath, reading: ReadContext) -> Any:
        """Read a table."""
        if not isinstance(value, dict):
            reading.add_problem(path, f"{self.name} must be a table, not {format_value(value)}")
            return None
        before = len(reading.problems)
        given, tried = {}, set()
        for key, item in value.items():
            reader = self.fields.get(key)
            if reader is not None:
                given[key] = reader(item, (*path, key), reading)
            else:
                tried.add(meant := self._suggest_field(key))
                reading.add_problem((*path, key), self._unknown_field_message(key, meant))
        for key in self.required:
            if key not in value and key not in tried:
                reading.add_problem(path, f"{self.name} needs the field `{key}`")
        for within, sentence in self.check(given):
            reading.add_problem((*path, *within), sentence)
        return self.make(**given) if len(reading.problems) == before else None

    def _suggest_field(self, key: str) -> str | None:
        meant = self.aliases.get(key)
        return meant if meant in self.fields else _closest_word(key, self.fields)

    def _unknown_field_message(self, key: str, meant: str | None) -> str:
        if meant is not None:
            return f"{self.name} has no field `{key}`; did you mean `{meant}`?"
        return f"{self.name} has no field `{key}`; {_list_choices(self.fields)}"


@dataclass(frozen=True)
class TaggedTableReader:
    """Reader of a table whose field `type` selects its other fields.

    Attributes:
        name: the name of such a table in messages, with its article.
        tables: the readers by type.
    """

    name: str
    tables: Mapping[str, TableReader]

    def __call__(self, value: Any, path: FieldPath, reading: ReadContext) -> Any:
        """Read a table."""
        if not isinstance(value, dict):
            example = next(iter(self.tables))
            reading.add_problem(
                path,
                f'{self.name} is a table like {{ type = "{example}", … }}, not {format_value(value)}',
            )
            return None
        others = {**value}
        tag = others.pop("type", None)
        if isinstance(tag, str) and tag in self.tables:
            return self.tables[tag](others, path, reading)
        if tag is None:
            reading.add_problem(path, f"{self.name} needs the field `type`; {_list_choices(self.tables)}")
        else:
            reading.add_problem((*path, "type"), _invalid_choice_message(tag, self.tables))
        return None


def shorthand_reader(make: Callable[[str], Any], table: ValueReader) -> ValueReader:
    """Return a reader that accepts a table, or one text as a shorthand."""

    def read(value: Any, path: FieldPath, reading: ReadContext) -> Any:
        if isinstance(value, dict):
            return table(value, path, reading)
        if isinstance(value, str):
            return None if (found := read_string(value, path, reading)) is None else make(found)
        reading.add_problem(path, f"expected text or a table, not {format_value(value)}")
        return None

    return read


# ---- values


def array_reader(item: ValueReader) -> ValueReader:
    """Return a reader of an array as a tuple."""

    def read(value: Any, path: FieldPath, reading: ReadContext) -> Any:
        if isinstance(value, list):
            return tuple([item(each, (*path, index), reading) for index, each in enumerate(value)])
        reading.add_problem(path, f"expected an array, not {format_value(value)}")
        return None

    return read


def read_string(value: Any, path: FieldPath, reading: ReadContext) -> str | None:
    """Read a text that can be encoded in UTF-8."""
    if not isinstance(value, str):
        reading.add_problem(path, f"expected text, not {format_value(value)}")
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        reading.add_problem(path, "text contains a lone surrogate (not valid Unicode); remove it")
        return None
    return value


def read_text(value: Any, path: FieldPath, reading: ReadContext) -> str | None:
    """Read a text, or `{"$file": …}` for the text of a file."""
    if isinstance(value, dict) and value.keys() == {FILE_KEY}:
        found: str | None = _read_file(value[FILE_KEY], (*path, FILE_KEY), reading, reading.files.read_text)
        return found
    if isinstance(value, dict):
        reading.add_problem(path, f'expected text or {{ "{FILE_KEY}" = "path" }}, not another table')
        return None
    return read_string(value, path, reading)


def read_boolean(value: Any, path: FieldPath, reading: ReadContext) -> bool | None:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    reading.add_problem(path, f"expected true or false, not {format_value(value)}")
    return None


def integer_reader(least: int, most: int) -> ValueReader:
    """Return a reader of an integer within bounds."""

    def read(value: Any, path: FieldPath, reading: ReadContext) -> int | None:
        if not isinstance(value, int) or isinstance(value, bool):
            reading.add_problem(path, f"expected a whole number, not {format_value(value)}")
            return None
        return value if _check_bounds(value, least, most, path, reading) else None

    return read


def number_reader(least: float, most: float) -> ValueReader:
    """Return a reader of a number within bounds, as a float."""

    def read(value: Any, path: FieldPath, reading: ReadContext) -> float | None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            reading.add_problem(path, f"expected a number, not {format_value(value)}")
            return None
        return float(value) if _check_bounds(value, least, most, path, reading) else None

    return read


def choice_reader(choices: Mapping[str, Any]) -> ValueReader:
    """Return a reader that maps a word to its value."""

    def read(value: Any, path: FieldPath, reading: ReadContext) -> Any:
        if isinstance(value, str) and value in choices:
            return choices[value]
        reading.add_problem(path, _invalid_choice_message(value, choices))
        return None

    return read


def read_json_value(value: Any, path: FieldPath, reading: ReadContext) -> Any:
    """Read a JSON value; tables with the key `$file` or `$json` are replaced by what they refer to."""
    if isinstance(value, dict) and value.keys() == {FILE_KEY}:
        return _read_plain_json(
            _read_file(value[FILE_KEY], (*path, FILE_KEY), reading, reading.files.read_value),
            path,
            reading,
        )
    if isinstance(value, dict) and value.keys() == {JSON_KEY}:
        return _read_plain_json(_parse_json_text(value[JSON_KEY], (*path, JSON_KEY), reading), path, reading)
    return _read_referenced(value, path, reading, read_json_value)


def _read_plain_json(value: Any, path: FieldPath, reading: ReadContext) -> Any:
    """Read a JSON value without replacements."""
    return _read_referenced(value, path, reading, _read_plain_json)


def _read_referenced(value: Any, path: FieldPath, reading: ReadContext, read: ValueReader) -> Any:
    if isinstance(value, dict | list) and len(path) > _MAX_NESTING:
        reading.add_problem(path, f"nested more than {_MAX_NESTING} levels deep")
    elif isinstance(value, dict):
        return {
            read_string(key, path, reading): read(item, (*path, key), reading) for key, item in value.items()
        }
    elif isinstance(value, list):
        return [read(item, (*path, index), reading) for index, item in enumerate(value)]
    elif isinstance(value, str):
        return read_string(value, path, reading)
    elif isinstance(value, float) and not math.isfinite(value):
        reading.add_problem(path, f"{value} is not a JSON number")
    elif value is None or isinstance(value, bool | int | float):
        return value
    else:
        reading.add_problem(path, f'JSON has no {type(value).__name__}; write it as text: "{value}"')
    return None


def _read_file(name: Any, path: FieldPath, reading: ReadContext, read: Callable[[str], Any]) -> Any:
    if read_string(name, path, reading) is None:
        return None
    try:
        return read(name)
    except ScriptFileError as error:
        reading.add_problem(path, str(error))
        return None


def _parse_json_text(value: Any, path: FieldPath, reading: ReadContext) -> Any:
    if read_string(value, path, reading) is None:
        return None
    try:
        return parse_json(value)
    except ScriptSyntaxError as error:
        reading.add_problem(
            path,
            f"{error.message} (line {error.position.line}, column {error.position.column} of it)",
        )
        return None


# ---- words


def format_value(value: Any) -> str:
    """Format a value for messages, shortened."""
    match value:
        case dict():
            return "a table"
        case list():
            return "an array"
        case str():
            cut = value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}…"
            return json.dumps(cut, ensure_ascii=False)
        case bool() | None:
            return json.dumps(value)
        case _:
            return f"{value}"[:_MAX_SHOWN]


def _check_bounds(value: float, least: float, most: float, path: FieldPath, reading: ReadContext) -> bool:
    if least <= value <= most:
        return True
    bounds = f"at least {least:g}" if most == math.inf else f"from {least} to {most}"
    reading.add_problem(path, f"{format_value(value)} is out of range; expected {bounds}")
    return False


def _invalid_choice_message(value: Any, choices: Iterable[str]) -> str:
    close = _closest_word(value, choices) if isinstance(value, str) else None
    way_out = f'did you mean "{close}"?' if close else _list_choices(choices)
    return f"{format_value(value)} is not a valid choice; {way_out}"


_SIMILAR = 0.65  # below, it is another word and not a typing error


def _closest_word(word: str, words: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(word, list(words), n=1, cutoff=_SIMILAR)), None)


def _list_choices(words: Iterable[str]) -> str:
    """Return the valid words as the remedy of a message."""
    quoted = [f"`{word}`" for word in words]
    if len(quoted) < _MIN_LIST:
        return f"use {quoted[0]}" if quoted else "no value is valid"
    return f"use {', '.join(quoted[:-1])} or {quoted[-1]}"


TEXT_FIELDS = {
    TextKind.CONTAINS: "text",
    TextKind.EXACT: "text",
    TextKind.REGEX: "pattern",
    TextKind.GLOB: "pattern",
}
"""The field with the text to match, by pattern type."""

UNBOUNDED = 2**31 - 1
"""The largest message index."""

_MAX_COUNT = 2**32 - 1
_MAX_SEED = 2**53 - 1
_DAY_MS = 24 * 60 * 60 * 1000
_MIN_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_TIME = datetime(3000, 1, 1, tzinfo=UTC)


# ---- patterns


def _pattern_reader(kind: TextKind) -> ValueReader:
    """Return a reader of regular expressions or globs."""

    def read(value: Any, path: FieldPath, reading: ReadContext) -> str | None:
        found = read_string(value, path, reading)
        if found is None:
            return None
        try:
            parse_pattern(TextPattern(kind, found))
        except PatternError as error:
            reading.add_problem(path, f"not a valid {kind}: {error.message}")
            return None
        return found

    return read


def _text_fields(kind: TextKind) -> dict[str, ValueReader]:
    if kind not in TEXT_FIELDS:
        return {}
    field = TEXT_FIELDS[kind]
    return {field: _pattern_reader(kind) if field == "pattern" else read_string, "ignore_case": read_boolean}


def _pattern_table(make: Callable[..., Any], others: Mapping[str, ValueReader]) -> TaggedTableReader:
    return TaggedTableReader(
        "a pattern",
        {
            kind.value: TableReader(
                f"the pattern type `{kind}`",
                partial(make, kind),
                {**_text_fields(kind), **others},
                required=tuple(_text_fields(kind))[:1],
                aliases={"text": "pattern", "pattern": "text"},
            )
            for kind in TextKind
        },
    )


def _make_text_pattern(
    kind: TextKind,
    *,
    text: str = "",
    pattern: str = "",
    ignore_case: bool = False,
) -> TextPattern:
    return TextPattern(kind, text or pattern, ignore_case)


def _make_pattern(
    kind: TextKind,
    *,
    model: TextPattern | None = None,
    tool_result: TextPattern | None = None,
    message_index: tuple[int, int] | None = None,
    **written: Any,
) -> Pattern:
    return Pattern(_make_text_pattern(kind, **written), model, tool_result, message_index)


def _read_model_pattern(value: Any, path: FieldPath, reading: ReadContext) -> TextPattern | None:
    if isinstance(value, str):
        glob = _pattern_reader(TextKind.GLOB)(value, path, reading)
        return None if glob is None else TextPattern(TextKind.GLOB, glob)
    found: TextPattern | None = _TEXT_PATTERN(value, path, reading)
    return found


def _read_message_index(value: Any, path: FieldPath, reading: ReadContext) -> tuple[int, int] | None:
    if isinstance(value, dict):
        bounds: tuple[int, int] | None = _RANGE(value, path, reading)
        return bounds
    index = _INDEX(value, path, reading)
    return None if index is None else (index, index)


def _check_range(given: Mapping[str, Any]) -> Iterator[FieldProblem]:
    low, high = given.get("from"), given.get("to")
    if low is not None and high is not None and low > high:
        yield ("from",), f"{low} is after `to`, which is {high}"


_INDEX = integer_reader(0, UNBOUNDED)
_RANGE = TableReader(
    "a range of message indices",
    lambda **given: (given.get("from", 0), given.get("to", UNBOUNDED)),
    {"from": _INDEX, "to": _INDEX},
    check=_check_range,
)
_TEXT_PATTERN = _pattern_table(_make_text_pattern, {})
_PATTERN = _pattern_table(
    _make_pattern,
    {
        "model": _read_model_pattern,
        "tool_result": shorthand_reader(partial(TextPattern, TextKind.CONTAINS), _TEXT_PATTERN),
        "message_index": _read_message_index,
    },
)


# ---- responses


def _response_fields(**given: Any) -> ScriptResponse:
    if "json" in given:
        given["text"] = compact_json(given.pop("json")).decode()
    return ScriptResponse(**given)


def _check_response(given: Mapping[str, Any]) -> Iterator[FieldProblem]:
    if "text" in given and "json" in given:
        yield ("json",), "`json` cannot be combined with `text`; remove one of them"
    for name in ("text", "json", "tool_calls"):
        if "refusal" in given and name in given:
            yield (name,), "a `refusal` cannot be combined with other content; remove one of them"
    if given.get("stop") is SimStopReason.TOOL_USE and "tool_calls" not in given:
        yield ("stop",), "stop reason `tool_use` needs `tool_calls`; add some"


def _check_usage(given: Mapping[str, Any]) -> Iterator[FieldProblem]:
    output, reasoning = given.get("output_tokens"), given.get("reasoning_tokens")
    if output is not None and reasoning is not None and reasoning > output:
        yield ("reasoning_tokens",), f"reasoning is a part of the output, which has {output}"


_COUNT = integer_reader(0, _MAX_COUNT)
_MS = integer_reader(0, _DAY_MS)

_PACE = TableReader(
    "a pace",
    Pace,
    {
        "first_token_ms": _MS,
        "tokens_per_second": number_reader(0.001, 1_000_000),
        "tokens_per_chunk": integer_reader(1, _MAX_COUNT),
        "jitter": number_reader(0, 1),
        "bytes_per_write": integer_reader(1, _MAX_COUNT),
    },
)
_CALL = TableReader(
    "a tool call",
    ScriptedCall,
    {"tool": read_string, "input": read_json_value},
    required=("tool",),
    aliases={"name": "tool", "args": "input", "arguments": "input"},
)
_USAGE = TableReader(
    "usage",
    ScriptedUsage,
    {
        "input_tokens": _COUNT,
        "output_tokens": _COUNT,
        "reasoning_tokens": _COUNT,
        "cache_read_tokens": _COUNT,
        "cache_write_tokens": _COUNT,
    },
    check=_check_usage,
)
_RESPONSE = shorthand_reader(
    ScriptResponse,
    TableReader(
        "a response",
        _response_fields,
        {
            "text": read_text,
            "json": read_json_value,
            "reasoning": read_text,
            "refusal": read_string,
            "tool_calls": array_reader(_CALL),
            "stop": choice_reader({stop.value: stop for stop in SimStopReason}),
            "usage": _USAGE,
            "delay_ms": _MS,
            "pace": _PACE,
        },
        check=_check_response,
        aliases={"content": "text", "$file": "text"},
    ),
)


# ---- failures


def _setting_reader(setting: FaultSetting) -> ValueReader:
    if setting.choices:
        return choice_reader({word: word for word in setting.choices})
    if setting.type is str:
        return read_string
    least = -_MAX_COUNT if setting.minimum is None else setting.minimum
    most = _MAX_COUNT if setting.maximum is None else setting.maximum
    return integer_reader(int(least), int(most)) if setting.type is int else number_reader(least, most)


def _make_fault(
    name: str,
    kind: FaultKind,
    *,
    times: int | None = None,
    of: int | None = None,
    probability: float | None = None,
    **settings: Any,
) -> Fault:
    return Fault(name, {**kind.default_settings, **settings}, times, of, probability)


def _check_occurrence(given: Mapping[str, Any]) -> Iterator[FieldProblem]:
    times, of = given.get("times"), given.get("of")
    if "of" in given and "times" not in given:
        yield ("of",), "`of` needs `times`, the number of failing matches; add it"
    elif times is not None and of is not None and times > of:
        yield ("times",), f"`times` {times} exceeds `of` {of}"
    if "probability" in given and "times" in given:
        yield ("probability",), "`probability` cannot be combined with `times`; remove one of them"


_OCCURRENCE: Mapping[str, ValueReader] = {
    "times": integer_reader(1, _MAX_COUNT),
    "of": integer_reader(1, _MAX_COUNT),
    "probability": number_reader(0, 1),
}
_FAILURE = TaggedTableReader(
    "a failure",
    {
        name: TableReader(
            f"the failure type `{name}`",
            partial(_make_fault, name, kind),
            {**{name: _setting_reader(setting) for name, setting in kind.settings.items()}, **_OCCURRENCE},
            check=_check_occurrence,
        )
        for name, kind in KINDS.items()
    },
)


# ---- rules


def _check_answer(given: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Yield the missing parts of a rule or a turn."""
    response: ScriptResponse | None = given.get("response")
    failure: Fault | None = given.get("failure")
    if "response" not in given and "failure" not in given:
        yield (), "the answer is missing; add `response`, `failure` or both"
    if failure is None:
        return
    kind = KINDS[failure.type]
    if kind.needs_tool_calls and response is not None and not response.tool_calls:
        yield ("failure",), f"`{failure.type}` needs tool calls; add `tool_calls` to the response"
    if "response" not in given and kind.needs_response:
        yield ("failure",), f"`{failure.type}` needs a response; add `response`"
    elif "response" not in given and (failure.times or failure.probability) is not None:
        yield ("failure",), "the failure does not always occur; add the `response` for the other matches"


_TURN = TableReader(
    "a turn",
    ScriptTurn,
    {"expect": _PATTERN, "response": _RESPONSE, "failure": _FAILURE},
    required=("expect",),
    check=_check_answer,
    aliases={"pattern": "expect"},
)
_RULE = TableReader(
    "a rule",
    ScriptRule,
    {
        "pattern": _PATTERN,
        "response": _RESPONSE,
        "failure": _FAILURE,
        "max_matches": _COUNT,
        "turns": array_reader(_TURN),
        "name": read_string,
    },
    required=("pattern",),
    check=_check_answer,
    aliases={"expect": "pattern", "match": "pattern", "reply": "response"},
)


# ---- the whole


def _read_api_key(value: Any, path: FieldPath, reading: ReadContext) -> str | None:
    if isinstance(value, str) and value and value.isascii() and value.isprintable():
        return value
    reading.add_problem(
        path,
        "an API key must be printable ASCII text",
    )  # the value is a secret and is not shown
    return None


def _read_time(value: Any, path: FieldPath, reading: ReadContext) -> datetime | None:
    example = "such as 2026-01-01T00:00:00Z"
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        reading.add_problem(path, f"expected a date and a time, {example}, not {format_value(value)}")
    elif moment.tzinfo is None:
        reading.add_problem(path, f"{format_value(value)} has no time zone; write one, {example}")
    elif not _MIN_TIME <= moment < _MAX_TIME:
        reading.add_problem(
            path,
            f"{format_value(value)} is out of range; expected the years {_MIN_TIME.year} to "
            f"{_MAX_TIME.year - 1}",
        )
    else:
        return moment
    return None


def _check_script(given: Mapping[str, Any]) -> Iterator[FieldProblem]:
    if given.get("clock") is ClockMode.REAL and "start" in given:
        yield ("start",), "`start` cannot be combined with a real clock; remove `start` or `clock`"
    names = Counter[str]()
    for index, rule in enumerate(given.get("responses") or ()):
        if rule is not None and rule.name is not None:
            names[rule.name] += 1
            if names[rule.name] > 1:
                yield (
                    ("responses", index, "name"),
                    f"another rule has the name {format_value(rule.name)} already",
                )


_LIMIT = TableReader(
    "a limit",
    RateLimit,
    {
        "models": _pattern_reader(TextKind.GLOB),
        "requests_per_minute": integer_reader(1, _MAX_COUNT),
        "tokens_per_minute": integer_reader(1, _MAX_COUNT),
        "input_tokens_per_minute": integer_reader(1, _MAX_COUNT),
        "output_tokens_per_minute": integer_reader(1, _MAX_COUNT),
        "concurrency": integer_reader(1, _MAX_COUNT),
    },
    aliases={"model": "models"},
)
_FIELDS = TableReader(
    "a script",
    Script,
    {
        "responses": array_reader(_RULE),
        "default_response": _RESPONSE,
        "failures": array_reader(_FAILURE),
        "limits": array_reader(_LIMIT),
        "keys": array_reader(_read_api_key),
        "pace": _PACE,
        "seed": integer_reader(0, _MAX_SEED),
        "clock": choice_reader({mode.value: mode for mode in ClockMode}),
        "start": _read_time,
        "counts": choice_reader({scope.value: scope for scope in CountScope}),
    },
    check=_check_script,
    aliases={"rules": "responses", "default": "default_response"},
)
_REMOVED_FIELDS = (
    "turns belong to their rule: make `expect` and `response` of a conversation's first turn the "
    "`pattern` and `response` of a rule in `responses`, and its other turns that rule's `turns`"
)


def read_script(document: Any, reading: ReadContext) -> Script | None:
    """Read a document; return None if it has problems."""
    if isinstance(document, dict) and "conversations" in document:
        reading.add_problem(("conversations",), _REMOVED_FIELDS)
        document = {name: value for name, value in document.items() if name != "conversations"}
    found: Script | None = _FIELDS(document, (), reading)
    return found if not reading.problems else None

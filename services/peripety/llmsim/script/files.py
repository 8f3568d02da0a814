"""Script files: loaded from TOML or JSON, written as TOML, or built in Python.

One error lists all problems of a script. `ScriptBuilder` uses the field names of script files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from peripety.engine.patterns.syntax import Pattern, TextKind, TextPattern
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.schema import FILE_KEY, JSON_KEY, TEXT_FIELDS, UNBOUNDED, ReadContext, read_script
from peripety.llmsim.script.sources import (
    ReferencedFiles,
    ScriptError,
    ScriptProblem,
    ScriptSyntaxError,
    SourcePositions,
    parse_json,
    parse_toml,
)
from peripety.llmsim.script.types import Fault, ScriptedCall, ScriptResponse
from peripety.llmsim.wire.base import compact_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from peripety.llmsim.script.types import Script


_FORMATS = {".toml": "toml", ".json": "json"}


def load_script(path: str | Path) -> Script:
    """Read a script file, `.toml` or `.json`, and the files it refers to.

    Raises:
        ScriptError: the file cannot be read or is not valid.
    """
    path = Path(path)
    try:
        source = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _whole_file_error(str(path), f"not UTF-8 text: invalid byte {error.start}") from None
    except OSError as error:
        raise _whole_file_error(str(path), f"cannot be read: {error.strerror or error}") from None
    if path.suffix not in _FORMATS:
        raise _whole_file_error(str(path), f"unknown suffix {path.suffix!r}; use .toml or .json")
    return parse_script(source, format=_FORMATS[path.suffix], base=path.parent, name=str(path))


def parse_script(
    source: str,
    *,
    format: str = "toml",  # noqa: A002 - the word for it
    base: Path | None = None,
    name: str = "script",
) -> Script:
    """Parse a script.

    Args:
        source: the text.
        format: `toml` or `json`.
        base: the directory of referenced files; None forbids references.
        name: the name of the text in messages.

    Raises:
        ScriptError: the text is not valid.
    """
    try:
        document = parse_toml(source) if format == "toml" else parse_json(source)
    except ScriptSyntaxError as error:
        raise ScriptError(name, [ScriptProblem((), error.message, error.position)]) from None
    reading = ReadContext(ReferencedFiles(base))
    found = read_script(document, reading)
    if found is None:
        places = SourcePositions(source, format=format)
        placed = [(places.position_of(problem.path), problem) for problem in reading.problems]
        placed.sort(key=itemgetter(0))
        raise ScriptError(name, [replace(problem, position=place) for place, problem in placed])
    return found


def script_from_document(document: Mapping[str, Any], *, name: str = "script") -> Script:
    """Convert the plain values of a script file to a script.

    Raises:
        ScriptError: a value is not valid.
    """
    reading = ReadContext(ReferencedFiles(None))
    found = read_script(document, reading)
    if found is None:
        raise ScriptError(name, reading.problems)
    return found


def _whole_file_error(name: str, sentence: str) -> ScriptError:
    return ScriptError(name, [ScriptProblem((), sentence)])


_PATTERN_FIELDS = frozenset({"ignore_case", "model", "tool_result", "message_index"})

ResponseSpec = str | Mapping[str, Any] | None
"""An answer as in a file: a text or a table; None if only a `failure` is given."""


class ScriptBuilder:
    """Fluent builder of a script, rule by rule.

    Values are those of a script file (text, numbers, dicts, lists), with the same meaning:

        ScriptBuilder()
            .respond_to("login", "Username?", max_matches=1)
            .then("Password?")
            .then(failure={"type": "auth_error"})
            .default_response("Say login.")
            .build()

    Args:
        fields: fields of the script itself, such as `seed`, `limits` or `pace`.
    """

    def __init__(self, **fields: Any) -> None:
        self._rules: list[dict[str, Any]] = []
        self._document: dict[str, Any] = {**fields, "responses": self._rules}

    def respond_to(self, text: str, response: ResponseSpec = None, **options: Any) -> Self:
        """Answer prompts that contain a text.

        Args:
            text: the text to find.
            response: the answer.
            options: other fields of the pattern (`model`, `tool_result`, `message_index`, `ignore_case`) and
                of the rule (`failure`, `max_matches`, `turns`, `name`).
        """
        return self._add_rule({"type": "contains", "text": text}, response, options)

    def respond_to_exact(self, text: str, response: ResponseSpec = None, **options: Any) -> Self:
        """Answer prompts that equal a text. See `respond_to`."""
        return self._add_rule({"type": "exact", "text": text}, response, options)

    def respond_to_regex(self, pattern: str, response: ResponseSpec = None, **options: Any) -> Self:
        """Answer prompts in which a regular expression is found. See `respond_to`."""
        return self._add_rule({"type": "regex", "pattern": pattern}, response, options)

    def respond_to_glob(self, pattern: str, response: ResponseSpec = None, **options: Any) -> Self:
        """Answer prompts that match a glob. See `respond_to`."""
        return self._add_rule({"type": "glob", "pattern": pattern}, response, options)

    def respond_to_any(self, response: ResponseSpec = None, **options: Any) -> Self:
        """Answer any prompt. See `respond_to`."""
        return self._add_rule({"type": "any"}, response, options)

    def turn(self, expect: str | Mapping[str, Any], response: ResponseSpec = None, **options: Any) -> Self:
        """Add a turn to the latest rule.

        Args:
            expect: the text that the next prompt must contain, or a pattern.
            response: the answer.
            options: other fields of the turn (`failure`).

        Raises:
            ValueError: no rule was added yet.
        """
        if not self._rules:
            raise ValueError("a turn follows a rule: call respond_to first")
        pattern = {"type": "contains", "text": expect} if isinstance(expect, str) else expect
        turn = {"expect": pattern, **_step_fields(response), **options}
        self._rules[-1].setdefault("turns", []).append(turn)
        return self

    def then(self, response: ResponseSpec = None, **options: Any) -> Self:
        """Add a turn for any prompt to the latest rule. See `turn`."""
        return self.turn({"type": "any"}, response, **options)

    def default_response(self, response: str | Mapping[str, Any]) -> Self:
        """Set the answer for prompts that no rule matches."""
        self._document["default_response"] = response
        return self

    def build(self) -> Script:
        """Build the script.

        Raises:
            ScriptError: a field is not valid; the message names it as in a file.
        """
        return script_from_document(self._document)

    def _add_rule(self, pattern: dict[str, Any], response: ResponseSpec, options: dict[str, Any]) -> Self:
        own = {name: options.pop(name) for name in _PATTERN_FIELDS & options.keys()}
        turns = [*options.pop("turns", ())]
        self._rules.append(
            {"pattern": {**pattern, **own}, **_step_fields(response), **options, "turns": turns},
        )
        return self


def _step_fields(response: ResponseSpec) -> dict[str, Any]:
    return {} if response is None else {"response": response}


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"[^'\x00-\x1f\x7f]+")
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
_ESCAPED_IN_LINES = re.compile(r'\\|"(?="")|"\Z|[\x00-\x08\x0b-\x1f\x7f]')
_MAX_INLINE = {"\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r", '"': r"\"", "\\": r"\\"}


def to_toml(document: Mapping[str, Any], *, sections: Collection[str] = ()) -> str:
    """Format a document as TOML.

    Args:
        document: tables of text, numbers, booleans, times, and arrays and tables of these.
        sections: keys whose tables, and arrays of tables, get headers of their own; others are inline.
    """
    return "".join(f"{line}\n" for line in _format_table((), document, sections)).lstrip("\n")


def _format_table(
    path: tuple[str, ...],
    table: Mapping[str, Any],
    sections: Collection[str],
) -> Iterator[str]:
    later = []
    for key, value in table.items():
        if key in sections and isinstance(value, dict):
            later.append((f"[{_format_header(path, key)}]", key, value))
        elif key in sections and isinstance(value, list):
            later.extend((f"[[{_format_header(path, key)}]]", key, item) for item in value)
        else:
            yield f"{_format_key(key)} = {_format_value(value, lines=True)}"
    for header, key, value in later:
        yield ""
        yield header
        yield from _format_table((*path, key), value, sections)


def _format_header(path: tuple[str, ...], key: str) -> str:
    return ".".join(map(_format_key, (*path, key)))


def _format_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _format_basic_string(key)


def _format_value(value: Any, *, lines: bool = False) -> str:
    match value:
        case str():
            return _format_text(value, lines=lines)
        case dict():
            return _format_inline_table(value)
        case list():
            return _format_array(value, lines=lines)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case int() | float():  # bool is a subclass of int and differs only in case
            return repr(value).lower()
    raise TypeError(f"TOML has no {type(value).__name__}")


def _format_array(items: list[Any], *, lines: bool) -> str:
    if lines and any(isinstance(item, dict) for item in items):
        return "".join(["[\n", *(f"    {_format_value(item)},\n" for item in items), "]"])
    return f"[{', '.join(map(_format_value, items))}]"


def _format_inline_table(table: Mapping[str, Any]) -> str:
    fields = ", ".join(f"{_format_key(key)} = {_format_value(value)}" for key, value in table.items())
    return f"{{ {fields} }}" if fields else "{}"


def _format_text(text: str, *, lines: bool) -> str:
    if lines and "\n" in text:
        return f'"""\n{_ESCAPED_IN_LINES.sub(_escape, text)}"""'
    if ("\\" in text or '"' in text) and _LITERAL.fullmatch(text):
        return f"'{text}'"
    return _format_basic_string(text)


def _format_basic_string(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _MAX_INLINE.get(character) or f"\\u{ord(character):04x}"


_SECTIONS = frozenset({"responses", "turns", "response", "default_response", "failures", "limits"})


def write_script(script: Script) -> str:
    """Format a script as TOML that reads back as the same script. Referenced files become values."""
    return to_toml(script_to_document(script), sections=_SECTIONS)


def script_to_document(script: Script) -> dict[str, Any]:
    """Return a script as the plain values of its file, without defaults."""
    document = dict(_non_default_fields(script))
    rules = document.pop("responses", [])
    return {**document, "responses": rules}  # the long part comes last


def _non_default_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a value that differ from their defaults."""
    for field in fields(value):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if (given := getattr(value, field.name)) != default:
            yield field.name, _to_plain(given)


def _to_plain(value: Any) -> Any:
    plain: Any
    match value:
        case Pattern():
            plain = _pattern_to_plain(value)
        case ScriptResponse():
            given = dict(_non_default_fields(value))
            plain = given if given.keys() - {"text"} else value.text
        case ScriptedCall():
            plain = {"tool": value.tool, "input": _to_json_input(value.input)}
        case Fault():
            plain = _fault_to_plain(value)
        case tuple():
            plain = [_to_plain(item) for item in value]
        case StrEnum():
            plain = value.value
        case _ if is_dataclass(value):
            plain = dict(_non_default_fields(value))
        case _:
            plain = value
    return plain


def _pattern_to_plain(pattern: Pattern) -> dict[str, Any]:
    plain = _text_pattern_to_plain(pattern.text)
    if pattern.model is not None:
        plain["model"] = _shorthand_pattern(pattern.model, TextKind.GLOB)
    if pattern.tool_result is not None:
        plain["tool_result"] = _shorthand_pattern(pattern.tool_result, TextKind.CONTAINS)
    if pattern.message_index is not None:
        plain["message_index"] = _range_to_plain(*pattern.message_index)
    return plain


def _range_to_plain(low: int, high: int) -> int | dict[str, int]:
    if low == high:
        return low
    return ({"from": low} if low > 0 else {}) | ({"to": high} if high < UNBOUNDED else {})


def _text_pattern_to_plain(pattern: TextPattern) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": pattern.kind.value}
    if pattern.kind is not TextKind.ANY:
        plain[TEXT_FIELDS[pattern.kind]] = pattern.text
    if pattern.ignore_case:
        plain["ignore_case"] = True
    return plain


def _shorthand_pattern(pattern: TextPattern, kind: TextKind) -> str | dict[str, Any]:
    return pattern.text if pattern == TextPattern(kind, pattern.text) else _text_pattern_to_plain(pattern)


def _fault_to_plain(failure: Fault) -> dict[str, Any]:
    defaults = KINDS[failure.type].default_settings
    settings = {name: value for name, value in failure.settings.items() if value != defaults[name]}
    occurrence = {
        name: value for name, value in _non_default_fields(failure) if name not in {"type", "settings"}
    }
    return {"type": failure.type, **settings, **occurrence}


def _to_json_input(value: Any) -> Any:
    """Return a JSON value, as JSON text if TOML cannot express it or would be ambiguous."""
    return {JSON_KEY: compact_json(value).decode()} if _needs_json(value) else value


def _needs_json(value: Any) -> bool:
    match value:
        case None:
            return True
        case dict():
            return value.keys() in ({FILE_KEY}, {JSON_KEY}) or any(map(_needs_json, value.values()))
        case list():
            return any(map(_needs_json, value))
        case _:
            return False

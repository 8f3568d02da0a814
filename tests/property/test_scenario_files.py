"""Scenario files with any content: fields are located correctly; written files can be read again."""

from __future__ import annotations

import json
import tomllib
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from peripety.engine.patterns.syntax import Pattern, TextKind, TextPattern
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.files import (
    parse_script,
    script_from_document,
    script_to_document,
    to_toml,
    write_script,
)
from peripety.llmsim.script.sources import ScriptError, SourcePositions
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.llmsim.script.sources import FieldPath, SourcePosition


# ---- documents

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "",
        '"',
        '""',
        '"""',
        '""""x""""',
        "'''",
        "\\",
        "\\n",
        "a\nb",
        "a\r\nb\r",
        "[x]",
        "{",
        "}",
        "# no",
        "a = 1",
        "\0\x7f",
    ],
)
keys = texts | st.sampled_from(["a", "b-c", "d_1", "e.f", "1", "true", "$file"])
scalars = (
    texts | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)


values = st.recursive(scalars, containers, max_leaves=12)
documents = st.dictionaries(keys, values, max_size=5)


def fields(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    if path:
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield from fields(inner, (*path, step))


def following(text: str, place: SourcePosition) -> str:
    lines = text.split("\n")
    return "\n".join(lines[place.line - 1 :])[place.column - 1 :]


# ---- where fields stand


@given(documents, st.sampled_from([None, 0, 1, 4]), st.booleans())
def test_every_field_of_a_json_text_is_found_where_it_is(
    document: dict[str, Any],
    indent: int | None,
    ascii_only: bool,
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    places = SourcePositions(text, format="json")
    decoder = json.JSONDecoder()
    for path, value in fields(document):
        rest = following(text, places.position_of(path))
        if isinstance(path[-1], str):
            key, end = decoder.raw_decode(rest)
            assert key == path[-1]
            rest = rest[end:].lstrip().removeprefix(":").lstrip()
        assert decoder.raw_decode(rest)[0] == value


class Writer:
    """Writes TOML in every way there is, and notes in which line each field begins."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.text = ""
        self.lines: dict[FieldPath, int] = {}

    def note(self, path: FieldPath) -> None:
        self.lines.setdefault(path, self.text.count("\n") + 1)

    def any_of(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def gap(self) -> None:
        self.text += self.any_of("\n", "\n\n", " # a comment with = [ \" ' }\n", "\t\r\n")

    def key(self, key: str) -> None:
        bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
        literal = key.isprintable() and "'" not in key
        self.text += self.any_of(json_text(key), *([key] if bare else []), *([f"'{key}'"] if literal else []))
        self.text += self.any_of("", " ")

    def string(self, text: str) -> None:
        forms = [json_text(text)]
        if "\\" not in text:
            forms.append('"""\n' + json_text(text)[1:-1].replace("\\n", "\n") + '"""')
        if text.isprintable() and "'" not in text:
            forms += [f"'{text}'", f"'''{text}'''"]
        self.text += self.any_of(*forms)

    def value(self, value: Any, path: FieldPath) -> None:
        match value:
            case str():
                self.string(value)
            case list():
                self.text += "["
                for index, item in enumerate(value):
                    self.text += self.any_of("", " ", "\n", "# x ]\n")
                    self.note((*path, index))
                    self.value(item, (*path, index))
                    self.text += self.any_of(",", " , ", ",\n")
                self.text += "]"
            case dict():
                self.text += "{"
                for number, (key, item) in enumerate(value.items()):
                    self.text += ", " if number else " "
                    self.note((*path, key))
                    self.key(key)
                    self.text += "= "
                    self.value(item, (*path, key))
                self.text += " }"
            case _:
                self.text += repr(value).lower()

    def table(self, table: dict[str, Any], path: FieldPath, header: tuple[str, ...]) -> None:
        later = []
        for key, value in table.items():
            headed = isinstance(value, dict) or (
                isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
            )
            if headed and self.draw(st.booleans()):
                later.append((key, value))
                continue
            self.text += self.any_of("", "  ")
            self.note((*path, key))
            if isinstance(value, dict) and len(value) == 1:
                ((inner, item),) = value.items()
                self.key(key)
                self.text += "."
                self.note((*path, key, inner))
                self.key(inner)
                self.text += "="
                self.value(item, (*path, key, inner))
            else:
                self.key(key)
                self.text += "= "
                self.value(value, (*path, key))
            self.gap()
        for key, value in later:
            for index, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
                own = (*path, key) if index is None else (*path, key, index)
                self.note((*path, key))
                self.note(own)
                opening, closing = ("[", "]") if index is None else ("[[", "]]")
                self.text += opening
                for number, step in enumerate((*header, key)):
                    self.text += "." if number else ""
                    self.key(step)
                self.text += closing
                self.gap()
                self.table(item, own, (*header, key))


def json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@st.composite
def toml_texts(draw: st.DrawFn) -> tuple[dict[str, Any], str, dict[FieldPath, int]]:
    document = draw(documents)
    writer = Writer(draw)
    writer.table(document, (), ())
    return document, writer.text, writer.lines


@given(toml_texts())
def test_every_field_of_a_toml_text_is_found_in_its_line(
    written: tuple[dict[str, Any], str, dict[FieldPath, int]],
) -> None:
    document, text, lines = written
    assert tomllib.loads(text) == document
    places = SourcePositions(text, format="toml")
    assert {path: places.position_of(path).line for path, _ in fields(document)} == lines


# ---- what is written


@given(documents)
def test_plain_values_written_as_toml_are_read_again(document: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(document)) == document


counts = st.integers(0, 2**32 - 1)
text_patterns = st.one_of(
    st.just(TextPattern(TextKind.ANY)),
    st.builds(TextPattern, st.sampled_from([TextKind.EXACT, TextKind.CONTAINS]), texts, st.booleans()),
    st.builds(
        TextPattern,
        st.sampled_from([TextKind.REGEX, TextKind.GLOB]),
        st.sampled_from(["a", "[a-c]x", "a\\\\b", "'\"é", "a?b*"]),
        st.booleans(),
    ),
)
ranges = st.tuples(st.integers(0, 5), st.integers(0, 2**31 - 6)).map(lambda pair: (pair[0], sum(pair)))
patterns = st.builds(
    Pattern,
    text_patterns,
    st.none() | text_patterns,
    st.none() | text_patterns,
    st.none() | ranges,
)
json_values = st.recursive(scalars | st.none(), containers, max_leaves=8)
paces = st.builds(
    Pace,
    st.integers(0, 10**6),
    st.none() | st.floats(0.001, 10**6),
    st.integers(1, 100),
    st.floats(0, 1),
    st.none() | st.integers(1, 100),
)
usages = st.builds(
    ScriptedUsage,
    *[st.none() | counts] * 2,
    st.just(None),
    *[st.none() | counts] * 2,
) | st.builds(ScriptedUsage, st.none(), st.just(9), st.none() | st.integers(0, 9))
calls = st.lists(st.builds(ScriptedCall, texts, json_values), min_size=1, max_size=2).map(tuple)
spoken = st.builds(
    ScriptResponse,
    texts,
    texts,
    st.none(),
    calls,
    st.none() | st.sampled_from(SimStopReason),
    st.none() | usages,
    st.integers(0, 10**6),
    st.none() | paces,
)
responses = (
    st.builds(ScriptResponse, texts)
    | spoken
    | st.builds(ScriptResponse, reasoning=texts, refusal=texts, delay_ms=st.integers(0, 9))
)


@st.composite
def failures(draw: st.DrawFn) -> Fault:
    name = draw(st.sampled_from(sorted(KINDS)))
    settings = KINDS[name].default_settings
    for setting, about in KINDS[name].settings.items():
        if about.choices:
            settings[setting] = draw(st.sampled_from(about.choices))
        elif about.type is str:
            settings[setting] = draw(texts)
        elif about.type is float:
            settings[setting] = draw(st.floats(0, 10**6))
        else:
            settings[setting] = draw(st.integers(int(about.minimum or 0), int(about.maximum or 10**6)))
    times, of, probability = draw(
        st.sampled_from([(None, None, None), (3, None, None), (3, 10, None), (None, None, 0.25)]),
    )
    return Fault(name, settings, times, of, probability)


always_failing = st.sampled_from([name for name, kind in KINDS.items() if not kind.needs_response]).map(
    lambda name: Fault(name, KINDS[name].default_settings),
)
steps = st.tuples(responses, st.none()) | st.tuples(spoken, failures()) | st.tuples(st.none(), always_failing)
turns = st.tuples(patterns, steps).map(lambda drawn: ScriptTurn(drawn[0], *drawn[1]))
rules = st.builds(
    lambda turn, count, turns, name: ScriptRule(turn.expect, turn.response, turn.failure, count, turns, name),
    turns,
    st.none() | counts,
    st.lists(turns, max_size=2).map(tuple),
    st.none() | texts,
)
limits = st.builds(RateLimit, st.sampled_from(["*", "m-[ab]"]), *[st.none() | st.integers(1, 10**6)] * 5)
moments = st.builds(
    lambda seconds, micros: (
        datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=micros)
    ),
    st.integers(0, 10**9 * 5),
    st.integers(0, 999_999),
)


def _name_or_object(rule: ScriptRule) -> object:
    """The name of a rule, which no other rule of the script has. Any number of rules have no name."""
    return object() if rule.name is None else rule.name


@st.composite
def scenarios(draw: st.DrawFn) -> Script:
    clock = draw(st.sampled_from(ClockMode))
    return Script(
        draw(st.lists(rules, max_size=3, unique_by=_name_or_object).map(tuple)),
        draw(st.none() | responses),
        draw(st.lists(failures(), max_size=2).map(tuple)),
        draw(st.lists(limits, max_size=2).map(tuple)),
        draw(st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1)).map(tuple)),
        draw(paces),
        draw(st.integers(0, 2**53 - 1)),
        clock,
        Script().start if clock is ClockMode.REAL else draw(moments),
        draw(st.sampled_from(CountScope)),
    )


@given(scenarios())
def test_a_scenario_that_is_written_is_read_again(scenario: Script) -> None:
    assert parse_script(write_script(scenario)) == scenario
    document = script_to_document(scenario)
    assert script_from_document(document) == scenario


@given(values)
def test_a_document_is_read_or_refused_and_nothing_else(value: Any) -> None:
    for document in (value, {"responses": value}, {"responses": [value]}, {"default_response": value}):
        with suppress(ScriptError):
            parse_script(json.dumps(document), format="json")

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.gateway.structured_output.incremental_json import StringFieldReader

FIELD = "narrative"
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\{}[],:\n\t\u2028😀'),
    max_size=20,
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.just(FIELD), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.builds(
    lambda before, text, after: {
        **{f"b{key}": value for key, value in before.items()},
        FIELD: text,
        **{f"a{key}": value for key, value in after.items()},
    },
    st.dictionaries(TEXTS, VALUES, max_size=3),
    TEXTS,
    st.dictionaries(TEXTS, VALUES, max_size=3),
)


def read(*chunks: str) -> str:
    reader = StringFieldReader(FIELD)
    return "".join(reader.feed(chunk) for chunk in chunks)


@given(OBJECTS, st.booleans(), st.sampled_from([None, 2]), st.data())
def test_any_split_releases_the_field_and_nothing_else(
    document: Any,
    ascii_only: bool,
    indent: int | None,
    data: st.DataObject,
) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    first, second = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    assert read(text[:first], text[first:second], text[second:]) == document[FIELD]
    assert read(*text) == document[FIELD]


@pytest.mark.parametrize("ascii_only", [True, False])
def test_every_split_into_three_releases_the_same(ascii_only: bool) -> None:
    value = 'a"\\/\n\u2028é😀'
    text = json.dumps({"x": {FIELD: ["}"]}, "n": -1.5e3, FIELD: value, "z": None}, ensure_ascii=ascii_only)
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            assert read(text[:first], text[first:second], text[second:]) == value


@given(OBJECTS)
def test_what_is_released_only_ever_grows_towards_the_value(document: Any) -> None:
    reader, released = StringFieldReader(FIELD), ""
    for character in json.dumps(document):
        released += reader.feed(character)
        assert document[FIELD].startswith(released)


def test_text_is_released_while_it_is_written() -> None:
    reader = StringFieldReader(FIELD)
    assert reader.feed('{"narrative": "one') == "one"
    assert reader.feed(" two") == " two"


def test_half_an_escape_is_held_back() -> None:
    reader = StringFieldReader(FIELD)
    assert reader.feed('{"narrative": "a\\ud83d') == "a"
    assert reader.feed("\\ude0") == ""
    assert reader.feed("0b") == "😀b"


def test_prose_and_fences_before_the_object_are_skipped() -> None:
    assert read('Here it is:\n```json\n{"narrative": "x"}\n```') == "x"


def test_a_field_of_a_nested_object_is_another_field() -> None:
    assert read('{"a": {"narrative": "no"}, "b": [{"narrative": "no"}], "narrative": "yes"}') == "yes"


def test_a_name_written_with_escapes_is_the_same_name() -> None:
    assert read('{"narr\\u0061tive": "x"}') == "x"


def test_a_field_that_is_no_string_releases_nothing() -> None:
    assert read('{"narrative": ["x"], "a": "y"}') == ""


@pytest.mark.parametrize(
    ("text", "released"),
    [
        ('{"narrative": "ab\ncd"}', "ab"),
        ('{"narrative": "ab\\xcd"}', "ab"),
        ('{"narrative": "ab\\u12g4"}', "ab"),
        ('{"narrative": "ab\\ud83dcd"}', "ab"),
        ('{"narrative": "ab\\ud83d\\n"}', "ab"),
        ('{"narrative": "ab\\ud83d"}', "ab"),
        ('{"narrative": "ab\\ude00"}', "ab"),
        ('{"narrative" "ab"}', ""),
        ('{narrative: "ab"}', ""),
        ('{"a: "narrative": "b", "c": "d"}', ""),
        ('{"a": 1 "narrative": "b"}', ""),
        ('{"a": 1, , "narrative": "b"}', ""),
        ('{}, {"narrative": "b"}', ""),
    ],
)
def test_text_that_is_not_json_falls_silent(text: str, released: str) -> None:
    assert read(*text) == released


def test_the_work_is_linear_in_the_text() -> None:
    def seconds(length: int) -> float:
        chunks = ['{"narrative": "', *["\\u00e9\\n"] * length]
        started = time.process_time()
        read(*chunks)
        return time.process_time() - started

    seconds(1_000)
    assert seconds(80_000) < 40 * max(seconds(8_000), 0.005)


def test_a_field_has_begun_when_its_text_opens_and_not_before() -> None:
    reader = StringFieldReader(FIELD)
    begun = []
    for piece in ('{"before": {"narrative": "no"}, ', '"narrative": ', '"', "One"):
        reader.feed(piece)
        begun.append(reader.has_started)
    assert begun == [False, False, True, True]

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.gateway.structured_output.incremental_json import GrowingValue, ObjectReader, StringFieldReader
from support.gateway.corruptions import begins


def elements(*pieces: str) -> list[str]:
    reader = ObjectReader(in_array=True)
    return [whole for piece in pieces for whole in reader.feed(piece)]


def whole(*pieces: str) -> list[str]:
    reader = ObjectReader(in_array=False)
    return [found for piece in pieces for found in reader.feed(piece)]


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1}, {"b": "]}"}]',
        '{"list": [{"a": 1}, {"b": "]}"}]}',
        'Prose [1] and more {first}:\n```json\n[ {"a": 1},\n{"b": "]}"} ]\n```',
        '[{"a": 1}, {"b": "]}"}',
    ],
)
def test_the_elements_of_the_first_array_of_objects_are_found_wherever_it_stands(text: str) -> None:
    assert elements(text) == ['{"a": 1}', '{"b": "]}"}']
    assert elements(*text) == ['{"a": 1}', '{"b": "]}"}']


def test_an_element_is_there_with_its_last_bracket() -> None:
    reader = ObjectReader(in_array=True)
    assert reader.feed('[{"a": {"b": "\\"}"}') == []
    assert reader.incomplete_object == '{"a": {"b": "\\"}"}'
    assert reader.feed("}") == ['{"a": {"b": "\\"}"}}']
    assert reader.incomplete_object == ""


def test_what_comes_behind_the_array_is_not_looked_at() -> None:
    assert elements('[{"a": 1}] and [{"b": 2}]') == ['{"a": 1}']
    assert elements("[] and [{}]") == []


def test_one_object_is_found_in_prose() -> None:
    assert whole("It is ", '{"a"', ": [1]}", ' {"b": 2}') == ['{"a": [1]}']


def test_an_object_that_is_no_json_spoils_no_other() -> None:
    assert elements('[{"a": oops, "b" 1}, {"c": 3}]') == ['{"a": oops, "b" 1}', '{"c": 3}']


def test_the_work_is_linear_however_a_text_is_cut() -> None:
    def seconds(count: int) -> float:
        text = json.dumps([{"a": "x" * 20 + '"\\' * 3} for _ in range(count)])
        began = time.process_time()
        assert len(elements(*text)) == count
        return time.process_time() - began

    assert seconds(4_000) < 12 * max(seconds(1_000), 0.01)


ANYTHING: dict[str, Any] = {}
SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "array", "items": {"$ref": "#/$defs/item"}},
        "c": {"type": ["string", "null"]},
    },
    "required": ["a"],
    "additionalProperties": False,
    "$defs": {"item": {"type": "object", "properties": {"name": {"type": "string"}}}},
}
VALUE: dict[str, Any] = {"a": 7, "b": [{"name": f"item, {number}: {{}}"} for number in range(30)], "c": None}


def shown(text: str, size: int = 1, schema: dict[str, Any] = ANYTHING) -> list[Any]:
    growing = GrowingValue(schema)
    looks = (growing.feed(text[start : start + size]) for start in range(0, len(text), size))
    return [look for look in looks if look is not None]


@given(st.lists(st.integers(-(10**9), 10**9), min_size=20), st.integers(1, 40))
def test_what_is_shown_is_complete(numbers: list[int], size: int) -> None:
    values = shown(json.dumps({"a": numbers}), size)
    assert values
    for value in values:
        assert isinstance(value, dict)
        seen = value.get("a", [])
        assert seen == numbers[: len(seen)]


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
@pytest.mark.parametrize(
    "text",
    [
        json.dumps(VALUE),
        json.dumps(VALUE, indent=2),
        f"```json\n{json.dumps(VALUE)}\n```",
        f"Of course [as you {{wish}}] :[ here:\n\n{json.dumps(VALUE)}\nAnything else?",
        f'It is no {{"d": 1}} and no [1], but {json.dumps(VALUE)}',
        str(VALUE),
        "\ufeff// first\n" + json.dumps(VALUE)[:-1] + ", /* last */ }",
    ],
    ids=["plain", "indented", "fenced", "in prose", "behind other documents", "Python", "commented"],
)
def test_every_look_has_all_of_the_one_before_and_nothing_that_the_whole_has_not(
    text: str,
    size: int,
) -> None:
    looks = shown(text, size, SCHEMA)
    assert looks or size == 10_000
    for earlier, later in zip(looks, [*looks[1:], VALUE], strict=True):
        assert begins(earlier, later)
        assert earlier != later or later == VALUE


def test_the_first_value_is_shown_as_soon_as_it_is_whole() -> None:
    assert shown('{"a": 1, "b": [{"name": "n')[0] == {"a": 1, "b": [{}]}


def test_long_values_are_shown_more_than_once_and_growing() -> None:
    looks = shown(json.dumps({"a": [f"item {number}" for number in range(200)]}), 10)
    lengths = [len(look.get("a", [])) for look in looks]
    assert lengths == sorted(set(lengths))
    assert 5 < len(lengths) < 60


def test_what_is_shown_together_is_a_few_times_the_whole_however_small_the_pieces() -> None:
    text = json.dumps(VALUE | {"b": VALUE["b"] * 50})
    started = time.process_time()
    looks = shown(text, 1, SCHEMA)
    assert sum(len(json.dumps(look)) for look in looks) < 6 * len(text)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "seven", "c": "a text that goes on and on"',
        '{"d": 7, "c": "a text that goes on and on"',
        '[{"a": 7, "c": "a text that goes on and on"',
        '{"a": 7.5, "c": "a text that goes on and on"',
        '{"b": [{"name": 7}, {"name": "a text that goes on"',
        '{"a": NaN, "c": "a text that goes on and on"',
        '{"c": "a text", "c": "a text that goes on", "b": []',
        "no value here, " * 50,
    ],
)
def test_nothing_is_shown_of_what_cannot_become_valid(text: str) -> None:
    assert shown(text + " " * 64, 64, SCHEMA) == []


def test_what_was_shown_is_not_taken_back_for_another_document() -> None:
    looks = shown('{"a": 7, "c": "first"} is wrong, {"a": 8, "c": "second"} is right' + " " * 50, 1, SCHEMA)
    assert looks[-1] == {"a": 7, "c": "first"}


def test_a_null_is_shown_only_where_the_schema_names_it() -> None:
    looks = shown(
        '{"c": null, "a": 7, "b": null, "d": null, "e": 1',
        47,
        SCHEMA | {"additionalProperties": {}},
    )
    assert looks == [{"c": None, "a": 7}]


def test_half_a_number_is_never_shown() -> None:
    assert all(look["a"] in ([], [123456]) for look in shown('{"a": [123456], "b": "a text to go on"}'))


def test_a_string_counts_when_something_follows_it() -> None:
    assert all("a" not in look for look in shown('{"a": "one "two" three four five"', 1, {"type": "object"}))


def test_after_a_restart_another_value_is_shown() -> None:
    growing = GrowingValue(SCHEMA)
    assert growing.feed('{"a": 1, "c": "a text"}') == {"a": 1, "c": "a text"}
    growing.restart()
    assert growing.feed('{"a": 2, "c": "another"}') == {"a": 2, "c": "another"}


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

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.gateway.structured_output.incremental_json import GrowingValue
from support.gateway.corruptions import begins

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

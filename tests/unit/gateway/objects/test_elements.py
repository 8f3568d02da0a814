from __future__ import annotations

import json
import time

import pytest

from peripety.gateway.structured_output.incremental_json import ObjectReader


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

from __future__ import annotations

from typing import Any

import pytest

from peripety.testgen.prompts.stream_parser import UnreadablePart, parse_draft, parse_object
from peripety.testgen.types import DraftTest


def draft(**fields: Any) -> DraftTest:
    found = parse_draft({"id": "a", "input": "i", **fields})
    assert isinstance(found, DraftTest)
    return found


@pytest.mark.parametrize("text", ["null", "None", " NULL ", None])
def test_a_null_that_is_written_as_a_word_is_null(text: str | None) -> None:
    assert draft(expected_output=text).expected_output is None


def test_an_expectation_in_quotes_of_its_own_is_meant_without_them() -> None:
    assert draft(expected_output='"4 \\"and\\" 5"').expected_output == '4 "and" 5'
    assert draft(expected_output='say "4"').expected_output == 'say "4"'


def test_quotes_stay_where_output_is_compared_exactly() -> None:
    assert draft(expected_output='"4"', body={"stdin": ""}).expected_output == '"4"'


def test_numbers_and_objects_become_their_json() -> None:
    found = draft(input={"b": [1, "é"]}, expected_output=4, reasoning=None)
    assert (found.input, found.expected_output, found.reasoning) == ('{"b":[1,"é"]}', "4", "")


@pytest.mark.parametrize(
    ("given", "read"),
    [(0.25, 0.25), ("0.25", 0.25), (7, 1), (-1, 0), ("high", 0.5), (None, 0.5)],
)
def test_a_confidence_is_kept_within_its_bounds(given: Any, read: float) -> None:
    assert draft(confidence=given).confidence == read


def test_both_spellings_of_the_expectation_are_read() -> None:
    assert draft(expectedOutput="x").expected_output == "x"


def test_a_body_may_come_as_text() -> None:
    assert draft(body='{"arguments": ["a"]}').body == {"arguments": ["a"]}
    assert draft(body="null").body is None
    assert draft(body="").body is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "it is not an object"),
        ({}, "it has no input"),
        ({"input": "  "}, "it has no input"),
        ({"input": "i", "body": "run it"}, "its body is not an object"),
        ({"input": "i", "body": [1]}, "its body is not an object"),
    ],
)
def test_what_is_no_test_says_why(value: Any, reason: str) -> None:
    assert parse_draft(value) == UnreadablePart(reason)


def test_slips_of_json_are_put_right_and_nothing_is_guessed() -> None:
    found = parse_object('{\'id\': \'a\', "input": "i", "expected_output": None,}')
    assert found == DraftTest("a", "i")
    broken = parse_object('{"id": "a", "input": }')
    assert isinstance(broken, UnreadablePart)
    assert broken.reason.startswith("it is not JSON")

from __future__ import annotations

import re

import pytest

from peripety.testgen.subjects.command.baseline.values import iterate_matches, iterate_near_misses

VERSION = r"^(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9a-z]+(?:\.[0-9a-z]+)*))?$"


@pytest.mark.parametrize(
    "pattern",
    [
        VERSION,
        r"(?i)(octop|vir)i$",
        r"[^aeiou]y$",
        r"(a)\1{2,}",
        r"x*?y+",
        r"(?P<n>\d{3}) \w",
        "a.c",
        r"\bno\b",
    ],
)
def test_each_text_matches_and_no_two_are_equal(pattern: str) -> None:
    texts = [*iterate_matches(pattern)]
    assert texts
    assert all(re.search(pattern, text) for text in texts)
    assert len({*texts}) == len(texts)


def test_each_alternative_and_each_optional_part_occurs() -> None:
    assert {"octopi", "viri"} <= {*iterate_matches(r"(octop|vir)i$")}
    texts = [*iterate_matches(VERSION)]
    assert any("-" in text for text in texts)
    assert any(text.count(".") > 1 for text in texts)
    assert any("-" not in text for text in texts)


def test_a_leading_zero_and_a_missing_part_are_near_misses() -> None:
    missed = [text for text in iterate_near_misses(VERSION) if not re.search(VERSION, text)]
    assert "00.0" in missed
    assert ".0" in missed


def test_a_text_with_its_match_in_another_place_is_a_near_miss() -> None:
    assert "_idx" in iterate_near_misses("_id$")


def test_a_text_that_is_not_a_pattern_gives_nothing() -> None:
    assert [*iterate_matches("(")] == [*iterate_near_misses("(")] == []


def test_the_number_of_texts_is_bounded() -> None:
    pattern = "".join(f"({'|'.join('abcdefgh')})" for _ in range(20))
    assert len([*iterate_matches(pattern)]) <= 32
    assert len([*iterate_near_misses(pattern)]) <= 48


def test_the_most_repetitions_match_and_one_more_or_one_less_than_allowed_nearly_does() -> None:
    assert {"x" * 2, "x" * 9} <= {*iterate_matches("^x{2,9}$")}
    assert {"x", "x" * 10} <= {*iterate_near_misses("^x{2,9}$")}
    assert {":1", ":111"} <= {*iterate_near_misses(r":(?P<n>\d{2})$")}


def test_a_number_is_not_made_of_zeros() -> None:
    assert next(iterate_matches("^[0-9]{4}-[0-9]{2}$")) == "1111-11"


def test_a_pattern_of_another_language_gives_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    # In JavaScript, the hyphens stand for themselves.
    assert [*iterate_matches(r"[!--z]x"), *iterate_near_misses(r"[!--z]x")]
    assert not [*recwarn]


def test_a_choice_within_another_alternative_is_tried() -> None:
    texts = {*iterate_matches(r"^(Z|([+-])(\d\d)(:(\d\d))?)$")}
    assert {"Z", "+11", "-11"} <= texts
    assert any(":" in text for text in texts)


def test_optional_parts_are_tried_before_other_digits() -> None:
    texts = [*iterate_matches(r"^\d\d:\d\d([,.]\d+)?$")]
    assert texts.index("11:11,1") < texts.index("01:11")

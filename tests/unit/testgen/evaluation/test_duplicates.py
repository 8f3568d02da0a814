"""Tests that repeat another are found before they are run, and tests that only look alike are not."""

from __future__ import annotations

import time
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import combinations
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.testgen.evaluation.duplicates import MAX_COMPARED_CHARACTERS, Duplicates, are_similar
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.subjects.subject import SubjectKind
from peripety.testgen.types import DuplicateLevel, TestCase
from support.testgen.fake_run import ToySubject, toy_test

if TYPE_CHECKING:
    from peripety.testgen.subjects.subject import Subject


def text_test(test_id: str, given: str, expected: str | None = None) -> TestCase:
    return TestCase(test_id, "correctness", given, expected)


def found(subject: Subject | None, first: TestCase, second: TestCase) -> Any:
    duplicates = Duplicates(subject)
    duplicates.add(first)
    return duplicates.find(second)


@pytest.mark.parametrize(
    "again",
    ["An empty file", "an EMPTY file", "  an empty \n file ", "an empty\u00a0file"],
)
def test_case_white_space_and_form_make_no_other_input(again: str) -> None:
    assert found(None, text_test("t1", "An empty file"), text_test("t2", again)) == (
        "t1",
        DuplicateLevel.CANONICAL,
    )


def test_one_character_written_as_two_is_the_same() -> None:
    first, second = text_test("t1", "caf\u00e9"), text_test("t2", "cafe\u0301")
    assert found(None, first, second) == ("t1", DuplicateLevel.CANONICAL)


def test_a_text_that_was_given_before_repeats_whatever_it_expects() -> None:
    first, second = text_test("t1", "an empty file", "zero"), text_test("t2", "an empty file", "an error")
    assert found(None, first, second) == ("t1", DuplicateLevel.CANONICAL)


def test_texts_that_hardly_differ_repeat_each_other() -> None:
    first = text_test("t1", "a file that holds a header and two rows with missing values", "two rows")
    second = text_test("t2", "a file that holds a header, and two rows with missing values.", "two rows")
    assert found(None, first, second) == ("t1", DuplicateLevel.NEAR)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a list of exactly 255 elements in order", "a list of exactly 256 elements in order"),
        ("a temperature of 1.5 degrees at noon", "a temperature of 1.6 degrees at noon"),
        ("a file with a header", "a directory with a link"),
    ],
)
def test_another_number_or_another_thing_is_another_input(first: str, second: str) -> None:
    assert found(None, text_test("t1", first), text_test("t2", second)) is None


def test_texts_that_hardly_differ_and_expect_something_else_are_both_kept() -> None:
    first = text_test("t1", "a table that was written with a header row in it", "it is skipped")
    second = text_test("t2", "a table that was written without a header row in it", "all rows are read")
    assert found(None, first, second) is None


def test_long_texts_are_not_compared_character_by_character() -> None:
    long = "word " * MAX_COMPARED_CHARACTERS
    started = time.process_time()
    assert found(None, text_test("t1", long), text_test("t2", f"{long} end")) is None
    assert time.process_time() - started < 1


def test_texts_of_the_same_characters_in_another_order_are_told_apart_in_no_time() -> None:
    random, letters = Random(1), [*("abcdefgh " * 220)]
    texts = []
    for _ in range(12):
        random.shuffle(letters)
        texts.append("".join(letters))
    started = time.process_time()
    assert not any(are_similar(one, other) for one, other in combinations(texts, 2))
    assert time.process_time() - started < 2


@pytest.mark.parametrize("seed", range(40))
def test_texts_are_near_when_nineteen_of_twenty_characters_match(seed: int) -> None:
    random = Random(seed)
    one = " ".join(random.choices(("a", "table", "of", "rows", "without", "header"), k=30))
    other = [*one]
    for _ in range(random.randint(0, 9)):
        other[random.randrange(len(other))] = random.choice(("", "x", "yz"))
    ratio = SequenceMatcher(None, one, "".join(other), autojunk=False).ratio()
    assert are_similar(one, "".join(other)) is (ratio >= 0.95)


def test_a_test_that_is_run_repeats_one_that_gives_and_expects_the_same_whatever_is_said_of_it() -> None:
    first, second = toy_test("t1", 1, 2, 3), toy_test("t2", 1, 2, 3, given="other words", reasoning="again")
    assert found(ToySubject(), first, second) == ("t1", DuplicateLevel.CANONICAL)


def test_null_says_as_little_as_leaving_it_out() -> None:
    short = toy_test("t2", 1, 2, 3, body={"equals": 3, "other": 2, "one": 1})
    assert found(ToySubject(), toy_test("t1", 1, 2, 3), short) == ("t1", DuplicateLevel.CANONICAL)


def test_another_expectation_of_the_same_input_may_be_the_right_one() -> None:
    assert found(ToySubject(), toy_test("t1", 1, 2, 4), toy_test("t2", 1, 2, 3)) is None


def test_a_test_that_is_run_is_not_judged_by_its_text() -> None:
    first, second = toy_test("t1", 1, 2, 3, given="a sum"), toy_test("t2", 2, 2, 4, given="a sum")
    assert found(ToySubject(), first, second) is None


def test_what_a_command_has_to_write_makes_another_test() -> None:
    subject = ToySubject()
    subject.kind = SubjectKind.COMMAND
    body = {"one": 1, "other": 2}
    first, second, third = (
        TestCase(f"t{number}", "boundary", "a", expected, body=body)
        for number, expected in enumerate(("three", "four", " Three\n"), 1)
    )
    assert found(subject, first, second) is None
    assert found(subject, first, third) is None
    again = replace(first, test_id="t4", expected_output="three\n")
    assert found(subject, first, again) == ("t1", DuplicateLevel.CANONICAL)


@pytest.mark.parametrize(
    ("one", "other"), [("bump major", "bump minor"), ("lock", "unlock"), ("--level 1", "--level 2")]
)
def test_commands_that_hardly_differ_are_different_tests(one: str, other: str) -> None:
    subject = CommandSubject(["echo"])
    first, second = (
        TestCase(given, "boundary", given, "", body={"arguments": given.split(), "stdin": "", "exit_code": 0})
        for given in (one, other)
    )
    assert found(subject, first, second) is None


def test_a_body_that_its_subject_cannot_read_is_compared_as_it_is() -> None:
    first, second = (toy_test(name, 1, 2, 3, body={"one": "x", "size": 1e999}) for name in ("t1", "t2"))
    assert found(ToySubject(), first, second) == ("t1", DuplicateLevel.CANONICAL)
    other = toy_test("t3", 1, 2, 3, body={"one": "y", "size": 1e999})
    assert found(ToySubject(), first, other) is None


@pytest.mark.parametrize("is_first", [True, False])
def test_of_a_combinatorial_test_and_a_written_one_the_later_is_the_repetition(is_first: bool) -> None:
    pair = [toy_test("c1", 1, 2, 3, is_combinatorial=True), toy_test("t1", 1, 2, 3)]
    first, second = pair if is_first else reversed(pair)
    assert found(ToySubject(), first, second) == (first.test_id, DuplicateLevel.CANONICAL)


def test_the_first_of_several_is_named() -> None:
    duplicates = Duplicates(None)
    for name in ("t1", "t2"):
        duplicates.add(text_test(name, "an empty file"))
    assert duplicates.find(text_test("t3", "an empty file")) == ("t1", DuplicateLevel.CANONICAL)

"""Tests in words: every sentence that states something gives some, and no other does."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.author.test_author.rounds import assess_tests, reflect_on_tests, write_tests

NAMES = ("anti_cheat", "existence", "correctness", "boundary", "integration")


def about(task: str, **more: Any) -> dict[str, Any]:
    return {"task": task, "categories": [{"name": name} for name in NAMES], **more}


def written(task: str, category: str | None = None, **more: Any) -> dict[str, str]:
    question = {"round": 1, "at_most": 50} | ({} if category is None else {"category": category})
    tests = write_tests(about(task, **more), question)
    return {test["input"]: test["expected_output"] for test in tests}


@pytest.mark.parametrize(
    ("task", "verdicts"),
    [
        ("A name has at most 20 letters.", {"19": "meets", "20": "meets", "21": "does not meet"}),
        ("A name has at least 3 letters.", {"2": "does not meet", "3": "meets", "4": "meets"}),
        (
            "Ages are between 18 and 99.",
            {
                "17": "does not meet",
                "18": "meets",
                "19": "meets",
                "98": "meets",
                "99": "meets",
                "100": "does not meet",
            },
        ),
        ("It takes fewer than 5 values.", {"4": "meets", "5": "does not meet", "6": "does not meet"}),
    ],
)
def test_both_sides_of_every_limit_are_tried(task: str, verdicts: dict[str, str]) -> None:
    found = written(task, "boundary")
    for number, verdict in verdicts.items():
        expected = next(
            expected for given, expected in found.items() if given.startswith(f"Exactly {number},")
        )
        assert expected.startswith(f"{number} {verdict} ")
    assert len(found) == len(verdicts)


def test_what_is_ruled_out_is_tried_and_what_follows_is_expected() -> None:
    found = written(
        "If the name is taken, the answer is no. A name must never begin with a digit.",
        "correctness",
    )
    assert found["the name is taken"] == "the answer is no."
    assert any("begin with a digit" in given and given.startswith("Try") for given in found)


def test_prohibited_tools_are_looked_for() -> None:
    environment = {"prohibited_tools": ["awk"]}
    assert "Look for any use of awk" in written("Count.", "anti_cheat", environment=environment)


def test_examples_and_names_are_looked_for() -> None:
    found = written("`check a` returns `short`. Results are in `out.csv`.")
    assert found["check a"] == "short"
    assert "Look for out.csv" in found


@pytest.mark.parametrize("task", ["Make it nice, please.", "", "A date such as 2024-01-02."])
def test_what_states_nothing_gives_nothing(task: str) -> None:
    assert not written(task, "boundary")


def test_a_reflection_names_what_would_be_written_next_and_is_content_when_that_is_nothing() -> None:
    material = about("A name has at most 20 letters.")
    tests = write_tests(material, {"category": "boundary", "round": 1, "at_most": 2})
    lines = [f"[b] boundary: {test['input']} -> {test['expected_output']}" for test in tests]
    asked = {"category": "boundary", "existing_tests": lines, "existing_count": 2}
    said = reflect_on_tests(material, asked)
    assert not said["nothing_missing"]
    assert len(said["recommendations"]) == 1
    rest = write_tests(material, {**asked, "round": 2})
    lines += [f"[b] boundary: {test['input']} -> {test['expected_output']}" for test in rest]
    assert reflect_on_tests(material, {**asked, "existing_tests": lines})["nothing_missing"]


def test_the_score_is_the_share_of_what_was_measured() -> None:
    material = about("Nothing.")
    measured = {"coverage": {"rule": [3, 4]}, "killed": 3, "survived": 3}
    asked = {"by_category": dict.fromkeys(NAMES, 1), "existing_count": 5}
    said = assess_tests(material, {**asked, "measured": measured})
    assert said["score"] == 1 + int(9 * 6 / 10)
    whole = {"coverage": {"rule": [4, 4]}, "killed": 6, "survived": 0}
    assert assess_tests(material, {**asked, "measured": whole})["score"] == 10


def test_tests_that_nobody_ran_are_never_called_perfect() -> None:
    said = assess_tests(about("Nothing."), {"by_category": dict.fromkeys(NAMES, 3), "existing_count": 15})
    assert said["score"] == 8
    poor = assess_tests(
        about("Nothing."),
        {"by_category": {"existence": 3, "boundary": 0}, "existing_count": 3},
    )
    assert poor["score"] < 8
    assert poor["gaps"] == ["no test of boundary"]


@pytest.mark.parametrize("listed", ["existing_tests", "dropped"])
def test_what_was_written_before_is_not_written_again(listed: str) -> None:
    task = "A name has at most 20 letters."
    question = {"round": 2, "at_most": 50, "category": "boundary"}
    first, *others = write_tests(about(task), question)
    line = f"[boundary_1_1] (passed) boundary: {first['input']} -> {first['expected_output']}"
    again = write_tests(about(task), question | {listed: [line]})
    assert [test["input"] for test in again] == [test["input"] for test in others]

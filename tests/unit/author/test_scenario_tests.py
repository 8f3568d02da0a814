"""Scenario tests written without a model pass, and detect wrong scenarios."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from peripety import engine
from peripety.author.test_author.rounds import write_tests
from peripety.testgen.prompts.stream_parser import parse_draft
from peripety.testgen.subjects.scenario.subject import ScenarioSubject
from peripety.testgen.types import Category, DraftTest, TaskContext, TestCase, TestStatus, categories_of

EXAMPLE = Path(__file__).parents[3] / "examples" / "scenario.json"
CATEGORIES = [category.name for category in categories_of(TaskContext.SCENARIO)]


@pytest.fixture(scope="module")
def subject() -> ScenarioSubject:
    return ScenarioSubject(engine.compile(EXAMPLE.read_bytes()))


def material(subject: ScenarioSubject) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(json.dumps(dict(subject.material)))
    return {
        "task": "Test it.",
        "categories": [{"name": name} for name in CATEGORIES],
        "subject": {"kind": "scenario", **told},
    }


def survivor(subject: ScenarioSubject, mutant_id: str) -> dict[str, Any]:
    mutant = next(one for one in subject.mutants if one.mutant_id == mutant_id)
    assert mutant.before is not None
    after = None if mutant.after is None else json.loads(mutant.after)
    return {"mutant": mutant_id, "before": json.loads(mutant.before), "after": after}


def cases(tests: list[dict[str, Any]]) -> list[TestCase]:
    found = []
    for test in tests:
        draft = parse_draft(test)
        assert isinstance(draft, DraftTest)
        found.append(TestCase("t", "c", draft.input, draft.expected_output, body=draft.body))
    return found


@pytest.mark.parametrize("category", [name for name in CATEGORIES if name != "boundary"])
def test_a_first_round_of_each_category_writes_tests_that_hold_and_look_at_something(
    subject: ScenarioSubject,
    category: str,
) -> None:
    asked = {"category": category, "round": 1, "at_least": 2, "at_most": 5}
    uncovered = [
        {"target": target.target_id, "description": target.description} for target in subject.targets
    ]
    tests = write_tests(material(subject), {**asked, "uncovered": uncovered})
    assert 1 <= len(tests) <= 5
    for case in cases(tests):
        assert case.body is not None
        assert not subject.problems(case.body)
        assert not subject.soundness(case)
        assert subject.run(case).status is TestStatus.PASSED


@pytest.mark.parametrize(
    "mutant_id",
    [
        "shift_number:/win_conditions/0/when/>=/1:1",
        "drop_effect:/actions/1/effects/1:1",
        "drop_condition:/actions/2/preconditions:1",
        "change_weight:/random_events/0/weight:1",
    ],
)
def test_what_survives_is_told_from_the_scenario(subject: ScenarioSubject, mutant_id: str) -> None:
    asked = {"round": 2, "at_least": 1, "at_most": 1, "survivors": [survivor(subject, mutant_id)]}
    (case,) = cases(write_tests(material(subject), asked))
    assert subject.run(case).status is TestStatus.PASSED
    assert subject.kills(case, [mutant_id]) == {mutant_id}


def test_a_target_is_reached(subject: ScenarioSubject) -> None:
    target = {"target": "ending:/win_conditions/0", "description": "win"}
    asked = {"category": "endings", "round": 2, "at_least": 1, "at_most": 3, "uncovered": [target]}
    first, *_ = cases(write_tests(material(subject), asked))
    assert target["target"] in subject.run(first).covered


def test_nothing_is_written_twice_and_nothing_when_nothing_is_asked_for(subject: ScenarioSubject) -> None:
    target = {"target": "event:/random_events/0", "description": "have it happen"}
    asked: dict[str, Any] = {"round": 2, "at_least": 1, "at_most": 1, "uncovered": [target]}
    (first,) = write_tests(material(subject), asked)
    assert write_tests(material(subject), asked) == [first]
    line = f"[a_1] (passed) {first['category']}: {first['input']}"
    (second,) = write_tests(material(subject), {**asked, "existing_tests": [line]})
    assert second["input"] != first["input"]
    assert write_tests(material(subject), {**asked, "uncovered": []}) == []


def test_parameters_are_tried_at_their_bounds_and_beyond() -> None:
    document = json.loads(EXAMPLE.read_text())
    document["actions"][0]["params"] = {"by": {"type": "integer", "minimum": 1, "maximum": 5}}
    subject = ScenarioSubject(engine.compile(json.dumps(document).encode()))
    asked = {"category": "boundary", "round": 1, "at_least": 5, "at_most": 5}
    tests = cases(write_tests(material(subject), asked))
    given = [step["actions"] for case in tests for step in (case.body or {})["steps"]]
    values = {one[0]["params"].get("by") for one in given if one and one[0]["action_id"] == "gather"}
    assert values & {0, 6}
    assert values & {1, 5}
    assert {subject.run(case).status for case in tests} == {TestStatus.PASSED}


def test_unknown_categories_take_what_there_is(subject: ScenarioSubject) -> None:
    about = {**material(subject), "categories": [{"name": Category("own").name}]}
    assert write_tests(about, {"category": "own", "round": 1, "at_least": 2, "at_most": 2})


def test_what_is_told_of_a_mistake_anywhere_else_than_in_a_rule_is_no_obstacle(
    subject: ScenarioSubject,
) -> None:
    told = {"mutant": "change:/seed:1", "before": 7, "after": 8}
    asked = {"round": 2, "at_least": 1, "at_most": 1, "survivors": [told, {"mutant": "x:/nowhere/1:1"}]}
    (case,) = cases(write_tests(material(subject), asked))
    assert subject.run(case).status is TestStatus.PASSED

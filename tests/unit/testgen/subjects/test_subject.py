"""A body may hold anything where a model wrote it: what has no meaning is found, and stops no run."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.testgen.evaluation.duplicates import Duplicates
from peripety.testgen.evaluation.suite import evaluate_test
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.subjects.policy import PolicySubject
from peripety.testgen.subjects.scenario.subject import ScenarioSubject
from peripety.testgen.types import TestCase, TestStatus
from support.engine.policies import policy_document, rule
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.testgen.subjects.subject import Subject


JUNK: tuple[Any, ...] = (
    None,
    True,
    5,
    -1,
    1.5,
    10**30,
    "",
    "x",
    "null",
    "[]",
    "{}",
    [],
    [1],
    ["a", None],
    {},
    {"a": 1},
    [{}],
)
BODIES: dict[str, dict[str, Any]] = {
    "scenario": {
        "seed": 1,
        "steps": [
            {
                "actions": [{"action_id": "gather", "params": {}}],
                "accepted": True,
                "expect": {"===": [{"var": "status"}, "ongoing"]},
            },
        ],
    },
    "policy": {
        "server_name": "s",
        "tool_name": "t",
        "arguments": {"a": "x"},
        "roles": ["first"],
        "expected": "allow",
    },
    "command": {"arguments": ["-n", "x"], "stdin": "", "exit_code": 0},
}


@pytest.fixture(scope="module", params=sorted(BODIES))
def subject(request: pytest.FixtureRequest) -> Subject:
    match request.param:
        case "scenario":
            return ScenarioSubject(engine.compile((ROOT / "examples" / "scenario.json").read_bytes()))
        case "policy":
            return PolicySubject(engine.compile_policy(policy_document(rules=[rule()])))
    return CommandSubject(["echo"])


def spoiled(value: Any) -> Iterator[Any]:
    """A value with something else in the place of one of its parts, or of itself."""
    yield from deepcopy(JUNK)
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        for other in spoiled(value[key]):
            changed = deepcopy(value)
            changed[key] = other
            yield changed


def case(body: dict[str, Any]) -> TestCase:
    return TestCase("t", "actions", "i", "x", body=body)


def test_what_is_well_formed_is_run(subject: Subject) -> None:
    assert not subject.problems(BODIES[subject.kind.value])


def test_whatever_stands_in_a_body_is_found_or_can_be_run(subject: Subject) -> None:
    known = Duplicates(subject)
    found = 0
    for body in spoiled(BODIES[subject.kind.value]):
        if not isinstance(body, dict):
            continue
        known.add(case(body))
        problems = subject.problems(body)
        found += any(problem.code == "BODY_INVALID" for problem in problems)
        if problems or subject.kind.value != "command":
            examined = evaluate_test(subject, case(body), 1)
            assert not problems or examined.status is TestStatus.NOT_EXECUTABLE
    assert found > 20


def test_what_is_left_out_is_no_matter(subject: Subject) -> None:
    body = BODIES[subject.kind.value]
    for key in ("seed", "roles", "stdin", "exit_code"):
        assert not subject.problems({name: value for name, value in body.items() if name != key})


def test_a_value_of_the_wrong_type_is_named_by_its_place() -> None:
    (problem,) = CommandSubject(["echo"]).problems({"arguments": ["a", 5], "stdin": "", "exit_code": 0})
    assert (problem.code, problem.path) == ("BODY_INVALID", "/arguments/1")

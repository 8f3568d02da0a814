"""Policy tests written without a model pass, and detect wrong policies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety import engine
from peripety.author.test_author.rounds import write_tests
from peripety.testgen.subjects.policy import PolicySubject
from peripety.testgen.types import TaskContext, TestCase, TestStatus, categories_of
from support.engine.policies import policy_document, rule, tool

CATEGORIES = [category.name for category in categories_of(TaskContext.POLICY)]
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "size": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def subject() -> PolicySubject:
    entries = {"argument_roles": ["target"], "kind": "path", "among": ["/a/b", "@more"], "quantifier": "all"}
    rules = [
        rule("small", "allow", tools=["write"], logic={"<": [{"var": "arguments.size"}, 5]}),
        rule("asked", "escalate", tools=["write"], roles=["editor"]),
        rule("below", "allow", tools=["list"], arguments=[entries]),
    ]
    tools = [
        tool("write", "files", input_schema=SCHEMA),
        tool("list", "files", argument_roles={"/path": "target"}),
    ]
    lists = {"more": {"kind": "path", "values": ["/c"]}}
    return PolicySubject(engine.compile_policy(policy_document(tools=tools, rules=rules, lists=lists)))


def material(subject: PolicySubject) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(json.dumps(dict(subject.material)))
    names = [{"name": name} for name in CATEGORIES]
    return {"task": "Test it.", "categories": names, "subject": {"kind": "policy", **told}}


def cases(tests: list[dict[str, Any]]) -> list[TestCase]:
    return [TestCase("t", "c", test["input"], test["expected_output"], body=test["body"]) for test in tests]


@pytest.mark.parametrize(
    ("category", "decisions"),
    [
        ("allowed", {"allow"}),
        ("denied", {"deny"}),
        ("escalated", {"escalate"}),
        ("boundary", {"allow", "deny", "escalate"}),
        ("evasion", {"allow", "deny", "escalate"}),
    ],
)
def test_each_category_has_requests_that_are_decided_so(
    subject: PolicySubject,
    category: str,
    decisions: set[str],
) -> None:
    asked = {"category": category, "round": 1, "at_least": 1, "at_most": 5}
    uncovered = [
        {"target": target.target_id, "description": target.description} for target in subject.targets
    ]
    tests = cases(write_tests(material(subject), {**asked, "uncovered": uncovered}))
    assert tests
    assert {(case.body or {})["expected"] for case in tests} <= decisions
    for case in tests:
        assert not subject.problems(case.body or {})
        assert not subject.soundness(case)
        assert subject.run(case).status is TestStatus.PASSED


def test_every_wrong_version_that_is_not_the_same_is_told_from_the_policy(subject: PolicySubject) -> None:
    mutants = [mutant.mutant_id for mutant in subject.mutants]
    same = subject.equivalent(mutants)
    left = []
    for mutant in subject.mutants:
        before, after = (None if part is None else json.loads(part) for part in (mutant.before, mutant.after))
        told = {"mutant": mutant.mutant_id, "path": mutant.path, "before": before, "after": after}
        tests = write_tests(material(subject), {"round": 2, "at_most": 1, "survivors": [told]})
        if not any(subject.kills(case, [mutant.mutant_id]) for case in cases(tests)):
            left.append(mutant.mutant_id)
    assert {*left} == same


def test_both_sides_of_a_number_and_of_an_entry_are_asked_about(subject: PolicySubject) -> None:
    paths = ["/rules/0/when/logic/</1/on", "/rules/0/when/logic/</1/below", "/lists/more/values/0/outside"]
    uncovered = [{"target": f"boundary:{path}", "description": "ask"} for path in paths]
    asked = {"category": "boundary", "round": 2, "at_least": 1, "at_most": 3, "uncovered": uncovered}
    tests = cases(write_tests(material(subject), asked))
    covered = frozenset[str]().union(*(subject.run(case).covered for case in tests))
    assert {one["target"] for one in uncovered} <= covered


def test_a_tool_is_never_called_with_what_it_does_not_take(subject: PolicySubject) -> None:
    asked = {"round": 1, "at_least": 5, "at_most": 5, "category": "evasion"}
    for case in cases(write_tests(material(subject), asked)):
        assert not subject.problems(case.body or {})


@pytest.mark.parametrize(
    "argument",
    [True, {"type": "array", "items": True}, {"type": "string", "minLength": 300_000}],
)
def test_an_argument_of_which_a_schema_says_little_or_asks_too_much_is_no_obstacle(argument: Any) -> None:
    schema = {"type": "object", "properties": {"a": argument, "b": {"type": "integer"}}}
    tools = [tool("write", "files", input_schema=schema), tool("list", "files")]
    subject = PolicySubject(engine.compile_policy(policy_document(tools=tools)))
    floor = [draft.body or {} for draft in subject.baseline_tests()]
    written = cases(write_tests(material(subject), {"round": 1, "at_least": 2, "category": "denied"}))
    for tests in (floor, [test.body or {} for test in written]):
        assert "list" in {body["tool_name"] for body in tests}

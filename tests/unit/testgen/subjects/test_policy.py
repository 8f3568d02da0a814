from __future__ import annotations

from typing import Any

import pytest

from peripety import engine
from peripety.core.mutation_testing import MutantOutcome
from peripety.testgen.subjects.policy import PolicySubject
from peripety.testgen.subjects.subject import pairwise
from peripety.testgen.types import TestCase, TestStatus
from support.engine.policies import policy_document, rule, tool

_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "size": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def subject() -> PolicySubject:
    small = rule("small", "allow", tools=["write"], logic={"<": [{"var": "arguments.size"}, 5]})
    asked = rule("asked", "escalate", tools=["write"], roles=["editor"])
    tools = [tool("write", "files", input_schema=_SCHEMA), tool("list", "files")]
    return PolicySubject(engine.compile_policy(policy_document(tools=tools, rules=[small, asked])))


def case(expected: str, size: Any = 4, tool: str = "write", roles: tuple[str, ...] = ()) -> TestCase:
    body = {
        "server_name": "files",
        "tool_name": tool,
        "arguments": {"path": "/a", "size": size} if tool == "write" else {},
        "roles": [*roles],
        "expected": expected,
    }
    return TestCase("t", "allowed", "i", body=body)


def test_a_decision_is_held_against_what_is_expected(subject: PolicySubject) -> None:
    passed = subject.run(case("allow"))
    assert passed.status is TestStatus.PASSED
    assert passed.observed.startswith("allow by small")
    assert "rule:/rules/0" in passed.covered
    failed = subject.run(case("deny"))
    assert failed.status is TestStatus.FAILED
    assert (failed.findings[0].code, failed.findings[0].path) == ("EXPECTATION_NOT_MET", "/expected")
    assert failed.covered == frozenset()


def test_deny_or_escalate_is_not_allow(subject: PolicySubject) -> None:
    assert subject.run(case("not_allow", 5)).status is TestStatus.PASSED
    assert subject.run(case("not_allow", 5, roles=("editor",))).status is TestStatus.PASSED
    assert subject.run(case("not_allow", 4)).status is TestStatus.FAILED


def test_a_test_beside_a_border_kills_the_mutant_that_moves_it(subject: PolicySubject) -> None:
    everything = {mutant.mutant_id for mutant in subject.mutants}
    assert {mutant.outcome for mutant in subject.mutants} == {MutantOutcome.SURVIVED}
    near = subject.kills(case("allow", 4), everything) - subject.kills(case("allow", 0), everything)
    assert any(name.startswith("shift_number") for name in near)


def test_mutants_that_decide_alike_are_proved_to(subject: PolicySubject) -> None:
    everything = [mutant.mutant_id for mutant in subject.mutants]
    killed: frozenset[str] = frozenset()
    for size in range(11):
        for roles in ((), ("editor",)):
            decided = subject.run(case("allow", size, roles=roles)).observed.split()[0]
            killed |= subject.kills(case(decided, size, roles=roles), everything)
    assert not killed & subject.equivalent(everything)


def test_arguments_may_come_as_text_and_are_the_same_input(subject: PolicySubject) -> None:
    test = case("allow")
    body = dict(test.body or {}) | {"arguments": '{"size": 4, "path": "/a"}', "expected": "deny"}
    assert subject.same_input(body) == subject.same_input(test.body or {})


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"expected": "maybe"}, "REQUEST_INVALID", ""),
        ({"arguments": "[1]"}, "REQUEST_INVALID", ""),
        ({"arguments": "{oops"}, "REQUEST_INVALID", ""),
        ({"arguments": {"path": "/a", "size": 11}}, "ARGUMENTS_REFUSED", "/arguments/size"),
    ],
)
def test_a_request_that_is_none_or_that_the_tool_refuses_is_a_problem(
    subject: PolicySubject,
    change: dict[str, Any],
    code: str,
    path: str,
) -> None:
    found = subject.problems(dict(case("allow").body or {}) | change)
    assert [(finding.code, finding.path) for finding in found] == [(code, path)]


def test_what_is_expected_of_an_unknown_tool_is_a_tautology(subject: PolicySubject) -> None:
    assert [found.code for found in subject.soundness(case("deny", tool="remove"))] == ["TAUTOLOGY"]
    assert subject.soundness(case("allow")) == ()


def test_the_floor_expects_what_the_policy_says_now(subject: PolicySubject) -> None:
    drafts = [*subject.baseline_tests()]
    assert drafts == [*subject.baseline_tests()]
    assert {draft.category for draft in drafts} == {"allowed", "denied", "escalated"}
    for draft in drafts:
        assert subject.problems(draft.body or {}) == []
        test = TestCase(draft.name, draft.category or "", draft.input, body=draft.body)
        assert subject.run(test).status is TestStatus.PASSED


def test_every_two_values_of_two_arguments_occur_together() -> None:
    values: dict[str, list[Any]] = {"a": [1, 2, 3], "b": ["x", "y"], "c": [True, False]}
    rows = pairwise(values)
    for one, other in (("a", "b"), ("a", "c"), ("b", "c")):
        found = {(row[one], row[other]) for row in rows}
        assert found == {(left, right) for left in values[one] for right in values[other]}
    assert pairwise({}) == [{}]
    assert pairwise({"a": [1, 2]}) == [{"a": 1}, {"a": 2}]


def test_of_factors_with_many_values_only_the_first_ones_are_combined() -> None:
    rows = pairwise({"a": range(60), "b": range(60)})
    assert {row["a"] for row in rows} == {row["b"] for row in rows} == {*range(16)}
    assert len(rows) == 16 * 16


@pytest.mark.slow_after(1, reason="combines many values")
@pytest.mark.timeout(30)
@pytest.mark.parametrize(("factors", "choices"), [(20, 16), (100, 16), (100, 1)])
def test_arguments_of_many_values_are_combined_in_a_moment(factors: int, choices: int) -> None:
    rows = pairwise({f"a{number}": range(choices) for number in range(factors)})
    first = {(row["a0"], row["a1"]) for row in rows}
    assert first >= {(one, other) for one in range(min(choices, 2)) for other in range(min(choices, 2))}
    assert all(len(row) == factors for row in rows)

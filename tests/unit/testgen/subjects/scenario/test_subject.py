from __future__ import annotations

import json
from typing import Any

import pytest

from peripety import engine
from peripety.core.mutation_testing import MutantOutcome
from peripety.testgen.subjects.scenario import mutants
from peripety.testgen.subjects.scenario.case_body import is_tautology
from peripety.testgen.subjects.scenario.mutants import OPERATORS
from peripety.testgen.subjects.scenario.subject import ScenarioSubject
from peripety.testgen.types import TestCase, TestStatus

SPEC: dict[str, Any] = {
    "spec_version": "1.0",
    "id": "alpha",
    "name": "Alpha",
    "seed": 7,
    "state": {"gauge": 5, "store": 3, "open": True, "mark": "low"},
    "actions": [
        {
            "id": "raise",
            "params": {"by": {"type": "integer", "minimum": 1, "maximum": 3}},
            "preconditions": {
                "and": [{">": [{"var": "state.store"}, 0]}, {"<": [{"var": "state.gauge"}, 9]}],
            },
            "derives": {"more": {"+": [{"var": "params.by"}, 1]}},
            "effects": [
                {"op": "inc", "path": "state.gauge", "value": "more"},
                {"op": "dec", "path": "state.store", "value": 1},
                {"op": "set", "path": "state.mark", "value": "high"},
            ],
        },
        {
            "id": "wait",
            "params": {},
            "preconditions": {},
            "effects": [
                {
                    "op": "schedule",
                    "id": "refill",
                    "after": 2,
                    "effects": [{"op": "inc", "path": "state.store", "value": 1}],
                },
            ],
        },
    ],
    "random_events": [
        {
            "id": "slip",
            "weight": 0.3,
            "when": {},
            "effects": [{"op": "dec", "path": "state.gauge", "value": 1}],
        },
    ],
    "loss_conditions": [
        {"id": "empty", "when": {"<=": [{"var": "state.gauge"}, 0]}},
        {"id": "spent", "when": {"<": [{"var": "state.store"}, -5]}},
    ],
    "win_conditions": [{"id": "full", "when": {">=": [{"var": "state.gauge"}, 9]}}],
    "negativity_budget": {"min_fail_rate": 0.1, "decay_per_turn": {"state.gauge": 0.5}},
    "horizon": 20,
}


@pytest.fixture(scope="module")
def subject() -> ScenarioSubject:
    return ScenarioSubject(engine.compile(json.dumps(SPEC).encode()))


def step(*actions: Any, accepted: bool | None = None, expect: Any = None) -> dict[str, Any]:
    calls = [
        {"action_id": action, "params": {}}
        if isinstance(action, str)
        else {"action_id": action[0], "params": action[1]}
        for action in actions
    ]
    return {"actions": calls, "accepted": accepted, "expect": expect}


def case(*steps: dict[str, Any], seed: int | None = None) -> TestCase:
    return TestCase("t", "actions", "i", body={"seed": seed, "steps": [*steps]})


def is_value(path: str, value: Any) -> dict[str, Any]:
    return {"===": [{"var": path}, value]}


def test_a_test_passes_where_everything_it_expects_holds(subject: ScenarioSubject) -> None:
    ran = subject.run(
        case(step(("raise", {"by": 2}), accepted=True, expect=is_value("state.store", 2)), step("wait")),
    )
    assert ran.status is TestStatus.PASSED
    assert {"action:/actions/0", "action:/actions/1"} <= ran.covered
    assert ran.observed.startswith("turn 1: raise accepted")


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        (step(("raise", {"by": 9}), accepted=True), "/steps/0/actions/0"),
        (step(("raise", {"by": 1}), accepted=False), "/steps/0/actions/0"),
        (step("wait", expect=is_value("state.store", 99)), "/steps/0/expect"),
        (step("wait", expect=is_value("status", "won")), "/steps/0/expect"),
    ],
)
def test_what_is_not_met_is_told_with_its_place(
    subject: ScenarioSubject,
    broken: dict[str, Any],
    path: str,
) -> None:
    ran = subject.run(case(broken))
    assert ran.status is TestStatus.FAILED
    assert [(finding.code, finding.path) for finding in ran.findings] == [("EXPECTATION_NOT_MET", path)]
    assert ran.covered == frozenset()


def test_an_ending_and_an_event_can_be_expected(subject: ScenarioSubject) -> None:
    win = step(("raise", {"by": 3}), expect={"in": [{"var": "ending"}, [None, "full"]]})
    both = case(win, step(("raise", {"by": 3}), expect=is_value("ending", "full")), seed=3)
    ran = subject.run(both)
    assert ran.status is TestStatus.PASSED, ran
    assert "ending:/win_conditions/0" in ran.covered


def test_a_test_that_goes_on_after_the_end_or_takes_what_is_not_there_cannot_be_run(
    subject: ScenarioSubject,
) -> None:
    raising = step(("raise", {"by": 3}))
    over = subject.run(case(*[raising] * 9, seed=3))
    assert (over.status, over.findings[0].code) == (TestStatus.NOT_EXECUTABLE, "RUN_ENDED")
    unknown = case(step("vanish"))
    (finding,) = subject.problems(unknown.body or {})
    assert (finding.code, finding.path) == ("UNKNOWN_ACTION", "/steps/0/actions/0/action_id")
    assert "raise, wait" in finding.message


def test_values_may_come_as_texts_of_json(subject: ScenarioSubject) -> None:
    body = {
        "seed": None,
        "steps": [
            {
                "actions": [{"action_id": "raise", "params": '{"by": 2}'}],
                "accepted": True,
                "expect": '{"===": [{"var": "state.store"}, 2]}',
            },
            {"actions": [{"action_id": "wait", "params": "null"}], "accepted": None, "expect": "None"},
        ],
    }
    test = TestCase("t", "actions", "i", body=body)
    assert subject.problems(body) == []
    assert subject.run(test).status is TestStatus.PASSED


def test_a_text_that_is_no_json_is_a_problem(subject: ScenarioSubject) -> None:
    (finding,) = subject.problems({"seed": None, "steps": [step("wait", expect="{oops")]})
    assert finding.code == "EXPECTATION_INVALID"


def test_two_tests_have_the_same_input_whatever_they_expect_and_however_it_is_written(
    subject: ScenarioSubject,
) -> None:
    one = case(step(("raise", {"by": 2}), accepted=True), seed=7)
    other = case(step(("raise", '{"by": 2}'), expect=is_value("turn", 1)))
    assert subject.same_input(one.body or {}) == subject.same_input(other.body or {})


def test_a_test_that_looks_at_nothing_is_a_stub_and_one_that_always_holds_a_tautology(
    subject: ScenarioSubject,
) -> None:
    assert [found.code for found in subject.soundness(case(step("wait")))] == ["STUB"]
    truism = step("wait", expect={">=": [{"var": "turn"}, {"var": "turn"}]})
    assert [found.code for found in subject.soundness(case(truism))] == ["TAUTOLOGY"]
    assert [found.code for found in subject.soundness(case(step("wait", expect=True)))] == ["TAUTOLOGY"]
    assert subject.soundness(case(step("wait", expect=is_value("turn", 1)))) == ()
    assert subject.soundness(case(step("wait", accepted=True))) == ()


@pytest.mark.parametrize(
    "expect",
    [
        True,
        {"==": [1, 1]},
        {"or": [{"var": "state.a"}, {"!": [{"var": "state.a"}]}]},
        {"===": [{"var": "state.a"}, {"var": "state.a"}]},
    ],
)
def test_truisms_are_seen_through(expect: Any) -> None:
    assert is_tautology(expect)


@pytest.mark.parametrize(
    "expect",
    [
        {">=": [{"var": "state.a"}, 0]},
        {"!=": [{"var": "status"}, "lost"]},
        {"in": [{"var": "ending"}, [None, "full"]]},
        {"and": [{"var": "state.open"}, {"<": [{"var": "state.a"}, 10**9]}]},
        {"cat": []},
    ],
)
def test_what_may_fail_is_no_truism(expect: Any) -> None:
    assert not is_tautology(expect)


def test_every_operator_finds_something_to_change_in_some_document(subject: ScenarioSubject) -> None:
    used = {mutant.operator for mutant in subject.mutants}
    assert len(used) >= 12
    assert set(OPERATORS) - used <= {"drop_duration", "drop_element"}
    assert {mutant.outcome for mutant in subject.mutants} == {MutantOutcome.SURVIVED}
    assert len({mutant.mutant_id for mutant in subject.mutants}) == len(subject.mutants)


def test_mutants_are_other_documents_that_play(subject: ScenarioSubject) -> None:
    for mutant in subject.mutants:
        assert mutant.before != mutant.after
        assert mutant.path.startswith("/")


def test_a_test_on_the_border_kills_the_mutant_that_moves_it(subject: ScenarioSubject) -> None:
    everything = {mutant.mutant_id for mutant in subject.mutants}
    loose = case(step(("raise", {"by": 1}), accepted=True))
    exact = case(step(("raise", {"by": 3}), accepted=True, expect=is_value("state.gauge", 8.5)))
    weak, strong = subject.kills(loose, everything), subject.kills(exact, everything)
    assert any(name.startswith("change_decay") for name in strong - weak)
    assert subject.kills(exact, ()) == frozenset()


def test_what_a_dead_rule_would_do_makes_no_difference() -> None:
    dead = json.loads(json.dumps(SPEC))
    dead["random_events"][0]["when"] = {"<": [{"var": "turn"}, -1]}
    subject = ScenarioSubject(engine.compile(json.dumps(dead).encode()))
    (event,) = [target for target in subject.targets if target.kind == "event"]
    if event.is_reachable:
        pytest.fail("the proof of a dead event is gone")
    same = subject.equivalent([mutant.mutant_id for mutant in subject.mutants])
    assert same
    assert all("/random_events/0/effects/" in name for name in same)


def test_the_floor_passes_looks_at_something_and_kills_much(subject: ScenarioSubject) -> None:
    everything = {mutant.mutant_id for mutant in subject.mutants}
    drafts = [*subject.baseline_tests()]
    assert drafts == [*subject.baseline_tests()]
    killed: frozenset[str] = frozenset()
    for draft in drafts:
        test = TestCase(draft.name, draft.category or "", draft.input, body=draft.body)
        assert subject.problems(draft.body or {}) == []
        assert subject.run(test).status is TestStatus.PASSED
        assert subject.soundness(test) == ()
        killed |= subject.kills(test, everything)
    assert len(killed) > len(everything) / 2
    assert {draft.category for draft in drafts} >= {"boundary", "events"}


def test_of_a_large_document_no_more_is_compiled_and_kept_than_so_many_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = engine.compile(json.dumps(SPEC))
    monkeypatch.setattr(mutants, "MAX_MUTANT_BYTES", 20 * len(program.document))
    one, other = ScenarioSubject(program), ScenarioSubject(program)
    assert 0 < len(one.mutants) <= 20
    assert one.mutants == other.mutants


def test_an_action_without_its_id_is_called_so(subject: ScenarioSubject) -> None:
    (finding,) = subject.problems({"seed": None, "steps": [{"actions": [{"params": {}}]}]})
    assert (finding.code, finding.message) == ("BODY_INVALID", "has an action without action_id")

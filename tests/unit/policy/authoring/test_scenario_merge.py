"""Scenarios discarded before they are run.

Merging of scenarios.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from peripety import engine
from peripety.engine.policies.types import Decision, ToolRequest
from peripety.policy.authoring.prompts import tool_to_document
from peripety.policy.authoring.scenario_merge import (
    ARGUMENT_SCHEMA_RULE,
    ScenarioFilter,
    apply_corrections,
    drop_repeated,
    find_contradictions,
    merge_replacements,
    request_key,
)
from peripety.policy.types import (
    DiscardedScenario,
    Expectation,
    ScenarioCorrection,
    ScenarioFeedback,
    ScenarioOrigin,
)
from support.policy.models import below, generated_scenario, rule, tool

TOOLS = (tool("a"),)
INVARIANT = {**rule("structural-kept", "deny", arguments=below("/kept")), "id": "structural-kept"}
POLICY = engine.compile_policy(
    json.dumps(
        {
            "policy_version": "1.0",
            "id": "p",
            "name": "p",
            "tools": [tool_to_document(one) for one in TOOLS],
            "invariants": [INVARIANT],
            "rules": [rule("all", "allow", tools=["a"])],
        },
    ),
)
FILTER = ScenarioFilter(POLICY, TOOLS)


def test_what_an_invariant_decides_otherwise_is_discarded_by_its_name() -> None:
    wrong, right = (
        generated_scenario("wrong", "allow", at="/kept/x"),
        generated_scenario("right", "deny", at="/kept/x"),
    )
    found = FILTER.apply([wrong, right])
    assert found.accepted == (right,)
    ((discarded),) = found.discarded
    assert (discarded.scenario, discarded.rule, discarded.actual) == (wrong, "structural-kept", Decision.DENY)


def test_what_a_rule_decides_otherwise_is_not_discarded() -> None:
    wrong = generated_scenario("wrong", "deny", at="/other")
    assert FILTER.apply([wrong]).accepted == (wrong,)


def test_arguments_that_the_tool_refuses_are_discarded_whatever_is_expected() -> None:
    for expected in ("allow", "deny"):
        ((discarded),) = FILTER.apply([generated_scenario("x", expected, other=1)]).discarded
        assert (discarded.rule, discarded.actual) == (ARGUMENT_SCHEMA_RULE, Decision.DENY)


def test_what_the_engine_cannot_read_is_discarded() -> None:
    beyond = replace(generated_scenario("x"), request=ToolRequest("alpha", "a", {"amount": 2**70}))
    assert FILTER.apply([beyond]).discarded[0].rule == ARGUMENT_SCHEMA_RULE


def test_a_call_of_an_unknown_tool_is_only_expected_to_be_refused() -> None:
    allowed, denied = generated_scenario("x", "allow", "zz"), generated_scenario("y", "deny", "zz")
    found = FILTER.apply([allowed, denied])
    assert found.accepted == (denied,)
    assert found.discarded[0].rule == "structural-unknown-tool"


def test_handwritten_scenarios_are_never_discarded() -> None:
    for one in (generated_scenario("a", "allow", at="/kept"), generated_scenario("b", other=1)):
        kept = replace(one, source=ScenarioOrigin.HANDWRITTEN)
        assert FILTER.apply([kept]).accepted == (kept,)


HANDWRITTEN = generated_scenario("by hand", source=ScenarioOrigin.HANDWRITTEN, at="/h")
WRONG = generated_scenario("wrong", "allow", at="/w")
IMPOSSIBLE = generated_scenario("impossible", "allow", at="/i")
FINE = generated_scenario("fine", at="/f")
ALL = (HANDWRITTEN, WRONG, FINE, IMPOSSIBLE)
CORRECTION = ScenarioCorrection("wrong", Expectation.ALLOW, Expectation.DENY, "nobody may")
DISCARDED = DiscardedScenario(IMPOSSIBLE, "structural-x", Decision.DENY)
FEEDBACK = ScenarioFeedback((CORRECTION,), (DISCARDED,))


def names(scenarios: object) -> list[str]:
    return [one.description for one in scenarios]  # type: ignore[attr-defined]


def test_discarded_scenarios_go_and_all_others_stay_in_their_order_before_the_new_ones() -> None:
    after = merge_replacements(ALL, FEEDBACK, [generated_scenario("new", at="/n")])
    assert names(after) == ["by hand", "wrong", "fine", "new"]


def test_corrected_scenarios_go_when_replacements_were_asked_for() -> None:
    after = merge_replacements(ALL, FEEDBACK, [generated_scenario("new", at="/n")], replace_corrected=True)
    assert names(after) == ["by hand", "fine", "new"]


def test_a_correction_is_made_in_place() -> None:
    after = apply_corrections(ALL, [CORRECTION])
    assert names(after) == names(ALL)
    assert after[1].expected_decision is Expectation.DENY
    assert after[1].reasoning == "nobody may"
    assert (after[0], after[2], after[3]) == (HANDWRITTEN, FINE, IMPOSSIBLE)


def test_handwritten_scenarios_are_never_removed_or_changed() -> None:
    about = ScenarioCorrection("by hand", Expectation.DENY, Expectation.ESCALATE, "no")
    feedback = ScenarioFeedback((about,), (DiscardedScenario(HANDWRITTEN, "structural-x", Decision.DENY),))
    for replace_corrected in (False, True):
        assert merge_replacements(ALL, feedback, [], replace_corrected=replace_corrected) == ALL
    assert apply_corrections(ALL, [about]) == ALL


def test_a_replacement_whose_description_is_kept_is_dropped() -> None:
    assert names(merge_replacements(ALL, FEEDBACK, [generated_scenario("fine", at="/other")])) == [
        "by hand",
        "wrong",
        "fine",
    ]


def test_a_replacement_may_have_the_name_of_what_it_replaces() -> None:
    after = merge_replacements(ALL, FEEDBACK, [generated_scenario("impossible", "deny", at="/i")])
    assert after[-1].expected_decision is Expectation.DENY


@pytest.mark.parametrize("expected", ["allow", "deny"])
def test_the_same_request_never_comes_again_whatever_is_expected_of_it(expected: str) -> None:
    assert names(merge_replacements(ALL, FEEDBACK, [generated_scenario("new", expected, at="/f")])) == [
        "by hand",
        "wrong",
        "fine",
    ]


def test_a_replacement_cannot_undo_the_correction_whose_scenario_it_replaces() -> None:
    patched = apply_corrections(ALL, [CORRECTION])
    undone = merge_replacements(
        patched,
        FEEDBACK,
        [generated_scenario("new", "allow", at="/w")],
        replace_corrected=True,
    )
    assert names(undone) == ["by hand", "fine"]
    kept = merge_replacements(
        patched, FEEDBACK, [generated_scenario("new", "deny", at="/w")], replace_corrected=True
    )
    assert names(kept) == ["by hand", "fine", "new"]


def test_of_equal_requests_the_first_stays_and_names_stay_different() -> None:
    one, again, named = (
        generated_scenario("a", at="/1"),
        generated_scenario("b", at="/1"),
        generated_scenario("a", at="/2"),
    )
    assert names(drop_repeated([one, again, named], [generated_scenario("a (2)", at="/3")])) == ["a", "a (3)"]


def test_the_same_request_has_one_key_however_it_is_written() -> None:
    one = ToolRequest("s", "t", {"a": 1, "b": [2.0]})
    assert request_key(one) == request_key(ToolRequest("s", "t", {"b": [2], "a": 1.0}))
    assert request_key(one) != request_key(ToolRequest("s", "t", {"a": 1, "b": ["2"]}))
    assert request_key(ToolRequest("s", "t", {"a": 2**70})) != request_key(ToolRequest("s", "t", {}))


def test_a_scenario_that_only_has_the_name_of_a_discarded_one_stays() -> None:
    namesake = generated_scenario("impossible", at="/other")
    assert names(merge_replacements([namesake], FEEDBACK, [])) == ["impossible"]


def test_scenarios_contradict_each_other_where_no_decision_meets_both() -> None:
    one, other = (
        generated_scenario("one", "not_allow", at="/a"),
        generated_scenario("other", "allow", at="/a"),
    )
    assert [*find_contradictions([one, other])] == [(one, other)]
    assert [*find_contradictions([other], [one])] == [(one, other)]
    assert not [
        *find_contradictions(
            [one, generated_scenario("stricter", "deny", at="/a"), generated_scenario("x", at="/b")]
        )
    ]

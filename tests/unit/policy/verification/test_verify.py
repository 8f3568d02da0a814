from __future__ import annotations

from peripety.policy.verification.verify import verify
from support.engine.policies import allow, deny, escalate, request, tiny_policy
from support.policy.policies import scenario

ABOVE_TEN = {">": [{"var": "arguments.size"}, 10]}
POLICY = tiny_policy(
    deny("big", logic=ABOVE_TEN),
    escalate("guest", roles=["guest"]),
    allow("read", tools=["read"]),
)


def test_each_result_names_the_rule_that_decided() -> None:
    report = verify(POLICY, [scenario("one", request(size=11), "deny"), scenario("two", request(), "allow")])
    assert [(result.passed, result.actual.rule_id) for result in report.results] == [
        (True, "big"),
        (True, "read"),
    ]
    assert report.failures == ()


def test_a_scenario_that_fails_is_among_the_failures() -> None:
    report = verify(POLICY, [scenario("one", request(size=11), "allow"), scenario("two", request(), "allow")])
    assert [result.scenario.description for result in report.failures] == ["one"]


def test_a_rule_is_masked_when_it_takes_hold_too_but_another_decides_before_it() -> None:
    asked = request(size=11, roles=["guest"])
    [result] = verify(POLICY, [scenario("meant for guest", asked, "not_allow", rule_id="guest")]).results
    assert (result.passed, result.actual.rule_id, result.masked_rule_id) == (True, "big", "guest")


def test_a_rule_that_does_not_take_hold_is_not_masked() -> None:
    [result] = verify(
        POLICY,
        [scenario("meant for guest", request(size=11), "deny", rule_id="guest")],
    ).results
    assert result.masked_rule_id == ""


def test_the_rule_that_decides_is_not_masked() -> None:
    [result] = verify(POLICY, [scenario("meant for big", request(size=11), "deny", rule_id="big")]).results
    assert result.masked_rule_id == ""


def test_where_nobody_said_which_rule_is_meant_it_is_the_first_that_would_meet_the_expectation() -> None:
    asked = request(size=11, roles=["guest"])
    wrong, right = verify(
        POLICY,
        [scenario("fails", asked, "allow"), scenario("passes", asked, "deny")],
    ).results
    assert (wrong.masked_rule_id, right.masked_rule_id) == ("read", "")


def test_a_rule_that_cannot_be_evaluated_and_denies_is_masked_as_well() -> None:
    policy = tiny_policy(
        escalate("all", tools=["read"]),
        deny("broken", logic={">": [{"var": "arguments.mode"}, 1]}),
    )
    [result] = verify(policy, [scenario("one", request(mode="a"), "deny")]).results
    assert (result.actual.rule_id, result.masked_rule_id) == ("all", "broken")


def test_nothing_masks_a_rule_from_a_tool_that_the_policy_is_not_about() -> None:
    [result] = verify(POLICY, [scenario("one", request("other"), "allow", rule_id="read")]).results
    assert (result.passed, result.masked_rule_id) == (False, "")


def test_without_scenarios_there_is_nothing_to_tell() -> None:
    assert verify(POLICY, []).results == ()

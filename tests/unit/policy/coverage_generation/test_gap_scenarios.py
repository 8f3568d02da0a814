from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import pytest

from peripety.engine import compile_policy
from peripety.policy.coverage_generation.gap_scenarios import complete_suite, generate_for_gaps
from peripety.policy.coverage_generation.minimize import minimal_suite
from peripety.policy.rule_paths import argument_violations
from peripety.policy.types import CoverageGenerated, ScenarioOrigin, TestScenario
from peripety.policy.verification.verify import verify
from support.engine.policies import allow, deny, escalate, matcher, request, tiny_policy
from support.engine.policy_generators import random_policy, random_requests
from support.policy.policies import expecting, scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.engine import Policy


GAP_POLICY = tiny_policy(
    deny("big", logic={">": [{"var": "arguments.size"}, 10]}),
    allow("read", tools=["read"], roles=["x", "y"]),
)


def test_a_complete_suite_kills_and_reaches_everything_that_can_be() -> None:
    report = verify(GAP_POLICY, complete_suite(GAP_POLICY, []), mutation=True)
    assert [found.uncovered for found in report.coverage] == [(), (), ()]
    assert report.mutation is not None
    assert (report.mutation.survived, report.mutation.score) == (0, 1.0)


def test_handwritten_scenarios_and_what_fails_stay() -> None:
    by_hand = scenario("by hand", request(), "deny", source=ScenarioOrigin.HANDWRITTEN)
    again = scenario("again", request(), "deny", source=ScenarioOrigin.HANDWRITTEN)
    wrong = scenario("wrong", request(), "allow")
    assert complete_suite(GAP_POLICY, [wrong, by_hand, again])[:3] == (by_hand, again, wrong)


def test_written_scenarios_that_do_as_much_are_taken_before_directed_ones() -> None:
    made = complete_suite(GAP_POLICY, [])
    written = [scenario(f"w{n}", one.request, one.expected_decision.value) for n, one in enumerate(made)]
    assert {one.source for one in complete_suite(GAP_POLICY, written)} == {ScenarioOrigin.GENERATED}


def test_every_scenario_has_a_description_of_its_own() -> None:
    names = [
        one.description
        for one in complete_suite(GAP_POLICY, expecting(GAP_POLICY, request(), request(size=11)))
    ]
    assert all(names)
    assert len({*names}) == len(names)


def test_nothing_is_gained_by_completing_again() -> None:
    made = complete_suite(GAP_POLICY, [])
    assert complete_suite(GAP_POLICY, made) == made == complete_suite(GAP_POLICY, [])


@pytest.mark.parametrize("seed", range(3))
def test_it_does_what_covering_does_with_hardly_ever_more_scenarios(seed: int) -> None:
    random = Random(seed)
    spec = random_policy(random, "small")
    policy = compile_policy(json.dumps(spec))
    scenarios = expecting(policy, *random_requests(random, spec, 20))
    made = [one for one in generate_for_gaps(policy, scenarios) if isinstance(one, TestScenario)]
    before = minimal_suite(policy, [*scenarios, *made])
    after = complete_suite(policy, scenarios)
    assert len(after) <= len(before) + 1
    old, new = verify(policy, before, mutation=True), verify(policy, after, mutation=True)
    assert not new.failures
    assert old.mutation is not None
    assert new.mutation is not None
    assert new.mutation.score >= old.mutation.score
    assert [found.covered for found in new.coverage] >= [found.covered for found in old.coverage]


COVERED_POLICY = tiny_policy(
    deny("below", arguments=[matcher("source", "path", "/a/b")]),
    allow("small", tools=["read"], logic={"<": [{"var": "arguments.size"}, 10]}),
    escalate("guest", roles=["guest"]),
)


def directed(
    policy: Policy,
    scenarios: Sequence[TestScenario] = (),
    most: int = 0,
) -> tuple[list[TestScenario], CoverageGenerated]:
    *made, last = generate_for_gaps(policy, scenarios, most)
    assert isinstance(last, CoverageGenerated)
    return [one for one in made if isinstance(one, TestScenario)], last


def test_without_any_scenario_everything_that_can_be_reached_is_reached_and_every_mutant_killed() -> None:
    made, last = directed(COVERED_POLICY)
    assert made
    assert [found.uncovered for found in last.coverage] == [(), (), ()]
    assert (last.mutation.survived, last.mutation.score) == (0, 1.0)


def test_directed_scenarios_expect_what_the_rules_say_and_say_that_they_are_directed() -> None:
    made, _ = directed(COVERED_POLICY)
    for one in made:
        decided = COVERED_POLICY.decide(one.request)
        assert one.expected_decision.value == decided.decision.value
        assert one.rule_id == decided.rule_id
        assert one.reasoning == decided.reasons[-1]
        assert one.source is ScenarioOrigin.DIRECTED


def test_each_is_described_by_a_sentence_of_its_own() -> None:
    made, _ = directed(COVERED_POLICY)
    names = [one.description for one in made]
    assert len({*names}) == len(names)
    assert all(any(rule in name for rule in ("below", "small", "guest", "no rule")) for name in names)


def test_descriptions_differ_from_those_that_are_there() -> None:
    made, _ = directed(COVERED_POLICY)
    [first, *_] = made
    blocking = [TestScenario(first.description, request("other"), first.expected_decision)]
    names = [one.description for one in directed(COVERED_POLICY, blocking)[0]]
    assert first.description not in names
    assert f"{first.description} (2)" in names


def test_nothing_is_made_where_nothing_is_missed() -> None:
    made, before = directed(COVERED_POLICY)
    more, after = directed(COVERED_POLICY, made)
    assert more == []
    assert after == before


def test_those_that_add_most_come_first_and_no_more_than_wanted() -> None:
    made, _ = directed(COVERED_POLICY)
    some, last = directed(COVERED_POLICY, most=2)
    assert some == made[:2]
    assert 0 < last.mutation.score < 1
    assert any(found.uncovered for found in last.coverage)


def test_a_value_outside_looks_like_the_entry_that_it_is_not() -> None:
    made, _ = directed(tiny_policy(deny("below", arguments=[matcher("source", "path", "/a/b")])))
    values = [one.request.arguments.get("path") for one in made]
    values += [value for one in made for value in one.request.arguments.get("paths", ())]
    assert any(str(value).startswith("/a/b-next") for value in values)


def test_the_same_is_made_each_time() -> None:
    assert directed(COVERED_POLICY) == directed(COVERED_POLICY)


@pytest.mark.parametrize("seed", range(5))
def test_what_random_suites_miss_is_made_in_calls_that_tools_take_and_counted_as_verifying_does(
    seed: int,
) -> None:
    random = Random(seed)
    spec = random_policy(random, "small")
    policy = compile_policy(json.dumps(spec))
    scenarios = expecting(policy, *random_requests(random, spec, 20))
    made, last = directed(policy, scenarios)
    schemas = {(tool["server_name"], tool["tool_name"]): tool.get("input_schema") for tool in spec["tools"]}
    for one in made:
        assert not argument_violations(
            schemas[one.request.server_name, one.request.tool_name],
            one.request.arguments,
        )
    report = verify(policy, [*scenarios, *made], mutation=True)
    assert not report.failures
    assert (report.coverage, report.mutation) == (last.coverage, last.mutation)
    before = verify(policy, scenarios, mutation=True)
    assert before.mutation is not None
    assert last.mutation.killed >= before.mutation.killed
    for less, more in zip(before.coverage, last.coverage, strict=True):
        assert less.covered <= more.covered
        assert less.reachable == more.reachable

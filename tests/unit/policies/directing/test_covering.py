from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import pytest

from peripety.engine import compile_policy
from peripety.policy.coverage_generation.gap_scenarios import generate_for_gaps
from peripety.policy.rule_paths import argument_violations
from peripety.policy.types import CoverageGenerated, ScenarioOrigin, TestScenario
from peripety.policy.verification.verify import verify
from support.engine.policies import allow, deny, escalate, matcher, request, tiny_policy
from support.engine.policy_generators import random_policy, random_requests
from support.policy.policies import expecting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.engine import Policy


POLICY = tiny_policy(
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
    made, last = directed(POLICY)
    assert made
    assert [found.uncovered for found in last.coverage] == [(), (), ()]
    assert (last.mutation.survived, last.mutation.score) == (0, 1.0)


def test_directed_scenarios_expect_what_the_rules_say_and_say_that_they_are_directed() -> None:
    made, _ = directed(POLICY)
    for one in made:
        decided = POLICY.decide(one.request)
        assert one.expected_decision.value == decided.decision.value
        assert one.rule_id == decided.rule_id
        assert one.reasoning == decided.reasons[-1]
        assert one.source is ScenarioOrigin.DIRECTED


def test_each_is_described_by_a_sentence_of_its_own() -> None:
    made, _ = directed(POLICY)
    names = [one.description for one in made]
    assert len({*names}) == len(names)
    assert all(any(rule in name for rule in ("below", "small", "guest", "no rule")) for name in names)


def test_descriptions_differ_from_those_that_are_there() -> None:
    made, _ = directed(POLICY)
    [first, *_] = made
    blocking = [TestScenario(first.description, request("other"), first.expected_decision)]
    names = [one.description for one in directed(POLICY, blocking)[0]]
    assert first.description not in names
    assert f"{first.description} (2)" in names


def test_nothing_is_made_where_nothing_is_missed() -> None:
    made, before = directed(POLICY)
    more, after = directed(POLICY, made)
    assert more == []
    assert after == before


def test_those_that_add_most_come_first_and_no_more_than_wanted() -> None:
    made, _ = directed(POLICY)
    some, last = directed(POLICY, most=2)
    assert some == made[:2]
    assert 0 < last.mutation.score < 1
    assert any(found.uncovered for found in last.coverage)


def test_a_value_outside_looks_like_the_entry_that_it_is_not() -> None:
    made, _ = directed(tiny_policy(deny("below", arguments=[matcher("source", "path", "/a/b")])))
    values = [one.request.arguments.get("path") for one in made]
    values += [value for one in made for value in one.request.arguments.get("paths", ())]
    assert any(str(value).startswith("/a/b-next") for value in values)


def test_the_same_is_made_each_time() -> None:
    assert directed(POLICY) == directed(POLICY)


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

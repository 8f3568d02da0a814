from __future__ import annotations

import json
from random import Random

import pytest

from peripety.engine import compile_policy
from peripety.policy.coverage_generation.minimize import choose_scenarios, minimal_suite, reached_by_scenario
from peripety.policy.mutation.operators import iter_mutations
from peripety.policy.types import ScenarioOrigin
from peripety.policy.verification.coverage import EvaluatedSuite, coverage_targets, reaching_scenarios
from support.engine.policies import allow, deny, request, tiny_policy
from support.engine.policy_generators import random_policy, random_requests
from support.policy.policies import expecting, scenario

POLICY = tiny_policy(allow("a", tools=["read"]), deny("b", tools=["send"]))


def test_gains_turn_who_reaches_what_round() -> None:
    assert reached_by_scenario([0b01, 0b11, 0b00], 2) == [0b011, 0b010]


def test_the_one_that_adds_most_is_taken_first() -> None:
    assert choose_scenarios([0b0001, 0b0111, 0b1000]) == [1, 2]


def test_the_first_of_several_that_add_as_much_is_taken() -> None:
    assert choose_scenarios([0b11, 0b11]) == [0]


def test_what_kept_ones_reach_is_no_gain() -> None:
    assert choose_scenarios([0b011, 0b011, 0b110], fixed=[0]) == [2]


def test_who_was_made_needless_by_later_ones_goes_again() -> None:
    assert choose_scenarios([0b001111, 0b110011, 0b001100 | 0b01000000, 0b10000011]) == [1, 2, 3]


def _bits(*things: int) -> int:
    return sum(1 << thing for thing in things)


def test_one_takes_the_place_of_two_that_would_each_be_kept_for_one_thing() -> None:
    large = [_bits(0, 1, 2, 3, 4), _bits(5, 6, 7, 8, 9)]
    covering = [_bits(1, 2, 10, 11), _bits(3, 4, 12, 13), _bits(6, 7, 14, 15), _bits(8, 9, 16, 17)]
    assert sorted(choose_scenarios([*large, *covering, _bits(0, 5)])) == [2, 3, 4, 5, 6]


def test_who_reaches_nothing_is_never_taken() -> None:
    assert choose_scenarios([0, 0]) == []


def test_a_scenario_that_adds_nothing_is_left_out() -> None:
    scenarios = expecting(POLICY, request(), request(size=1), request("send"), request("send"))
    assert [one.description for one in minimal_suite(POLICY, scenarios)] == ["s0", "s2"]


def test_handwritten_ones_stay_and_come_first() -> None:
    written = [
        scenario("written", request(), "allow"),
        scenario("by hand", request(), "allow", source=ScenarioOrigin.HANDWRITTEN),
        scenario("by hand, too", request(), "not_allow", source=ScenarioOrigin.HANDWRITTEN),
    ]
    assert [one.description for one in minimal_suite(POLICY, written)] == ["by hand", "by hand, too"]


def test_written_ones_are_preferred_to_directed_ones_that_add_as_much() -> None:
    directed = scenario("directed", request(), "allow", source=ScenarioOrigin.DIRECTED)
    probe = scenario("probe", request(), "allow", source=ScenarioOrigin.PROBE)
    other = scenario("other", request("send"), "deny", source=ScenarioOrigin.DIRECTED)
    assert [one.description for one in minimal_suite(POLICY, [directed, other, probe])] == ["probe", "other"]


def test_what_fails_is_never_hidden() -> None:
    wrong = scenario("wrong", request(), "deny")
    assert wrong in minimal_suite(POLICY, [scenario("right", request(), "allow"), wrong])


def test_no_scenarios_are_no_scenarios() -> None:
    assert minimal_suite(POLICY, []) == ()


@pytest.mark.parametrize("seed", range(4))
def test_a_smaller_suite_kills_and_reaches_what_the_larger_one_does(seed: int) -> None:
    random = Random(seed)
    spec = random_policy(random, "small")
    policy = compile_policy(json.dumps(spec))
    scenarios = expecting(policy, *random_requests(random, spec, 150))
    kept = minimal_suite(policy, scenarios)
    assert len(kept) < len(scenarios)
    assert minimal_suite(policy, kept) == kept

    def things(suite: EvaluatedSuite) -> list[bool]:
        killed = suite.failing_by_change(mutation.rules for mutation in iter_mutations(policy))
        return [bool(by) for by in (*killed, *reaching_scenarios(suite, coverage_targets(policy)))]

    assert things(EvaluatedSuite(policy, kept)) == things(EvaluatedSuite(policy, scenarios))

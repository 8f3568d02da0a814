from __future__ import annotations

import json
from random import Random

import pytest

from peripety.policies.directing.choosing import chosen, gains, smallest
from peripety.policies.model import ScenarioSource
from peripety.policies.mutating.operators import mutations
from peripety.policies.verifying.coverage import reaching
from peripety.policies.verifying.suite import Suite
from peripety.policies.verifying.targets import aims
from peripety.sim import compile_policy
from support.random_policies import random_policy
from support.random_requests import random_requests
from support.tiny_policies import allow, deny, expecting, request, scenario, tiny_policy

POLICY = tiny_policy(allow("a", tools=["read"]), deny("b", tools=["send"]))


def test_gains_turn_who_reaches_what_round() -> None:
    assert gains([0b01, 0b11, 0b00], 2) == [0b011, 0b010]


def test_the_one_that_adds_most_is_taken_first() -> None:
    assert chosen([0b0001, 0b0111, 0b1000]) == [1, 2]


def test_the_first_of_several_that_add_as_much_is_taken() -> None:
    assert chosen([0b11, 0b11]) == [0]


def test_what_kept_ones_reach_is_no_gain() -> None:
    assert chosen([0b011, 0b011, 0b110], kept=[0]) == [2]


def test_who_was_made_needless_by_later_ones_goes_again() -> None:
    assert chosen([0b001111, 0b110011, 0b001100 | 0b01000000, 0b10000011]) == [1, 2, 3]


def _bits(*things: int) -> int:
    return sum(1 << thing for thing in things)


def test_one_takes_the_place_of_two_that_would_each_be_kept_for_one_thing() -> None:
    large = [_bits(0, 1, 2, 3, 4), _bits(5, 6, 7, 8, 9)]
    covering = [_bits(1, 2, 10, 11), _bits(3, 4, 12, 13), _bits(6, 7, 14, 15), _bits(8, 9, 16, 17)]
    assert sorted(chosen([*large, *covering, _bits(0, 5)])) == [2, 3, 4, 5, 6]


def test_who_reaches_nothing_is_never_taken() -> None:
    assert chosen([0, 0]) == []


def test_a_scenario_that_adds_nothing_is_left_out() -> None:
    scenarios = expecting(POLICY, request(), request(size=1), request("send"), request("send"))
    assert [one.description for one in smallest(POLICY, scenarios)] == ["s0", "s2"]


def test_handwritten_ones_stay_and_come_first() -> None:
    written = [
        scenario("written", request(), "allow"),
        scenario("by hand", request(), "allow", source=ScenarioSource.HANDWRITTEN),
        scenario("by hand, too", request(), "not_allow", source=ScenarioSource.HANDWRITTEN),
    ]
    assert [one.description for one in smallest(POLICY, written)] == ["by hand", "by hand, too"]


def test_written_ones_are_preferred_to_directed_ones_that_add_as_much() -> None:
    directed = scenario("directed", request(), "allow", source=ScenarioSource.DIRECTED)
    probe = scenario("probe", request(), "allow", source=ScenarioSource.PROBE)
    other = scenario("other", request("send"), "deny", source=ScenarioSource.DIRECTED)
    assert [one.description for one in smallest(POLICY, [directed, other, probe])] == ["probe", "other"]


def test_what_fails_is_never_hidden() -> None:
    wrong = scenario("wrong", request(), "deny")
    assert wrong in smallest(POLICY, [scenario("right", request(), "allow"), wrong])


def test_no_scenarios_are_no_scenarios() -> None:
    assert smallest(POLICY, []) == ()


@pytest.mark.parametrize("seed", range(4))
def test_a_smaller_suite_kills_and_reaches_what_the_larger_one_does(seed: int) -> None:
    random = Random(seed)
    spec = random_policy(random, "small")
    policy = compile_policy(json.dumps(spec))
    scenarios = expecting(policy, *random_requests(random, spec, 150))
    kept = smallest(policy, scenarios)
    assert len(kept) < len(scenarios)
    assert smallest(policy, kept) == kept

    def things(suite: Suite) -> list[bool]:
        killed = suite.failing(mutation.rules for mutation in mutations(policy))
        return [bool(by) for by in (*killed, *reaching(suite, aims(policy)))]

    assert things(Suite(policy, kept)) == things(Suite(policy, scenarios))

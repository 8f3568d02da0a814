from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import Policy, canonicalize, compile_policy
from peripety.engine._reference.policy import ReferencePolicy as CorePolicy
from peripety.engine.policies.types import ToolRequest
from peripety.errors import InvalidArgumentError
from peripety.policy.mutation.operators import iter_mutations, mutated_rules
from peripety.policy.types import Expectation, TestScenario
from peripety.policy.verification.coverage import EvaluatedSuite
from peripety.policy.verification.verify import verify
from support.engine.policies import (
    allow,
    deny,
    escalate,
    matcher,
    policy_document,
    request,
    tiny_policy,
    tool,
)
from support.engine.policy_generators import hostile_requests, random_policy, random_requests
from support.policy.policies import expecting, scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.core.mutation_testing import Coverage


SIZE = {"var": "arguments.size"}
MODE = {"var": "arguments.mode"}


def covered(policy: Policy, *requests: ToolRequest) -> dict[str, Coverage]:
    report = verify(policy, expecting(policy, *requests))
    return {found.kind: found for found in report.coverage}


def missed(kind: str, policy: Policy, *requests: ToolRequest) -> set[str]:
    return set(covered(policy, *requests)[kind].uncovered)


def test_each_rule_has_to_decide_once_and_none_of_them_as_well() -> None:
    policy = tiny_policy(
        allow("a", tools=["read"]),
        deny("b", roles=["x"]),
        invariants=[deny("structural-c", roles=["y"])],
    )
    found = covered(policy, request())["rule"]
    assert (found.covered, found.reachable) == (1, 4)
    assert found.uncovered == ("/invariants/0", "/rules/1", "/rules/-")
    asked = (request(), request(roles=["y"]), request("send", roles=["x"]), request("send"))
    assert missed("rule", policy, *asked) == set()


def test_a_rule_that_nothing_can_reach_does_not_count() -> None:
    policy = tiny_policy(allow("a", tools=["read"]), deny("b", servers=["alpha"]))
    found = covered(policy, request(), request("send"))["rule"]
    assert (found.covered, found.reachable, found.unreachable) == (2, 2, ("/rules/1",))


def test_a_rule_that_takes_hold_because_it_cannot_be_evaluated_decides() -> None:
    policy = tiny_policy(deny("a", tools=["read"], logic={">": [MODE, 1]}))
    assert missed("rule", policy, request(mode="a"), request("send")) == set()


def test_each_member_has_to_be_true_and_false() -> None:
    policy = tiny_policy(allow("a", tools=["read"], roles=["x"]))
    place = "/rules/0/when"
    everything = {
        f"{place}/tools/false",
        f"{place}/tools/true",
        f"{place}/roles/false",
        f"{place}/roles/true",
    }
    assert missed("condition_decision", policy) == everything
    assert missed("condition_decision", policy, request()) == everything - {
        f"{place}/tools/true",
        f"{place}/roles/false",
    }
    assert missed("condition_decision", policy, request(roles=["x"]), request(), request("send")) == set()


def test_a_member_is_asked_only_when_those_before_it_hold_and_no_rule_before_it_takes_hold() -> None:
    policy = tiny_policy(deny("first", roles=["y"]), allow("a", tools=["read"], roles=["x"]))
    unseen = missed("condition_decision", policy, request("send", roles=["x"]), request(roles=["x", "y"]))
    assert {"/rules/1/when/roles/true", "/rules/1/when/roles/false", "/rules/1/when/tools/true"} <= unseen


def test_each_matcher_is_a_part_of_its_own() -> None:
    one, two = matcher("source", "path", "/a"), matcher("source", "path", "/a/b", quantifier="none")
    policy = tiny_policy(allow("a", arguments=[one, two]))
    place = "/rules/0/when/arguments"
    assert missed("condition_decision", policy, request(path="/a/b")) == {
        f"{place}/0/false",
        f"{place}/1/true",
    }
    asked = (request(path="/a/b"), request(path="/a"), request(path="/c"))
    assert missed("condition_decision", policy, *asked) == set()


@pytest.mark.parametrize(
    ("logic", "asked", "unseen"),
    [
        (
            {"and": [{"<": [SIZE, 5]}, {"==": [MODE, "a"]}]},
            {"size": 9},
            ["and/0/true", "and/1/true", "and/1/false"],
        ),
        (
            {"or": [{"<": [SIZE, 5]}, {"==": [MODE, "a"]}]},
            {"size": 1},
            ["or/0/false", "or/1/true", "or/1/false"],
        ),
        ({"!": [{"<": [SIZE, 5]}]}, {"size": 1}, ["!/0/false"]),
        ({"!": {"<": [SIZE, 5]}}, {"size": 1}, ["!/false"]),
        (
            {"if": [{"<": [SIZE, 5]}, {"==": [MODE, "a"]}, {"==": [MODE, "b"]}]},
            {"size": 1, "mode": "a"},
            ["if/0/false", "if/1/false", "if/2/true", "if/2/false"],
        ),
    ],
)
def test_comparisons_are_seen_only_where_what_connects_them_asks_them(
    logic: dict[str, Any],
    asked: dict[str, Any],
    unseen: list[str],
) -> None:
    policy = tiny_policy(allow("a", tools=["read"], logic=logic))
    place = "/rules/0/when/logic/"
    found = missed("condition_decision", policy, request(**asked))
    assert sorted(path for path in found if path.startswith(place) and path.count("/") > 5) == sorted(
        place + path for path in unseen
    )


def test_a_logic_that_always_holds_has_nothing_to_reach() -> None:
    assert covered(tiny_policy(deny("all")), request())["condition_decision"].reachable == 0


def test_both_sides_of_a_number_are_reached_at_its_neighbours() -> None:
    policy = tiny_policy(allow("a", tools=["read"], logic={"<": [SIZE, 10]}))
    place = "/rules/0/when/logic/</1"
    assert missed("boundary", policy, request(size=5), request(size=50)) == {
        f"{place}/{point}" for point in ("on", "below", "above")
    }
    assert missed("boundary", policy, request(size=9), request(size=10), request(size=11)) == set()


@pytest.mark.parametrize(("last", "beyond"), [(2**53 - 1, "above"), (1 - 2**53, "below")])
def test_behind_the_last_integer_every_number_is_a_neighbour(last: int, beyond: str) -> None:
    rules = [allow("r", logic={"<": [{"var": "arguments.size"}, last]})]
    policy = compile_policy(policy_document(tools=[tool("read", "alpha")], rules=rules))
    uncovered = missed("boundary", policy, request(size=1e300), request(size=-1e300))
    assert f"/rules/0/when/logic/</1/{beyond}" not in uncovered
    assert "/rules/0/when/logic/</1/on" in uncovered


def test_a_neighbour_that_a_tool_does_not_take_cannot_be_reached() -> None:
    policy = tiny_policy(allow("a", tools=["read"], logic={"<=": [SIZE, 1000]}))
    found = covered(policy, request(size=1000), request(size=999))["boundary"]
    assert (found.uncovered, found.unreachable) == ((), ("/rules/0/when/logic/<=/1/above",))


@pytest.mark.parametrize(
    ("role", "kind", "entry", "points"),
    [
        ("source", "path", "/a/b", {"on": "/a/b", "inside": "/a/b/c", "outside": "/a/bc"}),
        ("source", "path", "/", {"on": "/", "inside": "/a"}),
        ("label", "identifier", "x", {"on": "x"}),
        ("origin", "domain", "a.example", {"on": "https://a.example/", "outside": "b.a.example"}),
        ("origin", "domain", "*.a.example", {"inside": "b.a.example", "outside": "a.example"}),
        ("origin", "domain", "*", {}),
        ("recipient", "email", "x@a.example", {"on": "x@a.example", "outside": "y@a.example"}),
        ("recipient", "email", "*@a.example", {"inside": "x@a.example", "outside": "x@b.a.example"}),
        ("recipient", "email", "*@*.a.example", {"inside": "x@b.a.example", "outside": "x@a.example"}),
    ],
)
def test_each_entry_has_values_on_it_or_inside_and_values_just_outside(
    role: str,
    kind: str,
    entry: str,
    points: dict[str, str],
) -> None:
    policy = tiny_policy(allow("a", arguments=[matcher(role, kind, entry)]))
    place = "/rules/0/when/arguments/0/among/0"
    assert missed("boundary", policy) == {f"{place}/{point}" for point in points}
    argument = {"source": "path", "label": "label", "origin": "url", "recipient": "to"}[role]
    tool = "read" if role == "source" else "send"
    for point, value in points.items():
        assert f"{place}/{point}" not in missed("boundary", policy, request(tool, **{argument: value}))


def test_what_only_looks_like_an_entry_is_outside_of_it() -> None:
    policy = tiny_policy(allow("a", arguments=[matcher("source", "path", "/a/b")]))
    seen = {"/rules/0/when/arguments/0/among/0/on", "/rules/0/when/arguments/0/among/0/inside"}
    assert missed("boundary", policy, request(path="/a/b-next")) == seen


def test_a_value_of_a_list_is_reached_wherever_the_list_is_used() -> None:
    lists = {
        "outer": {"kind": "identifier", "values": ["@inner"]},
        "inner": {"kind": "identifier", "values": ["x"]},
    }
    rules = [
        allow("a", roles=["r"], arguments=[matcher("label", "identifier", "@outer")]),
        deny("b", arguments=[matcher("label", "identifier", "@inner")]),
    ]
    policy = tiny_policy(*rules, lists=lists)
    assert missed("boundary", policy) == {"/lists/inner/values/0/on"}
    assert missed("boundary", policy, request("send", label="x")) == set()


def test_each_element_of_a_written_list_has_to_be_met() -> None:
    policy = tiny_policy(allow("a", tools=["read"], logic={"in": [MODE, ["a", "b"]]}))
    assert missed("boundary", policy, request(mode="b")) == {"/rules/0/when/logic/in/1/0/on"}


def test_of_very_long_lists_some_values_stand_for_all() -> None:
    lists = {"long": {"kind": "identifier", "values": [f"v{number}" for number in range(9000)]}}
    policy = tiny_policy(allow("a", arguments=[matcher("label", "identifier", "@long")]), lists=lists)
    paths = missed("boundary", policy)
    assert len(paths) == 32
    assert {"/lists/long/values/0/on", "/lists/long/values/8999/on"} <= paths


def test_only_scenarios_that_pass_reach_anything() -> None:
    policy = tiny_policy(escalate("a", tools=["read"]))
    [found, *_] = verify(policy, [scenario("wrong", request(), "allow")]).coverage
    assert (found.kind, found.covered, found.uncovered) == ("rule", 0, ("/rules/0", "/rules/-"))


def test_what_nobody_knows_counts_as_reachable() -> None:
    never = {"===": [{"%": [{"*": [SIZE, SIZE]}, 4]}, 3]}  # no square leaves three
    policy = tiny_policy(allow("a", tools=["read"], logic=never))
    assert "/rules/0" in missed("rule", policy)


def test_a_policy_without_rules_has_the_default_to_reach() -> None:
    policy = tiny_policy()
    assert missed("rule", policy) == {"/rules/-"}
    assert missed("rule", policy, request()) == set()


RULES = (deny("big", logic={">": [{"var": "arguments.size"}, 10]}), allow("rest", servers=["alpha"]))


def test_a_scenario_passes_when_its_expectation_is_met() -> None:
    policy = tiny_policy(*RULES, escalate("send", tools=["send"]))
    suite = EvaluatedSuite(
        policy,
        [
            scenario("right", request(size=11), "deny"),
            scenario("wrong", request(size=10), "deny"),
            scenario("any refusal will do", request(size=11), "not_allow"),
            scenario("as an escalation does", request("send"), "not_allow"),
            scenario("which is no denial", request("send"), "deny"),
            scenario("an unknown tool is denied", request("other"), "deny"),
        ],
    )
    assert suite.passed == 0b101101


def test_only_what_passes_can_notice_a_change() -> None:
    policy = tiny_policy(*RULES)
    suite = EvaluatedSuite(
        policy,
        [scenario("right", request(size=11), "deny"), scenario("wrong", request(size=11), "allow")],
    )
    assert [*suite.failing_by_change([{0: None}])] == [0b01]


def test_a_denial_and_an_escalation_are_the_same_to_who_wants_anything_but_allow() -> None:
    policy = tiny_policy(*RULES)
    suite = EvaluatedSuite(policy, [scenario("either", request(size=11), "not_allow")])
    assert [
        *suite.failing_by_change([{0: {**RULES[0], "then": "escalate"}}, {0: {**RULES[0], "then": "allow"}}]),
    ] == [
        0,
        1,
    ]


def test_without_scenarios_nothing_is_noticed() -> None:
    suite = EvaluatedSuite(tiny_policy(*RULES), [])
    assert (suite.passed, [*suite.failing_by_change([{0: None}])]) == (0, [0])


def test_a_request_that_is_none_is_refused() -> None:
    broken = TestScenario("broken", ToolRequest("alpha", "read", {"a": 2**60}), Expectation.DENY)
    with pytest.raises(InvalidArgumentError, match="NUMBER_RANGE"):
        EvaluatedSuite(tiny_policy(*RULES), [broken])


def _unchecked(spec: Mapping[str, Any]) -> Policy:
    """A policy whose rules may name what none of its tools has, as those of mutants do."""
    document = canonicalize(spec)
    return Policy(document, CorePolicy(document))


@pytest.mark.parametrize("seed", range(4))
def test_a_changed_rule_is_noticed_by_exactly_those_whom_a_policy_compiled_with_it_decides_otherwise(
    seed: int,
) -> None:
    random = Random(seed)
    spec = random_policy(random, "small")
    policy = compile_policy(json.dumps(spec))
    requests = [*random_requests(random, spec, 60), *hostile_requests(random, spec, 60)]
    scenarios = expecting(policy, *requests)
    changes = [*iter_mutations(policy)]
    noticed = [*EvaluatedSuite(policy, scenarios).failing_by_change(change.rules for change in changes)]
    invariants = len(spec["invariants"])
    for number in random.sample(range(len(changes)), min(40, len(changes))):
        rules = mutated_rules(policy.rules, changes[number])[invariants:]
        decided = _unchecked({**spec, "rules": rules}).decide_many(requests)
        assert noticed[number] == sum(
            1 << index
            for index, (wanted, found) in enumerate(zip(scenarios, decided, strict=True))
            if not wanted.expected_decision.is_met_by(found.decision)
        ), changes[number].mutant_id

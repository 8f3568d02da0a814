from __future__ import annotations

from typing import Any

from peripety.engine import compile_policy
from peripety.policy.analysis.equivalence import Reached, ReachTarget, Undecided, Unreachable
from peripety.policy.analysis.lint import find_requests
from support.engine.policies import matching, policy_document, policy_of, rule, tool

_RULES = (
    rule("first", "deny", arguments=[matching("/a")]),
    rule(
        "second",
        "allow",
        arguments=[matching("/a/b", "/c")],
        logic={"<": [{"var": "arguments.amount"}, 10]},
    ),
    rule("third", "escalate", arguments=[matching("/a/d")]),
)


def _reach(*targets: ReachTarget) -> list[Any]:
    return [*find_requests(policy_of(*_RULES), targets)]


def test_a_rule_is_reached_where_none_before_it_takes_hold() -> None:
    policy = policy_of(*_RULES)
    (found,) = find_requests(policy, [ReachTarget(1, decides=True)])
    assert isinstance(found, Reached)
    assert policy.decide(found.request).rule_id == "second"


def test_what_happens_when_no_rule_takes_hold_is_reached_as_well() -> None:
    policy = policy_of(*_RULES[:2])
    (found,) = find_requests(policy, [ReachTarget(2)])
    assert isinstance(found, Reached)
    assert not policy.decide(found.request).rule_id


def test_a_rule_that_an_earlier_one_hides_is_proved_to_be_out_of_reach() -> None:
    assert _reach(ReachTarget(2, decides=True)) == [Unreachable()]


def test_members_of_a_condition_are_reached_both_ways() -> None:
    when = _RULES[1]["when"]
    arguments, logic = {"arguments": when["arguments"]}, {"logic": when["logic"]}
    found = _reach(
        ReachTarget(1, holds=(arguments,)),
        ReachTarget(1, fails=(arguments,)),
        ReachTarget(1, holds=(arguments, logic)),
        ReachTarget(1, holds=(arguments,), fails=(logic,)),
    )
    assert all(isinstance(one, Reached) for one in found)
    assert found[3].request.arguments["amount"] >= 10


def test_values_at_a_boundary_are_reached_unless_the_tool_refuses_them() -> None:
    def at(number: int) -> ReachTarget:
        return ReachTarget(1, holds=({"logic": {"===": [{"var": "arguments.amount"}, number]}},))

    inside, at_it, refused = _reach(at(9), at(10), at(101))
    assert (inside.request.arguments["amount"], at_it.request.arguments["amount"]) == (9, 10)
    assert refused == Unreachable()


def test_a_lookalike_of_a_path_is_reached() -> None:
    beside = matching("/cx", kind="identifier")
    (found,) = _reach(ReachTarget(1, holds=({"arguments": [beside]},)))
    assert found.request.arguments["path"] == "/cx"


def test_what_cannot_be_looked_into_is_undecided_when_no_request_is_found() -> None:
    never = {"==": [{"%": [{"var": "arguments.amount"}, 1]}, 2]}
    (found,) = _reach(ReachTarget(0, holds=({"logic": never},)))
    assert isinstance(found, Undecided)


def test_an_array_that_has_to_be_longer_than_any_request_is_not_made() -> None:
    wants = {"type": "object", "properties": {"a": {"type": "array", "minItems": 10**9}}, "required": ["a"]}
    offered = tool("a", "alpha", input_schema=wants)
    document = policy_document(
        tools=[offered],
        rules=[rule("r", logic={"in": ["x", {"var": "arguments.a"}]})],
    )
    (found,) = find_requests(compile_policy(document), [ReachTarget(0, decides=True)])
    assert isinstance(found, Undecided)

from __future__ import annotations

from typing import Any

import pytest

from peripety.engine import compile_policy
from peripety.policy.analysis.equivalence import Reached, ReachTarget, Undecided, Unreachable
from peripety.policy.analysis.lint import find_requests, find_rule_issues
from peripety.policy.types import RuleIssueKind
from support.engine.policies import matching, policy_document, policy_of, rule, tool, tool_with_roles


def _issues(*rules: Any, **options: Any) -> list[tuple[RuleIssueKind, str, tuple[str, ...]]]:
    return [(one.kind, one.rule_id, one.caused_by) for one in find_rule_issues(policy_of(*rules, **options))]


def test_good_rules_have_no_issues() -> None:
    rules = (rule("a", "deny", arguments=[matching("/a/b")]), rule("b", "allow", arguments=[matching("/a")]))
    assert _issues(*rules) == []


@pytest.mark.parametrize(
    "when",
    [
        {"logic": {"==": [{"var": "arguments.mode"}, "plian"]}},
        {"logic": {">": [{"var": "arguments.amount"}, 100]}},
        {"logic": {"<": [3, {"var": "arguments.amount"}, 4]}},
        {
            "logic": {
                "and": [{"<": [{"var": "arguments.amount"}, 3]}, {">": [{"var": "arguments.amount"}, 7]}],
            },
        },
        {"logic": {"missing": ["arguments.path"]}},
        {"arguments": [matching("/a"), matching("/b")]},
        {"destructive": True},
        {"logic": {"===": [{"var": "server"}, "beta"]}},
    ],
)
def test_a_rule_that_no_request_matches_is_dead(when: Any) -> None:
    assert _issues(rule("r", "allow", **when)) == [(RuleIssueKind.DEAD, "r", ())]


def test_a_rule_that_stops_what_it_cannot_read_is_not_dead() -> None:
    apart = [matching("/a"), matching("/b")]
    assert _issues(rule("r", "escalate", arguments=apart)) == []


def test_a_rule_is_shadowed_by_all_that_take_hold_of_what_it_matches() -> None:
    rules = (
        rule("a", "allow", arguments=[matching("/a")]),
        rule("b", "escalate", arguments=[matching("/b")]),
        rule("both", "deny", arguments=[matching("/a/c", "/b")]),
        rule("c", "allow", arguments=[matching("/c")]),
    )
    assert _issues(*rules) == [(RuleIssueKind.SHADOWED, "both", ("a", "b"))]


def test_a_rule_that_only_invariants_decide_is_overridden() -> None:
    invariants = (rule("structural-a", "deny", arguments=[matching("/a", quantifier="any")]),)
    rules = (rule("r", "allow", arguments=[matching("/a/b")]),)
    found = [(RuleIssueKind.OVERRIDDEN, "r", ("structural-a",))]
    assert _issues(*rules, invariants=invariants) == found


def test_a_rule_is_redundant_when_those_after_it_say_the_same() -> None:
    rules = (
        rule("narrow", "allow", arguments=[matching("/a/b")]),
        rule("wide", "allow", arguments=[matching("/a")]),
    )
    assert _issues(*rules) == [(RuleIssueKind.REDUNDANT, "narrow", ("wide",))]


def test_a_denial_at_the_end_is_redundant() -> None:
    rules = (rule("a", "allow", arguments=[matching("/a")]), rule("rest", "deny"))
    assert _issues(*rules) == [(RuleIssueKind.REDUNDANT, "rest", ())]


def test_an_invariant_is_not_redundant_because_rules_say_the_same() -> None:
    invariants = (rule("structural-a", "deny", arguments=[matching("/a")]),)
    found = _issues(rule("b", "allow", arguments=[matching("/b")]), invariants=invariants)
    assert found == []


def test_witnesses_show_what_is_wrong_on_the_engine() -> None:
    policy = policy_of(
        rule("a", "allow", arguments=[matching("/a")]),
        rule("hidden", "allow", arguments=[matching("/a/b")]),
        rule("same", "escalate", arguments=[matching("/c/d")]),
        rule("wide", "escalate", arguments=[matching("/c")]),
    )
    hidden, same = find_rule_issues(policy)
    assert hidden.witness is not None
    assert policy.decide(hidden.witness).rule_id == "a"
    assert policy.match_rules(policy.prepare([hidden.witness]))[1].holds
    assert same.witness is not None
    assert policy.decide(same.witness).rule_id == "same"


def test_a_rule_that_cannot_be_looked_into_has_no_issue() -> None:
    never = {"==": [{"%": [{"var": "arguments.amount"}, 1]}, 2]}
    assert _issues(rule("r", "allow", logic=never)) == []


def test_tools_are_looked_at_once_for_all_that_are_alike() -> None:
    tools = tuple(tool_with_roles(f"a{number}") for number in range(500))
    rules = (rule("a", "allow", arguments=[matching("/a")]), rule("b", "deny", arguments=[matching("/a/b")]))
    assert (RuleIssueKind.REDUNDANT, "b", ()) in _issues(*rules, tools=tools)


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

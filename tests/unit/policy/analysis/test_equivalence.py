from __future__ import annotations

from typing import Any

import pytest

from peripety.policy.analysis.equivalence import Differs, Equivalent, Undecided, compare_variants
from support.engine.policies import matching, policy_of, rule, tool_with_roles

Json = dict[str, Any]

_WITHIN = rule("within", "allow", arguments=[matching("/a")])
_SMALL = rule("small", "allow", logic={"<": [{"var": "arguments.amount"}, 10]})


def _verdict(before: list[Json], after: list[Json], **options: Any) -> Any:
    policy = policy_of(*before, **options)
    known = {one["id"]: one for one in policy.rules}
    variant = [known[one["id"]] if known.get(one["id"]) == one else one for one in after]
    (verdict,) = compare_variants(policy, [variant])
    if isinstance(verdict, Differs):
        assert (
            policy.decide(verdict.witness).decision
            is not policy_of(*after, **options).decide(verdict.witness).decision
        )
    return verdict


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_WITHIN, rule("within", "deny", arguments=[matching("/a")])),
        (_WITHIN, rule("within", "allow", arguments=[matching("/a/b")])),
        (_WITHIN, rule("within", "allow", arguments=[matching("/")])),
        (_WITHIN, rule("within", "allow", arguments=[matching("/a")], roles=["first"])),
        (_WITHIN, rule("within", "allow", arguments=[matching("/a", quantifier="none")])),
        (_SMALL, rule("small", "allow", logic={"<=": [{"var": "arguments.amount"}, 10]})),
        (_SMALL, rule("small", "allow", logic={"<": [{"var": "arguments.amount"}, 11]})),
        (_SMALL, rule("small", "allow", logic={"!": [_SMALL["when"]["logic"]]})),
        (
            rule("r", "allow", logic={"in": [{"var": "arguments.mode"}, ["plain", "quick"]]}),
            rule("r", "allow", logic={"in": [{"var": "arguments.mode"}, ["plain"]]}),
        ),
        (
            rule("r", "allow", arguments=[matching("/a", role="places")]),
            rule("r", "allow", arguments=[matching("/a", role="places", quantifier="any")]),
        ),
        (
            rule("r", "deny", logic={"in": ["draft", {"var": "arguments.note"}]}),
            rule("r", "escalate", logic={"in": ["draft", {"var": "arguments.note"}]}),
        ),
    ],
)
def test_a_variant_that_decides_otherwise_has_a_witness(before: Json, after: Json) -> None:
    assert isinstance(_verdict([before], [after]), Differs)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_SMALL, rule("small", "allow", logic={"<": [{"var": "arguments.amount"}, 9.5]})),
        (_SMALL, rule("small", "allow", logic={">": [10, {"var": "arguments.amount"}]})),
        (_WITHIN, rule("within", "allow", arguments=[matching("/a/./b/..")])),
        (_WITHIN, rule("within", "allow", arguments=[matching("/a", "/a/b")])),
        (
            _WITHIN,
            rule("within", "allow", arguments=[matching("/a", quantifier="any")]),
        ),
        (
            rule("r", "allow", logic={"!=": [{"var": "arguments.mode"}, "plain"]}, roles=["first"]),
            rule("r", "allow", logic={"!": {"==": [{"var": "arguments.mode"}, "plain"]}}, roles=["first"]),
        ),
        (
            rule("r", "allow", logic={"<=": [0, {"var": "arguments.amount"}, 100]}),
            rule("r", "allow", servers=["alpha"]),
        ),
    ],
)
def test_a_variant_that_decides_the_same_is_proved_to(before: Json, after: Json) -> None:
    assert _verdict([before], [after]) == Equivalent()


def test_what_only_arguments_differ_in_that_the_tool_refuses_is_the_same() -> None:
    before = rule("r", "allow", logic={"missing": ["arguments.path"]})
    assert _verdict([before], [rule("r", "escalate", logic={"missing": ["arguments.path"]})]) == Equivalent()


def test_the_order_of_rules_matters_only_where_both_take_hold() -> None:
    apart = [rule("a", "allow", roles=["a"]), rule("b", "deny", arguments=[matching("/b")])]
    assert isinstance(_verdict(apart, apart[::-1]), Differs)
    apart = [
        rule("a", "allow", arguments=[matching("/a")]),
        rule("b", "escalate", arguments=[matching("/b")]),
    ]
    # The second rule escalates an unreadable path, in either order.
    assert _verdict(apart, apart[::-1]) == Equivalent()


def test_what_cannot_be_evaluated_is_stopped_but_never_allowed() -> None:
    before = [rule("stop", "escalate", arguments=[matching("/a")]), rule("rest", "allow")]
    after = [rule("rest", "allow")]
    verdict = _verdict(before, after)
    assert isinstance(verdict, Differs)
    before = [rule("go", "allow", arguments=[matching("/a")]), rule("rest", "deny")]
    assert isinstance(_verdict(before, [before[1]]), Differs)


def test_two_arguments_at_once_are_searched_and_never_guessed() -> None:
    both = {"<": [{"+": [{"var": "arguments.amount"}, 1]}, 50]}
    assert isinstance(_verdict([rule("r", "allow", logic=both)], []), Differs)
    never = {"==": [{"%": [{"var": "arguments.amount"}, 1]}, 2]}
    assert isinstance(_verdict([rule("r", "allow", logic=never)], []), Undecided)
    assert (
        _verdict([rule("r", "allow", logic=both)], [rule("r", "allow", logic={"!!": [both]})]) == Equivalent()
    )


def test_two_arguments_of_few_values_are_known() -> None:
    both = {"cat": [{"var": "arguments.mode"}, {"var": "arguments.force"}]}
    properties = {"mode": {"enum": ["plain", "quick"]}, "force": {"type": "boolean"}}
    schema = {"type": "object", "properties": properties, "required": ["mode"]}
    tools = (tool_with_roles(input_schema=schema, argument_roles={}),)

    def which(text: str) -> Json:
        return rule("r", "allow", logic={"===": [both, text]})

    assert isinstance(_verdict([which("plaintrue")], [which("plainfalse")], tools=tools), Differs)
    assert _verdict([which("plain?")], [which("quick?")], tools=tools) == Equivalent()
    either = [{"===": [{"var": "arguments.mode"}, "plain"]}, {"===": [{"var": "arguments.force"}, True]}]
    assert (
        _verdict([which("plaintrue")], [rule("r", "allow", logic={"and": either})], tools=tools)
        == Equivalent()
    )


def test_tools_that_are_named_alone_are_looked_at_alone() -> None:
    tools = (tool_with_roles(), tool_with_roles("b", read_only=True), tool_with_roles("c"))
    verdict = _verdict([rule("r", "allow", tools=["b"])], [rule("r", "allow", read_only=True)], tools=tools)
    assert verdict == Equivalent()
    verdict = _verdict([rule("r", "allow", tools=["b"])], [rule("r", "allow", tools=["b", "c"])], tools=tools)
    assert isinstance(verdict, Differs)
    assert verdict.witness.tool_name == "c"

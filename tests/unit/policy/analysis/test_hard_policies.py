"""Large or unusual policies: the analysis returns an answer or "undecided", and never hangs."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.policy.analysis.differences import find_differences
from peripety.policy.analysis.equivalence import (
    Differs,
    Equivalent,
    Reached,
    ReachTarget,
    Undecided,
    compare_variants,
)
from peripety.policy.analysis.lint import find_requests, find_rule_issues
from peripety.policy.types import RuleIssueKind
from support.engine.policies import matching, policy_of, rule, tool_with_roles

Json = dict[str, Any]


def _amount(*bounds: Any) -> Json:
    return {"<": [bounds[0], {"var": "arguments.amount"}, bounds[1]]}


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [("path", "/a/b{}"), ("domain", "b{}.example"), ("email", "b{}@a.example"), ("identifier", "b{}")],
)
def test_ten_thousand_entries_are_as_one(kind: str, pattern: str) -> None:
    lists = {"long": {"kind": kind, "values": [pattern.format(number) for number in range(9_998)]}}
    policy = policy_of(
        rule("known", "allow", arguments=[matching("@long", kind=kind)]),
        rule("one", "deny", arguments=[matching(pattern.format(77), kind=kind, quantifier="any")]),
        lists=lists,
    )
    (first, *_) = find_rule_issues(policy)
    # Only the second rule denies an unreadable value, but the default denies it too.
    kinds = {"identifier": RuleIssueKind.SHADOWED}
    assert (first.rule_id, first.kind) == ("one", kinds.get(kind, RuleIssueKind.REDUNDANT))


def test_a_condition_with_sixty_four_matchers_is_known() -> None:
    matchers = [matching(f"/a/{'b/' * number}") for number in range(64)]
    policy = policy_of(rule("deep", "allow", arguments=matchers), rule("rest", "escalate"))
    (found,) = find_requests(policy, [ReachTarget(0, decides=True)])
    assert isinstance(found, Reached)


def test_sixty_four_matchers_of_elements_are_known_or_undecided() -> None:
    matchers = [matching(f"/a{number}", role="places", quantifier="any") for number in range(64)]
    policy = policy_of(rule("many", "allow", arguments=matchers), rule("rest", "escalate"))
    found, hidden = find_requests(policy, [ReachTarget(0, decides=True), ReachTarget(1, decides=True)])
    assert isinstance(found, Reached | Undecided)
    assert isinstance(hidden, Reached)


def test_deep_logic_is_known() -> None:
    logic: Json = _amount(3, 50)
    for number in range(13):
        logic = {"!": [{"and": [logic, _amount(-number - 2, 200)]}]}
    policy = policy_of(rule("deep", "allow", logic=logic))
    (verdict,) = compare_variants(policy, [[{**policy.rules[0], "when": {"logic": {"!": [_amount(3, 50)]}}}]])
    assert verdict == Equivalent()


def test_a_thousand_numbers_are_known_and_more_are_undecided() -> None:
    def policy_with(count: int) -> Any:
        numbers = [number / 16 for number in range(count)]
        parts = [{"==": [{"var": "arguments.amount"}, number]} for number in numbers]
        blocks = [parts[start : start + 400] for start in range(0, count, 400)]
        rules = [rule(f"r{number}", "allow", logic={"or": block}) for number, block in enumerate(blocks)]
        return policy_of(*rules)

    assert isinstance(next(compare_variants(policy_with(400), [[]])), Differs)
    assert isinstance(next(compare_variants(policy_with(1_200), [[]])), Undecided)


def test_logic_whose_fuel_may_run_out_is_not_looked_into() -> None:
    long = {"in": [{"var": "arguments.note"}, [f"note {number}" for number in range(6_000)]]}
    policy = policy_of(rule("long", "allow", logic={"!": [long]}))
    assert not isinstance(next(compare_variants(policy, [[]])), Equivalent)


def test_rules_that_are_too_intricate_are_undecided() -> None:
    schema = {"type": "object", "properties": {f"a{n}": {"type": "boolean"} for n in range(40)}}
    # Each argument is compared with the most distant one, so every variable order is bad.
    pairs = [
        {"===": [{"!": [{"var": f"arguments.a{n}"}]}, {"!": [{"var": f"arguments.a{n + 20}"}]}]}
        for n in range(20)
    ]
    same = [
        {"or": [{"and": [one, other]}, {"!": [{"or": [one, other]}]}]}
        for n in range(20)
        for one, other in [({"!!": [{"var": f"arguments.a{n}"}]}, {"!!": [{"var": f"arguments.a{n + 20}"}]})]
    ]
    one = tool_with_roles(input_schema=schema, argument_roles={})
    policy = policy_of(rule("same", "allow", logic={"and": same}), tools=(one,))
    assert isinstance(next(compare_variants(policy, [[]])), Differs | Undecided)
    other = policy_of(rule("same", "allow", logic={"and": pairs}), tools=(one,))
    assert not find_differences(policy, other).equivalent
    assert find_rule_issues(policy) == ()


def test_a_schema_that_accepts_nothing_leaves_nothing_to_decide() -> None:
    schema = {"type": "object", "properties": {"path": {"enum": []}}, "required": ["path"]}
    policy = policy_of(
        rule("r", "allow", arguments=[matching("/a")]), tools=(tool_with_roles(input_schema=schema),)
    )
    assert [one.kind for one in find_rule_issues(policy)] == [RuleIssueKind.DEAD]
    assert next(compare_variants(policy, [[]])) == Equivalent()


def test_choices_and_references_of_a_schema_are_followed() -> None:
    schema = {
        "$defs": {"mode": {"anyOf": [{"enum": ["plain", "quick"]}, {"type": "null"}]}},
        "type": "object",
        "properties": {
            "mode": {"$ref": "#/$defs/mode"},
            "path": {"oneOf": [{"type": "string", "pattern": "^/a/"}, {"type": "array", "maxItems": 3}]},
            "amount": {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "null"}]},
        },
        "required": ["mode", "path"],
        "anyOf": [{"required": ["amount"]}, {"required": ["note"]}],
    }
    policy = policy_of(
        rule("dead", "deny", logic={"===": [{"var": "arguments.mode"}, "other"]}),
        rule("small", "deny", logic={"<": [0, {"var": "arguments.amount"}, 5]}),
        rule("in", "allow", arguments=[matching("/a/b")], logic={"==": [{"var": "arguments.mode"}, "quick"]}),
        tools=(tool_with_roles(input_schema=schema),),
    )
    assert [one.rule_id for one in find_rule_issues(policy) if one.kind is RuleIssueKind.DEAD] == [
        "dead",
        "small",
    ]
    assert isinstance(next(compare_variants(policy, [policy.rules[:2]])), Differs)


def test_arguments_within_arguments_go_together() -> None:
    roles = {"/options": "place", "/options/path": "place"}
    schema = {"type": "object", "properties": {"options": {}}}
    policy = policy_of(
        rule("text", "allow", arguments=[matching("/a")], logic={"!!": [{"var": "arguments.options.path"}]}),
        tools=(tool_with_roles(input_schema=schema, argument_roles=roles),),
    )
    # An object cannot be read, and nothing else has a part.
    assert [one.kind for one in find_rule_issues(policy)] == [RuleIssueKind.DEAD]

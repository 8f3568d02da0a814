from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from peripety.core.mutation_testing import REMOVED
from peripety.engine import compile_policy
from peripety.engine.schema_validation import parse_pointer, validate_against_schema
from peripety.engine.schemas import POLICY_SPEC, schema_document
from peripety.errors import InvalidArgumentError
from peripety.policy.mutation.operators import OPERATORS, iter_mutations, mutated_rules
from support.engine.policies import allow, deny, escalate, matcher, tiny_policy
from support.engine.policy_generators import random_policy

Json = dict[str, Any]
SIZE = {"var": "arguments.size"}


def afters(operator: str, *rules: Json, **more: Any) -> list[tuple[str, Any]]:
    """Return the path and the new value of each change by an operator; None for a removed value."""
    return [
        ("/".join(map(str, found.place)), None if found.after is REMOVED else found.after)
        for found in iter_mutations(tiny_policy(*rules, **more), [operator])
    ]


def test_a_rule_may_be_missing() -> None:
    assert afters("drop_rule", allow("a", tools=["read"]), deny("b", tools=["send"])) == [
        ("rules/0", None),
        ("rules/1", None),
    ]


def test_neighbours_may_be_in_the_wrong_order_where_the_order_can_matter() -> None:
    first, second, third = allow("a", tools=["read"]), allow("b", tools=["send"]), deny("c", servers=["beta"])
    assert afters("swap_rules", first, second, third) == [("rules/1", third)]


def test_a_rule_may_say_either_other_thing() -> None:
    assert afters("change_decision", escalate("a", tools=["read"])) == [
        ("rules/0/then", "allow"),
        ("rules/0/then", "deny"),
    ]


def test_a_member_may_be_missing() -> None:
    assert afters("drop_member", allow("a", tools=["read"], roles=["x"], read_only=True)) == [
        ("rules/0/when/tools", None),
        ("rules/0/when/roles", None),
        ("rules/0/when/read_only", None),
    ]


def test_where_the_only_member_is_missing_the_rule_always_holds() -> None:
    assert afters("drop_member", allow("a", tools=["read"])) == [("rules/0/when", {"logic": {}})]
    assert afters("drop_member", allow("a", logic={})) == []


def test_a_matcher_may_be_missing() -> None:
    one, two = matcher("source", "path", "/a"), matcher("source", "identifier", "/b")
    place = "rules/0/when/arguments"
    assert afters("drop_matcher", allow("a", arguments=[one, two])) == [
        (f"{place}/0", None),
        (f"{place}/1", None),
    ]
    assert afters("drop_matcher", allow("a", tools=["read"], arguments=[one])) == [(place, None)]
    assert afters("drop_matcher", allow("a", arguments=[one])) == [("rules/0/when", {"logic": {}})]


@pytest.mark.parametrize(
    ("operator", "member", "names"),
    [
        ("drop_server", "servers", ["alpha", "beta"]),
        ("drop_tool", "tools", ["read", "send"]),
        ("drop_role", "roles", ["x", "y"]),
        ("drop_argument_role", "argument_roles", ["source", "label"]),
    ],
)
def test_one_of_several_names_may_be_missing(operator: str, member: str, names: list[str]) -> None:
    place = f"rules/0/when/{member}"
    assert afters(operator, allow("a", **{member: names})) == [(f"{place}/0", None), (f"{place}/1", None)]
    assert afters(operator, allow("a", **{member: names[:1]})) == []


def test_an_argument_role_of_a_matcher_may_be_missing() -> None:
    two = {**matcher("label", "identifier", "x"), "argument_roles": ["label", "source"]}
    place = "rules/0/when/arguments/0/argument_roles"
    assert afters("drop_argument_role", allow("a", arguments=[two])) == [
        (f"{place}/0", None),
        (f"{place}/1", None),
    ]


@pytest.mark.parametrize("member", ["read_only", "destructive"])
@pytest.mark.parametrize("asked", [True, False])
def test_a_flag_may_be_the_opposite(member: str, *, asked: bool) -> None:
    assert afters(f"flip_{member}", allow("a", **{member: asked})) == [(f"rules/0/when/{member}", not asked)]


def test_a_quantifier_may_be_any_other() -> None:
    def quantifiers(written: str | None) -> list[Any]:
        rule = allow("a", arguments=[matcher("source", "path", "/a", quantifier=written)])
        return [after for _, after in afters("change_quantifier", rule)]

    assert quantifiers(None) == quantifiers("all") == ["any", "none", "not_all"]
    assert quantifiers("none") == ["all", "any", "not_all"]


@pytest.mark.parametrize(
    ("operator", "role", "kind", "entry", "after"),
    [
        ("widen_path", "source", "path", "/a/b/", "/a"),
        ("widen_path", "source", "path", "/a/./b/../c", "/a"),
        ("widen_path", "source", "path", "/a", "/"),
        ("widen_path", "source", "path", "/", None),
        ("narrow_path", "source", "path", "/a/b", "/a/b/inner"),
        ("narrow_path", "source", "path", "/", "/inner"),
        ("widen_host", "origin", "domain", "a.example", "*.a.example"),
        ("widen_host", "origin", "domain", "*.a.example", "*"),
        ("widen_host", "origin", "domain", "*", None),
        ("widen_host", "origin", "domain", "[::1]", None),
        ("widen_host", "recipient", "email", "x@a.example", "*@a.example"),
        ("widen_host", "recipient", "email", "*@a.example", "*@*.a.example"),
        ("widen_host", "recipient", "email", "*@*.a.example", "*@*"),
        ("widen_host", "recipient", "email", "*@*", None),
        ("narrow_host", "origin", "domain", "*.a.example", "a.example"),
        ("narrow_host", "origin", "domain", "a.example", None),
        ("narrow_host", "recipient", "email", "*@*.a.example", "*@a.example"),
        ("narrow_host", "recipient", "email", "*@a.example", None),
        ("widen_host", "label", "identifier", "a.example", None),
    ],
)
def test_an_entry_may_be_too_wide_or_too_narrow(
    operator: str,
    role: str,
    kind: str,
    entry: str,
    after: str | None,
) -> None:
    found = afters(operator, allow("a", arguments=[matcher(role, kind, entry)]))
    assert found == ([] if after is None else [("rules/0/when/arguments/0/among/0", after)])


def test_an_entry_may_be_missing_and_so_may_a_whole_list() -> None:
    lists = {"here": {"kind": "path", "values": ["/c"]}}
    rule = allow("a", arguments=[matcher("source", "path", "/a", "@here")])
    place = "rules/0/when/arguments/0/among"
    assert afters("drop_entry", rule, lists=lists) == [(f"{place}/0", None), (f"{place}/1", None)]
    assert afters("drop_entry", allow("a", arguments=[matcher("source", "path", "/a")])) == []
    assert [place for place, _ in afters("widen_path", rule, lists=lists)] == [f"{place}/0"]


def test_values_may_be_compared_as_they_are_where_no_list_says_what_kind_they_have() -> None:
    lists = {"here": {"kind": "path", "values": ["/c"]}}
    rules = [
        allow("a", arguments=[matcher("source", "path", "/a")]),
        allow("b", arguments=[matcher("source", "path", "@here")]),
        allow("c", arguments=[matcher("label", "identifier", "x")]),
    ]
    assert afters("read_as_identifier", *rules, lists=lists) == [
        ("rules/0/when/arguments/0/kind", "identifier"),
    ]


def test_a_value_of_a_list_may_be_missing_wherever_the_list_is_used() -> None:
    lists = {
        "outer": {"kind": "path", "values": ["/a", "@inner", "@other"]},
        "inner": {"kind": "path", "values": ["/b", "/c"]},
        "other": {"kind": "path", "values": ["/d"]},
    }
    rules = [
        allow("a", arguments=[matcher("source", "path", "@outer", "/e")]),
        deny("b", arguments=[matcher("source", "path", "@inner")]),
        deny("c", arguments=[matcher("source", "path", "@other")]),
    ]
    policy = tiny_policy(*rules, lists=lists)
    found = {"/".join(map(str, m.place)): m.rules for m in iter_mutations(policy, ["drop_list_value"])}
    among = {
        place: {number: rule["when"]["arguments"][0]["among"] for number, rule in changed.items() if rule}
        for place, changed in found.items()
    }
    assert among == {
        "lists/outer/values/0": {0: ["@inner", "@other", "/e"]},
        "lists/outer/values/1": {0: ["/a", "@other", "/e"]},
        "lists/outer/values/2": {0: ["/a", "@inner", "/e"]},
        "lists/inner/values/0": {0: ["/a", "/c", "@other", "/e"], 1: ["/c"]},
        "lists/inner/values/1": {0: ["/a", "/b", "@other", "/e"], 1: ["/b"]},
        "lists/other/values/0": {0: ["/a", "@inner", "/e"]},
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"), ("==", "!="), ("===", "!=="), ("!==", "===")],
)
def test_a_comparison_may_be_the_one_beside_it(before: str, after: str) -> None:
    assert afters("swap_comparison", allow("a", tools=["read"], logic={before: [SIZE, 1]})) == [
        ("rules/0/when/logic", {after: [SIZE, 1]}),
    ]


def test_a_number_may_be_off_by_its_smallest_step() -> None:
    logic = {"and": [{"<": [SIZE, 10]}, {">": [SIZE, -0.25]}, {"==": [{"+": [SIZE, 1]}, 3]}]}
    place = "rules/0/when/logic/and"
    assert afters("shift_number", allow("a", logic=logic)) == [
        (f"{place}/0/</1", 9),
        (f"{place}/0/</1", 11),
        (f"{place}/1/>/1", -0.26),
        (f"{place}/1/>/1", -0.24),
        (f"{place}/2/==/1", 2),
        (f"{place}/2/==/1", 4),
    ]


def test_the_largest_numbers_are_shifted_only_where_they_stay_numbers_of_a_document() -> None:
    rule = allow("a", logic={"<": [SIZE, 2**53 - 1]})
    assert [after for _, after in afters("shift_number", rule)] == [2**53 - 2]


def test_connected_parts_may_be_missing_or_turned_round_or_connected_the_other_way() -> None:
    one, two = {"<": [SIZE, 10]}, {">": [SIZE, 5]}
    rule, place = allow("a", logic={"and": [one, two]}), "rules/0/when/logic"
    assert afters("drop_operand", rule) == [(f"{place}/and/0", None), (f"{place}/and/1", None)]
    assert afters("swap_connective", rule) == [(place, {"or": [one, two]})]
    assert afters("negate_logic", rule) == [
        (place, {"!": {"and": [one, two]}}),
        (f"{place}/and/0", {"!": one}),
        (f"{place}/and/1", {"!": two}),
    ]
    assert afters("negate_logic", allow("a", logic={})) == []


def test_an_element_of_a_written_list_may_be_missing() -> None:
    rule = allow("a", tools=["read"], logic={"in": [{"var": "arguments.mode"}, ["a", "b"]]})
    place = "rules/0/when/logic/in/1"
    assert afters("drop_element", rule) == [(f"{place}/0", None), (f"{place}/1", None)]
    assert afters("drop_element", allow("a", logic={"in": ["x", {"var": "roles"}]})) == []


@pytest.mark.slow(reason="builds a rule as large as a document may be")
def test_a_rule_that_would_be_larger_than_a_document_stands_as_it_is() -> None:
    lists = {"many": {"kind": "identifier", "values": [f"{number}" for number in range(9_000)]}}
    large = deny("large", arguments=[matcher("label", "identifier", "@many") for _ in range(12)])
    small = deny("small", arguments=[matcher("label", "identifier", "@many")])
    made = [*iter_mutations(tiny_policy(large, small, lists=lists), ["drop_list_value"])]
    assert {index for mutation in made for index in mutation.rules} == {1}
    assert not [*iter_mutations(tiny_policy(large, lists=lists), ["drop_list_value"])]


def test_invariants_stand_as_they_are() -> None:
    policy = tiny_policy(
        allow("a", tools=["read", "send"]),
        invariants=[deny("structural-x", tools=["read", "send"])],
    )
    assert {index for found in iter_mutations(policy) for index in found.rules} == {1}


def test_of_very_long_lists_some_entries_stand_for_all() -> None:
    entries = [f"/a/{number}" for number in range(1000)]
    rule = allow("a", arguments=[matcher("source", "path", *entries)])
    dropped = [place.rpartition("/")[2] for place, _ in afters("drop_entry", rule)]
    assert (len(dropped), dropped[0], dropped[-1]) == (32, "0", "999")


def test_operators_that_do_not_exist_are_named_with_those_that_do() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'nonsense'.*drop_rule.*widen_path") as caught:
        [*iter_mutations(tiny_policy(allow("a", tools=["read"])), ["drop_rule", "nonsense"])]
    assert [violation.field for violation in caught.value.violations] == ["operators[1]"]


def test_there_are_many_operators() -> None:
    assert len(set(OPERATORS)) == len(OPERATORS) >= 13


@pytest.mark.parametrize("seed", range(5))
def test_mutants_are_documents_with_ids_of_their_own_and_share_what_is_the_same(
    seed: int,
) -> None:
    spec = random_policy(Random(seed), "small")
    policy = compile_policy(json.dumps(spec))
    found = [*iter_mutations(policy)]
    assert len({mutation.mutant_id for mutation in found}) == len(found)
    assert found == [*iter_mutations(policy)]
    invariants = len(spec["invariants"])
    for mutation in found:
        rules = mutated_rules(policy.rules, mutation)
        assert all(
            rule is original
            for index, (rule, original) in enumerate(zip(rules, policy.rules, strict=False))
            if index < min(mutation.rules)
        )
        assert (
            validate_against_schema(schema_document(POLICY_SPEC), {**spec, "rules": rules[invariants:]}) == []
        )


@pytest.mark.parametrize("seed", range(3))
def test_a_mutant_says_what_stood_in_the_document_before(seed: int) -> None:
    policy = compile_policy(json.dumps(random_policy(Random(seed), "small")))
    for mutation in iter_mutations(policy):
        part: Any = policy.spec
        for segment in mutation.place[: None if mutation.before is not REMOVED else -1]:
            part = part[segment]
        assert mutation.before is REMOVED or part == mutation.before
        assert parse_pointer(mutation.mutant_id.split(":")[1]) == tuple(map(str, mutation.place))

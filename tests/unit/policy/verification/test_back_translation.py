"""Rules in English, with calls on both sides of their border."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.policy.verification.back_translation import translate_policy
from support.engine.policies import matching, policy_of, rule, tool

if TYPE_CHECKING:
    from peripety.policy.verification.back_translation import RuleStatement

AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer"}, "mode": {"type": "string"}}}


def _translate(one: dict[str, Any], *others: dict[str, Any], **options: Any) -> RuleStatement:
    (told,) = translate_policy(policy_of(one, *others, **options))
    return told.rules[0]


@pytest.mark.parametrize(
    ("when", "text"),
    [
        ({"roles": ["a", "b"]}, "Deny any call if the caller has the role a or b."),
        ({"logic": {">": [{"var": "arguments.amount"}, 5]}}, "Deny any call if `amount` is more than 5."),
        ({"logic": {"<": [5, {"var": "arguments.amount"}]}}, "Deny any call if `amount` is more than 5."),
        (
            {"logic": {"<=": [1, {"var": "arguments.amount"}, 5]}},
            "Deny any call if `amount` is between 1 and 5, both inclusive.",
        ),
        (
            {"logic": {"!": [{"or": [{"in": ["a", {"var": "roles"}]}]}]}},
            "Deny any call if the caller does not have the role a.",
        ),
        (
            {
                "logic": {
                    "!": {
                        "and": [
                            {"in": [{"var": "arguments.mode"}, ["x", "y"]]},
                            {"<": [{"var": "arguments.amount"}, 5]},
                        ],
                    },
                },
            },
            'Deny any call if (`mode` is not "x" or "y" or `amount` is at least 5).',
        ),
        ({"logic": {"missing": ["arguments.mode"]}}, "Deny any call if `mode` is missing."),
        ({"logic": {"!!": [{"var": "arguments.mode"}]}}, "Deny any call if `mode` is set."),
        ({"logic": {"!": [{"!!": [{"var": "arguments.mode"}]}]}}, "Deny any call if `mode` is not set."),
        (
            {"logic": {"substr": [{"var": "arguments.mode"}, 0, 1]}},
            'Deny any call if `{"substr": [{"var": "arguments.mode"}, 0, 1]}` holds.',
        ),
    ],
)
def test_conditions_are_said_in_english(when: dict[str, Any], text: str) -> None:
    tools = [tool("one", "alpha", input_schema=AMOUNT)]
    assert _translate(rule("r", "deny", **when), tools=tools).text == text


@pytest.mark.parametrize(
    ("quantifier", "words"),
    [
        ("all", "every `place` is below /a"),
        ("any", "a `place` is below /a"),
        ("none", "no `place` is below /a"),
        ("not_all", "a `place` is not below /a"),
    ],
)
def test_matchers_are_said_with_their_quantifier(quantifier: str, words: str) -> None:
    told = _translate(rule("r", "allow", arguments=[matching("/a", quantifier=quantifier)]))
    assert told.text == f"Allow any call if {words}."


def test_the_english_is_made_from_conditions_and_not_from_the_description() -> None:
    one = {
        **rule("r", "allow", arguments=[matching("/a")]),
        "description": "Denies everything.",
        "principle": "No.",
    }
    (told,) = translate_policy(policy_of(one))
    assert (told.sentence, told.rules[0].text) == ("No.", "Allow any call if every `place` is below /a.")


def test_calls_show_the_border_of_a_number() -> None:
    limit = rule("limit", "deny", logic={">": [{"var": "arguments.amount"}, 50]})
    told = _translate(limit, rule("rest", "allow"), tools=[tool("one", "alpha", input_schema=AMOUNT)])
    assert told.decided is not None
    assert told.decided.request.arguments["amount"] > 50
    assert told.nearest is not None
    assert told.nearest.request.arguments["amount"] == 50
    assert (told.nearest.decision.decision.value, told.nearest.decision.rule_id) == ("allow", "rest")


def test_calls_show_the_border_of_a_path() -> None:
    told = _translate(
        rule("r", "deny", arguments=[matching("/a/b", quantifier="any")]), rule("rest", "allow")
    )
    assert told.nearest is not None
    assert told.nearest.request.arguments["path"].startswith("/a/b-")
    assert told.nearest.decision.decision.value == "allow"


def test_a_rule_that_decides_no_call_has_no_call() -> None:
    told = translate_policy(policy_of(rule("first", "allow"), rule("dead", "deny")))
    first, dead = told[0].rules
    assert first.decided is not None
    assert dead.decided is None


def test_sentences_keep_their_order_and_those_without_a_rule_are_named() -> None:
    rules = (
        {**rule("b", "deny", arguments=[matching("/b")]), "principle": "Beta is closed."},
        {**rule("a", "allow", arguments=[matching("/a")]), "principle": "Alpha is open."},
        rule("c", "deny"),
    )
    told = translate_policy(policy_of(*rules), "Alpha is open.\nGamma is new.\nBeta is closed.\n")
    found = [(one.sentence, [each.rule_id for each in one.rules]) for one in told]
    assert found == [
        ("", ["c"]),
        ("Alpha is open.", ["a"]),
        ("Gamma is new.", []),
        ("Beta is closed.", ["b"]),
    ]


def test_lists_are_written_out_with_their_name() -> None:
    lists = {"known": {"kind": "domain", "values": ["beta.example", "*.beta.example"]}}
    tools = [tool("one", "alpha", argument_roles={"/url": "url"})]
    matcher = {"argument_roles": ["url"], "kind": "domain", "among": ["@known", "gamma.example"]}
    told = _translate(rule("r", "allow", arguments=[matcher], tools=["one"]), lists=lists, tools=tools)
    assert told.text == (
        "Allow a call of alpha/one if every `url` is at beta.example (@known), below beta.example (@known)"
        " or at gamma.example."
    )

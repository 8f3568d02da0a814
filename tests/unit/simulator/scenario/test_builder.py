from __future__ import annotations

import pytest

from peripety.llmsim.script.files import ScriptBuilder, parse_script
from peripety.llmsim.script.sources import ScriptError
from peripety.llmsim.script.types import Script


def test_a_builder_says_what_a_file_says() -> None:
    built = (
        ScriptBuilder(seed=3, pace={"tokens_per_second": 100})
        .respond_to("login", "Username?", max_matches=1, model="m-*", ignore_case=True, name="login")
        .then("Password?")
        .turn("secret", "Welcome.")
        .turn({"type": "exact", "text": "x"}, failure={"type": "auth_error"})
        .respond_to_exact("a", {"text": "A", "delay_ms": 5})
        .respond_to_regex(r"\d+", {"tool_calls": [{"tool": "t", "input": {"n": None}}]})
        .respond_to_glob("b*", failure={"type": "overloaded"})
        .respond_to_any("any", tool_result="ok", message_index={"from": 2})
        .respond_to_any("late", turns=[{"expect": {"type": "any"}, "response": "later"}])
        .default_response("Say login.")
        .build()
    )
    assert built == parse_script(
        r"""
        seed = 3
        pace.tokens_per_second = 100
        default_response = "Say login."

        [[responses]]
        pattern = { type = "contains", text = "login", model = "m-*", ignore_case = true }
        response = "Username?"
        max_matches = 1
        name = "login"
        turns = [
            { expect = { type = "any" }, response = "Password?" },
            { expect = { type = "contains", text = "secret" }, response = "Welcome." },
            { expect = { type = "exact", text = "x" }, failure = { type = "auth_error" } },
        ]

        [[responses]]
        pattern = { type = "exact", text = "a" }
        response = { text = "A", delay_ms = 5 }

        [[responses]]
        pattern = { type = "regex", pattern = '\d+' }
        response = { tool_calls = [{ tool = "t", input = { "$json" = '{"n": null}' } }] }

        [[responses]]
        pattern = { type = "glob", pattern = "b*" }
        failure = { type = "overloaded" }

        [[responses]]
        pattern = { type = "any", tool_result = "ok", message_index = { from = 2 } }
        response = "any"

        [[responses]]
        pattern = { type = "any" }
        response = "late"
        turns = [{ expect = { type = "any" }, response = "later" }]
        """,
    )


def test_an_empty_builder_builds_an_empty_scenario() -> None:
    assert ScriptBuilder().build() == Script()


def test_a_builder_may_go_on_after_it_has_built() -> None:
    builder = ScriptBuilder().respond_to("a", "A")
    first = builder.build()
    second = builder.then("B").build()
    assert len(first.responses[0].turns) == 0
    assert len(second.responses[0].turns) == 1


def test_turns_that_were_handed_over_are_left_alone() -> None:
    turns = [{"expect": {"type": "any"}, "response": "later"}]
    ScriptBuilder().respond_to("a", "A", turns=turns).then("B").build()
    assert len(turns) == 1


def test_a_turn_needs_a_rule() -> None:
    with pytest.raises(ValueError, match="call respond_to first"):
        ScriptBuilder().then("x")


def test_what_is_wrong_is_told_by_its_field() -> None:
    builder = ScriptBuilder().respond_to("a", "A").respond_to_regex("(", "B", max_match=1)
    with pytest.raises(ScriptError) as caught:
        builder.build()
    assert [problem.field_name for problem in caught.value.problems] == [
        "responses[1].pattern.pattern",
        "responses[1].max_match",
    ]
    assert "did you mean `max_matches`?" in str(caught.value)

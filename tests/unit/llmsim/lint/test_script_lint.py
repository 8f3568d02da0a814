"""Flaws of a scenario: each is found, shown by prompts that are played, and nothing else is reported.

What came closest to a prompt that nothing matched.
"""

from __future__ import annotations

from typing import Any

import pytest

from peripety.engine.patterns.syntax import MatchSubject
from peripety.errors import Severity
from peripety.llmsim import Script, ScriptBuilder, load_script
from peripety.llmsim.lint.script_lint import Flaw, FlawCode, NearMisses, lint_script
from peripety.llmsim.script.files import script_from_document
from support.repo.repository import ROOT

ANY = {"type": "any"}
NEVER = {"type": "regex", "pattern": "a^"}


def flaws(scenario: ScriptBuilder | Script) -> list[tuple[FlawCode, str]]:
    scenario = scenario if isinstance(scenario, Script) else scenario.build()
    return [(flaw.code, flaw.place) for flaw in lint_script(scenario)]


def only(scenario: ScriptBuilder | Script) -> Flaw:
    (flaw,) = lint_script(scenario if isinstance(scenario, Script) else scenario.build())
    return flaw


def answering(*patterns: Any) -> Script:
    rules = [{"pattern": pattern, "response": "r"} for pattern in patterns]
    return script_from_document({"default_response": "d", "responses": rules})


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "examples" / "simulator").glob("*.[tj]*")),
    ids=lambda path: path.name,
)
def test_the_examples_have_no_flaws(path: Any) -> None:
    assert lint_script(load_script(path)) == []


# ---- rules


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"type": "any"}, {"type": "contains", "text": "b"}),
        ({"type": "contains", "text": "b"}, {"type": "exact", "text": "abc"}),
        ({"type": "contains", "text": "b", "ignore_case": True}, {"type": "contains", "text": "aB"}),
        ({"type": "regex", "pattern": "[0-9]+"}, {"type": "regex", "pattern": "^[0-9]{3}$"}),
        ({"type": "glob", "pattern": "a*c"}, {"type": "glob", "pattern": "a*b*c"}),
        ({"type": "any", "model": "claude-*"}, {"type": "contains", "text": "b", "model": "claude-3-*"}),
        ({"type": "any", "message_index": {"from": 0, "to": 9}}, {"type": "any", "message_index": 3}),
        ({"type": "any", "tool_result": "ok"}, {"type": "any", "tool_result": "it is ok"}),
    ],
)
def test_a_rule_behind_one_that_matches_as_much_is_shadowed(first: Any, second: Any) -> None:
    flaw = only(answering(first, second))
    assert (flaw.code, flaw.place, flaw.severity) == (FlawCode.SHADOWED_RULE, "responses[1]", Severity.ERROR)
    assert flaw.answers == ("responses[0]",)
    assert flaw.message.startswith("responses[0] answers everything")
    assert flaws(answering(second, first)) == []


def test_a_rule_may_be_shadowed_by_several_together() -> None:
    builder = (
        ScriptBuilder(default_response="d").respond_to_regex("^[a-m]*$", "1").respond_to_regex("[n-z]", "2")
    )
    builder.respond_to_regex("^[a-z]$", "3")
    flaw = only(builder)
    assert flaw.place == "responses[2]"
    assert "responses[0] and responses[1] answer everything" in flaw.message


def test_what_differs_in_one_predicate_is_not_shadowed() -> None:
    builder = (
        ScriptBuilder(default_response="d")
        .respond_to("a", "1", model="x-*")
        .respond_to("a", "2", tool_result="t")
    )
    builder.respond_to("a", "3", message_index=2).respond_to("a", "4", model="y-*").respond_to("a", "5")
    assert flaws(builder) == []


def test_a_rule_with_a_limit_leaves_room_for_those_behind_it() -> None:
    assert (
        flaws(ScriptBuilder(default_response="d").respond_to("a", "1", max_matches=1).respond_to("a", "2"))
        == []
    )


def test_a_rule_whose_pattern_matches_nothing_is_reported() -> None:
    flaw = only(answering(NEVER))
    assert (flaw.code, flaw.place, flaw.witness) == (FlawCode.SHADOWED_RULE, "responses[0]", ())
    assert "matches no prompt" in flaw.message


def test_a_rule_that_may_never_answer_is_reported_with_what_it_would_match() -> None:
    flaw = only(ScriptBuilder(default_response="d").respond_to("a", "1", max_matches=0))
    assert (flaw.code, flaw.place) == (FlawCode.DEAD_MAX_MATCHES, "responses[0]")
    assert [subject.text for subject in flaw.witness] == ["a"]
    assert flaw.answers == ("default_response",)


# ---- sequences


def test_a_turn_that_expects_the_impossible_is_reported_after_the_prompts_that_lead_to_it() -> None:
    builder = (
        ScriptBuilder(default_response="d").respond_to("go", "1").turn("on", "2").turn(NEVER, "3").then("4")
    )
    flaw = only(builder)
    assert (flaw.code, flaw.place) == (FlawCode.UNREACHABLE_TURN, "responses[0].turns[1]")
    assert [subject.text for subject in flaw.witness] == ["go", "on"]
    assert flaw.answers == ("responses[0]", "responses[0].turns[0]")


def test_a_sequence_that_a_prompt_can_end_without_an_answer_can_stall() -> None:
    flaw = only(ScriptBuilder().respond_to("go", "1").then("2").turn("on", "3"))
    assert (flaw.code, flaw.place, flaw.severity) == (
        FlawCode.STALLING_SEQUENCE,
        "responses[0].turns[1]",
        Severity.WARNING,
    )
    assert flaw.answers == ("responses[0]", "responses[0].turns[0]", None)
    assert flaws(ScriptBuilder(default_response="d").respond_to("go", "1").then("2").turn("on", "3")) == []


def test_a_sequence_that_begins_anew_with_whatever_it_does_not_expect_can_stall() -> None:
    flaw = only(ScriptBuilder().respond_to_any("1").turn("on", "2"))
    assert (flaw.code, flaw.place) == (FlawCode.STALLING_SEQUENCE, "responses[0].turns[0]")
    assert flaw.answers == ("responses[0]", "responses[0]")
    assert "restarts each time" in flaw.message
    assert flaws(ScriptBuilder().respond_to("other", "0").respond_to_any("1").turn("on", "2")) == []


def test_a_flaw_can_be_told_to_a_machine() -> None:
    flaw = only(ScriptBuilder(default_response="d").respond_to("a", "1").respond_to("ab", "2"))
    assert flaw.to_json() == {
        "code": "shadowed_rule",
        "severity": "error",
        "place": "responses[1]",
        "message": "responses[0] answers everything that the rule matches; move the rule up or remove it",
        "witness": [
            {
                "prompt": "ab",
                "model": "claude-test",
                "tool_result": None,
                "message_index": 0,
                "answered_by": "responses[0]",
            },
        ],
    }


def closest(builder: ScriptBuilder, subject: MatchSubject, count: int = 3) -> list[str]:
    return [str(miss) for miss in NearMisses(builder.build().responses).closest(subject, count)]


def test_what_has_most_in_common_with_the_prompt_comes_first() -> None:
    builder = ScriptBuilder().respond_to("zzz", "1").respond_to("logs", "2").respond_to_exact("log", "3")
    assert closest(builder, MatchSubject("log in"), 2) == [
        "responses[2]: the prompt is not 'log'; 'log' would match",
        "responses[1]: the prompt does not contain 'logs'; 'logs' would match",
    ]


def test_each_predicate_that_fails_is_named() -> None:
    builder = ScriptBuilder().respond_to(
        "a",
        "1",
        model="x-*",
        tool_result="ok",
        message_index={"from": 1, "to": 2},
    )
    (line,) = closest(builder, MatchSubject("b", "y-1"))
    assert line == (
        "responses[0]: the prompt does not contain 'a' and the model is not like the glob 'x-*' and "
        "the request has no tool result and message_index is 0, not between 1 and 2; 'a' would match"
    )
    assert closest(builder, MatchSubject("a", "x-1", "no", 1)) == [
        "responses[0]: the tool result does not contain 'ok'",
    ]


def test_a_rule_that_fails_in_less_is_closer() -> None:
    builder = ScriptBuilder().respond_to("a", "1", model="x").respond_to("zzz", "2")
    assert closest(builder, MatchSubject("a", "y"), 1) == ["responses[0]: the model is not like the glob 'x'"]


def test_an_example_is_made_for_what_is_written_as_a_pattern() -> None:
    builder = ScriptBuilder().respond_to_regex(r"^\d{3}-[xy]$", "1", ignore_case=True)
    assert closest(builder, MatchSubject("12")) == [
        (
            "responses[0]: the prompt does not match the regex '^\\\\d{3}-[xy]$' in any case; "
            "'000-X' would match"
        ),
    ]


def test_long_texts_are_cut_and_halves_of_characters_do_no_harm() -> None:
    (line,) = closest(ScriptBuilder().respond_to("a" * 500, "1"), MatchSubject("\ud83d"))
    assert len(line) < 200

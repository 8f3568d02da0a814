"""What came closest to a prompt that nothing matched."""

from __future__ import annotations

from peripety.engine.patterns.syntax import MatchSubject
from peripety.llmsim import ScriptBuilder
from peripety.llmsim.lint.script_lint import NearMisses


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

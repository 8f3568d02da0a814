from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime, timedelta
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine.patterns.syntax import Pattern, TextKind, TextPattern
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.files import (
    ScriptBuilder,
    load_script,
    parse_script,
    script_from_document,
    to_toml,
    write_script,
)
from peripety.llmsim.script.sources import ScriptError
from peripety.llmsim.script.types import (
    ClockMode,
    CountScope,
    Fault,
    Pace,
    RateLimit,
    Script,
    ScriptedCall,
    ScriptedUsage,
    ScriptResponse,
    ScriptRule,
    ScriptTurn,
)
from peripety.llmsim.types import SimStopReason

if TYPE_CHECKING:
    from pathlib import Path


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


ANY = Pattern()


def contains(text: str) -> Pattern:
    return Pattern(TextPattern(TextKind.CONTAINS, text))


def one_rule(fields: str) -> ScriptRule:
    (rule,) = parse_script(f'[[responses]]\npattern = {{ type = "any" }}\n{fields}').responses
    return rule


def one_pattern(fields: str) -> Pattern:
    (rule,) = parse_script(f'[[responses]]\nresponse = "x"\npattern = {{ {fields} }}').responses
    return rule.pattern


def test_an_empty_text_is_an_empty_scenario() -> None:
    assert parse_script("") == Script()
    assert parse_script("{}", format="json") == Script()


def test_rules_without_turns_are_read() -> None:
    scenario = parse_script(
        """
        default_response = "?"

        [[responses]]
        pattern = { type = "contains", text = "hello" }
        response = "Hello!"

        [[responses]]
        pattern = { type = "any" }
        response = { text = "What?" }
        max_matches = 2
        """,
    )
    assert scenario.responses == (
        ScriptRule(contains("hello"), ScriptResponse("Hello!")),
        ScriptRule(ANY, ScriptResponse("What?"), max_matches=2),
    )
    assert scenario.default_response == ScriptResponse("?")


def test_turns_stand_in_their_rule() -> None:
    rule = one_rule(
        """
        response = "first"
        turns = [
            { expect = { type = "contains", text = "go" }, response = "second" },
            { expect = { type = "any" }, failure = { type = "auth_error", message = "no" } },
        ]
        """,
    )
    assert rule.turns == (
        ScriptTurn(contains("go"), ScriptResponse("second")),
        ScriptTurn(ANY, failure=Fault("auth_error", {"message": "no"})),
    )


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    toml = """
        seed = 7
        [[responses]]
        pattern = { type = "contains", text = "é😀" }
        response = { tool_calls = [{ tool = "t", input = { a = [1, 2.5, true, "x"] } }] }
        [[responses.turns]]
        expect = { type = "any" }
        response = "done"
    """
    (tmp_path / "a.toml").write_text(toml, encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps(tomllib.loads(toml)), encoding="utf-8")
    assert load_script(tmp_path / "a.toml") == load_script(str(tmp_path / "a.json"))


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b'\xef\xbb\xbfseed = 1\r\ndefault_response = "x"\r\n')
    assert load_script(path) == Script(seed=1, default_response=ScriptResponse("x"))


@pytest.mark.parametrize(
    ("fields", "pattern"),
    [
        ('type = "any"', ANY),
        ('type = "exact", text = "a"', Pattern(TextPattern(TextKind.EXACT, "a"))),
        ('type = "contains", text = "a"', contains("a")),
        ('type = "regex", pattern = "^a+$"', Pattern(TextPattern(TextKind.REGEX, "^a+$"))),
        ('type = "glob", pattern = "a*"', Pattern(TextPattern(TextKind.GLOB, "a*"))),
        (
            'type = "exact", text = "a", ignore_case = true',
            Pattern(TextPattern(TextKind.EXACT, "a", ignore_case=True)),
        ),
        ('type = "any", model = "m-*"', Pattern(model=TextPattern(TextKind.GLOB, "m-*"))),
        (
            'type = "any", model = { type = "exact", text = "m" }',
            Pattern(model=TextPattern(TextKind.EXACT, "m")),
        ),
        (
            'type = "any", tool_result = "ok"',
            Pattern(tool_result=TextPattern(TextKind.CONTAINS, "ok")),
        ),
        (
            'type = "any", tool_result = { type = "regex", pattern = "o.?k" }',
            Pattern(tool_result=TextPattern(TextKind.REGEX, "o.?k")),
        ),
        ('type = "any", message_index = 2', Pattern(message_index=(2, 2))),
        ('type = "any", message_index = { from = 1, to = 3 }', Pattern(message_index=(1, 3))),
        ('type = "any", message_index = { to = 3 }', Pattern(message_index=(0, 3))),
        ('type = "any", message_index = { from = 3 }', Pattern(message_index=(3, 2**31 - 1))),
    ],
)
def test_patterns(fields: str, pattern: Pattern) -> None:
    assert one_pattern(fields) == pattern


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ('"text"', ScriptResponse("text")),
        ('""', ScriptResponse()),
        ("{}", ScriptResponse()),
        (
            '{ text = "a", delay_ms = 5, stop = "length" }',
            ScriptResponse("a", delay_ms=5, stop=SimStopReason.LENGTH),
        ),
        ('{ json = { b = [1, "é"], a = {} } }', ScriptResponse('{"b":[1,"é"],"a":{}}')),
        ('{ reasoning = "hm", text = "a" }', ScriptResponse("a", reasoning="hm")),
        ('{ refusal = "no" }', ScriptResponse(refusal="no")),
        (
            '{ text = "a", tool_calls = [{ tool = "t", input = { n = 1 } }, { tool = "u" }] }',
            ScriptResponse("a", tool_calls=(ScriptedCall("t", {"n": 1}), ScriptedCall("u"))),
        ),
        (
            """{ usage = { input_tokens = 9, output_tokens = 2, reasoning_tokens = 1, cache_read_tokens = 3,
            cache_write_tokens = 4 } }""".replace("\n", ""),
            ScriptResponse(usage=ScriptedUsage(9, 2, 1, 3, 4)),
        ),
        (
            """{ pace = { first_token_ms = 1, tokens_per_second = 20, tokens_per_chunk = 3, jitter = 0.5,
            bytes_per_write = 1 } }""".replace("\n", ""),
            ScriptResponse(pace=Pace(1, 20.0, 3, 0.5, 1)),
        ),
    ],
)
def test_responses(response: str, expected: ScriptResponse) -> None:
    assert one_rule(f"response = {response}").response == expected


def test_what_toml_cannot_say_of_json_is_said_as_json() -> None:
    rule = one_rule(
        r"""response = { tool_calls = [{ tool = "t", input = { "$json" = '{"a":null,"$file":1}' } }] }""",
    )
    assert rule.response == ScriptResponse(tool_calls=(ScriptedCall("t", {"a": None, "$file": 1}),))


def test_a_json_value_of_null_is_a_value() -> None:
    scenario = parse_script('{"default_response": {"json": null}}', format="json")
    assert scenario.default_response == ScriptResponse("null")


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_failure_can_be_written_with_its_name_alone(name: str) -> None:
    rule = one_rule(
        f'failure = {{ type = "{name}" }}\nresponse = {{ text = "x", tool_calls = [{{ tool = "t" }}] }}',
    )
    assert rule.failure == Fault(name, KINDS[name].default_settings)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        ('type = "rate_limit", retry_after = 2', {"retry_after": 2.0}),
        ('type = "rate_limit", retry_after = 0.5, form = "date"', {"retry_after": 0.5, "form": "date"}),
        ('type = "connection_timeout", after_ms = 9', {"after_ms": 9}),
        ('type = "malformed_json", raw = "{"', {"raw": "{"}),
    ],
)
def test_a_failure_has_settings_and_defaults(failure: str, expected: dict[str, Any]) -> None:
    found = one_rule(f"failure = {{ {failure} }}").failure
    assert found is not None
    assert found.settings == {**KINDS[found.type].default_settings, **expected}


@pytest.mark.parametrize(
    ("occurrence", "expected"),
    [
        ("times = 3", (3, None, None)),
        ("times = 3, of = 10", (3, 10, None)),
        ("probability = 0.25", (None, None, 0.25)),
    ],
)
def test_a_failure_says_when_it_occurs(
    occurrence: str,
    expected: tuple[int | None, int | None, float | None],
) -> None:
    failure = one_rule(f'response = "x"\nfailure = {{ type = "overloaded", {occurrence} }}').failure
    assert failure is not None
    assert (failure.times, failure.of, failure.probability) == expected


def test_a_failure_needs_no_response_in_rules_and_turns() -> None:
    rule = one_rule(
        'failure = { type = "overloaded" }\n'
        'turns = [{ expect = { type = "any" }, failure = { type = "out_of_credits" } }]',
    )
    assert rule.response is None
    assert rule.turns[0].response is None


def test_the_fields_of_the_whole() -> None:
    scenario = parse_script(
        """
        seed = 9007199254740991
        clock = "virtual"
        start = 2027-03-01T12:00:00+02:00
        counts = "shared"
        keys = ["key-1", "key-2"]
        failures = [{ type = "overloaded", probability = 0.1 }]
        pace = { tokens_per_second = 50 }

        [[limits]]
        models = "big-*"
        requests_per_minute = 1
        tokens_per_minute = 2
        input_tokens_per_minute = 3
        output_tokens_per_minute = 4
        concurrency = 5

        [[limits]]
        """,
    )
    assert scenario == Script(
        seed=2**53 - 1,
        clock=ClockMode.VIRTUAL,
        start=datetime(2027, 3, 1, 10, tzinfo=UTC),
        counts=CountScope.SHARED,
        keys=("key-1", "key-2"),
        failures=(Fault("overloaded", KINDS["overloaded"].default_settings, probability=0.1),),
        pace=Pace(tokens_per_second=50.0),
        limits=(RateLimit("big-*", 1, 2, 3, 4, 5), RateLimit()),
    )
    assert parse_script('clock = "real"').clock is ClockMode.REAL


def test_the_start_may_be_text() -> None:
    scenario = parse_script('{"start": "2027-03-01T10:00:00.5Z"}', format="json")
    assert scenario.start == datetime(2027, 3, 1, 10, tzinfo=UTC) + timedelta(milliseconds=500)


def test_plain_values_are_read_as_a_file_would_be() -> None:
    document = {"responses": [{"pattern": {"type": "any"}, "response": "x"}]}
    assert script_from_document(document).responses == (ScriptRule(ANY, ScriptResponse("x")),)
    document["responses"][0]["pattern"] = {"type": "some"}
    with pytest.raises(ScriptError) as caught:
        script_from_document(document, name="built")
    assert 'built: responses[0].pattern.type: "some" is not a valid choice' in str(caught.value)


@pytest.mark.slow(reason="parses a very large file")
def test_a_hundred_thousand_rules_are_read_in_seconds() -> None:
    rule = '[[responses]]\npattern = {{ type = "contains", text = "{0}" }}\nresponse = "{0}"\n'
    scenario = parse_script("".join(rule.format(number) for number in range(100_000)))
    assert len(scenario.responses) == 100_000


def test_what_is_written_is_what_a_person_would_write() -> None:
    scenario = (
        ScriptBuilder(seed=3, clock="real", pace={"tokens_per_second": 100})
        .respond_to("login", "Username?", max_matches=1, model="m-*")
        .then('Password?\nIt is "secret".\n')
        .turn({"type": "regex", "pattern": r"^\d+$"}, failure={"type": "rate_limit", "retry_after": 2})
        .respond_to_any(
            {
                "text": "Two calls.",
                "tool_calls": [
                    {"tool": "read", "input": {"path": "a b.txt", "lines": [1, 2]}},
                    {"tool": "write", "input": {"text": None}},
                ],
            },
            tool_result={"type": "any"},
            message_index={"from": 1},
        )
        .default_response("?")
        .build()
    )
    written = write_script(scenario)
    assert written == dedent(
        '''\
        default_response = "?"
        pace = { tokens_per_second = 100.0 }
        seed = 3
        clock = "real"

        [[responses]]
        pattern = { type = "contains", text = "login", model = "m-*" }
        response = "Username?"
        max_matches = 1

        [[responses.turns]]
        expect = { type = "any" }
        response = """
        Password?
        It is "secret".
        """

        [[responses.turns]]
        expect = { type = "regex", pattern = '^\\d+$' }
        failure = { type = "rate_limit", retry_after = 2.0 }

        [[responses]]
        pattern = { type = "any", tool_result = { type = "any" }, message_index = { from = 1 } }

        [responses.response]
        text = "Two calls."
        tool_calls = [
            { tool = "read", input = { path = "a b.txt", lines = [1, 2] } },
            { tool = "write", input = { "$json" = '{"text":null}' } },
        ]
        ''',
    )
    assert parse_script(written) == scenario


def test_an_empty_scenario_is_an_empty_file() -> None:
    assert not write_script(Script())


def test_values_that_toml_does_not_have_are_refused() -> None:
    assert to_toml({"at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}) == "at = 2026-01-02T03:04:05+00:00\n"
    with pytest.raises(TypeError, match="TOML has no NoneType"):
        to_toml({"a": [None]})

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from peripety.sim.patterns import Pattern, TextKind, TextPattern
from peripety.simulator.failures.kinds import KINDS
from peripety.simulator.model import Stop
from peripety.simulator.scenario.load import document_to_scenario, load_scenario, read_scenario
from peripety.simulator.scenario.model import (
    ClockMode,
    CountScope,
    Failure,
    Limit,
    Pace,
    Response,
    Rule,
    Scenario,
    ScriptedCall,
    ScriptedUsage,
    Turn,
)
from peripety.simulator.scenario.problems import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

ANY = Pattern()


def contains(text: str) -> Pattern:
    return Pattern(TextPattern(TextKind.CONTAINS, text))


def one_rule(fields: str) -> Rule:
    (rule,) = read_scenario(f'[[responses]]\npattern = {{ type = "any" }}\n{fields}').responses
    return rule


def one_pattern(fields: str) -> Pattern:
    (rule,) = read_scenario(f'[[responses]]\nresponse = "x"\npattern = {{ {fields} }}').responses
    return rule.pattern


def test_an_empty_text_is_an_empty_scenario() -> None:
    assert read_scenario("") == Scenario()
    assert read_scenario("{}", format="json") == Scenario()


def test_rules_without_turns_are_read() -> None:
    scenario = read_scenario(
        """
        default_response = "?"

        [[responses]]
        pattern = { type = "contains", text = "hello" }
        response = "Hello!"

        [[responses]]
        pattern = { type = "any" }
        response = { text = "What?" }
        max_matches = 2
        """
    )
    assert scenario.responses == (
        Rule(contains("hello"), Response("Hello!")),
        Rule(ANY, Response("What?"), max_matches=2),
    )
    assert scenario.default_response == Response("?")


def test_turns_stand_in_their_rule() -> None:
    rule = one_rule(
        """
        response = "first"
        turns = [
            { expect = { type = "contains", text = "go" }, response = "second" },
            { expect = { type = "any" }, failure = { type = "auth_error", message = "no" } },
        ]
        """
    )
    assert rule.turns == (
        Turn(contains("go"), Response("second")),
        Turn(ANY, failure=Failure("auth_error", {"message": "no"})),
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
    assert load_scenario(tmp_path / "a.toml") == load_scenario(str(tmp_path / "a.json"))


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b'\xef\xbb\xbfseed = 1\r\ndefault_response = "x"\r\n')
    assert load_scenario(path) == Scenario(seed=1, default_response=Response("x"))


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
        ('"text"', Response("text")),
        ('""', Response()),
        ("{}", Response()),
        ('{ text = "a", delay_ms = 5, stop = "length" }', Response("a", delay_ms=5, stop=Stop.LENGTH)),
        ('{ json = { b = [1, "é"], a = {} } }', Response('{"b":[1,"é"],"a":{}}')),
        ('{ reasoning = "hm", text = "a" }', Response("a", reasoning="hm")),
        ('{ refusal = "no" }', Response(refusal="no")),
        (
            '{ text = "a", tool_calls = [{ tool = "t", input = { n = 1 } }, { tool = "u" }] }',
            Response("a", tool_calls=(ScriptedCall("t", {"n": 1}), ScriptedCall("u"))),
        ),
        (
            """{ usage = { input_tokens = 9, output_tokens = 2, reasoning_tokens = 1, cache_read_tokens = 3,
            cache_write_tokens = 4 } }""".replace("\n", ""),
            Response(usage=ScriptedUsage(9, 2, 1, 3, 4)),
        ),
        (
            """{ pace = { first_token_ms = 1, tokens_per_second = 20, tokens_per_chunk = 3, jitter = 0.5,
            bytes_per_write = 1 } }""".replace("\n", ""),
            Response(pace=Pace(1, 20.0, 3, 0.5, 1)),
        ),
    ],
)
def test_responses(response: str, expected: Response) -> None:
    assert one_rule(f"response = {response}").response == expected


def test_what_toml_cannot_say_of_json_is_said_as_json() -> None:
    rule = one_rule(
        r"""response = { tool_calls = [{ tool = "t", input = { "$json" = '{"a":null,"$file":1}' } }] }"""
    )
    assert rule.response == Response(tool_calls=(ScriptedCall("t", {"a": None, "$file": 1}),))


def test_a_json_value_of_null_is_a_value() -> None:
    scenario = read_scenario('{"default_response": {"json": null}}', format="json")
    assert scenario.default_response == Response("null")


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_failure_can_be_written_with_its_name_alone(name: str) -> None:
    rule = one_rule(
        f'failure = {{ type = "{name}" }}\nresponse = {{ text = "x", tool_calls = [{{ tool = "t" }}] }}'
    )
    assert rule.failure == Failure(name, KINDS[name].defaults)


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
    assert found.settings == {**KINDS[found.type].defaults, **expected}


@pytest.mark.parametrize(
    ("occurrence", "expected"),
    [
        ("times = 3", (3, None, None)),
        ("times = 3, of = 10", (3, 10, None)),
        ("probability = 0.25", (None, None, 0.25)),
    ],
)
def test_a_failure_says_when_it_occurs(
    occurrence: str, expected: tuple[int | None, int | None, float | None]
) -> None:
    failure = one_rule(f'response = "x"\nfailure = {{ type = "overloaded", {occurrence} }}').failure
    assert failure is not None
    assert (failure.times, failure.of, failure.probability) == expected


def test_a_failure_needs_no_response_in_rules_and_turns() -> None:
    rule = one_rule(
        'failure = { type = "overloaded" }\n'
        'turns = [{ expect = { type = "any" }, failure = { type = "out_of_credits" } }]'
    )
    assert rule.response is None
    assert rule.turns[0].response is None


def test_the_fields_of_the_whole() -> None:
    scenario = read_scenario(
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
        """
    )
    assert scenario == Scenario(
        seed=2**53 - 1,
        clock=ClockMode.VIRTUAL,
        start=datetime(2027, 3, 1, 10, tzinfo=UTC),
        counts=CountScope.SHARED,
        keys=("key-1", "key-2"),
        failures=(Failure("overloaded", KINDS["overloaded"].defaults, probability=0.1),),
        pace=Pace(tokens_per_second=50.0),
        limits=(Limit("big-*", 1, 2, 3, 4, 5), Limit()),
    )
    assert read_scenario('clock = "real"').clock is ClockMode.REAL


def test_the_start_may_be_text() -> None:
    scenario = read_scenario('{"start": "2027-03-01T10:00:00.5Z"}', format="json")
    assert scenario.start == datetime(2027, 3, 1, 10, tzinfo=UTC) + timedelta(milliseconds=500)


def test_plain_values_are_read_as_a_file_would_be() -> None:
    document = {"responses": [{"pattern": {"type": "any"}, "response": "x"}]}
    assert document_to_scenario(document).responses == (Rule(ANY, Response("x")),)
    document["responses"][0]["pattern"] = {"type": "some"}
    with pytest.raises(ScenarioError) as caught:
        document_to_scenario(document, name="built")
    assert 'built: responses[0].pattern.type: "some" is not a valid choice' in str(caught.value)


def test_a_hundred_thousand_rules_are_read_in_seconds() -> None:
    rule = '[[responses]]\npattern = {{ type = "contains", text = "{0}" }}\nresponse = "{0}"\n'
    scenario = read_scenario("".join(rule.format(number) for number in range(100_000)))
    assert len(scenario.responses) == 100_000

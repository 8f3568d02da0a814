"""Every error in a scenario file is reported with its position, its field and a remedy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from peripety.errors import ErrorKind, FieldViolation, InvalidArgumentError
from peripety.llmsim.script.files import load_script, parse_script
from peripety.llmsim.script.sources import ScriptError, ScriptProblem, SourcePosition

if TYPE_CHECKING:
    from pathlib import Path


RULE = '[[responses]]\npattern = { type = "any" }\n'
ANSWERED = f'{RULE}response = "x"\n'


def problems(text: str, *, format: str = "toml") -> tuple[ScriptProblem, ...]:  # noqa: A002 - as it is called there
    with pytest.raises(ScriptError) as caught:
        parse_script(text, format=format)
    return caught.value.problems


def toml_case(text: str, place: str, field: str, sentence: str) -> object:
    return pytest.param(text, "toml", place, field, sentence, id=f"{field or 'document'}: {sentence[:40]}")


def json_case(text: str, place: str, field: str, sentence: str) -> object:
    return pytest.param(
        text,
        "json",
        place,
        field,
        sentence,
        id=f"json {field or 'document'}: {sentence[:40]}",
    )


@pytest.mark.parametrize(
    ("text", "format_", "place", "field", "sentence"),
    [
        # fields that there are not
        toml_case("sede = 1", "1:1", "sede", "a script has no field `sede`; did you mean `seed`?"),
        toml_case("\n\nrules = []", "3:1", "rules", "did you mean `responses`?"),
        toml_case("actions = []", "1:1", "actions", "a script has no field `actions`; use `responses`,"),
        toml_case("x = 1", "1:1", "x", "a script has no field `x`; use `responses`, `default_response`"),
        toml_case(
            f"{ANSWERED}patern = 1",
            "4:1",
            "responses[0].patern",
            "a rule has no field `patern`; did you mean `pattern`?",
        ),
        toml_case(
            '[[responses]]\npatern = { type = "any" }\nresponse = "x"',
            "2:1",
            "responses[0].patern",
            "did you mean `pattern`?",
        ),
        toml_case(
            f'{ANSWERED}turns = [\n  {{ pattern = {{ type = "any" }}, response = "y" }},\n]',
            "5:5",
            "responses[0].turns[0].pattern",
            "a turn has no field `pattern`; did you mean `expect`?",
        ),
        toml_case(
            f'{ANSWERED}[[responses.turns]]\nexpect = {{ type = "any" }}\nresponse = {{ txt = "y" }}',
            "6:14",
            "responses[0].turns[0].response.txt",
            "a response has no field `txt`; did you mean `text`?",
        ),
        toml_case(
            f'{RULE}response = {{ tool_calls = [{{ name = "t" }}] }}',
            "3:30",
            "responses[0].response.tool_calls[0].name",
            "a tool call has no field `name`; did you mean `tool`?",
        ),
        toml_case(
            f"{RULE}response = {{ usage = {{ inputs = 1 }} }}",
            "3:24",
            "responses[0].response.usage.inputs",
            "did you mean `input_tokens`?",
        ),
        toml_case(
            '[[responses]]\npattern = { type = "contains", pattern = "a" }\nresponse = "x"',
            "2:32",
            "responses[0].pattern.pattern",
            "the pattern type `contains` has no field `pattern`; did you mean `text`?",
        ),
        toml_case(
            '[[responses]]\npattern = { type = "any", text = "a" }\nresponse = "x"',
            "2:27",
            "responses[0].pattern.text",
            "`any` has no field `text`; use `model`, `tool_result` or `message_index`",
        ),
        toml_case(
            '[[responses]]\nresponse = "x"\npattern = { type = "any", model = { type = "any", model = 1 } }',
            "3:51",
            "responses[0].pattern.model.model",
            "the pattern type `any` has no field `model`; no value is valid",
        ),
        toml_case(
            f'{RULE}failure = {{ type = "rate_limit", retry_afer = 1 }}',
            "3:34",
            "responses[0].failure.retry_afer",
            "the failure type `rate_limit` has no field `retry_afer`; did you mean `retry_after`?",
        ),
        # fields that are missing
        toml_case('[[responses]]\nresponse = "x"', "1:1", "responses[0]", "a rule needs the field `pattern`"),
        toml_case(
            f'{ANSWERED}turns = [{{ response = "y" }}]',
            "4:10",
            "responses[0].turns[0]",
            "a turn needs the field `expect`",
        ),
        toml_case(
            '[[responses]]\npattern = { text = "a" }\nresponse = "x"',
            "2:1",
            "responses[0].pattern",
            "a pattern needs the field `type`; use `exact`, `contains`, `regex`, `glob` or `any`",
        ),
        toml_case(
            '[[responses]]\npattern = { type = "regex" }\nresponse = "x"',
            "2:1",
            "responses[0].pattern",
            "the pattern type `regex` needs the field `pattern`",
        ),
        toml_case(RULE, "1:1", "responses[0]", "the answer is missing; add `response`, `failure` or both"),
        toml_case(
            f'{ANSWERED}turns = [{{ expect = {{ type = "any" }} }}]',
            "4:10",
            "responses[0].turns[0]",
            "the answer is missing; add `response`, `failure` or both",
        ),
        toml_case(
            f'{RULE}failure = {{ type = "stream_cut" }}',
            "3:1",
            "responses[0].failure",
            "`stream_cut` needs a response; add `response`",
        ),
        toml_case(
            f'{RULE}response = "x"\nfailure = {{ type = "truncated_arguments" }}',
            "4:1",
            "responses[0].failure",
            "`truncated_arguments` needs tool calls; add `tool_calls` to the response",
        ),
        toml_case(
            f'{RULE}failure = {{ type = "overloaded", times = 3 }}',
            "3:1",
            "responses[0].failure",
            "the failure does not always occur; add the `response` for the other matches",
        ),
        toml_case(
            f"{RULE}response = {{ tool_calls = [{{}}] }}",
            "3:28",
            "responses[0].response.tool_calls[0]",
            "a tool call needs the field `tool`",
        ),
        # values of the wrong type
        toml_case('seed = "1"', "1:1", "seed", 'expected a whole number, not "1"'),
        toml_case("seed = true", "1:1", "seed", "expected a whole number, not true"),
        toml_case("seed = 1.0", "1:1", "seed", "expected a whole number, not 1.0"),
        toml_case("responses = {}", "1:1", "responses", "expected an array, not a table"),
        toml_case('responses = ["x"]', "1:14", "responses[0]", 'a rule must be a table, not "x"'),
        toml_case("default_response = 5", "1:1", "default_response", "expected text or a table, not 5"),
        toml_case("default_response.text = 5", "1:1", "default_response.text", "expected text, not 5"),
        toml_case(
            "default_response.text.a = 5",
            "1:1",
            "default_response.text",
            'expected text or { "$file" = "path" }, not another table',
        ),
        toml_case(
            '[[responses]]\npattern = "login"\nresponse = "x"',
            "2:1",
            "responses[0].pattern",
            'a pattern is a table like { type = "exact", … }, not "login"',
        ),
        toml_case(
            '[[responses]]\npattern = { type = "exact", text = "a", ignore_case = 1 }\nresponse = "x"',
            "2:41",
            "responses[0].pattern.ignore_case",
            "expected true or false, not 1",
        ),
        toml_case(
            '[[responses]]\npattern = { type = "any", tool_result = 1 }\nresponse = "x"',
            "2:27",
            "responses[0].pattern.tool_result",
            "expected text or a table, not 1",
        ),
        toml_case('pace.jitter = "x"', "1:1", "pace.jitter", 'expected a number, not "x"'),
        toml_case(f"{RULE}failure = 1", "3:1", "responses[0].failure", "a failure is a table like { type ="),
        toml_case(
            "start = 2026-01-01",
            "1:1",
            "start",
            "expected a date and a time, such as 2026-01-01T00:00:00Z",
        ),
        toml_case("start = 2026-01-01T00:00:00", "1:1", "start", "has no time zone; write one"),
        toml_case('start = "yesterday"', "1:1", "start", "expected a date and a time, such as"),
        json_case("[]", "1:1", "", "a script must be a table, not an array"),
        json_case('{"responses": [\n  null\n]}', "2:3", "responses[0]", "a rule must be a table, not null"),
        # values out of range
        toml_case("seed = -1", "1:1", "seed", "-1 is out of range; expected from 0 to 9007199254740991"),
        toml_case(
            f"{ANSWERED}max_matches = 4294967296",
            "4:1",
            "responses[0].max_matches",
            "is out of range",
        ),
        toml_case("pace.jitter = 1.5", "1:1", "pace.jitter", "1.5 is out of range; expected from 0 to 1"),
        toml_case("pace.tokens_per_second = 0", "1:1", "pace.tokens_per_second", "0 is out of range"),
        toml_case("pace.tokens_per_second = nan", "1:1", "pace.tokens_per_second", "nan is out of range"),
        toml_case("default_response.delay_ms = -5", "1:1", "default_response.delay_ms", "-5 is out of range"),
        toml_case("limits = [{ concurrency = 0 }]", "1:13", "limits[0].concurrency", "0 is out of range"),
        toml_case(
            'failures = [{ type = "overloaded", probability = 2 }]',
            "1:36",
            "failures[0].probability",
            "2 is",
        ),
        toml_case(
            'failures = [{ type = "overloaded", retry_after = -1 }]',
            "1:36",
            "failures[0].retry_after",
            "-1",
        ),
        toml_case(
            'failures = [{ type = "server_error", status = 200 }]',
            "1:38",
            "failures[0].status",
            "200 is out",
        ),
        toml_case(
            "start = 1969-12-31T00:00:00Z",
            "1:1",
            "start",
            "is out of range; expected the years 1970 to 2999",
        ),
        # invalid choices
        toml_case('clock = "reel"', "1:1", "clock", '"reel" is not a valid choice; did you mean "real"?'),
        toml_case("counts = 1", "1:1", "counts", "1 is not a valid choice; use `conversation` or `shared`"),
        toml_case('default_response.stop = "ends"', "1:1", "default_response.stop", 'did you mean "end"?'),
        toml_case(
            '[[responses]]\npattern = { type = "contans", text = "a" }\nresponse = "x"',
            "2:13",
            "responses[0].pattern.type",
            '"contans" is not a valid choice; did you mean "contains"?',
        ),
        toml_case(
            'failures = [{ type = "ratelimit" }]',
            "1:15",
            "failures[0].type",
            'did you mean "rate_limit"?',
        ),
        toml_case(
            'failures = [{ type = "rate_limit", form = "second" }]',
            "1:36",
            "failures[0].form",
            'did you mean "seconds"?',
        ),
        # invalid patterns
        toml_case(
            '[[responses]]\nresponse = "x"\npattern = { type = "regex", pattern = "a(b" }',
            "3:29",
            "responses[0].pattern.pattern",
            "not a valid regex: ",
        ),
        toml_case(
            f'{ANSWERED}[[responses.turns]]\nresponse = "x"\nexpect = {{ type = "regex", pattern = "*" }}',
            "6:28",
            "responses[0].turns[0].expect.pattern",
            "not a valid regex: ",
        ),
        toml_case(
            '[[responses]]\nresponse = "x"\npattern = { type = "any", model = "m[" }',
            "3:27",
            "responses[0].pattern.model",
            "not a valid glob: ",
        ),
        toml_case('limits = [{ models = "[" }]', "1:13", "limits[0].models", "not a valid glob: "),
        # fields that contradict each other
        toml_case(
            'default_response = { text = "a", json = 1 }',
            "1:34",
            "default_response.json",
            "remove one of them",
        ),
        toml_case(
            'default_response = { refusal = "a", text = "b" }',
            "1:37",
            "default_response.text",
            "a `refusal` cannot be combined with other content; remove one of them",
        ),
        toml_case(
            'default_response = { stop = "tool_use" }',
            "1:22",
            "default_response.stop",
            "stop reason `tool_use` needs `tool_calls`; add some",
        ),
        toml_case(
            "default_response.usage = { output_tokens = 1, reasoning_tokens = 2 }",
            "1:47",
            "default_response.usage.reasoning_tokens",
            "reasoning is a part of the output, which has 1",
        ),
        toml_case(
            'failures = [{ type = "overloaded", of = 3 }]',
            "1:36",
            "failures[0].of",
            "`of` needs `times`, the number of failing matches; add it",
        ),
        toml_case(
            'failures = [{ type = "overloaded", times = 4, of = 3 }]',
            "1:36",
            "failures[0].times",
            "`times` 4 exceeds `of` 3",
        ),
        toml_case(
            'failures = [{ type = "overloaded", times = 4, probability = 1 }]',
            "1:47",
            "failures[0].probability",
            "`probability` cannot be combined with `times`; remove one of them",
        ),
        toml_case(
            '[[responses]]\nresponse = "x"\npattern = { type = "any", message_index = { from = 2, to = 1 } }',
            "3:45",
            "responses[0].pattern.message_index.from",
            "2 is after `to`, which is 1",
        ),
        toml_case(
            f'{ANSWERED}name = "a"\n{ANSWERED}name = "a"',
            "8:1",
            "responses[1].name",
            'another rule has the name "a" already',
        ),
        toml_case(
            'clock = "real"\nstart = 2026-01-01T00:00:00Z',
            "2:1",
            "start",
            "`start` cannot be combined with a real clock; remove `start` or `clock`",
        ),
        # invalid JSON values
        toml_case(
            "default_response.json = { a = 2026-01-01 }",
            "1:27",
            "default_response.json.a",
            'JSON has no date; write it as text: "2026-01-01"',
        ),
        toml_case(
            "default_response.json = [inf]",
            "1:26",
            "default_response.json[0]",
            "inf is not a JSON number",
        ),
        toml_case(
            """default_response.json = { "$json" = '{"a":' }""",
            "1:27",
            "default_response.json.$json",
            "not valid JSON: Expecting value (line 1, column 6 of it)",
        ),
        json_case(
            '{"default_response": {"json": {"a": NaN}}}',
            "1:32",
            "default_response.json.a",
            "nan is not a JSON number",
        ),
        json_case(
            '{"default_response": "\\ud83d"}',
            "1:2",
            "default_response",
            "text contains a lone surrogate (not valid Unicode); remove it",
        ),
        # what was removed
        toml_case(
            "[conversations.login]\nturns = []",
            "1:1",
            "conversations",
            "turns belong to their rule: make `expect` and `response` of a conversation's first turn the "
            "`pattern` and `response` of a rule in `responses`, and its other turns that rule's `turns`",
        ),
        # texts that cannot be parsed
        toml_case("seed = \n", "1:8", "", "not valid TOML: Invalid value"),
        toml_case('a = """\nx', "2:2", "", "not valid TOML: "),
        toml_case("seed = 1\nseed = 2", "2:9", "", "not valid TOML: Cannot overwrite a value"),
        toml_case(f"seed = {'9' * 5000}", "1:1", "", "not valid TOML: Exceeds the limit"),
        json_case('{"seed": 1\n "x": 2}', "2:2", "", "not valid JSON: Expecting ',' delimiter"),
        json_case('{"seed": 1,\n "seed": 2}', "2:2", "", "not valid JSON: the key 'seed' is repeated"),
        json_case("", "1:1", "", "not valid JSON: Expecting value"),
        json_case(f'{{"seed": {"9" * 5000}}}', "1:1", "", "not valid JSON: Exceeds the limit"),
        toml_case("a = " + "[" * 5000, "1:1", "", "not valid TOML: nested too deeply"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_the_way_out(
    text: str,
    format_: str,
    place: str,
    field: str,
    sentence: str,
) -> None:
    (problem,) = problems(text, format=format_)
    line, column = map(int, place.split(":"))
    assert problem.position == SourcePosition(line, column)
    assert problem.field_name == field
    assert sentence in problem.message


def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_the_text() -> None:
    text = """
        [[responses]]
        pattern = { type = "regex", pattern = "(" }
        response = { delay_ms = -1, txt = "a" }
        max_matches = "x"
        [[responses.turns]]
        expect = { type = "whatever" }
        response = 1
        [[limits]]
        concurrency = 0
    """
    assert [
        (problem.position and problem.position.line, problem.field_name) for problem in problems(text)
    ] == [
        (3, "responses[0].pattern.pattern"),
        (4, "responses[0].response.delay_ms"),
        (4, "responses[0].response.txt"),
        (5, "responses[0].max_matches"),
        (7, "responses[0].turns[0].expect.type"),
        (8, "responses[0].turns[0].response"),
        (10, "limits[0].concurrency"),
    ]


def test_the_error_reads_like_a_compilers(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text('sede = 1\nclock = "reel"', encoding="utf-8")
    with pytest.raises(ScriptError) as caught:
        load_script(path)
    assert str(caught.value).splitlines() == [
        f"script {path} is not valid: 2 problems",
        f"  {path}:1:1: sede: a script has no field `sede`; did you mean `seed`?",
        f'  {path}:2:1: clock: "reel" is not a valid choice; did you mean "real"?',
    ]


def test_the_error_is_one_of_the_tree() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_script("sede = 1", name="a.toml")
    error = caught.value
    assert error.kind is ErrorKind.INVALID_ARGUMENT
    assert error.code == "SCENARIO_INVALID"
    assert error.violations == (
        FieldViolation("sede", "a script has no field `sede`; did you mean `seed`? (a.toml:1:1)"),
    )


def test_a_long_list_of_problems_is_cut() -> None:
    text = "\n".join(f"field_{number} = 1" for number in range(30))
    with pytest.raises(ScriptError) as caught:
        parse_script(text)
    assert len(caught.value.problems) == 30
    assert str(caught.value).endswith("... and 10 more")


def test_keys_do_not_appear_in_what_is_said_of_them() -> None:
    for written in ('"secret-ключ"', "1234567", '""'):
        (problem,) = problems(f"keys = [{written}]")
        assert problem.message == "an API key must be printable ASCII text"


def test_values_nested_too_deep_are_refused_wherever_they_stand() -> None:
    deep = json.loads("[" * 200 + "]" * 200)
    text = json.dumps({"default_response": {"json": deep}})
    (problem,) = problems(text, format="json")
    assert "nested more than 64 levels deep" in problem.message


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.yaml", b"", "unknown suffix '.yaml'; use .toml or .json"),
        ("a.toml", b"\xff", "not UTF-8 text: invalid byte 0"),
        ("a.toml", None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(
    tmp_path: Path,
    name: str,
    content: bytes | None,
    sentence: str,
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ScriptError) as caught:
        load_script(tmp_path / name)
    assert str(caught.value).endswith(f"{tmp_path / name}: {sentence}")


def test_fields_with_unusual_names_are_told_apart() -> None:
    (problem,) = problems('default_response.json = { "a b.c" = { "" = nan } }')
    assert problem.field_name == "default_response.json['a b.c']['']"

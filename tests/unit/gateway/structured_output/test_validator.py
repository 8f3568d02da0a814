"""Validation of an incomplete value against the schema of the whole."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.errors import (
    FailedPreconditionError,
    Finding,
    InvalidArgumentError,
    Severity,
    UnavailableError,
    get_remedy,
)
from peripety.gateway.structured_output.validator import (
    PrefixMismatchError,
    extract_json,
    generate_valid,
    parse_json_with_schema,
    schema_hint,
    usage_until,
    validate_prefix,
)
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    Part,
    ProviderState,
    Reasoning,
    Text,
    Tool,
    ToolCall,
)
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from peripety.gateway.types.response import (
    Completed,
    Completion,
    GatewayEvent,
    Repairing,
    StopReason,
    TextDelta,
    Usage,
    UsageTotal,
)
from support.gateway.fake_gateway import FakeGateway

FITTED_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "whole": {"type": "integer"},
        "ratio": {"type": "number"},
        "note": {"type": ["string", "null"]},
        "tree": {"$ref": "#/$defs/tree"},
        "pair": {"prefixItems": [{"type": "string"}], "items": {"type": "boolean"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "both": {"allOf": [{"type": "object"}, {"properties": {"x": {"type": "string"}}}]},
    },
    "additionalProperties": False,
    "$defs": {
        "tree": {"type": "object", "properties": {"below/above": {"$ref": "#/$defs/leaf~1s"}}},
        "leaf/s": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
    },
}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"whole": 1.0, "ratio": 2},
        {"note": None},
        {"tree": {"below/above": [{"below/above": []}]}},
        {"pair": ["a", True, False]},
        {"either": 7},
        {"both": {"x": "a", "y": 1}},
    ],
)
def test_a_beginning_that_may_become_valid_is_kept(value: Any) -> None:
    assert validate_prefix(FITTED_SCHEMA, value) == value


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"whole": 1.5},
        {"whole": True},
        {"ratio": "1"},
        {"ratio": float("inf")},
        {"note": 1},
        {"other": 1},
        {"tree": {"below/above": [{"below/above": {}}]}},
        {"pair": [1]},
        {"pair": ["a", "b"]},
        {"both": {"x": 1}},
    ],
)
def test_a_beginning_that_cannot_is_refused(value: Any) -> None:
    with pytest.raises(PrefixMismatchError):
        validate_prefix(FITTED_SCHEMA, value)


def test_a_null_that_may_stand_for_a_missing_key_is_left_out() -> None:
    assert validate_prefix(
        FITTED_SCHEMA, {"whole": None, "note": None, "either": None, "tree": {"x": None}}
    ) == {
        "note": None,
        "tree": {},
    }


@pytest.mark.parametrize("reference", ["#anchor", "#/$defs/missing", "https://a.example/b", "#"])
def test_what_a_reference_does_not_lead_to_refuses_nothing(reference: str) -> None:
    schema = {"properties": {"a": {"$ref": reference}}}
    assert validate_prefix(schema, {"a": {"b": 1}}) == {"a": {"b": 1}}


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
ANSWER = ResponseSchema("answer", SCHEMA)
QUESTION = GenerateRequest("be brief", (ChatMessage.user("give a"),), schema=ANSWER)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '\ufeff \n{"a": 1}\n',
        '```json\n{"a": 1}\n```',
        'Of course!\n```\n{"a": 1}\n```\nAnything else?',
        'Take {this} and [that]: {"a": 1}. Or [2].',
        'A smile :[ and then {"a": 1}',
        '```json\n{"a": 1}',
        'He said "a {" but {"a": 1}',
        '~~~JSON5 title="x"\n{"a": 1}\n~~~',
        '```json {"a": 1}```',
        '```text\nnothing {here}\n```\nand\n```json\n{"a": 1}\n```',
        'It holds for {x | x > 2}: {"a": 1}',
        ":[ " * 100 + 'and {"a": 1}',
    ],
)
def test_json_is_found_alone_in_a_fence_or_in_prose(text: str) -> None:
    assert parse_json_with_schema(text, SCHEMA) == {"a": 1}


def test_a_fence_inside_of_a_string_is_text() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    text = json.dumps({"a": "```\nnot this\n```"})
    assert parse_json_with_schema(f"Here: {text}", schema) == {"a": "```\nnot this\n```"}


@pytest.mark.parametrize(
    "text",
    [
        'First {"a": 2}, then better: {"a": 1}.',
        '```json\n{"a": 2}\n```\nCorrected:\n```json\n{"a": 1}\n```',
        '{"a": 1} replaces {"a": "one"}',
        '{"b": 1} was asked for, {"a": 1} is given, [3] is a reference',
    ],
)
def test_of_several_documents_the_last_valid_one_is_the_answer(text: str) -> None:
    assert parse_json_with_schema(text, SCHEMA) == {"a": 1}


def test_when_no_document_is_valid_the_last_whole_one_is_judged() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_json_with_schema('{"a": "x"} or {"b": 1} or {c}', SCHEMA)
    assert caught.value.code == "SCHEMA_MISMATCH"
    assert {violation.field for violation in caught.value.violations} == {"/", "/b"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"x": 1,}', {"x": 1}),
        ('[1, {"x": [2,],},]', [1, {"x": [2]}]),
        ('{"x": 1, // one\n "y": 2 # two\n /* three */}', {"x": 1, "y": 2}),
        ('{"x": "// /* # no comment", }', {"x": "// /* # no comment"}),
        ("{'x': 'a \"b\" c', 'y': ''}", {"x": 'a "b" c', "y": ""}),
        ("{'x': 'it's fine', 'y': \"it's\"}", {"x": "it's fine", "y": "it's"}),
        (r"{'x': 'it\'s\n'}", {"x": "it's\n"}),
        (r'{"x": "it\'s"}', {"x": "it's"}),
        ('{"x": True, "y": [False, None]}', {"x": True, "y": [False, None]}),
        ('{"x": "True", "y": "None",}', {"x": "True", "y": "None"}),
        ('{"x": "one\ntwo\tthree"}', {"x": "one\ntwo\tthree"}),
        ("{x: 1, $y_2: {z-z: 'q'}}", {"x": 1, "$y_2": {"z-z": "q"}}),
        (r'{"x": "back\\", "y": "\n", }', {"x": "back\\", "y": "\n"}),
        ('{"x": " 1 ", "y": "}", "z": "[,",}', {"x": " 1 ", "y": "}", "z": "[,"}),
    ],
)
def test_slips_with_one_meaning_are_put_right(text: str, value: Any) -> None:
    assert parse_json_with_schema(text, {}) == value
    assert parse_json_with_schema(f"Sure!\n```json\n{text}\n```\nDone.", {}) == value
    assert json.loads(extract_json(text)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"x": 1 "y": 2}', {"x": 1, "y": 2}),
        ('[{"x": 1} {"x": 2}]', [{"x": 1}, {"x": 2}]),
        ('{"x": "she said "yes" to it"}', {"x": 'she said "yes" to it'}),
    ],
)
def test_separators_and_escapes_that_are_missing_are_added(text: str, value: Any) -> None:
    assert parse_json_with_schema(text, {}) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "[" * 100_000,
        '{"a": "\\ud800"}',
        '{"a": tru}',
        '{"a": undefined}',
        '{"a": 0x10}',
        '{"a": 01}',
        '{"a": 10%}',
        '{"a": }',
        '{"a" 1}',
        '{"a": 1,, "b": 2}',
        '{"a": [1, ...]}',
        '{"a": (1, 2)}',
        '{"a": "x" + "y"}',
        '{"a": "tail\\\\" "b": 1]',
    ],
)
def test_what_could_only_be_guessed_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_json_with_schema(text, {})
    assert caught.value.code == "NOT_JSON"
    assert caught.value.violations


@pytest.mark.parametrize(
    ("text", "code", "places"),
    [
        ('{"a": NaN}', "NOT_FINITE", ["/a"]),
        ('{"a": [1, {"b": -Infinity,}, 1e999]}', "NOT_FINITE", ["/a/1/b", "/a/2"]),
        (f'{{"a": [{"1" * 5000}]}}', "NOT_FINITE", ["/a/0"]),
        ('{"a": 1, "b": {"c": 1, "c": 1}}', "DUPLICATE_KEY", ["/b/c"]),
        ("{'a': 1, 'a': 2}", "DUPLICATE_KEY", ["/a"]),
    ],
)
def test_what_json_does_not_know_is_named_with_its_place(text: str, code: str, places: list[str]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_json_with_schema(f"Here: {text}", {})
    assert caught.value.code == "NOT_JSON"
    assert [violation.field for violation in caught.value.violations] == places
    assert all(violation.reason.startswith(f"{code}: ") for violation in caught.value.violations)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1',
        '{"b": [{"a": 1}, {"a": 2}], "c',
        "{'b': [{'a': 1}, {'a': 2}], 'c",
        '{"b": [{"a": 1,}, {"a": 2}] "c": ',
        '{"b": {"a": 1}, "c": "never closed}',
        '```json\n[{"a": 1},\n```',
        '```json\n[[{"a": 1}],\n```',
    ],
)
def test_a_part_of_an_answer_that_was_cut_off_is_not_the_answer(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_json_with_schema(text, SCHEMA)
    assert caught.value.code == "NOT_JSON"
    assert caught.value.violations[0].reason.startswith("CUT_OFF: ")


def test_a_null_that_the_schema_refuses_counts_as_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": ["string", "null"]},
            "c": {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"type": "string"}]}},
        },
        "required": ["b"],
    }
    text = '{"a": null, "b": null, "c": [{"b": "x", "a": null}]}'
    assert parse_json_with_schema(text, schema) == {"b": None, "c": [{"b": "x"}]}
    with pytest.raises(InvalidArgumentError) as caught:
        parse_json_with_schema('{"a": null}', {**schema, "required": ["a"]})
    assert caught.value.violations[0].field == "/a"


def test_the_hint_for_a_prompt_holds_the_schema() -> None:
    hint = schema_hint(SCHEMA)
    assert parse_json_with_schema(hint, {}) == SCHEMA
    assert hint == schema_hint(json.loads(json.dumps(SCHEMA)))


def test_json_that_breaks_the_schema_is_refused_with_its_places() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_json_with_schema('{"a": "one", "b": 2}', SCHEMA)
    assert caught.value.code == "SCHEMA_MISMATCH"
    assert {violation.field for violation in caught.value.violations} == {"/a", "/b"}


@given(st.text(st.sampled_from('{}[]",:`\\ \na1'), max_size=60))
def test_any_text_gives_a_value_or_a_typed_error(text: str) -> None:
    with suppress(InvalidArgumentError):
        assert isinstance(parse_json_with_schema(text, SCHEMA), dict)


@pytest.mark.slow_after(1, reason="compares long answers")
@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "[ ",
        "{",
        "{x} ",
        "[1] ",
        '{"a":',
        "{'",
        '{"',
        "{a ",
        "'",
        "// ",
        "{/*",
        "```json\n",
        '{"a": "x" ',
        "\\",
    ],
)
def test_a_long_answer_takes_time_in_proportion_to_its_length(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    for spoilt in (text, "{'a': " + text, text + "}" * 9):
        with suppress(InvalidArgumentError):
            parse_json_with_schema(spoilt, {})


@pytest.mark.parametrize(("length", "mended"), [(30_000, True), (40_000, False)])
def test_only_an_answer_that_is_not_long_is_mended(length: int, mended: bool) -> None:
    value = {"a": "x" * length, "b": 1}
    text = json.dumps(value).replace(', "b"', ' "b"')
    if mended:
        assert parse_json_with_schema(text, {}) == value
    else:
        with pytest.raises(InvalidArgumentError):
            parse_json_with_schema(text, {})


def test_an_answer_of_nearly_a_megabyte_is_read() -> None:
    value = [{"id": number, "name": 'na"me', "on": True, "of": None} for number in range(17_000)]
    plain, badly = json.dumps(value), str(value)
    assert len(badly) > 850_000
    for text in (plain, f"Sure:\n```json\n{plain}\n```", badly):
        assert parse_json_with_schema(text, {}) == value


def text_events(text: str, cost: int | None = None, stop: StopReason = StopReason.END) -> list[GatewayEvent]:
    """Return the events of an answer."""
    completion = Completion(ChatMessage.assistant(text), None, Usage(10, 2, 4, 1), stop, "m", "p")
    return [TextDelta(text), Completed(replace(completion, cost=cost, cache_savings=cost))]


def model_of(
    *texts: str, stop: StopReason = StopReason.END, costs: tuple[int | None, ...] = ()
) -> FakeGateway:
    """Return a model that answers with texts, each with its cost."""
    return FakeGateway(*(text_events(text, cost, stop) for text, cost in zip_longest(texts, costs)))


async def ask(model: FakeGateway, schema: ResponseSchema = ANSWER) -> list[GatewayEvent]:
    return [event async for event in generate_valid(model.ask, QUESTION, schema)]


def completion(events: list[GatewayEvent]) -> Completion:
    last = events[-1]
    assert isinstance(last, Completed)
    return last.completion


async def test_a_valid_answer_is_passed_on_with_its_value() -> None:
    events = await ask(model_of('{"a": 1}'))
    assert events[0] == TextDelta('{"a": 1}')
    assert completion(events) == Completion(
        ChatMessage.assistant('{"a": 1}'),
        {"a": 1},
        Usage(10, 2, 4, 1),
        StopReason.END,
        "m",
        "p",
    )


async def test_an_invalid_answer_is_asked_for_once_more_with_its_findings() -> None:
    model = model_of('{"a": "x"}', '{"a": 2}')
    events = await ask(model)
    kinds = [type(event) for event in events]
    assert kinds == [TextDelta, Repairing, TextDelta, Completed]
    last = completion(events)
    assert (last.value, last.repaired, last.calls) == ({"a": 2}, True, 2)
    assert last.usage == Usage(20, 4, 8, 2)
    assert [finding.path for finding in last.findings] == ["/a"]
    assert isinstance(events[1], Repairing)
    assert events[1].findings == last.findings


@pytest.mark.parametrize(("costs", "expected"), [((7, 5), 12), ((7, None), None), ((None, 5), None)])
async def test_a_repair_costs_what_both_calls_cost_if_that_is_known(
    costs: tuple[int | None, int | None],
    expected: int | None,
) -> None:
    model = model_of('{"a": "x"}', '{"a": 2}', costs=costs)
    last = completion(await ask(model))
    assert (last.cost, last.cache_savings) == (expected, expected)


async def test_the_repair_extends_the_question_and_changes_nothing_of_it() -> None:
    model = model_of('{"a": "x"}', '{"a": 2}')
    await ask(model)
    first, second = model.requests
    assert second.system == first.system
    assert second.messages[:1] == first.messages
    refused, complaint = second.messages[1:]
    assert refused == ChatMessage.assistant('{"a": "x"}')
    assert complaint.role is ChatRole.USER
    said = json.loads(complaint.text)
    assert [told["path"] for told in said["findings"]] == ["/a"]
    assert said["fixes"] == {"WRONG_TYPE": get_remedy("WRONG_TYPE")}


async def test_a_second_invalid_answer_is_an_error_with_the_findings() -> None:
    model = model_of("no", "still no")
    with pytest.raises(FailedPreconditionError) as caught:
        await ask(model)
    assert caught.value.code == "ANSWER_INVALID"
    assert len(caught.value.violations) == 1
    assert len(model.requests) == 2


async def test_the_callers_own_check_takes_part_in_the_repair() -> None:
    async def accept(value: Any) -> list[Finding]:
        warning = Finding("ODD", "/a", "a looks odd", Severity.WARNING)
        return [warning] if value["a"] > 1 else [Finding("TOO_SMALL", "/a", "a must be more than 1")]

    events = await ask(model_of('{"a": 1}', '{"a": 2}'), ResponseSchema("answer", SCHEMA, accept))
    last = completion(events)
    assert last.value == {"a": 2}
    assert [finding.code for finding in last.findings] == ["TOO_SMALL"]


async def test_the_callers_check_never_sees_what_breaks_the_schema() -> None:
    seen = []

    async def accept(value: Any) -> list[Finding]:
        seen.append(value)
        return []

    await ask(model_of("[]", '{"a": 2}'), ResponseSchema("answer", SCHEMA, accept))
    assert seen == [{"a": 2}]


async def test_an_answer_cut_by_the_length_limit_is_told_to_be_shorter() -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        await ask(model_of('{"a": 1', '{"a": ', stop=StopReason.LENGTH))
    assert "TRUNCATED" in caught.value.violations[0].reason


@pytest.mark.parametrize("text", ['{"a": 1} or rather {"a": ', '{"a": 1 "b": 2}', "{'a': 1", "12"])
async def test_an_answer_cut_by_the_length_limit_is_never_completed(text: str) -> None:
    schema = ResponseSchema("answer", {})
    with pytest.raises(FailedPreconditionError) as caught:
        await ask(model_of(text, text, stop=StopReason.LENGTH), schema)
    assert "TRUNCATED" in caught.value.violations[0].reason


async def test_an_answer_that_was_whole_when_the_limit_came_is_an_answer() -> None:
    events = await ask(model_of('{"a": 1} And this is', stop=StopReason.LENGTH))
    assert completion(events).value == {"a": 1}


async def test_an_empty_answer_that_thoughts_used_up_gets_twice_the_room_and_no_complaint() -> None:
    model = model_of("", '{"a": 1}', stop=StopReason.LENGTH)
    asked = replace(QUESTION, answer_tokens=100)
    events = [event async for event in generate_valid(model.ask, asked, ANSWER)]
    assert (completion(events).value, completion(events).repaired) == ({"a": 1}, True)
    assert model.requests[1] == replace(asked, answer_tokens=200)
    assert [event.findings[0].code for event in events if isinstance(event, Repairing)] == ["TRUNCATED"]


async def test_the_room_for_thoughts_and_answer_is_doubled_as_a_whole() -> None:
    model = model_of("", '{"a": 1}', stop=StopReason.LENGTH)
    asked = replace(QUESTION, max_output_tokens=500, answer_tokens=100)
    _ = [event async for event in generate_valid(model.ask, asked, ANSWER)]
    assert (model.requests[1].max_output_tokens, model.requests[1].answer_tokens) == (None, 1_000)


async def test_an_empty_answer_is_asked_again_once() -> None:
    with pytest.raises(FailedPreconditionError):
        await ask(model := model_of("", "", stop=StopReason.LENGTH))
    assert len(model.requests) == 2


async def test_without_a_schema_only_an_empty_answer_is_asked_again() -> None:
    asked = replace(QUESTION, schema=None, answer_tokens=100)
    empty = model_of("", "Told.", stop=StopReason.LENGTH)
    events = [event async for event in generate_valid(empty.ask, asked, None)]
    assert (completion(events).text, completion(events).repaired) == ("Told.", True)
    cut = model_of("Told and", stop=StopReason.LENGTH)
    events = [event async for event in generate_valid(cut.ask, asked, None)]
    assert (completion(events).text, len(cut.requests)) == ("Told and", 1)
    twice = model_of("", "", stop=StopReason.LENGTH)
    events = [event async for event in generate_valid(twice.ask, asked, None)]
    assert (completion(events).text, len(twice.requests)) == ("", 2)


async def test_under_an_advisory_schema_an_empty_answer_is_returned() -> None:
    model = model_of("", stop=StopReason.LENGTH)
    events = await ask(model, replace(ANSWER, advisory=True))
    assert [finding.code for finding in completion(events).findings] == ["TRUNCATED"]


async def test_a_refusal_is_not_argued_with() -> None:
    model = model_of("I cannot do that.", stop=StopReason.REFUSAL)
    with pytest.raises(FailedPreconditionError) as caught:
        await ask(model)
    assert caught.value.code == "ANSWER_REFUSED"
    assert len(model.requests) == 1


async def test_what_both_calls_used_is_in_the_details_of_the_error() -> None:
    model = model_of("no", "still no", costs=(5, 7))
    with pytest.raises(FailedPreconditionError) as caught:
        await ask(model)
    assert usage_until(caught.value) == UsageTotal(2, Usage(20, 4, 8, 2), 12, 12)
    model = model_of("no", "still no", costs=(5, None))
    with pytest.raises(FailedPreconditionError) as caught:
        await ask(model)
    assert usage_until(caught.value) == UsageTotal(2, Usage(20, 4, 8, 2), None, None)


async def test_a_repair_that_fails_otherwise_tells_what_the_first_call_used() -> None:
    hung_up = UnavailableError("it hung up", code="PROVIDER_UNREACHABLE")
    with pytest.raises(UnavailableError) as caught:
        await ask(FakeGateway(text_events("no", -5), hung_up))
    assert usage_until(caught.value) == UsageTotal(1, Usage(10, 2, 4, 1), -5, -5)


@pytest.mark.parametrize("details", [{}, {"calls": "2"}, {"calls": "2", "input_tokens": "many"}])
def test_an_error_that_does_not_tell_what_was_used_says_so(details: dict[str, str]) -> None:
    assert usage_until(UnavailableError("x", details=details)) is None


STATE = ProviderState("anthropic", b"signature")
THOUGHT = Reasoning("hm")
CALL = ToolCall("c", "t", "{}")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((THOUGHT, STATE, Text('{"a": "x"}')), (THOUGHT, STATE, Text('{"a": "x"}'))),
        ((STATE, Text("Let me see."), CALL), (STATE, Text("Let me see."))),
        ((STATE, Text(" \n")), (Text("(no answer)"),)),
        ((CALL,), (Text("(no answer)"),)),
    ],
)
async def test_a_refused_answer_goes_back_as_it_was_without_calls_that_get_no_result(
    parts: tuple[Part, ...],
    said: tuple[Part, ...],
) -> None:
    first = Completion(ChatMessage(ChatRole.ASSISTANT, parts), None, Usage(), StopReason.END, "m", "p")
    model = FakeGateway([Completed(first)], text_events('{"a": 1}'))
    assert completion(await ask(model)).value == {"a": 1}
    assert model.requests[1].messages[1] == ChatMessage(ChatRole.ASSISTANT, said)


@pytest.mark.parametrize("offered", [True, False])
async def test_calls_come_before_the_answer_only_where_tools_are_offered(offered: bool) -> None:
    model = model_of("", '{"a": 1}', stop=StopReason.TOOL_USE)
    tools = (Tool("t", "", {"type": "object"}),) if offered else ()
    events = [e async for e in generate_valid(model.ask, replace(QUESTION, tools=tools), ANSWER)]
    assert completion(events).value == (None if offered else {"a": 1})
    assert len(model.requests) == (1 if offered else 2)


@pytest.mark.parametrize(
    ("text", "value", "codes"),
    [
        ('{"a": 1}', {"a": 1}, []),
        ('{"a": "one", "b": 1}', {"a": "one", "b": 1}, ["WRONG_TYPE", "UNKNOWN_KEY"]),
        ("none of it", None, ["NOT_JSON"]),
        ('{"a": ', None, ["CUT_OFF"]),
    ],
)
async def test_an_answer_to_an_advisory_schema_is_handed_over_with_its_findings(
    text: str,
    value: Any,
    codes: list[str],
) -> None:
    model = model_of(text)
    answer = completion(await ask(model, replace(ANSWER, advisory=True)))
    assert (answer.value, answer.text, answer.repaired, answer.calls) == (value, text, False, 1)
    assert [finding.code for finding in answer.findings] == codes


async def test_what_the_check_of_the_caller_finds_is_advice_too() -> None:
    async def accept(_value: Any) -> list[Finding]:
        return [Finding("ODD", "/a", "a is odd")]

    answer = completion(
        await ask(model_of('{"a": 1}'), ResponseSchema("answer", SCHEMA, accept, advisory=True))
    )
    assert (answer.value, [finding.code for finding in answer.findings]) == ({"a": 1}, ["ODD"])


def test_nulls_in_place_of_optional_keys_are_no_findings_beside_others() -> None:
    schema = SCHEMA | {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    with pytest.raises(InvalidArgumentError) as caught:
        parse_json_with_schema('{"a": "x", "b": null}', schema)
    assert [violation.field for violation in caught.value.violations] == ["/a"]


async def test_a_long_list_of_findings_is_told_in_part() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    model = model_of(json.dumps(["x"] * 200), "[1]")
    await ask(model, ResponseSchema("answer", schema))
    assert len(json.loads(model.requests[1].messages[-1].text)["findings"]) == 20

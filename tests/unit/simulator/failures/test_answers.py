from __future__ import annotations

from typing import Any

import pytest
from jsonschema_rs import is_valid

from peripety.llmsim.faults.injection import AnswerDraft, change_answer
from peripety.llmsim.faults.kinds import KINDS, FaultStage
from peripety.llmsim.provider_rules import models
from peripety.llmsim.script.types import Fault
from peripety.llmsim.types import ReasoningPart, RefusalPart, SimStopReason, SimTool, TextPart, ToolUsePart

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
CALL = ToolUsePart("a", "weather", ('{"city":"Oslo"', ',"days":3}'))
SAID = AnswerDraft((ReasoningPart(("hmm ", "well"), ""), TextPart(("one two ", "three"))), SimStopReason.END)


def say(
    kind: str,
    said: AnswerDraft = SAID,
    schema: dict[str, Any] | None = None,
    **settings: Any,
) -> AnswerDraft:
    failure = Fault(kind, {**KINDS[kind].default_settings, **settings})
    return change_answer(
        said,
        failure,
        [SimTool("weather", schema=SCHEMA if schema is None else schema)],
        models.split_tokens,
    )


def texts(said: AnswerDraft) -> list[str]:
    return ["".join(part.pieces) for part in said.parts]


@pytest.mark.parametrize(
    "name",
    [name for name, kind in KINDS.items() if kind.stage is not FaultStage.ANSWER],
)
def test_other_kinds_leave_alone_what_is_said(name: str) -> None:
    if name != "partial_response":  # it brings its own text
        assert say(name) == SAID


def test_a_refusal_replaces_the_answer() -> None:
    assert say("refusal", message="Not that.") == AnswerDraft(
        (RefusalPart(("Not ", "that", ".")),),
        SimStopReason.REFUSAL,
    )


def test_a_partial_response_has_its_own_text() -> None:
    assert texts(say("partial_response", partial_text="The first ha")) == ["The first ha"]


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        (0, []),
        (1, ["hmm "]),
        (2, ["hmm well"]),
        (3, ["hmm well", "one "]),
        (99, ["hmm well", "one two three"]),
    ],
)
def test_length_leaves_as_much_as_the_tokens_allow(limit: int, left: list[str]) -> None:
    said = say("length", tokens=limit)
    assert (texts(said), said.stop) == (left, SimStopReason.LENGTH)


def test_length_cuts_the_arguments_of_a_call() -> None:
    said = say("length", AnswerDraft((CALL,), SimStopReason.TOOL_USE), tokens=2)
    assert texts(said) == ['{"city":']


def test_a_content_filter_ends_the_answer_half_way() -> None:
    said = say("content_filter")
    assert (texts(said), said.stop) == (["hmm well", "one "], SimStopReason.CONTENT_FILTER)


def test_a_content_filter_needs_no_answer() -> None:
    assert say("content_filter", AnswerDraft((), SimStopReason.END)) == AnswerDraft(
        (),
        SimStopReason.CONTENT_FILTER,
    )


def test_truncated_arguments_are_the_first_half_of_those_of_the_last_call() -> None:
    said = say("truncated_arguments", AnswerDraft((CALL, CALL, TextPart(("bye",))), SimStopReason.TOOL_USE))
    assert texts(said) == ['{"city":"Oslo","days":3}', '{"city":"Osl']
    assert said.stop is SimStopReason.LENGTH
    last = said.parts[-1]
    assert isinstance(last, ToolUsePart)
    assert last.arguments == {}


def test_truncated_arguments_leave_alone_what_calls_nothing() -> None:
    assert say("truncated_arguments") == SAID


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA,
        {"type": "object"},
        {"type": "object", "properties": {"city": {}}, "required": ["city"]},
        {"type": "object", "additionalProperties": False, "properties": {"city": {}, "days": {}}},
    ],
)
def test_invalid_arguments_are_json_that_breaks_the_schema(schema: dict[str, Any]) -> None:
    said = say("invalid_arguments", AnswerDraft((CALL,), SimStopReason.TOOL_USE), schema)
    call = said.parts[0]
    assert isinstance(call, ToolUsePart)
    assert not is_valid(schema, call.arguments)
    assert said.stop is SimStopReason.TOOL_USE


@pytest.mark.parametrize("schema", [{}, {"type": "nonsense"}, {"$ref": "http://127.0.0.1:9/schema"}])
def test_invalid_arguments_differ_also_where_no_schema_forbids_anything(schema: dict[str, Any]) -> None:
    call = say("invalid_arguments", AnswerDraft((CALL,), SimStopReason.TOOL_USE), schema).parts[0]
    assert isinstance(call, ToolUsePart)
    assert call.arguments == {"city": 0, "days": 3}

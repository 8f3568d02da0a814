"""Conversion of a call to a Gemini request body."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.models.model_data import Capability
from peripety.gateway.providers.gemini.request_body import DUMMY_SIGNATURE, ThoughtSignature, to_gemini_body
from peripety.gateway.providers.schema_dialect import ANSWER_TOOL
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolChoiceMode,
    ToolResult,
)
from peripety.gateway.types.request import GenerateRequest, ReasoningEffort, ResponseSchema
from peripety.gateway.types.response import SchemaMethod
from support.gateway.requests import asking, call_of

MODEL = "gemini-3.5-flash"
TOOL = Tool("look", "Looks.", {"type": "object"})
ANSWER = ResponseSchema("answer", {"type": "object", "properties": {"a": {"type": "integer"}}})
CALL = call_of(asking(), MODEL, "gemini")
OTHER_CALL = call_of(asking(), "gemini-2.5-pro", "gemini")
THINKING = {"thinkingConfig": {"includeThoughts": True}}


def body(request: GenerateRequest, model: str = MODEL) -> Any:
    return to_gemini_body(call_of(request, model, "gemini")).document


def answer(*parts: Any) -> ChatMessage:
    return ChatMessage(ChatRole.ASSISTANT, parts)


def contents(*messages: ChatMessage) -> list[Any]:
    found: list[Any] = body(GenerateRequest(None, messages))["contents"]
    return found


def test_what_is_left_open_is_left_out() -> None:
    assert body(asking()) == {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [{"role": "user", "parts": [{"text": "u"}]}],
        "generationConfig": THINKING,
    }
    assert "systemInstruction" not in body(replace(asking(), system=None))


def test_options_go_by_their_names_there() -> None:
    options = asking(max_output_tokens=5, temperature=0.5, seed=2**31 + 7, stop_sequences=("x",))
    assert body(options)["generationConfig"] == {
        "maxOutputTokens": 5,
        "temperature": 0.5,
        "seed": 7,
        "stopSequences": ["x"],
        **THINKING,
    }


def test_the_model_is_a_role_of_its_own_and_instructions_are_said_by_the_user() -> None:
    said = contents(ChatMessage.user("a"), answer(Text("b")), ChatMessage.system("c"), ChatMessage.user("d"))
    assert [content["role"] for content in said] == ["user", "model", "user", "user"]
    assert said[2]["parts"] == [{"text": "<system>\nc\n</system>"}]


def test_calls_and_results_are_parts_with_ids_and_names() -> None:
    said = contents(
        ChatMessage.user("a"),
        answer(ToolCall("1", "näme", '{"x": 1}'), ToolCall("2", "look", "{}")),
        ChatMessage(ChatRole.USER, (ToolResult("1", "r"), ToolResult("2", "w", is_error=True), Text("t"))),
    )
    first, second = said[1]["parts"]
    name = first["functionCall"]["name"]
    assert name.isascii()
    assert first["functionCall"] == {"id": "1", "name": name, "args": {"x": 1}}
    assert second == {"functionCall": {"id": "2", "name": "look", "args": {}}}
    assert said[2]["parts"] == [
        {"functionResponse": {"id": "1", "name": name, "response": {"output": "r"}}},
        {"functionResponse": {"id": "2", "name": "look", "response": {"error": "w"}}},
        {"text": "t"},
    ]


def test_the_first_call_of_another_model_gets_the_documented_dummy() -> None:
    foreign = answer(
        ProviderState("other", b"secret"),
        ToolCall("1", "look", "{}"),
        ToolCall("2", "look", "{}"),
    )
    first, second = contents(ChatMessage.user("a"), foreign)[1]["parts"]
    assert first["thoughtSignature"] == DUMMY_SIGNATURE
    assert "thoughtSignature" not in second


def test_a_signature_goes_back_with_the_part_that_it_came_with() -> None:
    said = answer(
        ThoughtSignature("t", 2).to_state(CALL),
        Text("abc"),
        ThoughtSignature("c").to_state(CALL),
        ToolCall("1", "look", "{}"),
        ToolCall("2", "look", "{}"),
        ThoughtSignature("e", 0).to_state(CALL),
    )
    assert contents(ChatMessage.user("a"), said)[1]["parts"] == [
        {"text": "ab", "thoughtSignature": "t"},
        {"text": "c"},
        {"functionCall": {"id": "1", "name": "look", "args": {}}, "thoughtSignature": "c"},
        {"functionCall": {"id": "2", "name": "look", "args": {}}},
        {"text": "", "thoughtSignature": "e"},
    ]


def test_a_signature_without_its_part_is_not_put_on_another() -> None:
    text, call = Text("abc"), ToolCall("1", "look", "{}")
    said = answer(ThoughtSignature("c").to_state(CALL), text, ThoughtSignature("t", 3).to_state(CALL), call)
    assert contents(ChatMessage.user("a"), said)[1]["parts"] == [
        {"text": "abc"},
        {"functionCall": {"id": "1", "name": "look", "args": {}}, "thoughtSignature": DUMMY_SIGNATURE},
    ]


@pytest.mark.parametrize(
    "state",
    [
        ThoughtSignature("t", 1).to_state(OTHER_CALL),
        ThoughtSignature("c").to_state(OTHER_CALL),
        *(ProviderState("gemini", data) for data in (b"", b"x", b"[]", b'["m", "a", -1]', b"\xff")),
    ],
)
def test_a_signature_of_another_model_or_one_that_cannot_be_read_stays_here(state: ProviderState) -> None:
    said = contents(ChatMessage.user("a"), answer(state, Text("b"), state, ToolCall("1", "look", "{}")))
    assert said[1]["parts"] == [
        {"text": "b"},
        {"functionCall": {"id": "1", "name": "look", "args": {}}, "thoughtSignature": DUMMY_SIGNATURE},
    ]


def test_thoughts_and_states_of_others_stay_here() -> None:
    said = contents(
        ChatMessage.user("a"),
        answer(Reasoning("r"), ProviderState("other", b"s")),
        ChatMessage.user("b"),
    )
    assert said == [{"role": "user", "parts": [{"text": each}]} for each in "ab"]


def test_tools_are_declared_with_their_schemas() -> None:
    written = body(asking(tools=(TOOL,)))
    declared = {"name": "look", "description": "Looks.", "parametersJsonSchema": {"type": "object"}}
    assert written["tools"] == [{"functionDeclarations": [declared]}]


@pytest.mark.parametrize(
    ("choice", "strict", "config"),
    [
        (None, False, {"mode": "AUTO"}),
        (ToolChoice(), True, {"mode": "VALIDATED"}),
        (ToolChoice(ToolChoiceMode.NONE, disable_parallel=True), False, {"mode": "NONE"}),
        (ToolChoice(ToolChoiceMode.ANY), False, {"mode": "ANY"}),
        (ToolChoice(ToolChoiceMode.NAMED, "look"), True, {"mode": "ANY", "allowedFunctionNames": ["look"]}),
    ],
)
def test_the_choice_of_tools_is_a_mode(
    choice: ToolChoice | None,
    config: dict[str, Any],
    *,
    strict: bool,
) -> None:
    written = body(asking(tools=(replace(TOOL, strict=strict),), tool_choice=choice))
    assert written["toolConfig"] == {"functionCallingConfig": config}


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"stop_sequences": ("a",) * 6}, "stop_sequences"),
        (
            {"tools": (TOOL,), "tool_choice": ToolChoice(disable_parallel=True)},
            "tool_choice.disable_parallel",
        ),
    ],
)
def test_what_it_cannot_be_told_is_refused_with_field_and_model(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"gemini/{MODEL}") as caught:
        body(asking(**options))
    assert [violation.field for violation in caught.value.violations] == [field]


def test_a_schema_goes_along_in_the_part_that_it_knows() -> None:
    document = {
        "type": "object",
        "properties": {
            "a": {"const": 1},
            "b": {"type": "string", "maxLength": 3, "description": "d"},
            "c": {"$ref": "#/$defs/x", "description": "d"},
            "d": True,
        },
        "required": ["a"],
        "additionalProperties": {"enum": [None]},
        "$defs": {"x": {"type": "array", "items": {"type": "number"}, "minItems": 1}},
    }
    written = to_gemini_body(call_of(asking(schema=ResponseSchema("x", document)), MODEL, "gemini"))
    config, report = written.document["generationConfig"], written.schema_report
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == {
        "type": "object",
        "properties": {
            "a": {"enum": [1]},
            "b": {"type": "string", "description": "d"},
            "c": {"$ref": "#/$defs/x"},
            "d": {},
        },
        "required": ["a"],
        "additionalProperties": {},
        "$defs": {"x": {"type": "array", "items": {"type": "number"}, "minItems": 1}},
    }
    assert report is not None
    assert report.method is SchemaMethod.NATIVE
    assert [(found.code, found.path) for found in report.dropped] == [
        ("NOT_TOLD", "/properties/b/maxLength"),
        ("NOT_TOLD", "/additionalProperties/enum"),
    ]


def test_a_model_without_structured_output_answers_by_a_tool() -> None:
    call = call_of(asking(schema=ANSWER), MODEL, "gemini")
    data = replace(call.data, capabilities=call.data.capabilities - {Capability.NATIVE_SCHEMA})
    written = to_gemini_body(replace(call, data=data))
    config = written.document["toolConfig"]["functionCallingConfig"]
    assert config == {"mode": "ANY", "allowedFunctionNames": [ANSWER_TOOL]}
    assert written.schema_report is not None
    assert written.schema_report.method is SchemaMethod.TOOL


def test_beside_tools_such_a_model_is_told_the_schema_at_the_end() -> None:
    call = call_of(asking(schema=ANSWER, tools=(TOOL,)), MODEL, "gemini")
    data = replace(call.data, capabilities=call.data.capabilities - {Capability.NATIVE_SCHEMA})
    written = to_gemini_body(replace(call, data=data))
    question, hint = written.document["contents"][-1]["parts"]
    assert question == {"text": "u"}
    assert "JSON Schema" in hint["text"]
    assert written.schema_report is not None
    assert written.schema_report.method is SchemaMethod.EXTRACTION


def test_a_model_that_does_not_reason_is_not_asked_for_its_thoughts() -> None:
    call = call_of(asking(), MODEL, "gemini")
    data = replace(call.data, capabilities=call.data.capabilities - {Capability.REASONING})
    assert "generationConfig" not in to_gemini_body(replace(call, data=data)).document


def test_the_effort_is_sent_where_the_card_knows_it() -> None:
    asked = asking(reasoning_effort=ReasoningEffort.LOW)
    config = body(asked, "gemini-3.8-flash")["generationConfig"]
    assert config["thinkingConfig"] == {"includeThoughts": True, "thinkingLevel": "LOW"}
    assert body(asked, "gemini-2.5-flash")["generationConfig"]["thinkingConfig"] == {"includeThoughts": True}

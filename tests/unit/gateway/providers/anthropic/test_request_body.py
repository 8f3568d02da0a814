"""Conversion of a call to an Anthropic request body."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from pydantic import SecretStr, TypeAdapter

from peripety.errors import InvalidArgumentError
from peripety.gateway.providers.anthropic.request_body import to_anthropic_body, to_counting_body
from peripety.gateway.providers.anthropic.response_stream import MessagesWire
from peripety.gateway.providers.history_compat import wrap_state
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
from peripety.gateway.types.request import CacheTTL, GenerateRequest, ReasoningEffort, ResponseSchema
from peripety.gateway.types.response import CacheBlock, CacheBreakpoint, SchemaMethod
from support.gateway.requests import asking, call_of

if TYPE_CHECKING:
    from peripety.gateway.providers.provider import ProviderCall


NEWEST = "claude-opus-5-5"
FORCEABLE = "claude-haiku-4-5"
SYSTEM_LATER = "claude-sonnet-5-5"
CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "additionalProperties": {"type": "integer"}}
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "opaque"}
MARK = {"type": "ephemeral", "ttl": "5m"}
CALL = call_of(asking(), NEWEST, "anthropic")
_ACCEPTED: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsStreaming)
_COUNTED: TypeAdapter[Any] = TypeAdapter(MessageCountTokensParams)


def user(*parts: Text | ToolResult) -> ChatMessage:
    return ChatMessage(ChatRole.USER, parts)


def assistant(*parts: Text | ToolCall | Reasoning | ProviderState) -> ChatMessage:
    return ChatMessage(ChatRole.ASSISTANT, parts)


def a_call(
    *messages: ChatMessage,
    model: str = NEWEST,
    breakpoints: tuple[CacheBreakpoint, ...] = (),
    system: str | None = "s",
    **options: Any,
) -> ProviderCall:
    request = GenerateRequest(system, messages or (ChatMessage.user("u"),), **options)
    return call_of(request, model, "anthropic", breakpoints)


def written(*messages: ChatMessage, **options: Any) -> dict[str, Any]:
    """The body, which the provider's own SDK would take for one."""
    body = dict(to_anthropic_body(a_call(*messages, **options)).document)
    _ACCEPTED.validate_python(body)
    return body


def breakpoint_(block: CacheBlock, index: int = 0, ttl: CacheTTL = CacheTTL.FIVE_MINUTES) -> CacheBreakpoint:
    return CacheBreakpoint(block, ttl, index)


def test_what_is_left_open_is_left_out() -> None:
    assert written() == {
        "model": NEWEST,
        "max_tokens": 32_000,
        "stream": True,
        "system": [{"type": "text", "text": "s"}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "u"}]}],
    }


@pytest.mark.parametrize("system", [None, "", " \n"])
def test_without_instructions_there_is_no_system_block(system: str | None) -> None:
    assert "system" not in written(system=system)


def test_the_version_of_the_api_is_the_models() -> None:
    wire, key = MessagesWire(), SecretStr("k")
    assert wire.headers(a_call(), key) == {"anthropic-version": "2026-10-21", "x-api-key": "k"}
    older = wire.headers(a_call(model=FORCEABLE), None)
    assert older == {"anthropic-version": "2023-06-01"}


def test_options_travel_under_the_providers_names() -> None:
    body = written(model=FORCEABLE, max_output_tokens=5, temperature=0.5, seed=1, stop_sequences=("x", "y"))
    assert (body["max_tokens"], body["temperature"], body["stop_sequences"]) == (5, 0.5, ["x", "y"])
    assert "seed" not in body


def test_a_temperature_is_dropped_for_models_that_take_none() -> None:
    assert "temperature" not in written(temperature=1.5)


def test_more_tokens_than_the_model_has_are_not_asked_for() -> None:
    assert written(max_output_tokens=10_000_000)["max_tokens"] == 128_000


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"model": FORCEABLE, "temperature": 1.5}, "temperature"),
        ({"stop_sequences": ("\n",)}, "stop_sequences"),
        ({"tools": (LOOK,), "tool_choice": ToolChoice(ToolChoiceMode.ANY)}, "tool_choice.mode"),
    ],
)
def test_what_cannot_be_said_to_the_model_is_refused_by_name(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        to_anthropic_body(a_call(**options))
    assert [violation.field for violation in caught.value.violations] == [field]
    assert options.get("model", NEWEST) in caught.value.message


# ---- turns


def test_a_conversation_with_tools_keeps_every_part_in_its_place() -> None:
    body = written(
        ChatMessage.user("a"),
        assistant(
            Reasoning("hm"),
            wrap_state(CALL, THOUGHT),
            wrap_state(CALL, REDACTED),
            Text("b"),
            ToolCall("c1", "look", '{"at": "x"}'),
            ToolCall("c2", "no way!", "{}"),
        ),
        user(ToolResult("c1", "seen"), ToolResult("c2", "broken", is_error=True), Text("c")),
        tools=(LOOK, Tool("no way!", "", {"type": "object"})),
    )
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    *thoughts, text, first, second = body["messages"][1]["content"]
    assert thoughts == [THOUGHT, REDACTED]
    assert text == {"type": "text", "text": "b"}
    assert first == {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "x"}}
    assert second["name"] == body["tools"][1]["name"] != "no way!"
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "seen"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "broken", "is_error": True},
        {"type": "text", "text": "c"},
    ]


def test_thoughts_of_others_are_not_sent() -> None:
    others = [
        ProviderState("gemini", b"{}"),
        ProviderState("anthropic", b"\xff"),
        ProviderState("anthropic", b"[]"),
        wrap_state(call_of(asking(), "claude-sonnet-5", "anthropic"), THOUGHT),
        wrap_state(call_of(asking(), NEWEST, "scripted"), THOUGHT),
    ]
    body = written(ChatMessage.user("a"), assistant(*others, Text("b")), ChatMessage.user("c"))
    assert body["messages"][1]["content"] == [{"type": "text", "text": "b"}]


def test_an_answer_of_which_nothing_can_be_sent_still_has_its_turn() -> None:
    body = written(ChatMessage.user("a"), assistant(Reasoning("hm"), Text(" ")), ChatMessage.user("c"))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][1]["content"] == [{"type": "text", "text": "(no text)"}]


def test_ids_that_would_be_refused_are_written_otherwise_in_call_and_result() -> None:
    body = written(
        ChatMessage.user("a"),
        assistant(ToolCall("c:1/x", "look", "{}")),
        user(ToolResult("c:1/x", "y")),
    )
    call_id = body["messages"][1]["content"][0]["id"]
    assert call_id == body["messages"][2]["content"][0]["tool_use_id"]
    assert call_id.replace("-", "").replace("_", "").isalnum()


def test_later_instructions_follow_the_user_where_the_model_takes_them() -> None:
    said = (
        ChatMessage.user("a"),
        assistant(Text("b")),
        ChatMessage.system("be brief"),
        ChatMessage.user("c"),
    )
    messages = written(*said)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "system"]
    assert messages[3]["content"] == [{"type": "text", "text": "be brief"}]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (SYSTEM_LATER, [ChatMessage.system("be brief"), ChatMessage.user("c")]),
        (NEWEST, [ChatMessage.system("be brief"), assistant(Text("d")), ChatMessage.user("c")]),
    ],
    ids=["the model takes none", "no user comes before them"],
)
def test_elsewhere_later_instructions_are_the_users_words(model: str, said: list[ChatMessage]) -> None:
    messages = written(ChatMessage.user("a"), assistant(Text("b")), *said, model=model)["messages"]
    assert "system" not in {message["role"] for message in messages}
    assert messages[2]["content"][0]["text"] == "<system>\nbe brief\n</system>"


def test_a_longer_history_begins_like_the_shorter_one() -> None:
    said = (ChatMessage.user("a"), ChatMessage.system("x"), assistant(Text("b")), ChatMessage.user("c"))
    for length in (1, 4):
        short = written(*said[:length])["messages"]
        longer = written(*said, assistant(wrap_state(CALL, THOUGHT)), ChatMessage.user("d"))["messages"]
        assert json.dumps(longer).startswith(json.dumps(short)[:-1])


# ---- tools


def test_tools_are_offered_with_their_schemas_and_the_choice_among_them() -> None:
    choice = ToolChoice(ToolChoiceMode.AUTO, disable_parallel=True)
    body = written(tools=(LOOK,), tool_choice=choice)
    assert body["tools"] == [{"name": "look", "description": "Looks.", "input_schema": LOOK.input_schema}]
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice(ToolChoiceMode.NONE, disable_parallel=True), {"type": "none"}),
        (ToolChoice(ToolChoiceMode.ANY), {"type": "any"}),
        (ToolChoice(ToolChoiceMode.NAMED, "look"), {"type": "tool", "name": "look"}),
    ],
)
def test_every_choice_has_its_name(choice: ToolChoice, expected: dict[str, Any]) -> None:
    body = written(tools=(LOOK,), tool_choice=choice, model=FORCEABLE)
    assert body["tool_choice"] == expected
    assert ("thinking" in body) is (expected["type"] in {"any", "tool"})


def test_a_strict_tool_is_held_to_what_of_its_schema_can_be_told() -> None:
    strict = Tool("a", "", {**CLOSED, "maxProperties": 1}, strict=True)
    beyond = Tool("b", "", OPEN, strict=True)
    first, second = written(tools=(strict, beyond))["tools"]
    assert first == {"name": "a", "input_schema": CLOSED, "strict": True}
    assert second == {"name": "b", "input_schema": OPEN}


def test_strict_schemas_share_what_one_request_may_have() -> None:
    def tool(name: str, keys: int) -> Tool:
        properties = {f"k{number}": {"type": "null"} for number in range(keys)}
        return Tool(name, "", {**CLOSED, "properties": properties, "required": []}, strict=True)

    tools = written(tools=(tool("a", 20), tool("b", 5), tool("c", 4)))["tools"]
    assert ["strict" in tool for tool in tools] == [True, False, True]


# ---- structured answers


def schema(document: dict[str, Any]) -> ResponseSchema:
    return ResponseSchema("thing", document)


def test_a_schema_goes_along_as_the_format_of_the_answer() -> None:
    bounded = {**CLOSED, "properties": {"a": {"type": "integer", "minimum": 1}}}
    call = a_call(schema=schema(bounded))
    body = to_anthropic_body(call)
    assert body.document["output_config"] == {"format": {"type": "json_schema", "schema": CLOSED}}
    assert body.schema_report is not None
    assert body.schema_report.method is SchemaMethod.NATIVE
    assert [finding.path for finding in body.schema_report.dropped] == ["/properties/a/minimum"]


def test_a_schema_beyond_the_format_is_the_arguments_of_a_tool() -> None:
    call = a_call(schema=schema(OPEN), model=FORCEABLE)
    body, report = to_anthropic_body(call).document, to_anthropic_body(call).schema_report
    assert "output_config" not in body
    assert [(tool["name"], tool["input_schema"]) for tool in body["tools"]] == [(ANSWER_TOOL, OPEN)]
    assert body["tool_choice"] == {"type": "tool", "name": ANSWER_TOOL, "disable_parallel_tool_use": True}
    assert report is not None
    assert (report.method, [each.code for each in report.dropped]) == (SchemaMethod.TOOL, ["NOT_STRICT"])


def test_where_no_tool_can_be_demanded_the_schema_is_told_behind_all_that_is_cached() -> None:
    body = written(schema=schema(OPEN), breakpoints=(breakpoint_(CacheBlock.MESSAGE),))
    said, told = body["messages"][0]["content"]
    assert said == {"type": "text", "text": "u", "cache_control": MARK}
    assert json.dumps(OPEN, separators=(",", ":")) in told["text"]
    assert "cache_control" not in told


@pytest.mark.parametrize("optional", [24, 25])
def test_a_schema_with_too_many_optional_keys_is_not_sent_as_a_format(optional: int) -> None:
    properties = {f"k{number}": {"type": "null"} for number in range(optional)}
    body = written(schema=schema({**CLOSED, "properties": properties, "required": []}))
    assert ("output_config" in body) is (optional == 24)


def test_a_schema_with_too_many_choices_is_not_sent_as_a_format() -> None:
    properties = {f"k{number}": {"type": ["null", "string"]} for number in range(17)}
    call = a_call(schema=schema({**CLOSED, "properties": properties, "required": list(properties)}))
    report = to_anthropic_body(call).schema_report
    assert report is not None
    assert report.method is SchemaMethod.EXTRACTION


# ---- markers


HISTORY = (
    ChatMessage.user("a"),
    assistant(Text("b"), wrap_state(CALL, THOUGHT)),
    ChatMessage.user("c"),
)
EVERYWHERE = (
    breakpoint_(CacheBlock.TOOLS, ttl=CacheTTL.ONE_HOUR),
    breakpoint_(CacheBlock.SYSTEM),
    breakpoint_(CacheBlock.MESSAGE, 1),
    breakpoint_(CacheBlock.MESSAGE, 2),
)


def test_markers_stand_exactly_where_they_were_planned() -> None:
    body = written(*HISTORY, tools=(LOOK, Tool("b", "", {"type": "object"})), breakpoints=EVERYWHERE)
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, {"type": "ephemeral", "ttl": "1h"}]
    assert body["system"][0]["cache_control"] == MARK
    text, thought = body["messages"][1]["content"]
    assert (text["cache_control"], thought) == (MARK, THOUGHT)
    assert body["messages"][2]["content"][-1]["cache_control"] == MARK
    assert json.dumps(body).count("cache_control") == 4


def test_a_marker_changes_nothing_but_itself() -> None:
    def bare(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: bare(value) for key, value in node.items() if key != "cache_control"}
        return [bare(each) for each in node] if isinstance(node, list) else node

    marked = written(*HISTORY, tools=(LOOK,), breakpoints=EVERYWHERE)
    assert bare(marked) == written(*HISTORY, tools=(LOOK,))


def test_where_nothing_can_carry_a_marker_there_is_none() -> None:
    said = (ChatMessage.user("a"), assistant(wrap_state(CALL, THOUGHT)), ChatMessage.user("c"))
    body = written(*said, system=None, breakpoints=EVERYWHERE[:3])
    assert "cache_control" not in json.dumps(body)


def test_counting_asks_about_all_that_is_read_and_nothing_else() -> None:
    call = a_call(
        *HISTORY,
        tools=(LOOK,),
        schema=schema(CLOSED),
        stop_sequences=("x",),
        breakpoints=EVERYWHERE,
    )
    asked = dict(to_counting_body(call))
    _COUNTED.validate_python(asked)
    whole = dict(to_anthropic_body(call).document)
    assert asked == {key: whole[key] for key in whole.keys() - {"max_tokens", "stream", "stop_sequences"}}


def test_the_effort_is_sent_where_the_card_knows_it() -> None:
    asked = asking(reasoning_effort=ReasoningEffort.MEDIUM)
    known = to_anthropic_body(call_of(asked, "claude-opus-5", "anthropic")).document
    assert known["output_config"] == {"effort": "medium"}
    assert "output_config" not in to_anthropic_body(call_of(asked, "claude-haiku-4-5", "anthropic")).document

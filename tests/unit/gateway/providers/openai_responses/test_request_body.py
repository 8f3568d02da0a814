"""Conversion of a call to a Responses API request body."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.message_normalization import normalize_messages
from peripety.gateway.providers.openai_responses.request_body import unwrap_item, wrap_phase, wrap_reasoning
from peripety.gateway.providers.openai_responses.response_stream import ResponsesWire
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
from peripety.gateway.types.response import CacheBlock, CacheBreakpoint, SchemaMethod, SchemaReport
from support.gateway.requests import asking, call_of

CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
TOOL = Tool("a.b", "Reads.", CLOSED)
WIRE = ResponsesWire()
CALL = call_of(asking(), "gpt-6-sol", "openai-responses")
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz", "status": "completed"}
THOUGHT = wrap_reasoning(CALL, ITEM)
assert THOUGHT is not None
CALLING = ChatMessage(
    ChatRole.ASSISTANT,
    (Reasoning("hm"), THOUGHT, Text("I look."), ToolCall("c-1", "a.b", '{"a": 1}')),
)
RESULT = ChatMessage(ChatRole.USER, (ToolResult("c-1", "7"), Text("And now?")))


def told(request: GenerateRequest, model: str = "gpt-6-sol", *points: CacheBreakpoint) -> dict[str, Any]:
    return dict(WIRE.body(call_of(request, model, "openai-responses", points)).document)


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text, **more}]}


def items(*messages: ChatMessage, model: str = "gpt-6-sol") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = told(GenerateRequest("s", messages), model)["input"]
    return found


def test_nothing_is_kept_on_the_server_and_thoughts_are_asked_for() -> None:
    body = told(asking())
    key = body.pop("prompt_cache_key")
    assert len(key) <= 64
    assert body == {
        "model": "gpt-6-sol",
        "input": [said("developer", "s"), said("user", "u")],
        "stream": True,
        "store": False,
        "max_output_tokens": 32_000,
        "include": ["reasoning.encrypted_content"],
    }


def test_a_model_that_does_not_reason_is_asked_for_no_thoughts_and_takes_a_temperature() -> None:
    body = told(asking(temperature=0.5, seed=1), "gpt-4.1")
    assert ("include" in body, body["temperature"], "seed" in body) == (False, 0.5, False)
    assert "temperature" not in told(asking(temperature=0.5))


def test_texts_that_end_an_answer_are_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        told(asking(stop_sequences=("x",)))
    assert caught.value.violations[0].field == "stop_sequences"
    assert "openai/gpt-6-sol" in caught.value.message


def test_tools_are_flat_and_say_whether_they_are_strict() -> None:
    choice = ToolChoice(ToolChoiceMode.NAMED, "a.b", disable_parallel=True)
    body = told(asking(tools=(TOOL, Tool("c", "", CLOSED, strict=True)), tool_choice=choice))
    name = body["tools"][0]["name"]
    assert body["tools"][0] == {
        "type": "function",
        "name": name,
        "description": "Reads.",
        "parameters": CLOSED,
        "strict": False,
    }
    assert body["tools"][1]["strict"] is True
    assert body["tool_choice"] == {"type": "function", "name": name}
    assert body["parallel_tool_calls"] is False


def test_models_that_call_no_tools_while_they_reason_do_so_here() -> None:
    body = told(asking(tools=(TOOL,)), "gpt-6.2-sol")
    assert "tools" in body
    assert "reasoning" not in body


def test_the_schema_is_the_format_of_the_text() -> None:
    call = call_of(asking(schema=ResponseSchema("a", CLOSED)), "gpt-6-sol", "openai-responses")
    body = WIRE.body(call)
    assert body.document["text"] == {
        "format": {"type": "json_schema", "name": "a", "schema": CLOSED, "strict": True},
    }
    assert body.schema_report == SchemaReport(SchemaMethod.NATIVE)


def test_a_model_without_structured_output_is_held_to_json() -> None:
    call = call_of(asking(schema=ResponseSchema("a", CLOSED)), "gpt-6-sol", "openai-responses")
    body = WIRE.body(replace(call, data=replace(call.data, capabilities=frozenset())))
    assert body.document["text"] == {"format": {"type": "json_object"}}
    assert "JSON" in str(body.document["input"])
    assert body.schema_report == SchemaReport(SchemaMethod.EXTRACTION)


def test_turns_are_items_and_thoughts_stand_where_they_stood() -> None:
    _, _, thought, text, call, result, after = items(ChatMessage.user("u"), CALLING, RESULT)
    assert thought == {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}
    assert text == {"type": "message", "role": "assistant", "content": "I look."}
    assert call.pop("name").startswith("t_a_b_")
    assert call == {"type": "function_call", "call_id": "c-1", "arguments": '{"a": 1}'}
    assert result == {"type": "function_call_output", "call_id": "c-1", "output": "7"}
    assert after == said("user", "And now?")


def test_a_tool_that_failed_says_so() -> None:
    failed = ChatMessage(ChatRole.USER, (ToolResult("c-1", "none left", is_error=True),))
    assert items(ChatMessage.user("u"), CALLING, failed)[-1]["output"] == "Error: none left"


def test_another_model_is_not_sent_thoughts_that_it_cannot_read() -> None:
    kinds = [item["type"] for item in items(ChatMessage.user("u"), CALLING, RESULT, model="gpt-6.2-sol")]
    assert "reasoning" not in kinds


@pytest.mark.parametrize(
    "state",
    [ProviderState("anthropic", THOUGHT.data), ProviderState(THOUGHT.issuer, b"{")],
)
def test_foreign_and_broken_states_are_left_out(state: ProviderState) -> None:
    assert unwrap_item(CALL, state) == {}


def test_a_text_is_sent_back_in_the_phase_in_which_it_was_said() -> None:
    phases = [wrap_phase(CALL, {"phase": phase}) for phase in ("commentary", "final_answer")]
    assert phases[0] is not None
    assert phases[1] is not None
    said = ChatMessage(ChatRole.ASSISTANT, (phases[0], Text("I look."), phases[1], Text("It is 7.")))
    first, second = items(ChatMessage.user("u"), said)[2:]
    assert first == {"type": "message", "role": "assistant", "content": "I look.", "phase": "commentary"}
    assert (second["content"], second["phase"]) == ("It is 7.", "final_answer")
    other = items(ChatMessage.user("u"), said, model="gpt-4.1")
    assert [item.get("phase") for item in other[2:]] == [None, None]


def test_a_phase_that_is_not_told_is_not_kept() -> None:
    assert wrap_phase(CALL, {"phase": None}) is None


def test_a_thought_that_led_to_nothing_is_left_out() -> None:
    assert THOUGHT is not None
    alone = ChatMessage(ChatRole.ASSISTANT, (THOUGHT,))
    after = ChatMessage(ChatRole.ASSISTANT, (Text("a"), THOUGHT))
    assert len(items(ChatMessage.user("u"), alone, ChatMessage.user("v"))) == 3
    assert [item["type"] for item in items(ChatMessage.user("u"), after)] == ["message"] * 3


def test_thoughts_without_their_content_are_not_kept() -> None:
    assert wrap_reasoning(CALL, {"type": "reasoning", "id": "rs_1", "summary": []}) is None


def test_instructions_in_the_middle_are_the_developers() -> None:
    assert items(ChatMessage.user("u"), ChatMessage.system("x"))[-1] == said("developer", "x")


def test_breakpoints_stand_on_texts() -> None:
    points = (
        CacheBreakpoint(CacheBlock.SYSTEM, CacheTTL.FIVE_MINUTES),
        CacheBreakpoint(CacheBlock.MESSAGE, CacheTTL.FIVE_MINUTES, 0),
        CacheBreakpoint(CacheBlock.MESSAGE, CacheTTL.FIVE_MINUTES, 2),
    )
    request = GenerateRequest("s", (ChatMessage.user("u"), CALLING, RESULT))
    marked = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    first, second, *_, last = told(request, "gpt-6-sol", *points)["input"]
    assert (first, second) == (said("developer", "s", **marked), said("user", "u", **marked))
    assert last == said("user", "And now?")


def test_what_was_written_of_a_history_stays_the_same_as_it_grows() -> None:
    history = [ChatMessage.user("u"), CALLING, RESULT, ChatMessage.assistant("a"), ChatMessage.user("v")]
    before: list[dict[str, Any]] = []
    for length in (1, 3, 5):
        now = items(*normalize_messages(history[:length]))
        assert now[: len(before)] == before
        before = now


def test_what_is_counted_is_the_prompt() -> None:
    counting = WIRE.token_count_request(call_of(asking(tools=(TOOL,)), "gpt-6-sol", "openai-responses"))
    assert (counting.path, counting.field) == ("/responses/input_tokens", "input_tokens")
    assert counting.document.keys() == {"model", "input", "tools"}


def test_a_tool_cannot_be_demanded_of_a_model_that_takes_no_demands() -> None:
    call = call_of(asking(tools=(TOOL,), tool_choice=ToolChoice(ToolChoiceMode.ANY)), "m", "openai-responses")
    traits = replace(call.data.traits, forced_tool_choice=False)
    with pytest.raises(InvalidArgumentError) as caught:
        WIRE.body(replace(call, data=replace(call.data, traits=traits)))
    assert [violation.field for violation in caught.value.violations] == ["tool_choice.mode"]


def test_the_effort_is_sent_also_beside_tools() -> None:
    asked = asking(tools=(TOOL,), reasoning_effort=ReasoningEffort.LOW)
    assert told(asked, "gpt-6.2-sol")["reasoning"] == {"effort": "low"}

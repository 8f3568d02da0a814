from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from peripety.llmsim.determinism import make_signature
from peripety.llmsim.types import (
    ApiError,
    ApiErrorKind,
    BilledUsage,
    CacheBreakpoint,
    CacheSection,
    FrameTag,
    ReasoningPart,
    RefusalPart,
    SimMessage,
    SimReply,
    SimRequest,
    SimRole,
    SimStopReason,
    SimTool,
    SimToolCall,
    SimToolResult,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire.openai.api import OpenAiResponses
from support.llmsim.simulator import NOW, FakeService, call, reply

WIRE = OpenAiResponses()
MODEL = "gpt-6-sol"
KEY = {"authorization": "Bearer sk-1"}
ID = "resp_0123456789abcdef01234567"
SIGNED = make_signature("Let me think.")
THOUGHT = ReasoningPart(("Let me ", "think."), SIGNED)
PROSE = TextPart(("Hel", "lo"))
USE = ToolUsePart("a" * 24, "weather", ('{"ci', 'ty":"Oslo"}'))
CALL = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Oslo"}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
USAGE = BilledUsage(fresh=3, read=20, written={"30m": 5, "12h": 7}, output=12, reasoning=4)


def read(given: Any = "Hello", service: FakeService | None = None, **members: Any) -> SimRequest:
    body = {"model": MODEL, "input": given, **members}
    return WIRE.parse_request(call(WIRE, body, KEY), service or FakeService())


def refused(given: Any = "Hello", **members: Any) -> dict[str, Any]:
    with pytest.raises(ApiError) as raised:
        read(given, **members)
    error: dict[str, Any] = json.loads(WIRE.error(raised.value, "0" * 24, NOW).body)["error"]
    assert error.pop("type") == "invalid_request_error"
    return error


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def document(answer: SimReply, **members: Any) -> Any:
    return WIRE.document(read(**members), answer)


def events(answer: SimReply, **members: Any) -> list[dict[str, Any]]:
    found = []
    for number, frame in enumerate(WIRE.frames(read(stream=True, **members), answer)):
        name, data, *end = frame.data.decode().split("\n")
        assert end == ["", ""]
        value = json.loads(data.removeprefix("data: "))
        assert name == f"event: {value['type']}"
        assert value.pop("sequence_number") == number
        found.append(value)
    return found


# ---- what is understood


def test_a_text_is_what_the_user_says() -> None:
    request = read("Hello", instructions="Be kind.")
    assert (request.system, request.messages) == ("Be kind.", (SimMessage(SimRole.USER, "Hello"),))
    assert read([user("Hello")]).prompt == read("Hello").prompt


def test_items_are_read_with_calls_and_outputs() -> None:
    request = read(
        [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
            user("Hello"),
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SIGNED},
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Wait.", "annotations": [], "logprobs": []}],
            },
            CALL,
            OUTPUT,
            user("And now?"),
        ],
        tools=[WEATHER],
    )
    assert request.system == "Be kind."
    assert request.messages == (
        SimMessage(SimRole.USER, "Hello"),
        SimMessage(SimRole.ASSISTANT, "Wait.", calls=(SimToolCall("weather", {"city": "Oslo"}, "call_1"),)),
        SimMessage(SimRole.USER, "And now?", results=(SimToolResult("sunny", "call_1", "weather"),)),
    )
    assert request.tools == (SimTool("weather", "", WEATHER["parameters"]),)  # type: ignore[arg-type]


def test_an_output_may_be_made_of_parts() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    request = read([CALL, {**OUTPUT, "output": parts}])
    assert request.messages[-1].results == (SimToolResult("a\nb", "call_1", "weather"),)


def test_formats_and_limits_are_read() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    form = {"type": "json_schema", "name": "n", "schema": schema, "strict": True}
    request = read(text={"format": form}, max_output_tokens=20, reasoning={"effort": "none"})
    assert (request.schema, request.max_tokens, request.reasoning) == (schema, 20, False)
    assert read("As JSON", text={"format": {"type": "json_object"}}).schema == {}
    assert read().schema is None


def test_hosted_tools_are_accepted_and_never_called() -> None:
    request = read(tools=[{"type": "web_search"}, WEATHER])
    assert [tool.name for tool in request.tools] == ["weather"]
    assert [block.section for block in request.prompt.blocks[:2]] == [CacheSection.TOOLS, CacheSection.TOOLS]


def test_a_prewarmed_prompt_gets_no_answer() -> None:
    options: dict[str, Any] = {"prompt_cache_options": {"prewarm": True}}
    assert read(**options).max_tokens == 0
    assert document(reply(stop=SimStopReason.LENGTH), **options)["status"] == "completed"


def test_breakpoints_and_controls_are_for_the_cache() -> None:
    part = {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}
    options = {"mode": "explicit", "ttl": "12h"}
    request = read([{"role": "user", "content": [part]}], prompt_cache_options=options, prompt_cache_key="k")
    assert request.prompt.blocks[0].marker == CacheBreakpoint("12h")
    assert request.prompt.controls == {"prompt_cache_key": "k", "prompt_cache_options": options}


@pytest.mark.parametrize(
    "members",
    [
        {"reasoning": {"effort": "low"}},
        {"text": {"verbosity": "low"}},
        {"parallel_tool_calls": False},
        {"context_management": [{"type": "compaction"}]},
    ],
)
def test_settings_that_break_the_whole_prefix_are_told(members: dict[str, Any]) -> None:
    assert read(**members).prompt.settings != read().prompt.settings


@pytest.mark.parametrize(
    ("members", "message", "param", "code"),
    [
        ({"input": None}, "Missing required parameter: 'input'.", "input", "missing_required_parameter"),
        (
            {"input": 3},
            "Invalid type for 'input': expected one of a string or an array, but got an integer instead.",
            "input",
            "invalid_type",
        ),
        (
            {"input": [{"type": "message", "role": "user", "content": [{"type": "text", "text": "x"}]}]},
            "Invalid value: 'text'. Supported values are: 'input_text', 'input_image', and 'input_file'.",
            "input[0].content[0].type",
            "invalid_value",
        ),
        (
            {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]},
            "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
            "input[0].content[0].type",
            "invalid_value",
        ),
        (
            {"input": [{**CALL, "parsed_arguments": {}}, OUTPUT]},
            "Unknown parameter: 'input[0].parsed_arguments'.",
            "input[0].parsed_arguments",
            "unknown_parameter",
        ),
        ({"messages": []}, "Unknown parameter: 'messages'.", "messages", "unknown_parameter"),
        (
            {"input": [OUTPUT]},
            "No tool call found for function call output with call_id call_1.",
            "input",
            None,
        ),
        ({"input": [CALL]}, "No tool output found for function call call_1.", "input", None),
        (
            {"input": [{"type": "reasoning", "id": "rs_1", "summary": []}, user("x")]},
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            "input",
            None,
        ),
        (
            {
                "input": [
                    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA-5Q=="},
                    {"role": "assistant", "content": "x"},
                ],
            },
            (
                "The encrypted content gAAA...5Q== could not be verified. Reason: Encrypted content could "
                "not be "
                "decrypted or parsed."
            ),
            None,
            "invalid_encrypted_content",
        ),
        (
            {"max_output_tokens": 3},
            (
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 3 "
                "instead."
            ),
            "max_output_tokens",
            "integer_below_min_value",
        ),
        (
            {"temperature": 0.2},
            "Unsupported parameter: 'temperature' is not supported with this model.",
            "temperature",
            "unsupported_parameter",
        ),
        (
            {"reasoning": {"effort": "low"}, "model": "gpt-4o"},
            "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
            "reasoning.effort",
            "unsupported_parameter",
        ),
        (
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {}, "strict": True}}},
            (
                "Invalid schema for response_format 'n': schema must be a JSON Schema of 'type: "
                '"object"\', got '
                "'type: \"None\"'."
            ),
            "text.format.schema",
            "invalid_json_schema",
        ),
        (
            {"text": {"format": {"type": "json_object"}}},
            (
                "Response input messages must contain the word 'json' in some form to use 'text.format' of "
                "type "
                "'json_object'."
            ),
            "input",
            None,
        ),
        (
            {"background": True},
            "Unsupported parameter: 'background' is not supported with this model.",
            "background",
            "unsupported_parameter",
        ),
        (
            {"stream_options": {"include_obfuscation": True}},
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
            None,
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "nested"}}]},
            "Unknown parameter: 'tools[0].function'.",
            "tools[0].function",
            "unknown_parameter",
        ),
        (
            {"previous_response_id": "resp_1"},
            "Previous response with id 'resp_1' not found.",
            "previous_response_id",
            "previous_response_not_found",
        ),
        (
            {"previous_response_id": "chatcmpl-1"},
            "Invalid 'previous_response_id': 'chatcmpl-1'. Expected an ID that begins with 'resp'.",
            "previous_response_id",
            "invalid_value",
        ),
    ],
)
def test_a_fault_is_told_as_the_provider_tells_it(
    members: dict[str, Any],
    message: str,
    param: str | None,
    code: str | None,
) -> None:
    given = members.pop("input", "Hello")
    if given is None:
        with pytest.raises(ApiError) as raised:
            WIRE.parse_request(call(WIRE, {"model": MODEL}, KEY), FakeService())
        assert (raised.value.message, raised.value.param, raised.value.code) == (message, param, code)
    else:
        assert refused(given, **members) == {"message": message, "param": param, "code": code}


# ---- what is answered


def test_a_response_has_its_items_and_repeats_the_request() -> None:
    answer = document(
        reply(THOUGHT, PROSE, USE, model=MODEL, stop=SimStopReason.TOOL_USE, usage=USAGE),
        tools=[WEATHER],
        instructions="Be kind.",
        reasoning={"effort": "low", "summary": "auto"},
        metadata={"a": "b"},
    )
    assert answer["id"] == ID
    assert (answer["object"], answer["status"], answer["created_at"]) == ("response", "completed", int(NOW))
    assert (answer["error"], answer["incomplete_details"], answer["model"]) == (None, None, MODEL)
    assert answer["output"] == [
        {
            "id": "rs_0123456789abcdef0123456700",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "Let me think."}],
            "encrypted_content": SIGNED,
        },
        {
            "id": "msg_0123456789abcdef0123456701",
            "type": "message",
            "status": "completed",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Hello"}],
            "role": "assistant",
        },
        {
            "id": "fc_0123456789abcdef0123456702",
            "type": "function_call",
            "status": "completed",
            "arguments": '{"city":"Oslo"}',
            "call_id": "call_" + "a" * 24,
            "name": "weather",
        },
    ]
    assert answer["usage"] == {
        "input_tokens": 35,
        "input_tokens_details": {
            "cached_tokens": 20,
            "cache_write_tokens": 12,
            "cache_write_tokens_details": {"ttl_30m_tokens": 5, "ttl_12h_tokens": 7},
        },
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 47,
    }
    assert answer["instructions"] == "Be kind."
    assert answer["metadata"] == {"a": "b"}
    assert answer["reasoning"] == {"effort": "low", "summary": "auto"}
    assert answer["tools"] == [{"description": None, **WEATHER, "strict": True}]
    assert (answer["service_tier"], answer["store"], answer["truncation"]) == ("default", True, "disabled")


def test_thoughts_are_summarized_only_for_those_who_ask() -> None:
    answer = document(reply(THOUGHT, PROSE))
    assert answer["output"][0]["summary"] == []
    assert answer["output"][0]["encrypted_content"] == SIGNED


@pytest.mark.parametrize(
    ("stop", "reason"),
    [(SimStopReason.LENGTH, "max_output_tokens"), (SimStopReason.CONTENT_FILTER, "content_filter")],
)
def test_an_answer_that_is_cut_off_is_incomplete(stop: SimStopReason, reason: str) -> None:
    cut = reply(THOUGHT, PROSE, stop=stop)
    answer = document(cut)
    assert (answer["status"], answer["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert answer["output"][-1]["status"] == "incomplete"
    assert events(cut)[-1] == {"type": "response.incomplete", "response": answer}


def test_a_refusal_is_a_part_of_its_own() -> None:
    answer = reply(RefusalPart(("I ", "can't.")), stop=SimStopReason.REFUSAL)
    assert document(answer)["output"][0]["content"] == [{"type": "refusal", "refusal": "I can't."}]
    assert [event["type"] for event in events(answer)][3:8] == [
        "response.content_part.added",
        "response.refusal.delta",
        "response.refusal.delta",
        "response.refusal.done",
        "response.content_part.done",
    ]


def test_events_come_in_the_documented_order() -> None:
    answer = reply(THOUGHT, PROSE, USE, stop=SimStopReason.TOOL_USE)
    streamed = events(answer, reasoning={"summary": "auto"})
    assert [event["type"] for event in streamed] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    begun, done = streamed[0]["response"], streamed[-1]["response"]
    assert (begun["status"], begun["output"], begun["usage"]) == ("in_progress", [], None)
    assert done == document(answer, reasoning={"summary": "auto"})
    items = [event["item"] for event in streamed if event["type"] == "response.output_item.done"]
    assert items == done["output"]


def test_thoughts_that_are_not_shown_take_their_time() -> None:
    frames = WIRE.frames(read(stream=True), reply(THOUGHT, PROSE))
    assert [frame.tokens for frame in frames if frame.tag is FrameTag.PART][:2] == [0, 4]
    assert frames[-1].tag is FrameTag.END


def test_padding_is_streamed_only_when_it_is_asked_for() -> None:
    answer = reply(PROSE)
    assert all("obfuscation" not in event for event in events(answer))
    padded = events(answer, stream_options={"include_obfuscation": True})
    assert all(("obfuscation" in event) == ("delta" in event) for event in padded)


def test_an_error_in_a_stream_is_followed_by_the_failed_response() -> None:
    frames = WIRE.frames(read(stream=True), reply(PROSE))
    told = WIRE.error_frame(ApiError(ApiErrorKind.OVERLOADED, "m"), "0" * 24, frames[:5])
    first, second, rest = told.split(b"\n\n")
    assert rest == b""
    assert json.loads(first.removeprefix(b"event: error\ndata: ")) == {
        "type": "error",
        "sequence_number": 5,
        "error": {
            "message": "m",
            "type": "service_unavailable_error",
            "param": None,
            "code": "server_is_overloaded",
        },
    }
    failed = json.loads(second.removeprefix(b"event: response.failed\ndata: "))
    assert (failed["sequence_number"], failed["response"]["id"]) == (6, ID)
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": "server_error", "message": "m"}


def test_an_error_before_anything_else_stands_alone() -> None:
    told = WIRE.error_frame(ApiError(ApiErrorKind.SERVER, "m"), "0" * 24, ())
    assert told.startswith(b"event: error\n")
    assert b"response.failed" not in told


# ---- stored objects


def answered(service: FakeService, request: SimRequest, answer: SimReply) -> str:
    for table, entries in WIRE.objects_to_store(request, answer).items():
        for key, value in entries.items():
            service.objects(table).put(key, json.loads(json.dumps(value)))
    return f"resp_{answer.id}"


def other(service: FakeService, name: str, response_id: str, key: str = "sk-1") -> Any:
    headers = {"authorization": f"Bearer {key}"}
    sent = call(WIRE, None, headers, name=name, params={"response_id": response_id})
    return json.loads(WIRE.handle_other(sent, service).body)


def test_a_response_continues_those_before_it() -> None:
    service = FakeService()
    first = answered(service, read("One", service, instructions="Be kind."), reply(PROSE, USE))
    output = {**OUTPUT, "call_id": "call_" + "a" * 24}
    request = read([output], service, previous_response_id=first)
    second = answered(service, request, replace(reply(TextPart(("Bye",))), id="1" * 24))
    request = read("Three", service, previous_response_id=second)
    assert request.system == ""  # instructions are not carried over
    assert [message.text for message in request.messages] == ["One", "Hello", "", "Bye", "Three"]
    assert request.messages[2].results[0].name == "weather"


def test_a_call_of_the_response_before_needs_its_output() -> None:
    service = FakeService()
    first = answered(service, read("One", service), reply(USE))
    with pytest.raises(ApiError, match="No tool output found for function call call_a"):
        read("Two", service, previous_response_id=first)


def test_a_response_is_shown_with_its_input_until_it_is_deleted() -> None:
    service = FakeService()
    answer = reply(PROSE)
    kept = answered(service, read("One", service), answer)
    assert other(service, "retrieve", kept) == WIRE.document(read("One"), answer)
    listed = other(service, "input_items", kept)
    assert (listed["object"], listed["has_more"]) == ("list", False)
    assert [item["content"] for item in listed["data"]] == [[{"type": "input_text", "text": "One"}]]
    assert other(service, "delete", kept) == {"id": kept, "object": "response", "deleted": True}
    with pytest.raises(ApiError, match=f"Response with id '{kept}' not found.") as raised:
        other(service, "retrieve", kept)
    assert raised.value.kind is ApiErrorKind.NOT_FOUND


def test_a_response_is_nobody_elses() -> None:
    service = FakeService()
    kept = answered(service, read("One", service), reply(PROSE))
    with pytest.raises(ApiError, match="not found"):
        other(service, "retrieve", kept, key="sk-2")


def test_a_response_that_is_not_to_be_stored_is_forgotten() -> None:
    assert WIRE.objects_to_store(read(store=False), reply(PROSE)) == {}


def test_the_key_is_not_written_anywhere() -> None:
    assert "sk-1" not in json.dumps(WIRE.objects_to_store(read(), reply(PROSE)))


def test_a_finished_response_cannot_be_cancelled() -> None:
    service = FakeService()
    kept = answered(service, read("One", service), reply(PROSE))
    with pytest.raises(ApiError, match="Cannot cancel a synchronous response"):
        other(service, "cancel", kept)


def test_input_tokens_are_counted_as_they_are_billed() -> None:
    body = {"model": MODEL, "input": "Hello there", "instructions": "Be kind."}
    sent = call(WIRE, body, KEY, name="input_tokens")
    assert json.loads(WIRE.handle_other(sent, FakeService()).body) == {
        "object": "response.input_tokens",
        "input_tokens": read("Hello there", instructions="Be kind.").prompt.tokens,
    }

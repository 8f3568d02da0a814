from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.llmsim.types import (
    ApiError,
    ApiErrorKind,
    CacheBreakpoint,
    CacheSection,
    SimMessage,
    SimRequest,
    SimRole,
    SimTool,
    SimToolCall,
    SimToolResult,
)
from peripety.llmsim.wire.openai.api import OpenAiChat
from support.llmsim.simulator import FakeService, call

WIRE = OpenAiChat()
MODEL = "gpt-6-sol"
OLD_MODEL = "gpt-4o"
USER = {"role": "user", "content": "Hello"}
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}},
    ],
}


def result(call_id: str, text: str = "sunny") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def read(*messages: Any, headers: dict[str, str] | None = None, **members: Any) -> SimRequest:
    body = {"model": MODEL, "messages": messages or [USER], **members}
    return WIRE.parse_request(call(WIRE, body, headers), FakeService())


def refused(*messages: Any, **members: Any) -> dict[str, Any]:
    with pytest.raises(ApiError) as raised:
        read(*messages, **members)
    document = WIRE.error(raised.value, "0" * 24, 0)
    assert document.status == 400
    error: dict[str, Any] = json.loads(document.body)["error"]
    assert error.pop("type") == "invalid_request_error"
    return error


# ---- what is understood


def test_a_conversation_is_read_with_calls_results_and_instructions() -> None:
    request = read(
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
        USER,
        CALLED,
        result("call_2", "rain"),
        result("call_1"),
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": "Still."},
        {"role": "developer", "content": "Be briefer."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        tools=[WEATHER],
    )
    assert request.system == "Be brief.\nBe kind."
    assert request.messages == (
        SimMessage(SimRole.USER, "Hello"),
        SimMessage(
            SimRole.ASSISTANT,
            calls=(
                SimToolCall("weather", {"city": "Oslo"}, "call_1"),
                SimToolCall("weather", {"city": "Rome"}, "call_2"),
            ),
        ),
        SimMessage(
            SimRole.USER,
            "And now?",
            results=(SimToolResult("rain", "call_2", "weather"), SimToolResult("sunny", "call_1", "weather")),
        ),
        SimMessage(SimRole.ASSISTANT, "Still."),
        SimMessage(SimRole.SYSTEM, "Be briefer."),
        SimMessage(SimRole.USER, "a\nb"),
    )
    assert request.tools == (
        SimTool("weather", "Tells the weather", WEATHER["function"]["parameters"]),  # type: ignore[index]
    )


def test_a_refusal_is_what_the_model_said() -> None:
    request = read(USER, {"role": "assistant", "refusal": "I can't."}, USER)
    assert request.messages[1] == SimMessage(SimRole.ASSISTANT, "I can't.")


def test_arguments_that_are_no_json_are_read_as_nothing() -> None:
    broken = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"ci'}}
    request = read(USER, {"role": "assistant", "tool_calls": [broken]}, result("call_1"))
    assert request.messages[1].calls == (SimToolCall("weather", None, "call_1"),)


def test_what_the_sdk_has_parsed_may_be_sent_back() -> None:
    message = json.loads(json.dumps(CALLED))
    message |= {"parsed": None, "annotations": [], "refusal": None, "audio": None, "function_call": None}
    message["tool_calls"][0]["function"]["parsed_arguments"] = {"city": "Oslo"}
    assert read(USER, message, result("call_1"), result("call_2")).messages[1].calls[0].name == "weather"


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"authorization": "Bearer sk-1"}, "sk-1"),
        ({"authorization": "bearer sk-1"}, "sk-1"),
        ({"api-key": "azure"}, "azure"),
        ({}, ""),
    ],
)
def test_the_key_is_a_bearer_token_or_in_the_header_of_azure(headers: dict[str, str], key: str) -> None:
    assert read(headers=headers).key == key


def test_the_conversation_may_be_named_by_a_header() -> None:
    assert read(headers={"x-peripety-conversation": "c"}).conversation == "c"


def test_a_deployment_names_the_model_where_the_body_does_not() -> None:
    sent = call(WIRE, {"messages": [USER]}, params={"deployment": "gpt-6-luna"})
    assert WIRE.parse_request(sent, FakeService()).model == "gpt-6-luna"


def test_limits_stops_and_streaming_are_read() -> None:
    request = read(
        max_completion_tokens=7,
        stop=["a", "b"],
        stream=True,
        stream_options={"include_usage": True},
        service_tier="flex",
    )
    assert (request.max_tokens, request.stop, request.stream) == (7, ("a", "b"), True)
    assert request.options == {"include_usage": True, "include_obfuscation": False, "service_tier": "flex"}
    assert read(stop="x").stop == ("x",)
    assert read(model=OLD_MODEL, max_tokens=3).max_tokens == 3


def test_members_that_are_null_are_left_out() -> None:
    names = ("max_tokens", "stop", "stream_options", "tools", "tool_choice", "response_format", "temperature")
    assert read(**dict.fromkeys(names)) == read()


@pytest.mark.parametrize(
    ("model", "effort", "reasons"),
    [(MODEL, None, True), (MODEL, "none", False), (OLD_MODEL, None, False)],
)
def test_models_that_do_not_reason_have_no_thoughts(model: str, effort: str | None, reasons: bool) -> None:
    assert read(model=model, reasoning_effort=effort).reasoning is reasons


def test_schemas_of_answers_are_read() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    chosen = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
    assert read(response_format=chosen).schema == schema
    assert read({"role": "user", "content": "As JSON"}, response_format={"type": "json_object"}).schema == {}
    assert read(response_format={"type": "text"}).schema is None


def test_a_choice_among_allowed_tools_is_accepted() -> None:
    named = {"type": "function", "function": {"name": "weather"}}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}
    for choice in ("auto", "none", "required", named, allowed):
        assert read(tools=[WEATHER], tool_choice=choice, parallel_tool_calls=False).tools


# ---- what is counted and cached


def test_blocks_stand_in_the_order_of_the_cached_prefix() -> None:
    request = read(
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "there"}]},
        CALLED,
        result("call_1"),
        result("call_2"),
        tools=[WEATHER],
    )
    blocks = request.prompt.blocks
    assert [block.section for block in blocks] == [
        CacheSection.TOOLS,
        CacheSection.SYSTEM,
        *[CacheSection.MESSAGES] * 6,
    ]
    assert [block.message for block in blocks] == [-1, 0, 1, 1, 2, 2, 3, 4]
    # "Hello" and "there" are two tokens each, and where their message begins counts three.
    assert [block.tokens for block in blocks[2:4]] == [5, 2]


def test_a_text_is_the_same_block_as_its_only_part() -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}
    assert read(USER).prompt == read(parts).prompt


def test_the_same_words_of_others_are_another_block() -> None:
    said = {"role": "assistant", "content": "Hello"}
    assert read(USER, USER).prompt.blocks[1].content != read(USER, said).prompt.blocks[1].content


def test_breakpoints_mark_blocks_and_are_no_part_of_them() -> None:
    def with_part(**members: Any) -> SimRequest:
        return read({"role": "user", "content": [{"type": "text", "text": "Hello", **members}]})

    marked = with_part(prompt_cache_breakpoint={"mode": "explicit", "ttl": "12h"}).prompt.blocks[0]
    plain = with_part().prompt.blocks[0]
    assert marked.marker == CacheBreakpoint("12h")
    assert with_part(prompt_cache_breakpoint={"mode": "explicit"}).prompt.blocks[0].marker == CacheBreakpoint(
        "",
    )
    assert plain.marker is None
    assert marked.content == plain.content


def test_cache_controls_are_kept_in_the_callers_words() -> None:
    options = {"mode": "explicit", "ttl": "30m"}
    request = read(prompt_cache_key="k", prompt_cache_options=options)
    assert request.prompt.controls == {"prompt_cache_key": "k", "prompt_cache_options": options}
    assert read(prompt_cache_retention="24h").prompt.controls == {"prompt_cache_retention": "24h"}


def test_models_whose_names_tell_nothing_take_everything() -> None:
    options: dict[str, Any] = {"mode": "explicit"}
    request = read(
        model="test-model",
        prompt_cache_options=options,
        temperature=0.5,
        reasoning_effort="low",
        max_tokens=3,
    )
    assert request.prompt.controls == {"prompt_cache_options": options}


@pytest.mark.parametrize(
    "members",
    [
        {"reasoning_effort": "low"},
        {"verbosity": "low"},
        {"response_format": {"type": "text"}},
        {"tools": [WEATHER], "parallel_tool_calls": False},
    ],
)
def test_settings_that_break_the_whole_prefix_are_told(members: dict[str, Any]) -> None:
    plain = {name: value for name, value in members.items() if name == "tools"}
    assert read(**members).prompt.settings != read(**plain).prompt.settings


def test_settings_that_break_nothing_are_not_told() -> None:
    assert read(user="u", seed=1, max_completion_tokens=3, metadata={"a": "b"}).prompt == read().prompt


def test_images_cost_the_same_however_long_their_data_is() -> None:
    def image(url: str, **members: Any) -> int:
        part = {"type": "image_url", "image_url": {"url": url, **members}}
        return read({"role": "user", "content": [part]}).prompt.tokens

    assert image("data:image/png;base64,AAAA") == image("data:image/png;base64," + "A" * 10_000)
    assert image("https://example.org/a.png", detail="low") < image("https://example.org/a.png")


# ---- what is refused


@pytest.mark.parametrize("body", [b"", b"{", b"[]x", b'{"model": NaN}', b"\xff\xfe", b'{"a": 1, "a": 2}'])
def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(ApiError, match="We could not parse the JSON body of your request"):
        WIRE.parse_request(call(WIRE, body), FakeService())


def test_a_body_that_is_no_object_is_refused() -> None:
    with pytest.raises(ApiError, match="expected an object, but got an array"):
        WIRE.parse_request(call(WIRE, b"[]"), FakeService())


def test_a_request_without_a_model_is_refused_without_a_place() -> None:
    with pytest.raises(ApiError) as raised:
        WIRE.parse_request(call(WIRE, {"messages": [USER]}), FakeService())
    assert (raised.value.message, raised.value.param) == ("you must provide a model parameter", None)


@pytest.mark.parametrize(
    ("members", "message", "param", "code"),
    [
        (
            {"messages": []},
            (
                "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty "
                "array "
                "instead."
            ),
            "messages",
            "empty_array",
        ),
        (
            {"messages": "Hello"},
            "Invalid type for 'messages': expected an array, but got a string instead.",
            "messages",
            "invalid_type",
        ),
        (
            {"messages": [{"role": "robot", "content": "x"}]},
            (
                "Invalid value: 'robot'. Supported values are: 'system', 'assistant', 'user', 'tool', and "
                "'developer'."
            ),
            "messages[0].role",
            "invalid_value",
        ),
        (
            {"messages": [{"role": "user"}]},
            "Missing required parameter: 'messages[0].content'.",
            "messages[0].content",
            "missing_required_parameter",
        ),
        (
            {"messages": [{"role": "user", "content": 3}]},
            (
                "Invalid type for 'messages[0].content': expected one of a string or an array, but got an "
                "integer "
                "instead."
            ),
            "messages[0].content",
            "invalid_type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "sound"}]}]},
            "Invalid value: 'sound'. Supported values are: 'text', 'image_url', 'input_audio', and 'file'.",
            "messages[0].content[0].type",
            "invalid_value",
        ),
        ({"temprature": 1}, "Unknown parameter: 'temprature'.", "temprature", "unknown_parameter"),
        (
            {"messages": [{"role": "user", "content": "x", "cache_control": {"type": "ephemeral"}}]},
            "Unknown parameter: 'messages[0].cache_control'.",
            "messages[0].cache_control",
            "unknown_parameter",
        ),
        (
            {"temperature": 2.5, "model": OLD_MODEL},
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 instead.",
            "temperature",
            "decimal_above_max_value",
        ),
        (
            {"max_completion_tokens": 0},
            (
                "Invalid 'max_completion_tokens': integer below minimum value. Expected a value >= 1, but "
                "got 0 "
                "instead."
            ),
            "max_completion_tokens",
            "integer_below_min_value",
        ),
        (
            {"max_completion_tokens": 1_000_000},
            (
                "max_completion_tokens is too large: 1000000. This model supports at most 128000 completion "
                "tokens, "
                "whereas you provided 1000000."
            ),
            "max_completion_tokens",
            "invalid_value",
        ),
        (
            {"max_tokens": 5},
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                "'max_completion_tokens' "
                "instead."
            ),
            "max_tokens",
            "unsupported_parameter",
        ),
        (
            {"max_tokens": 5, "max_completion_tokens": 5, "model": OLD_MODEL},
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            "max_tokens",
            "invalid_parameter_combination",
        ),
        (
            {"temperature": 0.2},
            (
                "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) "
                "value "
                "is supported."
            ),
            "temperature",
            "unsupported_value",
        ),
        (
            {"reasoning_effort": "low", "model": OLD_MODEL},
            "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
            "reasoning_effort",
            "unsupported_parameter",
        ),
        (
            {"functions": [{"name": "f"}]},
            "Unsupported parameter: 'functions' is not supported with this model. Use 'tools' instead.",
            "functions",
            "unsupported_parameter",
        ),
        (
            {"n": 2},
            (
                "Unsupported value: 'n' does not support 2 with this model. Only the default (1) value is "
                "supported."
            ),
            "n",
            "unsupported_value",
        ),
        (
            {"stream_options": {"include_usage": True}},
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
            None,
        ),
        (
            {"stop": ["a", "b", "c", "d", "e"]},
            (
                "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array "
                "with "
                "length 5 instead."
            ),
            "stop",
            "array_above_max_length",
        ),
        (
            {"tool_choice": "auto"},
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
            "tool_choice",
            None,
        ),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "time"}}},
            "Tool choice 'time' not found in 'tools' parameter.",
            "tool_choice",
            None,
        ),
        (
            {"tools": []},
            (
                "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty "
                "array "
                "instead."
            ),
            "tools",
            "empty_array",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "a b"}}]},
            (
                "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that "
                "matches "
                "the pattern '^[a-zA-Z0-9_-]+$'."
            ),
            "tools[0].function.name",
            "invalid_value",
        ),
        (
            {"tools": [{"type": "function", "name": "flat"}]},
            "Unknown parameter: 'tools[0].name'.",
            "tools[0].name",
            "unknown_parameter",
        ),
        (
            {"response_format": {"type": "json_object"}},
            (
                "'messages' must contain the word 'json' in some form, to use 'response_format' of type "
                "'json_object'."
            ),
            "messages",
            None,
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n" * 65, "schema": {}}}},
            (
                "Invalid 'response_format.json_schema.name': string too long. Expected a string with maximum "
                "length "
                "64, but got a string with length 65 instead."
            ),
            "response_format.json_schema.name",
            "string_above_max_length",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
                },
            },
            (
                "Invalid schema for response_format 'n': In context=(), 'additionalProperties' is required "
                "to be "
                "supplied and to be false."
            ),
            "response_format",
            None,
        ),
        (
            {"prompt_cache_options": {"mode": "implicit"}, "model": OLD_MODEL},
            "Unsupported parameter: 'prompt_cache_options' is not supported with this model.",
            "prompt_cache_options",
            "unsupported_parameter",
        ),
        (
            {"prompt_cache_options": {"ttl": "12h"}},
            "Invalid value: '12h'. Supported values are: '30m'.",
            "prompt_cache_options.ttl",
            "invalid_value",
        ),
    ],
)
def test_a_fault_is_told_as_the_provider_tells_it(
    members: dict[str, Any],
    message: str,
    param: str,
    code: str | None,
) -> None:
    assert refused(**members) == {"message": message, "param": param, "code": code}


def test_every_call_needs_a_result_before_anything_else_is_said() -> None:
    told = {
        "message": "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: call_2",
        "param": "messages",
        "code": None,
    }
    assert refused(USER, CALLED, result("call_1")) == told
    assert refused(USER, CALLED, result("call_1"), USER) == told


def test_a_result_needs_a_call_right_before_it() -> None:
    message = (
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
        "'tool_calls'."
    )
    assert refused(USER, result("call_1")) == {"message": message, "param": "messages.[1].role", "code": None}


def test_a_result_of_an_unknown_call_is_refused() -> None:
    error = refused(USER, CALLED, result("call_3"))
    assert error["message"] == (
        "Invalid parameter: 'tool_call_id' of 'call_3' not found in 'tool_calls' of previous message."
    )
    assert error["param"] == "messages.[2].tool_call_id"


def test_probabilities_are_refused_as_models_that_reason_do() -> None:
    with pytest.raises(ApiError) as raised:
        read(logprobs=True)
    assert raised.value.kind is ApiErrorKind.PERMISSION


def test_a_strict_tool_needs_a_strict_schema() -> None:
    tool = {"type": "function", "function": {**WEATHER["function"], "strict": True}}  # type: ignore[dict-item]
    assert refused(tools=[tool]) == {
        "message": "Invalid schema for function 'weather': In context=(), 'additionalProperties' is "
        "required to "
        "be supplied and to be false.",
        "param": "tools[0].function.parameters",
        "code": "invalid_function_parameters",
    }

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.provider_rules import models
from peripety.llmsim.types import (
    Api,
    ApiError,
    ApiErrorKind,
    BilledUsage,
    FrameTag,
    ReasoningPart,
    RefusalPart,
    SimMessage,
    SimRole,
    SimStopReason,
    SimTool,
    SimToolCall,
    SimToolResult,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire.ollama.api import OllamaWire
from support.llmsim.simulator import NOW, FakeService, call, reply

if TYPE_CHECKING:
    from peripety.llmsim.types import SimRequest


WIRE = OllamaWire()
HELLO: dict[str, Any] = {"model": "llama3", "messages": [{"role": "user", "content": "Hello"}]}
TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "Tells it.", "parameters": {"type": "object"}},
}


def read(headers: dict[str, str] | None = None, /, name: str = "chat", **members: Any) -> SimRequest:
    body = {**(HELLO if name == "chat" else {"model": "llama3"}), **members}
    return WIRE.parse_request(call(WIRE, body, headers, name=name), FakeService())


def refusal(body: Any, name: str = "chat") -> str:
    answer = WIRE.handle_other if name == "show" else WIRE.parse_request
    with pytest.raises(ApiError) as caught:
        answer(call(WIRE, body, name=name), FakeService())
    assert caught.value.kind is ApiErrorKind.INVALID_REQUEST
    return caught.value.message


# ---- requests


def test_a_conversation_is_read_into_neutral_words() -> None:
    request = read(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?", "images": ["aGk="]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "Hm.",
                "tool_calls": [
                    {"function": {"name": "weather", "arguments": {"city": "Oslo"}}},
                    {"function": {"name": "time", "arguments": None}},
                ],
            },
            {"role": "tool", "content": "sunny", "tool_name": "weather"},
            {"role": "tool", "content": "noon", "tool_name": "time"},
            {"role": "user", "content": "Well?"},
            {"role": "system", "content": "Be kind."},
        ],
        tools=[TOOL],
        options={"num_predict": 50, "stop": ["STOP"]},
    )
    assert (request.api, request.model, request.system) == (Api.OLLAMA, "llama3", "Be brief.")
    assert request.tools == (SimTool("weather", "Tells it.", {"type": "object"}),)
    assert request.messages == (
        SimMessage(SimRole.USER, "Weather?"),
        SimMessage(
            SimRole.ASSISTANT,
            "",
            (SimToolCall("weather", {"city": "Oslo"}), SimToolCall("time", {})),
        ),
        SimMessage(
            SimRole.USER,
            "Well?",
            results=(SimToolResult("sunny", name="weather"), SimToolResult("noon", name="time")),
        ),
        SimMessage(SimRole.SYSTEM, "Be kind."),
    )
    assert (request.max_tokens, request.stop) == (50, ("STOP",))


def test_answers_are_streamed_and_thoughts_shown_unless_told_otherwise() -> None:
    assert (read().stream, read().reasoning) == (True, True)
    assert (read(stream=False).stream, read(think=False).reasoning) == (False, False)
    assert (read(stream=None).stream, read(think=None).reasoning, read(think="low").reasoning) == (True,) * 3


@pytest.mark.parametrize(
    ("form", "schema"),
    [(None, None), ("", None), ("json", {}), ({"type": "object"}, {"type": "object"})],
)
def test_the_form_of_the_answer_is_any_json_or_a_schema(form: Any, schema: Any) -> None:
    assert read(format=form).schema == schema


@pytest.mark.parametrize(("predict", "most"), [(None, None), (-1, None), (-2, None), (0, 0), (7, 7)])
def test_a_negative_number_of_tokens_is_no_limit(predict: int | None, most: int | None) -> None:
    assert read(options={"num_predict": predict}).max_tokens == most


def test_one_stop_sequence_needs_no_list() -> None:
    assert read(options={"stop": "."}).stop == (".",)


def test_the_key_and_the_conversation_come_by_headers() -> None:
    request = read({"authorization": "Bearer k", "x-peripety-conversation": "c"})
    assert (request.key, request.conversation) == ("k", "c")
    assert read().key == ""


def test_what_does_not_fit_into_the_context_is_left_out_oldest_first() -> None:
    said = [
        {"role": "system", "content": "s" * 40},
        {"role": "user", "content": "u" * 400},
        {"role": "assistant", "content": "a" * 40},
        {"role": "user", "content": "v" * 40},
    ]
    assert read(messages=said).prompt.tokens == 10 + 100 + 10 + 10
    small = read(messages=said, options={"num_ctx": 64})
    assert [block.kind for block in small.prompt.blocks] == ["system", "assistant", "user"]
    assert len(small.messages) == 3
    whole = read(messages=[{"role": "user", "content": "word" * 5000}]).prompt.tokens
    assert whole == 5000


def test_a_prompt_alone_is_read_too() -> None:
    request = read(name="generate", prompt="Why?", system="Be brief.", stream=False)
    assert (request.system, request.messages) == ("Be brief.", (SimMessage(SimRole.USER, "Why?"),))
    assert request.prompt.tokens == models.count_tokens("Be brief.") + models.count_tokens("Why?")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "missing request body"),
        (b"{", "invalid JSON: EOF while parsing an object at line 1 column 1"),
        ({"messages": []}, "model is required"),
        ({"model": ""}, "model is required"),
        ([], "json: cannot unmarshal array into Go struct field Request of type map[string]interface {}"),
        (
            {"model": "m", "messages": 1},
            "json: cannot unmarshal number into Go struct field Request.messages of type []interface {}",
        ),
        (
            {"model": "m", "messages": [{"role": "user", "content": True}]},
            "json: cannot unmarshal bool into Go struct field Request.messages.content of type string",
        ),
        (
            {"model": "m", "messages": [{"role": "robot"}]},
            "invalid role: robot, must be one of [system user assistant tool]",
        ),
        (
            {
                "model": "m",
                "messages": [
                    {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
                ],
            },
            (
                "json: cannot unmarshal string into Go struct field "
                "Request.messages.tool_calls.function.arguments of type map[string]interface {}"
            ),
        ),
        (
            {"model": "m", "messages": [{"role": "user", "images": ["?"]}]},
            "illegal base64 data in an image",
        ),
        (
            {"model": "m", "format": "xml"},
            'invalid format: "xml"; expected "json" or a valid JSON Schema object',
        ),
        (
            {"model": "m", "think": "hard"},
            'invalid think value: "hard" (must be "high", "medium", "low", "max", true, or false)',
        ),
        ({"model": "m", "tools": [{"function": {}}]}, "name is required"),
    ],
)
def test_what_is_not_valid_is_refused_in_the_providers_words(body: Any, message: str) -> None:
    assert refusal(body) == message


def test_what_is_not_known_is_ignored() -> None:
    assert read(surprise=1, truncate=True).model == "llama3"


# ---- answers

PARTS = (
    ReasoningPart(("Let me ", "think."), "c2ln"),
    TextPart(("Hel", "lo")),
    ToolUsePart("a" * 24, "weather", ('{"city":', '"Oslo"}')),
    ToolUsePart("b" * 24, "time", ()),
)
USAGE = BilledUsage(fresh=7, read=3, output=12, reasoning=4)
CALLS = [
    {"function": {"name": "weather", "arguments": {"city": "Oslo"}}},
    {"function": {"name": "time", "arguments": {}}},
]
CREATED: dict[str, Any] = {"model": "test-model", "created_at": "2026-01-01T00:00:00.000000Z"}
END = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 50_000_000 + 1_000_000 + 120_000_000,
    "load_duration": 50_000_000,
    "prompt_eval_count": 10,
    "prompt_eval_duration": 1_000_000,
    "eval_count": 12,
    "eval_duration": 120_000_000,
}


def test_an_answer_that_is_not_streamed_is_one_object() -> None:
    assert WIRE.document(read(), reply(*PARTS, stop=SimStopReason.TOOL_USE, usage=USAGE)) == {
        **CREATED,
        "message": {
            "role": "assistant",
            "content": "Hello",
            "thinking": "Let me think.",
            "tool_calls": CALLS,
        },
        **END,
    }


def test_a_stream_is_lines_with_whole_calls_and_the_figures_in_the_last() -> None:
    frames = WIRE.frames(read(), reply(*PARTS, stop=SimStopReason.TOOL_USE, usage=USAGE))
    assert all(frame.data.endswith(b"}\n") and frame.data.count(b"\n") == 1 for frame in frames)
    lines = [json.loads(frame.data) for frame in frames]
    said: list[dict[str, Any]] = [
        {"thinking": "Let me "},
        {"thinking": "think."},
        {"content": "Hel"},
        {"content": "lo"},
        {"tool_calls": CALLS[:1]},
        {"tool_calls": CALLS[1:]},
    ]
    assert lines[:-1] == [
        {**CREATED, "message": {"role": "assistant", "content": "", **each}, "done": False} for each in said
    ]
    assert lines[-1] == {**CREATED, "message": {"role": "assistant", "content": ""}, **END}
    assert [frame.tag for frame in frames] == [
        *[FrameTag.REASONING] * 2,
        *[FrameTag.TEXT] * 2,
        *[FrameTag.ARGUMENTS] * 2,
        FrameTag.END,
    ]
    assert [frame.tokens for frame in frames] == [2, 2, 1, 1, 2 + 4, 1, 0]


def test_a_line_holds_nothing_that_may_be_taken_for_its_end() -> None:
    data = WIRE.frames(read(), reply(TextPart(("<a\u2028b\u2029c&>",))))[0].data
    assert rb"\u003ca\u2028b\u2029c\u0026\u003e" in data
    assert json.loads(data)["message"]["content"] == "<a\u2028b\u2029c&>"


def test_a_prompts_answer_is_a_response() -> None:
    request = read(name="generate", prompt="Why?")
    document = WIRE.document(request, reply(*PARTS[:2], usage=USAGE))
    assert document == {**CREATED, "response": "Hello", "thinking": "Let me think.", **END}
    lines = [json.loads(frame.data) for frame in WIRE.frames(request, reply(PARTS[1], usage=USAGE))]
    assert [line["response"] for line in lines] == ["Hel", "lo", ""]
    assert lines[-1] == {**CREATED, "response": "", **END}


@pytest.mark.parametrize(
    ("stop", "reason"),
    [(stop, "length" if stop is SimStopReason.LENGTH else "stop") for stop in SimStopReason],
)
def test_only_a_lack_of_room_is_told_from_other_ends(stop: SimStopReason, reason: str) -> None:
    assert WIRE.document(read(), reply(TextPart(("x",)), stop=stop))["done_reason"] == reason


def test_a_refusal_is_what_the_model_says() -> None:
    document = WIRE.document(read(), reply(RefusalPart(("I can", "not.")), stop=SimStopReason.REFUSAL))
    assert document["message"]["content"] == "I cannot."


@pytest.mark.parametrize(("keep", "reason"), [(None, "load"), (300, "load"), ("5m", "load"), (0, "unload")])
def test_without_anything_to_answer_a_model_is_loaded_or_unloaded(keep: Any, reason: str) -> None:
    request = read(messages=[], keep_alive=keep)
    expected = {
        **CREATED,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": reason,
    }
    assert WIRE.document(request, reply(TextPart(("x",)))) == expected
    assert [json.loads(frame.data) for frame in WIRE.frames(request, reply(TextPart(("x",))))] == [expected]


# ---- errors and the rest


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (ApiErrorKind.INVALID_REQUEST, 400),
        (ApiErrorKind.BILLING, 402),
        (ApiErrorKind.PERMISSION, 403),
        (ApiErrorKind.NOT_FOUND, 404),
        (ApiErrorKind.METHOD_NOT_ALLOWED, 405),
        (ApiErrorKind.CONFLICT, 409),
        (ApiErrorKind.TOO_LARGE, 413),
        (ApiErrorKind.RATE_LIMIT, 429),
        (ApiErrorKind.SERVER, 500),
        (ApiErrorKind.UNAVAILABLE, 503),
        (ApiErrorKind.OVERLOADED, 503),
        (ApiErrorKind.TIMEOUT, 504),
    ],
)
def test_an_error_is_a_text_with_a_status(kind: ApiErrorKind, status: int) -> None:
    document = WIRE.error(ApiError(kind, "Oh."), "x", NOW)
    assert (document.status, json.loads(document.body), document.headers) == (status, {"error": "Oh."}, {})


def test_who_is_not_known_is_told_where_to_sign_in() -> None:
    document = WIRE.error(ApiError(ApiErrorKind.AUTHENTICATION, "unauthorized"), "x", NOW)
    assert document.status == 401
    assert set(json.loads(document.body)) == {"error", "signin_url"}


def test_an_error_in_a_stream_is_a_line_of_its_own() -> None:
    assert WIRE.error_frame(ApiError(ApiErrorKind.SERVER, "Oh."), "x", ()) == b'{"error":"Oh."}\n'


def test_a_server_tells_its_version_its_models_and_any_model_that_is_asked_for() -> None:
    def other(name: str, body: Any = None) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(WIRE.handle_other(call(WIRE, body, name=name), FakeService()).body)
        return value

    assert set(other("version")) == {"version"}
    assert isinstance(other("tags")["models"], list)
    assert other("ps") == {"models": []}
    shown = other("show", {"model": "llama3"})
    assert shown["modified_at"] == "2026-01-01T00:00:00.000000Z"
    assert "tools" in shown["capabilities"]
    assert refusal({}, "show") == "model is required"

"""The Gemini API: what it reads, what it refuses and in which words, what it writes."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.delivery.plan import replace_text, strip_usage
from peripety.llmsim.determinism import make_signature
from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import (
    Api,
    ApiError,
    ApiErrorKind,
    BilledUsage,
    FrameTag,
    ReasoningPart,
    RefusalPart,
    RetryHint,
    SimReply,
    SimRequest,
    SimRole,
    SimStopReason,
    SimToolCall,
    SimToolResult,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire.base import HttpCall, WireOperation
from peripety.llmsim.wire.gemini.api import GeminiWire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.llmsim.provider_rules.models import SimModel


GEMINI = GeminiWire()
STRICT = "gemini-3.5-flash"
LENIENT = "gemini-2.5-flash"
DUMMY = "skip_thought_signature_validator"
DECLARED = [{"functionDeclarations": [{"name": "look"}, {"name": "take"}]}]


class Service:
    """Fake of the simulator services that a wire uses."""

    def __init__(self) -> None:
        self.time = 1_000.0
        self.tables: dict[str, StateTable] = {}

    def now(self) -> float:
        return self.time

    def models(self, api: Api) -> Sequence[SimModel]:
        return load_models().models_of(api)

    def objects(self, name: str) -> StateTable:
        return self.tables.setdefault(name, StateTable())


def call(
    name: str,
    body: Any = None,
    *,
    key: str = "k",
    **params: str,
) -> HttpCall:
    route = next(each for each in GEMINI.routes if each.name == name)
    text = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return HttpCall(route, {"x-goog-api-key": key}, params, text)


def ask(body: Any, *, model: str = LENIENT, name: str = "generateContent", **params: str) -> SimRequest:
    return GEMINI.parse_request(call(name, body, model=model, **params), Service())


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def called(name: str = "look", mark: str | None = None, **args: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"functionCall": {"name": name, "args": args}}
    return part | ({} if mark is None else {"thoughtSignature": mark})


def answered(name: str = "look", value: Any = "x", **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": value}, **more}}


def round_trip(call_part: dict[str, Any], response: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [
        said("a"),
        {"role": "model", "parts": [call_part]},
        {"role": "user", "parts": [response or answered()]},
    ]


def refused(body: Any, **options: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        ask(body, **options)
    assert caught.value.kind is ApiErrorKind.INVALID_REQUEST
    return caught.value


def error_of(error: ApiError) -> Any:
    return json.loads(GEMINI.error(error, "r", 0.0).body)["error"]


# ---- reading


def test_a_request_is_read_into_its_neutral_form() -> None:
    request = ask(
        {
            "contents": [said("a"), said("b", "model"), said("c")],
            "systemInstruction": {"parts": [{"text": "s"}]},
            "tools": [
                {
                    "functionDeclarations": [
                        {
                            "name": "look",
                            "description": "d",
                            "parameters": {"type": "OBJECT", "properties": {"at": {"type": "STRING"}}},
                        },
                    ],
                },
            ],
            "generationConfig": {"maxOutputTokens": 7, "stopSequences": ["z"]},
        },
    )
    assert request.api is Api.GEMINI
    assert (request.model, request.key, request.system) == (LENIENT, "k", "s")
    assert [(each.role, each.text) for each in request.messages] == [
        (SimRole.USER, "a"),
        (SimRole.ASSISTANT, "b"),
        (SimRole.USER, "c"),
    ]
    assert request.tools[0].schema == {"type": "object", "properties": {"at": {"type": "string"}}}
    assert (request.max_tokens, request.stop, request.stream) == (7, ("z",), False)


def test_both_spellings_of_a_field_are_the_same_request() -> None:
    camel = {
        "contents": [said("a")],
        "systemInstruction": {"parts": [{"text": "s"}]},
        "generationConfig": {
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
            "thinkingConfig": {"includeThoughts": True},
        },
        "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}]}],
    }
    snake = {
        "contents": [said("a")],
        "system_instruction": {"parts": [{"text": "s"}]},
        "generation_config": {
            "response_mime_type": "application/json",
            "response_json_schema": {"type": "object"},
            "thinking_config": {"include_thoughts": True},
        },
        "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {"type": "object"}}]}],
    }
    assert ask(camel) == ask(snake)


def test_what_is_repeated_may_be_given_once_without_brackets() -> None:
    loose = {"contents": {"parts": {"text": "a"}}}
    assert ask(loose).messages == ask({"contents": [{"parts": [{"text": "a"}]}]}).messages


@pytest.mark.parametrize(
    ("headers", "params"),
    [
        ({"x-goog-api-key": "secret"}, {}),
        ({}, {"key": "secret"}),
        ({"authorization": "Bearer secret"}, {}),
    ],
)
def test_a_key_may_come_in_a_header_or_in_the_query(
    headers: Mapping[str, str],
    params: Mapping[str, str],
) -> None:
    route = next(each for each in GEMINI.routes if each.name == "generateContent")
    body = json.dumps({"contents": [said("a")]}).encode()
    request = GEMINI.parse_request(HttpCall(route, headers, {"model": LENIENT, **params}, body), Service())
    assert request.key == "secret"


def test_both_versions_serve_every_path() -> None:
    paths = {each.path for each in GEMINI.routes}
    assert {path.replace("/v1beta/", "/v1/") for path in paths} == {
        path for path in paths if path.startswith("/v1/")
    }
    generating = [each.path for each in GEMINI.routes if each.operation is WireOperation.GENERATE]
    assert len(generating) == 4


def test_results_of_functions_are_matched_to_their_calls() -> None:
    contents = [
        said("a"),
        {
            "role": "model",
            "parts": [
                {"functionCall": {"id": "1", "name": "look", "args": {"n": 1}}},
                {"functionCall": {"id": "2", "name": "look", "args": {"n": 2}}},
            ],
        },
        {"role": "user", "parts": [answered(value="second", id="2"), answered(value={"b": [1]})]},
    ]
    messages = ask({"contents": contents}).messages
    assert messages[1].calls == (SimToolCall("look", {"n": 1}, "1"), SimToolCall("look", {"n": 2}, "2"))
    assert messages[2].results == (
        SimToolResult("second", "2", "look"),
        SimToolResult('{"b":[1]}', "1", "look"),
    )


def test_thoughts_in_the_history_are_not_what_was_said() -> None:
    parts = [{"text": "hmm", "thought": True}, {"text": "b"}]
    messages = ask({"contents": [said("a"), {"role": "model", "parts": parts}, said("c")]}).messages
    assert messages[1].text == "b"


@pytest.mark.parametrize(
    ("config", "schema"),
    [
        ({}, None),
        ({"responseMimeType": "application/json"}, {}),
        (
            {"responseMimeType": "application/json", "responseJsonSchema": {"type": "array"}},
            {"type": "array"},
        ),
        (
            {
                "responseMimeType": "application/json",
                "responseSchema": {
                    "type": "object",
                    "nullable": True,
                    "properties": {"a": {"type": "INTEGER", "enum": ["1"]}},
                    "anyOf": [{"type": "STRING", "minLength": "2"}],
                    "propertyOrdering": ["a"],
                    "required": ["a"],
                },
            },
            {
                "type": ["object", "null"],
                "properties": {"a": {"type": "integer", "enum": ["1"]}},
                "anyOf": [{"type": "string", "minLength": 2}],
                "required": ["a"],
            },
        ),
    ],
)
def test_schemas_of_either_kind_become_json_schema(config: Any, schema: Any) -> None:
    assert ask({"contents": [said("a")], "generationConfig": config}).schema == schema


@pytest.mark.parametrize(
    ("thinking", "thinks", "shows"),
    [
        ({}, True, False),
        ({"includeThoughts": True}, True, True),
        ({"thinkingBudget": 0, "includeThoughts": True}, False, True),
        ({"thinkingLevel": "low"}, True, False),
    ],
)
def test_thoughts_are_thought_unless_there_is_no_budget(thinking: Any, thinks: bool, shows: bool) -> None:
    request = ask({"contents": [said("a")], "generationConfig": {"thinkingConfig": thinking}})
    assert (request.reasoning, request.options["thoughts"]) == (thinks, shows)


def test_a_prompt_is_counted_part_by_part_in_the_order_of_its_prefix() -> None:
    request = ask(
        {
            "contents": [said("12345678"), said("1234", "model"), said("1")],
            "systemInstruction": {"parts": [{"text": "12345"}]},
            "tools": DECLARED,
        },
    )
    assert [block.section.value for block in request.prompt.blocks] == [
        "tools", "tools", "system", "messages", "messages", "messages",
    ]  # fmt: skip
    assert [block.tokens for block in request.prompt.blocks][2:] == [2, 2, 1, 1]
    assert [block.message for block in request.prompt.blocks][3:] == [0, 1, 2]
    assert all(block.tokens > 0 for block in request.prompt.blocks)


def test_signatures_do_not_belong_to_what_is_cached() -> None:
    plain = ask({"contents": round_trip(called())}).prompt
    signed = ask({"contents": round_trip(called(mark=make_signature("t")))}).prompt
    assert plain == signed


# ---- refusing


@pytest.mark.parametrize(
    ("body", "description", "field"),
    [
        ({"unknown": 1}, 'Unknown name "unknown": Cannot find field.', None),
        (
            {"generationConfig": {"maxTokens": 1}},
            "Unknown name \"maxTokens\" at 'generation_config': Cannot find field.",
            "generation_config",
        ),
        (
            {"tools": [{"functionDeclarations": [{"parameters": {"properties": {"a": {"const": 1}}}}]}]},
            (
                'Unknown name "const" at \'tools[0].function_declarations[0].parameters.properties[0].value'
                "': Cannot find field."
            ),
            "tools[0].function_declarations[0].parameters.properties[0].value",
        ),
        (
            {"generationConfig": {"responseSchema": {"type": ["STRING", "NULL"]}}},
            (
                "Unknown name \"type\" at 'generation_config.response_schema': Proto field is not repeating, "
                "cannot start list."
            ),
            "generation_config.response_schema",
        ),
    ],
)
def test_unknown_fields_are_named_with_their_place(body: Any, description: str, field: str | None) -> None:
    error = error_of(refused(body))
    message = f"Invalid JSON payload received. {description}"
    violation = {"description": message} | ({} if field is None else {"field": field})
    assert error == {
        "code": 400,
        "message": message,
        "status": "INVALID_ARGUMENT",
        "details": [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}],
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"contents": [{"role": 5}]},
            "Invalid value at 'contents[0].role' (TYPE_STRING), 5",
        ),
        (
            {"contents": ["a"]},
            (
                "Invalid value at 'contents[0]' "
                '(type.googleapis.com/google.ai.generativelanguage.v1beta.Content), "a"'
            ),
        ),
        (
            {"generationConfig": {"maxOutputTokens": 1.5}},
            "Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), 1.5",
        ),
        (
            {"generationConfig": {"maxOutputTokens": 2**31}},
            "Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), 2147483648",
        ),
        (
            {"generationConfig": {"temperature": "hot"}},
            "Invalid value at 'generation_config.temperature' (TYPE_FLOAT), \"hot\"",
        ),
        (
            {"toolConfig": {"functionCallingConfig": {"mode": "SOME"}}},
            (
                "Invalid value at 'tool_config.function_calling_config.mode' "
                '(type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode), "SOME"'
            ),
        ),
        (
            {"contents": [{"parts": [{"inlineData": {"data": "*"}}]}]},
            (
                "Invalid value at 'contents[0].parts[0].inline_data.data' (TYPE_BYTES), Base64 decoding "
                'failed for "*"'
            ),
        ),
        (
            {"contents": [{"parts": [{"functionCall": {"name": "f", "args": []}}]}]},
            (
                "Invalid JSON payload received. Unknown name \"args\" at 'contents[0].parts[0].function_call'"
                ": Proto field is not repeating, cannot start list."
            ),
        ),
        (
            {"contents": [{"parts": [{"text": "a", "inlineData": {}}]}]},
            (
                "Invalid JSON payload received. Unknown name \"inlineData\" at 'contents[0].parts[0]': Proto "
                "oneof field 'data' is already set. Cannot set 'inlineData'"
            ),
        ),
        (
            [],
            'Invalid JSON payload received. Unknown name "": Root element must be a message.',
        ),
    ],
)
def test_values_of_other_types_are_told_as_the_api_tells_them(body: Any, message: str) -> None:
    assert refused(body).message == message


@pytest.mark.parametrize("text", ["*", "a", "ä"])
def test_bytes_have_to_be_base64(text: str) -> None:
    error = refused({"contents": [{"parts": [{"inlineData": {"data": text}}]}]})
    assert "(TYPE_BYTES), Base64 decoding failed" in error.message


def test_every_fault_is_told_at_once() -> None:
    error = refused({"a": 1, "generationConfig": {"b": 2}})
    assert error.message.count("Cannot find field.") == 2
    assert len(error_of(error)["details"][0]["fieldViolations"]) == 2


@pytest.mark.parametrize("body", [b"", b"{", b'{"contents": NaN}', b"\xff", b'{"a":' + b"[" * 100_000])
def test_what_is_no_json_is_an_invalid_argument(body: bytes) -> None:
    assert refused(body).message.startswith("Invalid JSON payload received.")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "* GenerateContentRequest.contents: contents is not specified\n"),
        (
            {"contents": [{"role": "user"}]},
            "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.\n",
        ),
        (
            {"contents": [{"parts": [{}]}]},
            (
                "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have "
                "one initialized field\n"
            ),
        ),
        ({"contents": [said("a", "assistant")]}, "Please use a valid role: user, model."),
        (
            {"contents": [said("a")], "tools": [{"functionDeclarations": [{"name": "1"}]}]},
            (
                "* GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function name. "
                "Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
                "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.\n"
            ),
        ),
        (
            {"contents": [said("a")], "tools": [*DECLARED, *DECLARED]},
            "Duplicate function declaration found: look",
        ),
        (
            {"contents": [said("a")], "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
            (
                "* GenerateContentRequest.tool_config.function_calling_config: Function calling config is "
                "set without function_declarations.\n"
            ),
        ),
        (
            {"contents": [said("a")], "generationConfig": {"temperature": 2.5}},
            (
                "* GenerateContentRequest.generation_config.temperature: temperature must be in the range "
                "[0.0, 2.0].\n"
            ),
        ),
        (
            {"contents": [said("a")], "generationConfig": {"responseJsonSchema": {}}},
            (
                "* GenerateContentRequest.generation_config.response_json_schema: response_mime_type must be "
                "`application/json` when a response schema is set.\n"
            ),
        ),
    ],
)
def test_requests_that_make_no_sense_are_refused(body: Any, message: str) -> None:
    assert refused(body).message == message


@pytest.mark.parametrize("mode", ["AUTO", "ANY", "NONE", "VALIDATED"])
def test_every_calling_mode_is_accepted(mode: str) -> None:
    ask(
        {
            "contents": [said("a")],
            "tools": DECLARED,
            "toolConfig": {"functionCallingConfig": {"mode": mode}},
        },
    )


def test_functions_may_be_allowed_by_name_only_if_they_are_declared() -> None:
    def body(*names: str) -> Any:
        config = {"mode": "ANY", "allowedFunctionNames": list(names)}
        return {
            "contents": [said("a")],
            "tools": DECLARED,
            "toolConfig": {"functionCallingConfig": config},
        }

    ask(body("look"))
    assert "`drop` is not among" in refused(body("drop")).message


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ([("user", [answered()])], "function response turn comes immediately after a function call turn"),
        ([("model", [called()])], "function call turn comes immediately after a user turn"),
        (
            [("user", [{"text": "a"}]), ("model", [called(), called()]), ("user", [answered()])],
            "the number of function response parts is equal to the number of function call parts",
        ),
        (
            [("user", [{"text": "a"}]), ("model", [called()]), ("user", [{"text": "b"}])],
            "the number of function response parts is equal to the number of function call parts",
        ),
        (
            [("user", [{"text": "a"}]), ("model", [called()])],
            "the number of function response parts is equal to the number of function call parts",
        ),
    ],
)
def test_function_calls_and_responses_have_to_follow_each_other(turns: Any, message: str) -> None:
    contents = [{"role": role, "parts": parts} for role, parts in turns]
    assert message in refused({"contents": contents}).message


def test_contents_of_one_side_that_follow_each_other_are_one_turn() -> None:
    chunks = [
        {"role": "model", "parts": [{"text": "b"}]},
        {"role": "model", "parts": [called(mark=make_signature("t"))]},
        {"role": "model", "parts": [called("take")]},
        {"role": "model", "parts": [{"text": ""}]},
    ]
    results = [{"role": "user", "parts": [answered()]}, {"role": "user", "parts": [answered("take", "y")]}]
    messages = ask({"contents": [said("a"), said("c"), *chunks, *results]}, model=STRICT).messages
    assert [each.text for each in messages] == ["ac", "b", ""]
    assert [each.name for each in messages[1].calls] == ["look", "take"]
    assert [each.text for each in messages[2].results] == ["x", "y"]


# ---- signatures


def test_a_call_without_its_signature_is_refused_by_models_that_issue_them() -> None:
    assert refused({"contents": round_trip(called())}, model=STRICT).message == (
        "Function call is missing a thought_signature in functionCall parts. This is required for tools "
        "to work correctly, and missing thought_signature may lead to degraded model performance. Additional "
        "data, function call `default_api:look` , position 2. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    )
    ask({"contents": round_trip(called())}, model=LENIENT)


@pytest.mark.parametrize(
    "mark",
    [
        make_signature("t"),
        make_signature("t").replace("+", "-").replace("/", "_"),
        DUMMY,
        base64.b64encode(DUMMY.encode()).decode(),
        base64.urlsafe_b64encode(DUMMY.encode()).decode(),
    ],
)
def test_a_genuine_signature_and_the_documented_dummy_are_accepted(mark: str) -> None:
    ask({"contents": round_trip(called(mark=mark))}, model=STRICT)


@pytest.mark.parametrize("model", [STRICT, LENIENT])
def test_a_changed_signature_is_refused(model: str) -> None:
    mark = make_signature("t")
    changed = ("A" if mark[0] != "A" else "B") + mark[1:]
    error = refused({"contents": round_trip(called(mark=changed))}, model=model)
    assert error.message == "Corrupted thought signature."


def test_only_the_first_call_of_each_step_of_the_current_turn_needs_a_signature() -> None:
    step = [
        {"role": "model", "parts": [called(mark=make_signature("t")), called()]},
        {"role": "user", "parts": [answered(), answered()]},
    ]
    unsigned = [{"role": "model", "parts": [called()]}, {"role": "user", "parts": [answered()]}]
    ask({"contents": [said("a"), *step, *step]}, model=STRICT)
    ask({"contents": [said("a"), *unsigned, said("b", "model"), said("c"), *step]}, model=STRICT)
    error = refused({"contents": [said("a"), *step, *unsigned]}, model=STRICT)
    assert "position 4" in error.message


# ---- answers


def reply(*parts: Any, stop: SimStopReason = SimStopReason.END, usage: BilledUsage | None = None) -> SimReply:
    return SimReply(
        "id",
        5.0,
        LENIENT,
        parts,
        stop,
        usage or BilledUsage(fresh=6, read=4, output=5, reasoning=2),
    )


def written(
    answer: SimReply,
    *,
    thoughts: bool = True,
    sse: bool = True,
) -> tuple[Any, list[Any], list[tuple[FrameTag, int]]]:
    """Return the document, the chunks of the stream, and the tags of its frames."""
    config = {"thinkingConfig": {"includeThoughts": thoughts}}
    request = ask(
        {"contents": [said("a")], "generationConfig": config},
        name="streamGenerateContent",
        **({"alt": "sse"} if sse else {}),
    )
    frames = GEMINI.frames(request, answer)
    stream = b"".join(frame.data for frame in frames)
    if sse:
        events = stream.decode().split("\r\n\r\n")
        assert events.pop() == ""
        assert all(each.startswith("data: ") for each in events)
        chunks = [json.loads(each.removeprefix("data: ")) for each in events]
    else:
        chunks = json.loads(stream)
    return GEMINI.document(request, answer), chunks, [(frame.tag, frame.tokens) for frame in frames]


def parts_of(document: Any) -> Any:
    return document["candidates"][0]["content"]["parts"]


def test_an_answer_has_the_fields_of_the_api() -> None:
    document, _, _ = written(reply(TextPart(("Hello ", "you"))))
    assert document == {
        "candidates": [
            {
                "content": {"parts": [{"text": "Hello you"}], "role": "model"},
                "finishReason": "STOP",
                "index": 0,
            },
        ],
        "usageMetadata": {
            "promptTokenCount": 10,
            "cachedContentTokenCount": 4,
            "candidatesTokenCount": 3,
            "thoughtsTokenCount": 2,
            "totalTokenCount": 15,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}],
            "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 4}],
        },
        "modelVersion": LENIENT,
        "responseId": "id",
    }


@pytest.mark.parametrize("sse", [True, False])
def test_a_stream_says_the_same_as_the_document_piece_by_piece(sse: bool) -> None:
    answer = reply(
        ReasoningPart(("hm",), make_signature("t")),
        TextPart(("Hel", "lo")),
        ToolUsePart("c", "look", ('{"a":', "1}")),
    )
    document, chunks, tags = written(answer, sse=sse)
    streamed = [part for chunk in chunks for part in parts_of(chunk)]
    assert [part.get("text") for part in streamed] == ["hm", "Hel", "lo", None, ""]
    assert [part for part in streamed if "functionCall" in part] == [parts_of(document)[-1]]
    assert [chunk["candidates"][0].get("finishReason") for chunk in chunks] == [None] * 4 + ["STOP"]
    assert chunks[-1]["usageMetadata"] == document["usageMetadata"]
    assert {chunk["responseId"] for chunk in chunks} == {"id"}
    assert [tag for tag, _ in tags][:5] == [
        FrameTag.REASONING,
        FrameTag.TEXT,
        FrameTag.TEXT,
        FrameTag.ARGUMENTS,
        FrameTag.STOP,
    ]
    assert [tokens for _, tokens in tags][:5] == [1, 1, 1, 3, 0]


def test_usage_grows_along_the_stream_and_never_beyond_its_end() -> None:
    _, chunks, _ = written(
        reply(ReasoningPart(("12345678",), ""), TextPart(("1234", "1234", "1234", "1234"))),
    )
    counts = [
        (chunk["usageMetadata"].get("thoughtsTokenCount", 0), chunk["usageMetadata"]["candidatesTokenCount"])
        for chunk in chunks
    ]
    assert counts == [(2, 0), (2, 1), (2, 2), (2, 3), (2, 3), (2, 3)]


def test_thoughts_are_marked_and_are_billed_even_where_they_are_not_shown() -> None:
    answer = reply(ReasoningPart(("hm",), ""), TextPart(("a",)))
    assert parts_of(written(answer)[0]) == [{"text": "hm", "thought": True}, {"text": "a"}]
    hidden, chunks, _ = written(answer, thoughts=False)
    assert parts_of(hidden) == [{"text": "a"}]
    assert [chunk["usageMetadata"]["thoughtsTokenCount"] for chunk in chunks] == [2, 2]


def test_calls_arrive_whole_and_only_the_first_is_signed() -> None:
    first, second = make_signature("1"), make_signature("2")
    answer = reply(
        ToolUsePart("c1", "look", ('{"a"', ":1}"), first),
        ToolUsePart("c2", "take", ("{}",), second),
        stop=SimStopReason.TOOL_USE,
    )
    expected = [
        {"functionCall": {"name": "look", "args": {"a": 1}, "id": "c1"}, "thoughtSignature": first},
        {"functionCall": {"name": "take", "args": {}, "id": "c2"}},
    ]
    document, chunks, _ = written(answer)
    assert parts_of(document) == expected
    assert [part for chunk in chunks for part in parts_of(chunk)] == [*expected, {"text": ""}]
    assert document["candidates"][0]["finishReason"] == "STOP"


def test_without_calls_the_last_part_is_signed() -> None:
    document, chunks, _ = written(
        reply(ReasoningPart(("hm",), make_signature("t")), TextPart(("a", "b"))),
        thoughts=False,
    )
    assert parts_of(document) == [{"text": "ab", "thoughtSignature": make_signature("t")}]
    assert parts_of(chunks[-1]) == [{"text": "", "thoughtSignature": make_signature("t")}]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (SimStopReason.END, "STOP"),
        (SimStopReason.TOOL_USE, "STOP"),
        (SimStopReason.STOP_SEQUENCE, "STOP"),
        (SimStopReason.LENGTH, "MAX_TOKENS"),
        (SimStopReason.CONTENT_FILTER, "SAFETY"),
    ],
)
def test_every_reason_to_stop_has_its_name(stop: SimStopReason, reason: str) -> None:
    document, chunks, _ = written(reply(TextPart(("a",)), stop=stop))
    assert document["candidates"][0]["finishReason"] == reason
    assert chunks[-1]["candidates"][0]["finishReason"] == reason


def test_a_refusal_is_prohibited_content_in_the_model_s_words() -> None:
    document, _, _ = written(reply(RefusalPart(("no",)), stop=SimStopReason.REFUSAL))
    assert parts_of(document) == [{"text": "no"}]
    assert document["candidates"][0]["finishReason"] == "PROHIBITED_CONTENT"


def test_a_filter_that_strikes_before_a_word_has_blocked_the_prompt() -> None:
    document, chunks, tags = written(reply(stop=SimStopReason.CONTENT_FILTER))
    assert document["promptFeedback"]["blockReason"] == "SAFETY"
    assert "candidates" not in document
    assert chunks == [document]
    assert tags == [(FrameTag.STOP, 0)]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [(SimStopReason.TOOL_USE, "MALFORMED_FUNCTION_CALL"), (SimStopReason.LENGTH, "MAX_TOKENS")],
)
def test_a_call_that_is_no_json_object_does_not_arrive(stop: SimStopReason, reason: str) -> None:
    document, chunks, _ = written(reply(TextPart(("a",)), ToolUsePart("c", "look", ('{"a":',)), stop=stop))
    for each in (document, chunks[-1]):
        assert each["candidates"][0]["finishReason"] == reason
    assert not any("functionCall" in part for chunk in [document, *chunks] for part in parts_of(chunk))


def test_streams_are_events_or_the_items_of_an_array() -> None:
    body = {"contents": [said("a")]}
    events = ask(body, name="streamGenerateContent", alt="sse")
    array = ask(body, name="streamGenerateContent")
    assert GEMINI.media_type(events) == "text/event-stream"
    assert GEMINI.media_type(array) == "application/json"
    assert GEMINI.frames(array, reply(TextPart(("a",))))[-1].tag is FrameTag.END


@pytest.mark.parametrize("sse", [True, False])
def test_what_is_changed_in_a_stream_on_its_way_is_found_in_either_form(sse: bool) -> None:
    _, chunks, _ = written(reply(TextPart(("a", "b"))), sse=sse)
    request = ask({"contents": [said("a")]}, name="streamGenerateContent", **({"alt": "sse"} if sse else {}))
    frames = [strip_usage(frame.data) for frame in GEMINI.frames(request, reply(TextPart(("a", "b"))))]
    assert b"usageMetadata" not in b"".join(frames)
    assert b"responseId" in frames[0]
    assert replace_text(frames[1], "no JSON") == frames[1].replace(
        json.dumps(
            {name: value for name, value in chunks[1].items() if name != "usageMetadata"},
            separators=(",", ":"),
        ).encode(),
        b"no JSON",
    )


# ---- errors


@pytest.mark.parametrize(
    ("kind", "status", "name"),
    [
        (ApiErrorKind.INVALID_REQUEST, 400, "INVALID_ARGUMENT"),
        (ApiErrorKind.AUTHENTICATION, 400, "INVALID_ARGUMENT"),
        (ApiErrorKind.TOO_LARGE, 400, "INVALID_ARGUMENT"),
        (ApiErrorKind.PERMISSION, 403, "PERMISSION_DENIED"),
        (ApiErrorKind.NOT_FOUND, 404, "NOT_FOUND"),
        (ApiErrorKind.METHOD_NOT_ALLOWED, 405, "UNIMPLEMENTED"),
        (ApiErrorKind.CONFLICT, 409, "ABORTED"),
        (ApiErrorKind.BILLING, 429, "RESOURCE_EXHAUSTED"),
        (ApiErrorKind.RATE_LIMIT, 429, "RESOURCE_EXHAUSTED"),
        (ApiErrorKind.SERVER, 500, "INTERNAL"),
        (ApiErrorKind.UNAVAILABLE, 503, "UNAVAILABLE"),
        (ApiErrorKind.OVERLOADED, 503, "UNAVAILABLE"),
        (ApiErrorKind.TIMEOUT, 504, "DEADLINE_EXCEEDED"),
    ],
)
def test_every_kind_of_error_has_its_code_and_status(kind: ApiErrorKind, status: int, name: str) -> None:
    document = GEMINI.error(ApiError(kind, "why"), "r", 0.0)
    body = json.loads(document.body)["error"]
    assert (document.status, body["code"], body["status"], body["message"]) == (status, status, name, "why")


def test_when_to_come_back_is_said_in_the_body_and_in_no_header() -> None:
    document = GEMINI.error(ApiError(ApiErrorKind.RATE_LIMIT, "slow", retry=RetryHint(52.5)), "r", 0.0)
    details = {
        each["@type"].rpartition(".")[2]: each for each in json.loads(document.body)["error"]["details"]
    }
    assert details["RetryInfo"]["retryDelay"] == "52.5s"
    assert details["QuotaFailure"]["violations"]
    assert not document.headers


@pytest.mark.parametrize(
    ("message", "quota"),
    [("2 tokens left", "Tokens"), ("no more requests", "Requests")],
)
def test_an_exhausted_quota_is_named(message: str, quota: str) -> None:
    details = error_of(ApiError(ApiErrorKind.RATE_LIMIT, message))["details"]
    assert quota in details[0]["violations"][0]["quotaId"]


def test_a_depleted_account_is_exhausted_for_good() -> None:
    assert "details" not in error_of(ApiError(ApiErrorKind.BILLING, "credits are depleted"))


def test_a_wrong_key_has_its_own_reason() -> None:
    details = error_of(ApiError(ApiErrorKind.AUTHENTICATION, "no"))["details"]
    assert details[0]["reason"] == "API_KEY_INVALID"


@pytest.mark.parametrize("sse", [True, False])
def test_an_error_in_a_stream_has_the_stream_s_form(sse: bool) -> None:
    request = ask({"contents": [said("a")]}, name="streamGenerateContent", **({"alt": "sse"} if sse else {}))
    sent = GEMINI.frames(request, reply(TextPart(("a",))))[:1]
    frame = GEMINI.error_frame(ApiError(ApiErrorKind.OVERLOADED, "busy"), "r", sent)
    if sse:
        assert json.loads(frame.removeprefix(b"data: "))["error"]["code"] == 503
        assert frame.endswith(b"\r\n\r\n")
    else:
        items = json.loads(b"".join(each.data for each in sent) + frame)
        assert items[-1]["error"]["code"] == 503


# ---- other operations


def other(name: str, body: Any = None, *, service: Service, key: str = "k", **params: str) -> Any:
    document = GEMINI.handle_other(call(name, body, key=key, **params), service)
    assert document.status == 200
    return json.loads(document.body)


def test_tokens_are_counted_as_they_are_billed() -> None:
    body = {"contents": [said("12345678")], "systemInstruction": {"parts": [{"text": "1234"}]}}
    service = Service()
    counted = other("countTokens", {"contents": [said("12345678")]}, service=service, model=LENIENT)
    whole = other(
        "countTokens",
        {"generateContentRequest": {"model": f"models/{LENIENT}", **body}},
        service=service,
        model=LENIENT,
    )
    assert counted["totalTokens"] == 2
    assert whole["totalTokens"] == ask(body).prompt.tokens == 3


def test_models_are_listed_page_by_page_and_found_by_name() -> None:
    service = Service()
    names = [each["name"] for each in other("models.list", service=service)["models"]]
    assert f"models/{STRICT}" in names
    first = other("models.list", service=service, pageSize="2")
    second = other("models.list", service=service, pageSize="2", pageToken=first["nextPageToken"])
    assert [each["name"] for each in first["models"] + second["models"]] == names[:4]
    card = other("models.get", service=service, model=STRICT)
    assert card["name"] == f"models/{STRICT}"
    with pytest.raises(ApiError) as caught:
        other("models.get", service=service, model="nothing")
    assert caught.value.kind is ApiErrorKind.NOT_FOUND


LONG = "word " * 2_500
STORED = {
    "model": f"models/{LENIENT}",
    "contents": [said(LONG)],
    "systemInstruction": {"parts": [{"text": "s"}]},
    "displayName": "d",
    "ttl": "60s",
}


def test_stored_contents_are_created_listed_prolonged_and_deleted() -> None:
    service = Service()
    created = other("cachedContents.create", STORED, service=service)
    assert created["model"] == f"models/{LENIENT}"
    assert created["expireTime"] == "1970-01-01T00:17:40Z"
    assert created["usageMetadata"]["totalTokenCount"] > 2048
    found = {"id": created["name"].removeprefix("cachedContents/")}
    assert other("cachedContents.get", service=service, **found) == created
    assert other("cachedContents.list", service=service)["cachedContents"] == [created]
    service.time += 10
    prolonged = other("cachedContents.update", {"ttl": "3600s"}, service=service, **found)
    assert prolonged["expireTime"] == "1970-01-01T01:16:50Z"
    assert other("cachedContents.delete", service=service, **found) == {}
    assert other("cachedContents.list", service=service)["cachedContents"] == []


def test_stored_contents_expire_and_are_nobody_else_s() -> None:
    service = Service()
    created = other("cachedContents.create", STORED, service=service)
    found = {"id": created["name"].removeprefix("cachedContents/")}
    with pytest.raises(ApiError) as caught:
        other("cachedContents.get", service=service, key="another", **found)
    assert caught.value.kind is ApiErrorKind.PERMISSION
    assert other("cachedContents.list", service=service, key="another")["cachedContents"] == []
    service.time += 60
    with pytest.raises(ApiError) as caught:
        other("cachedContents.get", service=service, **found)
    assert caught.value.message == "CachedContent not found (or permission denied)"


def test_a_prompt_may_begin_with_stored_contents() -> None:
    service = Service()
    created = other("cachedContents.create", STORED, service=service)
    body = {"contents": [said("b")], "cachedContent": created["name"]}
    request = GEMINI.parse_request(call("generateContent", body, model=LENIENT), service)
    assert [each.text for each in request.messages] == ["b"]
    assert request.system == "s"
    assert request.prompt.tokens == created["usageMetadata"]["totalTokenCount"] + 1
    assert request.prompt.controls == {"cachedContent": created["name"]}
    counted = other("countTokens", {"generateContentRequest": body}, service=service, model=LENIENT)
    assert counted["cachedContentTokenCount"] == created["usageMetadata"]["totalTokenCount"]
    with pytest.raises(ApiError, match="CachedContent can not be used with"):
        GEMINI.parse_request(call("generateContent", {**body, "tools": DECLARED}, model=LENIENT), service)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"contents": [said("a")]},
            "Cached content is too small. total_token_count=2, min_total_token_count=",
        ),
        ({"expireTime": "2030-01-01T00:00:00Z"}, "Proto oneof field 'expiration' is already set"),
        ({"ttl": "3600"}, "Illegal duration format"),
        ({"ttl": "-1s"}, "the expiration time must be in the future"),
        ({"model": None}, "model is required"),
    ],
)
def test_contents_that_cannot_be_stored_are_refused(change: Any, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        other("cachedContents.create", {**STORED, **change}, service=Service())
    assert message in caught.value.message


@pytest.mark.parametrize(
    "change",
    [{"ttl": "300000000000s"}, {"ttl": None, "expireTime": "9999-12-31T23:59:59-10:00"}],
)
def test_contents_that_would_expire_beyond_every_date_are_refused_and_not_stored(change: Any) -> None:
    service = Service()
    with pytest.raises(ApiError, match="must not be after the year 9999"):
        other("cachedContents.create", {**STORED, **change}, service=service)
    assert other("cachedContents.list", service=service)["cachedContents"] == []


def test_two_that_store_the_same_get_names_of_their_own() -> None:
    service = Service()
    names = [other("cachedContents.create", STORED, service=service)["name"] for _ in range(2)]
    again = [
        other("cachedContents.create", STORED, service=other_service)["name"] for other_service in [Service()]
    ]
    assert len(set(names)) == 2
    assert again == names[:1]

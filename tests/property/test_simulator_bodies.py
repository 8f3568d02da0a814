"""Whatever is sent to an API, it is answered: with an answer, or with that provider's own error."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.llmsim.script.types import Script, ScriptedCall, ScriptResponse
from peripety.llmsim.server.routing import WIRES
from peripety.llmsim.simulator import Simulator
from peripety.llmsim.types import Api, ApiError
from peripety.llmsim.wire.base import HttpCall, WireOperation, compact_json
from support.examples import example_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.llmsim.wire.base import Route, Wire


EXAMPLES = example_count(150)

SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
FUNCTION = {"name": "look", "description": "d", "parameters": SCHEMA}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":"a"}'}}
CHAT = {
    "model": "gpt-5.6",
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": "auto",
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "object", "properties": {}}},
    },
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_completion_tokens": 50,
    "stop": ["z"],
}
BODIES: dict[Api, Any] = {
    Api.OPENAI_CHAT: CHAT,
    Api.DEEPSEEK: {
        **{name: value for name, value in CHAT.items() if name != "response_format"},
        "model": "deepseek-flash",
        "thinking": {"type": "disabled"},
    },
    Api.OPENAI_RESPONSES: {
        "model": "gpt-5.6",
        "instructions": "s",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "x"},
        ],
        "tools": [{"type": "function", **FUNCTION}],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
        "reasoning": {"effort": "low", "summary": "auto"},
        "stream": True,
        "max_output_tokens": 50,
    },
    Api.ANTHROPIC: {
        "model": "claude-sonnet-5",
        "max_tokens": 50,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [{"type": "text", "text": "x"}],
                        "cache_control": {"type": "ephemeral"},
                    },
                ],
            },
        ],
        "tools": [{"name": "look", "description": "d", "input_schema": SCHEMA}],
        "tool_choice": {"type": "auto"},
        "stop_sequences": ["z"],
        "stream": True,
        "metadata": {"user_id": "u"},
    },
    Api.GEMINI: {
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "a"}, {"inlineData": {"mimeType": "image/png", "data": "aa=="}}],
            },
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": "a"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "x"}}}]},
        ],
        "systemInstruction": {"parts": [{"text": "s"}]},
        "tools": [{"functionDeclarations": [FUNCTION]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
        "generationConfig": {
            "maxOutputTokens": 50,
            "stopSequences": ["z"],
            "temperature": 0.5,
            "responseMimeType": "application/json",
            "responseSchema": SCHEMA,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 9},
        },
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}],
    },
    Api.OLLAMA: {
        "model": "m",
        "prompt": "a",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "a", "images": ["aa=="]},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "look", "arguments": {}}}],
            },
            {"role": "tool", "content": "x", "tool_name": "look"},
        ],
        "tools": [{"type": "function", "function": FUNCTION}],
        "format": SCHEMA,
        "options": {"num_ctx": 4096, "num_predict": 50, "stop": ["z"]},
        "think": True,
        "keep_alive": "5m",
        "stream": True,
    },
}

SIMULATOR = Simulator(
    Script(
        default_response=ScriptResponse(
            "ä b",
            reasoning="r",
            tool_calls=(ScriptedCall("look", {"at": "a"}),),
        ),
    ),
)

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["", "0", "user", "model", "tool", "auto", "text", "c1", "\ud800", "\x00", "a" * 300]),
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a JSON value, with each key or index in it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from places(inner)


@st.composite
def spoilt(draw: st.DrawFn, body: Any) -> Any:
    """A valid body in which a few things were replaced, removed, added or doubled."""
    changed = copy.deepcopy(body)
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(changed))
        container, key = found[draw(st.integers(0, len(found) - 1))]
        match draw(st.sampled_from(["replace", "remove", "add", "double"])):
            case "replace":
                container[key] = draw(values)
            case "remove" if len(found) > 1:
                del container[key]
            case "add" if isinstance(container, dict):
                container[draw(st.text(max_size=8))] = draw(values)
            case "double" if isinstance(container, list):
                container.append(container[key])
    return changed


def called(route: Route, body: bytes) -> HttpCall:
    params = {"model": "gemini-2.5-flash", "alt": "sse", "id": "x", "response_id": "x", "model_id": "x"}
    return HttpCall(route, {"anthropic-version": "2026-10-21"}, params, body)


def answer(wire: Wire, route: Route, body: bytes) -> None:
    call = called(route, body)
    try:
        if route.operation is not WireOperation.GENERATE:
            wire.handle_other(call, SIMULATOR)
            return
        exchange = SIMULATOR.begin(wire.parse_request(call, SIMULATOR))
        if exchange.error is not None:
            raise exchange.error
        assert exchange.reply is not None
        compact_json(wire.document(exchange.request, exchange.reply))
        assert wire.frames(exchange.request, exchange.reply)
    except ApiError as error:
        refusal = wire.error(error, "0123456789abcdef01234567", 0.0)
        assert 400 <= refusal.status < 500
        json.loads(refusal.body)


def posted(wire: Wire) -> list[Route]:
    """One route for each operation that takes a body."""
    return list({route.name: route for route in wire.routes if route.method in {"POST", "PATCH"}}.values())


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.api.value)
def test_the_body_that_is_spoilt_below_is_answered(wire: Wire) -> None:
    route = next(route for route in wire.routes if route.operation is WireOperation.GENERATE)
    exchange = SIMULATOR.begin(wire.parse_request(called(route, compact_json(BODIES[wire.api])), SIMULATOR))
    assert exchange.error is None
    assert exchange.reply is not None


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.api.value)
@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_spoilt_body_is_answered_or_refused(wire: Wire, data: st.DataObject) -> None:
    body = json.dumps(data.draw(spoilt(BODIES[wire.api]))).encode()
    for route in posted(wire):
        answer(wire, route, body)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.api.value)
@given(body=st.one_of(st.binary(max_size=40), values.map(lambda value: json.dumps(value).encode())))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_body_is_answered_or_refused(wire: Wire, body: bytes) -> None:
    for route in posted(wire):
        answer(wire, route, body)

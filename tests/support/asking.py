"""A request for an answer of every API that is served, in which everything that can be shown is asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.llmsim.wire.anthropic.api import AnthropicWire
from peripety.llmsim.wire.base import HttpCall, Wire, WireOperation
from peripety.llmsim.wire.deepseek import DeepSeekWire
from peripety.llmsim.wire.gemini.api import GeminiWire
from peripety.llmsim.wire.ollama.api import OllamaWire
from peripety.llmsim.wire.openai.api import OpenAiChat, OpenAiResponses
from support.wires import FakeService

if TYPE_CHECKING:
    from peripety.llmsim.types import SimRequest


CHAT = {"messages": [{"role": "user", "content": "hi"}]}
_ASKED: dict[type[Wire], dict[str, Any]] = {
    AnthropicWire: {
        **CHAT,
        "model": "claude-sonnet-4-5",
        "max_tokens": 4000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    },
    OpenAiChat: {**CHAT, "model": "gpt-5", "stream_options": {"include_usage": True}},
    OpenAiResponses: {"model": "gpt-5", "input": "hi", "reasoning": {"summary": "auto"}},
    DeepSeekWire: {**CHAT, "model": "deepseek-flash", "stream_options": {"include_usage": True}},
    GeminiWire: {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    },
    OllamaWire: {**CHAT, "model": "qwen3", "think": True},
}

APIS: tuple[Wire, ...] = tuple(wire() for wire in _ASKED)


def asked(wire: Wire, *, stream: bool, sse: bool = True) -> SimRequest:
    body = dict(_ASKED[type(wire)])
    generate = [route for route in wire.routes if route.operation is WireOperation.GENERATE]
    params = {"model": "gemini-3-pro", "alt": "sse" if sse else "json"}
    if isinstance(wire, GeminiWire):
        route = next(route for route in generate if ("stream" in route.name) == stream)
    else:
        route = generate[0]
        body["stream"] = stream
        if not stream:
            body.pop("stream_options", None)
    headers = {
        "x-api-key": "k",
        "anthropic-version": "2023-06-01",
        "authorization": "Bearer k",
        "x-goog-api-key": "k",
    }
    return wire.parse_request(HttpCall(route, headers, params, json.dumps(body).encode()), FakeService())

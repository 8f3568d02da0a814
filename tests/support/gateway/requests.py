"""Prompts, calls and requests of every API in few words."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.prompt_cache.planner import PromptCache
from peripety.gateway.prompt_cache.prefix import Prompt
from peripety.gateway.providers.provider import AnswerFinished, ProviderCall
from peripety.gateway.types.message import ChatMessage, ProviderState, Text, Tool, ToolCall, ToolResult
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from peripety.gateway.types.response import CacheBlock, StopReason, Usage
from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.provider_rules.prompt_cache import SimPromptCaches
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import Api, CacheSection, SimBlock, SimPrompt
from peripety.llmsim.types import CacheBreakpoint as SimCacheBreakpoint
from peripety.llmsim.wire.anthropic.api import AnthropicWire
from peripety.llmsim.wire.base import HttpCall, Wire, WireOperation
from peripety.llmsim.wire.deepseek import DeepSeekWire
from peripety.llmsim.wire.gemini.api import GeminiWire
from peripety.llmsim.wire.ollama.api import OllamaWire
from peripety.llmsim.wire.openai.api import OpenAiChat, OpenAiResponses
from support.llmsim.simulator import FakeService

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.prompt_cache.planner import CacheCallTracker
    from peripety.gateway.prompt_cache.prefix import CountTokens, Segment
    from peripety.gateway.types.message import Part
    from peripety.gateway.types.response import CacheBreakpoint
    from peripety.llmsim.provider_rules.cache_entries import SimCacheVisit
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


def full_request(wire: Wire, *, stream: bool, sse: bool = True) -> SimRequest:
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


MODEL = "anthropic/claude-opus-5-5"
"""It caches from 512 tokens on."""


class Letters:
    """Counts a token for each letter."""

    def counter_for(self, _call: ProviderCall) -> CountTokens:
        return _letters

    def calibrate(self, _call: ProviderCall, _counted: int, _reported: int) -> None:
        """Do nothing: the count is exact, not an estimate."""


def _letters(piece: Segment) -> int:
    match piece.content:
        case Tool(name, description):
            return len(name + description)
        case ToolCall(_, _, arguments):
            return len(arguments)
        case ProviderState():
            return len(piece.content.data)
        case ResponseSchema(name):
            return len(name)
        case Text(text) | ToolResult(_, text):
            return len(text)


class Planning:
    """A prompt cache and its clock."""

    def __init__(self) -> None:
        self.now = 0.0
        day = datetime(2026, 11, 22, tzinfo=UTC)
        self.cache = PromptCache(lambda: self.now, lambda: day, Letters())

    def visit(self, request: GenerateRequest, account: str = "one") -> CacheCallTracker:
        """Plan a request, and no more."""
        provider, _, model = (request.model or MODEL).partition("/")
        return self.cache.plan_call(
            provider,
            account,
            ProviderCall(request, model, ModelCatalog.load().find(provider, model)),
        )

    def ask(
        self,
        request: GenerateRequest,
        *,
        read: int | None = None,
        said: tuple[Part, ...] = (Text("a"),),
    ) -> CacheCallTracker:
        """Plan a request and answer it, with as much read as was predicted, or another number of tokens."""
        visit = self.visit(request)
        assert visit.plan is not None
        found = visit.plan.predicted_read_tokens if read is None else read
        usage = Usage(Prompt(visit.call, visit.call.data.provider, "one", _letters).tokens, 1, found)
        visit.on_finished(AnswerFinished(said, StopReason.END, usage, visit.call.model))
        return visit


def cacheable_request(
    *messages: ChatMessage, system: str | None = "s" * 600, **options: Any
) -> GenerateRequest:
    """A request with a system text that is long enough to be cached."""
    return GenerateRequest(system, messages, **options)


def user_message(text: str = "u", letters: int = 10) -> ChatMessage:
    """Return a user message of so many letters."""
    return ChatMessage.user((text * letters)[:letters])


def assistant_message(text: str = "a", letters: int = 10) -> ChatMessage:
    """Return a model message of so many letters."""
    return ChatMessage.assistant((text * letters)[:letters])


def places(visit: CacheCallTracker) -> list[str]:
    """Return the places of the markers of a call: `tools`, `system`, or the index of a message."""
    return [
        str(each.message_index) if each.block is CacheBlock.MESSAGE else each.block.value
        for each in visit.call.breakpoints
    ]


def call_of(
    request: GenerateRequest,
    model: str = "m",
    provider: str = "generic",
    breakpoints: tuple[CacheBreakpoint, ...] = (),
) -> ProviderCall:
    """A call of a model with what the catalogue knows of it."""
    return ProviderCall(request, model, ModelCatalog.load().find(provider, model), breakpoints)


def asking(text: str = "u", **options: Any) -> GenerateRequest:
    """A question in one message."""
    return GenerateRequest("s", (ChatMessage.user(text),), **options)


# A Wednesday at noon, UTC; DeepSeek's prices are not at their peak.
NOW = 1_793_188_800.0


def block(
    text: str,
    tokens: int,
    *,
    ttl: str | None = None,
    kind: str = "text",
    message: int = 0,
    section: CacheSection = CacheSection.MESSAGES,
) -> SimBlock:
    """A block of so many tokens, with a marker if it has a TTL; its content is its text, over and over."""
    long = (text * (4 * tokens // max(1, len(text)) + 1))[: 4 * tokens]
    content = json.dumps({"text": long, "type": kind}, separators=(",", ":")).encode()
    outside = section is not CacheSection.MESSAGES
    return SimBlock(
        section,
        kind,
        content,
        tokens,
        SimCacheBreakpoint(ttl) if ttl else None,
        -1 if outside else message,
    )


def prompt(
    *blocks: SimBlock,
    settings: dict[CacheSection, bytes] | None = None,
    **controls: Any,
) -> SimPrompt:
    """A prompt of these blocks."""
    return SimPrompt(blocks, settings or {}, controls)


class Client:
    """A client of a model that sends one request after the other, at the times of a clock moved by hand."""

    def __init__(
        self,
        api: Api,
        model: str,
        *,
        caches: SimPromptCaches | None = None,
        scope: str = "one",
    ) -> None:
        tables: dict[str, StateTable] = defaultdict(StateTable)
        self.caches = caches or SimPromptCaches(tables["cache"], tables["contents"])
        self.model = load_models().find(model, api)
        self.scope = scope
        self.now = NOW

    def other(self, *, model: str | None = None, scope: str | None = None) -> Client:
        """Return another client, or the same one with another model, at the same caches."""
        api = self.model.apis[0]
        other = Client(api, model or self.model.name, caches=self.caches, scope=scope or self.scope)
        other.now = self.now
        return other

    def look(self, asked: SimPrompt) -> SimCacheVisit:
        """Only look."""
        return self.caches.begin_visit(self.model, self.scope, asked, self.now)

    def ask(self, asked: SimPrompt, *, seconds: float = 0, answer: Sequence[SimBlock] = ()) -> SimCacheVisit:
        """Send a request, and receive the whole answer so many seconds later."""
        visit = self.look(asked)
        visit.on_accepted()
        visit.on_started()
        self.now += seconds
        visit.on_finished(self.now, answer)
        return visit

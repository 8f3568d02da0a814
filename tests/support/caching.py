"""Calls whose caching is planned, written short: a token a letter, and a clock that is moved by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.prompt_cache.planner import PromptCache
from peripety.gateway.prompt_cache.prefix import Prompt
from peripety.gateway.providers.provider import AnswerFinished, ProviderCall
from peripety.gateway.types.message import ChatMessage, ProviderState, Text, Tool, ToolCall, ToolResult
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from peripety.gateway.types.response import CacheBlock, StopReason, Usage

if TYPE_CHECKING:
    from peripety.gateway.prompt_cache.planner import CacheCallTracker
    from peripety.gateway.prompt_cache.prefix import CountTokens, Segment
    from peripety.gateway.types.message import Part


MODEL = "anthropic/claude-opus-5-5"
"""It caches from 512 tokens on."""


class Letters:
    """Counts a token for each letter."""

    def counter_for(self, _call: ProviderCall) -> CountTokens:
        return _letters

    def calibrate(self, _call: ProviderCall, _counted: int, _reported: int) -> None:
        """It is no estimate."""


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


def asked(*messages: ChatMessage, system: str | None = "s" * 600, **options: Any) -> GenerateRequest:
    """A request with a system text that is long enough to be cached."""
    return GenerateRequest(system, messages, **options)


def question(text: str = "u", letters: int = 10) -> ChatMessage:
    """What the user says, so many letters of it."""
    return ChatMessage.user((text * letters)[:letters])


def answer(text: str = "a", letters: int = 10) -> ChatMessage:
    """What the model says, so many letters of it."""
    return ChatMessage.assistant((text * letters)[:letters])


def places(visit: CacheCallTracker) -> list[str]:
    """Where the markers of a call stand: `tools`, `system`, or the index of a message."""
    return [
        str(each.message_index) if each.block is CacheBlock.MESSAGE else each.block.value
        for each in visit.call.breakpoints
    ]

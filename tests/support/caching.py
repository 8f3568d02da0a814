"""Calls whose caching is planned, written short: a token a letter, and a clock that is moved by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from peripety.gateway.catalogue import Catalogue
from peripety.gateway.model import (
    CacheBlock,
    ChatMessage,
    GenerateRequest,
    ProviderState,
    ResponseSchema,
    StopReason,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from peripety.gateway.prompt_cache import PromptCache
from peripety.gateway.prompt_cache.prompt import Prompt
from peripety.gateway.providers.base import Call, Finished

if TYPE_CHECKING:
    from peripety.gateway.model import Part
    from peripety.gateway.prompt_cache import Visit
    from peripety.gateway.prompt_cache.pieces import Piece
    from peripety.gateway.prompt_cache.prompt import Count

__all__ = ["MODEL", "Planning", "answer", "asked", "places", "question"]

MODEL = "anthropic/claude-opus-5-5"
"""It caches from 512 tokens on."""


class Letters:
    """Counts a token for each letter."""

    def count_for(self, _call: Call) -> Count:
        return _letters

    def learn(self, _call: Call, _counted: int, _reported: int) -> None:
        """It is no estimate."""


def _letters(piece: Piece) -> int:
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

    def visit(self, request: GenerateRequest, account: str = "one") -> Visit:
        """Plan a request, and no more."""
        provider, _, model = (request.model or MODEL).partition("/")
        return self.cache.visit(
            provider, account, Call(request, model, Catalogue.load().find(provider, model))
        )

    def ask(
        self, request: GenerateRequest, *, read: int | None = None, said: tuple[Part, ...] = (Text("a"),)
    ) -> Visit:
        """Plan a request and answer it, with as much read as was predicted, or another number of tokens."""
        visit = self.visit(request)
        assert visit.plan is not None
        found = visit.plan.predicted_read_tokens if read is None else read
        usage = Usage(Prompt(visit.call, visit.call.data.provider, "one", _letters).tokens, 1, found)
        visit.ended(Finished(said, StopReason.END, usage, visit.call.model))
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


def places(visit: Visit) -> list[str]:
    """Where the markers of a call stand: `tools`, `system`, or the index of a message."""
    return [
        str(each.message_index) if each.block is CacheBlock.MESSAGE else each.block.value
        for each in visit.call.breakpoints
    ]

"""What providers would do with calls of the gateway's, by the scripted LLM, without a connection."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.gateway.model import CacheBlock, ChatMessage, ProviderState, ResponseSchema, Text, Tool, Usage
from peripety.gateway.providers.anthropic import MessagesWire
from peripety.gateway.providers.anthropic.shapes import Shapes
from peripety.gateway.providers.anthropic.tools import write_tools
from peripety.gateway.providers.anthropic.turns import Turns
from peripety.gateway.providers.gemini import GeminiWire
from peripety.gateway.providers.openai import OPENAI, ChatCompletionsWire
from peripety.gateway.providers.openai.dialect import DEEPSEEK
from peripety.gateway.providers.openai.messages import to_messages
from peripety.gateway.providers.states import kept
from peripety.simulator.state import Table
from peripety.simulator.truth.cache.prompt_caches import PromptCaches
from peripety.simulator.truth.models import catalogue
from peripety.simulator.truth.tokens import count
from peripety.simulator.wire.anthropic import Anthropic
from peripety.simulator.wire.anthropic.blocks import Content
from peripety.simulator.wire.deepseek import DeepSeek
from peripety.simulator.wire.deepseek.reading import repeated
from peripety.simulator.wire.gemini import Gemini
from peripety.simulator.wire.json_text import compact, content
from peripety.simulator.wire.openai_chat import OpenAiChat
from support.wires import FakeService, call

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from peripety.gateway.prompt_cache.pieces import Piece
    from peripety.gateway.prompt_cache.prompt import Count
    from peripety.gateway.providers import wire as providers
    from peripety.gateway.providers.base import Call
    from peripety.simulator.model import Block, Request
    from peripety.simulator.truth.cache.visit import Visit
    from peripety.simulator.wire import base as simulator

__all__ = ["CacheTruth", "TrueTokens", "kept_answer", "read_as_sent", "usage_of"]

_WIRES: dict[str, tuple[providers.Wire, simulator.Wire]] = {
    "anthropic": (MessagesWire(), Anthropic()),
    "openai": (ChatCompletionsWire(OPENAI), OpenAiChat()),
    "deepseek": (ChatCompletionsWire(DEEPSEEK), DeepSeek()),
    "gemini": (GeminiWire(), Gemini()),
}


class CacheTruth:
    """The prompt caches of one account."""

    def __init__(self) -> None:
        tables: dict[str, Table] = defaultdict(Table)
        self._caches = PromptCaches(tables["cache"], tables["contents"])

    def look(self, request: Request, now: float) -> Visit:
        """Look up what a request finds."""
        return self._caches.visit(catalogue().find(request.model, request.api), "one", request.prompt, now)


class TrueTokens:
    """Counts the tokens of prompts as the scripted LLM does."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, Piece], int] = {}

    def count_for(self, call: Call) -> Count:
        """Return what counts the pieces of a call's prompt."""
        if call.data.provider == "anthropic":
            return lambda piece: self._count(piece, call)
        # Nothing is left out on the way, so that each piece is the next block.
        blocks = iter(read_as_sent(call).prompt.blocks)
        return lambda _: next(blocks).tokens

    def _count(self, piece: Piece, call: Call) -> int:
        if isinstance(piece.content, Tool):
            return _count(piece, call)
        if (call.model, piece) not in self._counted:
            self._counted[call.model, piece] = _count(piece, call)
        return self._counted[call.model, piece]

    def learn(self, call: Call, counted: int, reported: int) -> None:
        """There is nothing to learn: it is no estimate."""
        assert counted == reported, call


def read_as_sent(asked: Call, change: dict[str, Any] | None = None) -> Request:
    """Read a call as it is sent, with other members of its body if that is wanted.

    Raises:
        ApiError: it is refused.
    """
    writes, reads = _WIRES[asked.data.provider]
    document = {**writes.body(asked).document, **(change or {})}
    headers = writes.headers(asked, None)
    sent = call(reads, compact(document), headers, params={"model": asked.model, "alt": "sse"})
    return reads.request(sent, FakeService())


def kept_answer(asked: Call, answer: ChatMessage) -> Sequence[Block]:
    """An answer as its provider keeps it behind the prompt; nothing where it does not."""
    if asked.data.provider != "deepseek":
        return ()
    messages = (*asked.request.messages, answer)
    written = to_messages(replace(asked, request=replace(asked.request, messages=messages)))
    return repeated(written[-1], len(written) - 1)


def usage_of(found: Visit) -> Usage:
    """What a provider reports of the prompt, with an answer of one token."""
    written = sum(found.written.values())
    long = found.written.get("1h", 0)
    return Usage(found.fresh + found.read + written, 1, found.read, written, 0, long)


def _count(piece: Piece, call: Call) -> int:
    match piece.content:
        case Tool():
            (written,) = write_tools([piece.content], Shapes())
            return count(content(written).decode())
        case Text(text) if piece.section is CacheBlock.SYSTEM:
            return count(text)
        case ProviderState() if kept(call, piece.content) is None:
            return 0
        case ResponseSchema():
            raise AssertionError("a schema is no block")
        case part:
            alone = ChatMessage(piece.role, (part,))
    request = replace(call.request, messages=(ChatMessage.user("u"), alone))
    *_, (block,) = Turns(replace(call, request=request)).blocks
    return Content(block["type"], block, ()).tokens

"""What providers would do with calls of the gateway's, by the scripted LLM, without a connection."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.gateway.providers.anthropic.request_body import (
    AnthropicMessages,
    AnthropicSchemas,
    tools_to_json,
)
from peripety.gateway.providers.anthropic.response_stream import MessagesWire
from peripety.gateway.providers.gemini.response_stream import GeminiWire
from peripety.gateway.providers.history_compat import unwrap_state
from peripety.gateway.providers.openai.dialect import DEEPSEEK, OPENAI
from peripety.gateway.providers.openai.request_body import to_messages
from peripety.gateway.providers.openai.response_stream import ChatCompletionsWire
from peripety.gateway.types.message import ChatMessage, ProviderState, Text, Tool
from peripety.gateway.types.request import ResponseSchema
from peripety.gateway.types.response import CacheBlock, Usage
from peripety.llmsim.provider_rules.models import count_tokens, load_models
from peripety.llmsim.provider_rules.prompt_cache import SimPromptCaches
from peripety.llmsim.state import StateTable
from peripety.llmsim.wire.anthropic.api import AnthropicWire
from peripety.llmsim.wire.anthropic.content_blocks import ContentBlock
from peripety.llmsim.wire.base import block_cache_key, compact_json
from peripety.llmsim.wire.deepseek import DeepSeekWire, answer_to_blocks
from peripety.llmsim.wire.gemini.api import GeminiWire as api_GeminiWire
from peripety.llmsim.wire.openai.api import OpenAiChat
from support.wires import FakeService, call

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from peripety.gateway.prompt_cache.prefix import CountTokens, Segment
    from peripety.gateway.providers import wire as providers
    from peripety.gateway.providers.provider import ProviderCall
    from peripety.llmsim.provider_rules.cache_entries import SimCacheVisit
    from peripety.llmsim.types import SimBlock, SimRequest
    from peripety.llmsim.wire import base as simulator


_WIRES: dict[str, tuple[providers.WireProtocol, simulator.Wire]] = {
    "anthropic": (MessagesWire(), AnthropicWire()),
    "openai": (ChatCompletionsWire(OPENAI), OpenAiChat()),
    "deepseek": (ChatCompletionsWire(DEEPSEEK), DeepSeekWire()),
    "gemini": (GeminiWire(), api_GeminiWire()),
}


class CacheTruth:
    """The prompt caches of one account."""

    def __init__(self) -> None:
        tables: dict[str, StateTable] = defaultdict(StateTable)
        self._caches = SimPromptCaches(tables["cache"], tables["contents"])

    def look(self, request: SimRequest, now: float) -> SimCacheVisit:
        """Look up what a request finds."""
        return self._caches.begin_visit(
            load_models().find(request.model, request.api),
            "one",
            request.prompt,
            now,
        )


class TrueTokens:
    """Counts the tokens of prompts as the scripted LLM does."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, Segment], int] = {}

    def counter_for(self, call: ProviderCall) -> CountTokens:
        """Return what counts the pieces of a call's prompt."""
        if call.data.provider == "anthropic":
            return lambda piece: self._count(piece, call)
        # Nothing is left out on the way, so that each piece is the next block.
        blocks = iter(read_as_sent(call).prompt.blocks)
        return lambda _: next(blocks).tokens

    def _count(self, piece: Segment, call: ProviderCall) -> int:
        if isinstance(piece.content, Tool):
            return _count(piece, call)
        if (call.model, piece) not in self._counted:
            self._counted[call.model, piece] = _count(piece, call)
        return self._counted[call.model, piece]

    def calibrate(self, call: ProviderCall, counted: int, reported: int) -> None:
        """There is nothing to learn: it is no estimate."""
        assert counted == reported, call


def read_as_sent(asked: ProviderCall, change: dict[str, Any] | None = None) -> SimRequest:
    """Read a call as it is sent, with other members of its body if that is wanted.

    Raises:
        ApiError: it is refused.
    """
    writes, reads = _WIRES[asked.data.provider]
    document = {**writes.body(asked).document, **(change or {})}
    headers = writes.headers(asked, None)
    sent = call(reads, compact_json(document), headers, params={"model": asked.model, "alt": "sse"})
    return reads.parse_request(sent, FakeService())


def kept_answer(asked: ProviderCall, answer: ChatMessage) -> Sequence[SimBlock]:
    """An answer as its provider keeps it behind the prompt; nothing where it does not."""
    if asked.data.provider != "deepseek":
        return ()
    messages = (*asked.request.messages, answer)
    written = to_messages(replace(asked, request=replace(asked.request, messages=messages)))
    return answer_to_blocks(written[-1], len(written) - 1)


def usage_of(found: SimCacheVisit) -> Usage:
    """What a provider reports of the prompt, with an answer of one token."""
    written = sum(found.written.values())
    long = found.written.get("1h", 0)
    return Usage(found.fresh + found.read + written, 1, found.read, written, 0, long)


def _count(piece: Segment, call: ProviderCall) -> int:
    match piece.content:
        case Tool():
            (written,) = tools_to_json([piece.content], AnthropicSchemas())
            return count_tokens(block_cache_key(written).decode())
        case Text(text) if piece.section is CacheBlock.SYSTEM:
            return count_tokens(text)
        case ProviderState() if unwrap_state(call, piece.content) is None:
            return 0
        case ResponseSchema():
            raise AssertionError("a schema is no block")
        case part:
            alone = ChatMessage(piece.role, (part,))
    request = replace(call.request, messages=(ChatMessage.user("u"), alone))
    *_, (block,) = AnthropicMessages(replace(call, request=request)).blocks
    return ContentBlock(block["type"], block, ()).tokens

"""What Anthropic would do with a call of the gateway's, by the scripted LLM, without a connection."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from peripety.gateway.model import CacheBlock, ChatMessage, ProviderState, ResponseSchema, Text, Tool
from peripety.gateway.providers.anthropic import MessagesWire
from peripety.gateway.providers.anthropic.shapes import Shapes
from peripety.gateway.providers.anthropic.thoughts import kept_thought
from peripety.gateway.providers.anthropic.tools import write_tools
from peripety.gateway.providers.anthropic.turns import Turns
from peripety.simulator.state import Table
from peripety.simulator.truth.cache.prompt_caches import PromptCaches
from peripety.simulator.truth.models import catalogue
from peripety.simulator.truth.tokens import count
from peripety.simulator.wire.anthropic import Anthropic
from peripety.simulator.wire.anthropic.blocks import Content
from peripety.simulator.wire.json_text import compact, content
from support.wires import FakeService, call

if TYPE_CHECKING:
    from typing import Any

    from peripety.gateway.prompt_cache.pieces import Piece
    from peripety.gateway.prompt_cache.prompt import Count
    from peripety.gateway.providers.base import Call
    from peripety.simulator.model import Request
    from peripety.simulator.truth.cache.visit import Visit

__all__ = ["AnthropicTruth", "TrueTokens"]


class AnthropicTruth:
    """The caches of Anthropic's models, by the rules of the scripted LLM."""

    def __init__(self) -> None:
        tables: dict[str, Table] = defaultdict(Table)
        self._caches = PromptCaches(tables["cache"], tables["contents"])
        self._reads = Anthropic()
        self._writes = MessagesWire()
        self._service = FakeService()

    def read(self, asked: Call, change: dict[str, Any] | None = None) -> Request:
        """Read a call as it is sent, with other members of its body if that is wanted.

        Raises:
            ApiError: it is refused.
        """
        document = {**self._writes.body(asked).document, **(change or {})}
        headers = self._writes.headers(asked, None)
        return self._reads.request(call(self._reads, compact(document), headers), self._service)

    def look(self, request: Request, now: float, account: str = "one") -> Visit:
        """Look up what a request finds in the cache."""
        model = catalogue().find(request.model, request.api)
        return self._caches.visit(model, account, request.prompt, now)


class TrueTokens:
    """Counts the tokens of prompts as the scripted LLM does, each piece by itself."""

    def count_for(self, call: Call) -> Count:
        """Return what counts the pieces of a call's prompt."""
        return lambda piece: _count(piece, call)

    def learn(self, call: Call, counted: int, reported: int) -> None:
        """There is nothing to learn: it is no estimate."""
        assert counted == reported, call


def _count(piece: Piece, call: Call) -> int:
    match piece.content:
        case Tool():
            (written,) = write_tools([piece.content], Shapes())
            return count(content(written).decode())
        case Text(text) if piece.section is CacheBlock.SYSTEM:
            return count(text)
        case ProviderState() if kept_thought(call.model, piece.content) is None:
            return 0
        case Text(text) if not text.strip():
            return 0
        case ResponseSchema():
            raise AssertionError("a schema is no block")
        case part:
            alone = ChatMessage(piece.role, (part,))
    native = call.data.traits.system_messages
    user = ChatMessage.user("before")
    *_, (block,) = Turns([user, alone], call.model, system_messages=native).blocks
    return Content(block["type"], block, ()).tokens

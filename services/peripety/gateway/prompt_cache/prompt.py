"""A prompt as the prefixes that a provider may have cached, each known by a digest of all that is in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

from peripety.gateway.catalogue import CacheKind
from peripety.gateway.model import (
    CacheBlock,
    ChatMessage,
    ProviderState,
    ResponseSchema,
    SchemaMethod,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from peripety.gateway.prompt_cache.pieces import as_sent, pieces_of, pieces_of_message
from peripety.gateway.providers.schemas import method_of
from peripety.gateway.writing import write_message, write_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from peripety.gateway.model import GenerateRequest
    from peripety.gateway.prompt_cache.pieces import Piece
    from peripety.gateway.providers.base import Call

__all__ = ["Block", "Count", "Prompt", "beginning_of", "lineage_of"]

Count: TypeAlias = "Callable[[Piece], int]"
"""Says how many tokens a piece of a prompt has; 0 when the provider is not sent it."""

_DIGEST_BYTES = 16
# Neighbours of one of these kinds are one position together.
_RUNS = (ToolCall, ToolResult)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a prompt, and the prefix that ends with it.

    Attributes:
        section: where in the prompt it stands.
        message: the index of its message, from 0.
        key: what the prefix is known by; equal keys are equal prefixes of one account and one model.
        tokens: how many tokens the prefix has.
        position: as what the provider counts it when it looks back from a marker, from 0.
        markable: whether a marker can stand on it.
        ends: whether it is the last of its message.
    """

    section: CacheBlock
    message: int
    key: bytes
    tokens: int
    position: int
    markable: bool
    ends: bool


class Prompt:
    """The prompt of a call.

    Two blocks are the same if they say the same; how a provider's wire puts it follows from that.

    Args:
        call: the call.
        provider: who is asked.
        account: whose cache it is.
        count: counts its tokens.

    Attributes:
        blocks: its blocks, in order.
    """

    def __init__(self, call: Call, provider: str, account: str, count: Count) -> None:
        self._call = as_sent(call)
        self._provider = provider
        self._kind = call.data.cache.kind
        self._settings = _settings(self._call)
        self._root = _digest(provider, account, call.model, _machine(call))
        self.blocks = tuple(self._blocks(count))

    @property
    def tokens(self) -> int:
        """How many tokens it has."""
        return self.blocks[-1].tokens if self.blocks else 0

    def key_with(self, answer: ChatMessage) -> bytes:
        """Return what the prompt is known by with its answer behind it, as the next one repeats it."""
        key = self.blocks[-1].key if self.blocks else self._root
        index = len(self._call.request.messages)
        for piece in pieces_of_message(self._call, self._provider, answer, index):
            key = self._extended(key, piece)
        return key

    def _blocks(self, count: Count) -> Iterator[Block]:
        key, tokens, position = self._root, 0, -1
        before: type | None = None
        for piece in pieces_of(self._call, self._provider):
            if not (own := count(piece)):
                continue
            key = self._extended(key, piece)
            tokens += own
            content = type(piece.content)
            position += content is not before or content not in _RUNS
            before = content
            markable = piece.stays and self._takes_marker(piece)
            yield Block(piece.section, piece.message, key, tokens, position, markable, piece.ends)

    def _extended(self, key: bytes, piece: Piece) -> bytes:
        return _digest(self._settings[piece.section], *_said(piece), key=key)

    def _takes_marker(self, piece: Piece) -> bool:
        match self._kind:
            case CacheKind.BREAKPOINTS:
                return not isinstance(piece.content, ProviderState)
            case CacheKind.AUTOMATIC_BREAKPOINTS:
                # A marker inside of a message would be looked for by nobody who has none there.
                return piece.ends and isinstance(piece.content, Text | ToolResult)
            case _:
                return False


def _machine(call: Call) -> str:
    """Which of a provider's machines has the cache: where it matters, each has one of its own."""
    if call.data.cache.kind is not CacheKind.AUTOMATIC:
        return ""
    # Requests are sent to the same one by what the provider is told that they have in common.
    return call.request.conversation_id or _instructions(call.request)


def _settings(call: Call) -> Mapping[CacheBlock, str]:
    """For each section, the settings that make what is cached from there on useless when they change."""
    schema, choice = call.request.schema, call.request.tool_choice or ToolChoice()
    answer = ""
    if schema is not None and method_of(call) is not SchemaMethod.EXTRACTION:
        answer = json.dumps(dict(schema.document))
    if call.data.cache.kind is not CacheKind.BREAKPOINTS:
        return dict.fromkeys(CacheBlock, f"{choice.disable_parallel} {answer}")
    chosen = f"{choice.mode.value} {choice.disable_parallel} {choice.name} {answer}"
    return {CacheBlock.TOOLS: "", CacheBlock.SYSTEM: answer, CacheBlock.MESSAGE: chosen}


def _said(piece: Piece) -> tuple[str, ...]:
    """All that a piece says."""
    content = piece.content
    match content:
        case Text(text):
            return "text", piece.role.value, text
        case ToolCall(call_id, name, arguments):
            return "call", call_id, name, arguments
        case ToolResult(call_id, text, is_error):
            return "result", call_id, text, str(is_error)
        case ProviderState(issuer, data):
            return "state", issuer, data.decode("latin-1")
        case Tool():
            return "tool", json.dumps(write_tool(content))
        case ResponseSchema(name, document):
            return "schema", name, json.dumps(dict(document))


def _digest(*texts: str, key: bytes = b"") -> bytes:
    digest = blake2b(key, digest_size=_DIGEST_BYTES)
    for text in texts:
        data = text.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.digest()


def lineage_of(request: GenerateRequest) -> str:
    """Return what the conversation of a request is known by: its id, or else how it begins."""
    if request.conversation_id is not None:
        return request.conversation_id
    return _digest(_instructions(request), json.dumps(write_message(request.messages[0]))).hex()


def beginning_of(request: GenerateRequest) -> str | None:
    """Return what requests that begin alike have in common; None for one without instructions and tools."""
    if not request.system and not request.tools:
        return None
    return _digest(request.model or "", _instructions(request)).hex()


def _instructions(request: GenerateRequest) -> str:
    return json.dumps([request.system or "", *(write_tool(tool) for tool in request.tools)])

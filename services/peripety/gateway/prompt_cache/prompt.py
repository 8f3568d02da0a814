"""A prompt as a series of cacheable prefixes, each identified by a digest of its content."""

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
"""Returns the tokens of a segment; 0 if it is not sent to the provider."""

_DIGEST_BYTES = 16
# Adjacent blocks of one of these kinds share a position.
_RUNS = (ToolCall, ToolResult)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a prompt, and the prefix that ends with it.

    Attributes:
        section: section of the prompt.
        message: index of its message, from 0.
        key: digest of the prefix; equal keys mean equal prefixes of one account and one model.
        tokens: size of the prefix in tokens.
        position: position in the provider's count for the lookback, from 0.
        markable: whether it can carry a marker.
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
    """The prompt of a call, as blocks.

    Two blocks are equal if their content is equal; the wire format is a function of the content.

    Args:
        call: the call.
        provider: name of the provider.
        account: owner of the cache.
        count: counts tokens.

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
        """Return its size in tokens."""
        return self.blocks[-1].tokens if self.blocks else 0

    def key_with(self, answer: ChatMessage) -> bytes:
        """Return the key of the prompt with its answer appended, as the next prompt repeats it."""
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
                # A lookup from a later prompt without a marker inside its message would not find this one.
                return piece.ends and isinstance(piece.content, Text | ToolResult)
            case _:
                return False


def _machine(call: Call) -> str:
    """Return the cache partition at providers whose machines have separate caches."""
    if call.data.cache.kind is not CacheKind.AUTOMATIC:
        return ""
    # Requests are routed by the cache key that the provider is given.
    return call.request.conversation_id or _instructions(call.request)


def _settings(call: Call) -> Mapping[CacheBlock, str]:
    """Return, for each section, the settings whose change invalidates the cache from that section on."""
    schema, choice = call.request.schema, call.request.tool_choice or ToolChoice()
    answer = ""
    if schema is not None and method_of(call) is not SchemaMethod.EXTRACTION:
        answer = json.dumps(dict(schema.document))
    if call.data.cache.kind is not CacheKind.BREAKPOINTS:
        return dict.fromkeys(CacheBlock, f"{choice.disable_parallel} {answer}")
    chosen = f"{choice.mode.value} {choice.disable_parallel} {choice.name} {answer}"
    return {CacheBlock.TOOLS: "", CacheBlock.SYSTEM: answer, CacheBlock.MESSAGE: chosen}


def _said(piece: Piece) -> tuple[str, ...]:
    """Return the whole content of a segment."""
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
    """Return the id of a request's conversation, or else a digest of its first messages."""
    if request.conversation_id is not None:
        return request.conversation_id
    return _digest(_instructions(request), json.dumps(write_message(request.messages[0]))).hex()


def beginning_of(request: GenerateRequest) -> str | None:
    """Return a key of the common prefix of requests; None without instructions and tools."""
    if not request.system and not request.tools:
        return None
    return _digest(request.model or "", _instructions(request)).hex()


def _instructions(request: GenerateRequest) -> str:
    return json.dumps([request.system or "", *(write_tool(tool) for tool in request.tools)])

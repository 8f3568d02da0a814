"""Cacheable prefixes of a prompt, each identified by a digest of its content.

Segments follow the order of the cached prefix: tools, system text, messages.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from peripety.gateway.codec import encode_message, encode_tool
from peripety.gateway.models.model_data import CacheKind
from peripety.gateway.providers.schema_dialect import (
    is_hint_in_prefix,
    schema_method_of,
    with_answer_tool,
    with_schema_hint,
)
from peripety.gateway.structured_output.validator import schema_hint
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from peripety.gateway.types.request import ResponseSchema
from peripety.gateway.types.response import CacheBlock, SchemaMethod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from peripety.gateway.providers.provider import ProviderCall
    from peripety.gateway.types.request import GenerateRequest


SegmentContent: TypeAlias = Tool | ResponseSchema | Text | ToolCall | ToolResult | ProviderState

# OpenAI's models read the schema of their answer as a part of the prompt.
_READS_SCHEMA = frozenset({CacheKind.AUTOMATIC, CacheKind.AUTOMATIC_BREAKPOINTS})


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment of a prompt: the unit that a provider counts and caches as one block.

    Attributes:
        section: section of the prompt.
        content: its content; the system text is a `Text` as well.
        role: role of the message.
        message: index of its message, from 0.
        is_first: whether it is the first of its message.
        is_last: whether it is the last of its message. Each tool result is a message of its own if the
            provider
            distinguishes them.
        is_repeated: whether later requests repeat it.
    """

    section: CacheBlock
    content: SegmentContent
    role: ChatRole = ChatRole.SYSTEM
    message: int = 0
    is_first: bool = True
    is_last: bool = True
    is_repeated: bool = True


def adapt_schema_as_sent(call: ProviderCall) -> ProviderCall:
    """Return the call with the stable replacement of its schema: a tool, or a part of the system text."""
    request, method = call.request, schema_method_of(call)
    if request.schema is not None and method is SchemaMethod.TOOL:
        return replace(call, request=with_answer_tool(request, request.schema))
    if request.schema is not None and method is SchemaMethod.EXTRACTION and is_hint_in_prefix(request):
        return replace(call, request=replace(with_schema_hint(request, request.schema), schema=None))
    return call


def segments_of(call: ProviderCall, provider: str) -> Iterator[Segment]:
    """Yield the segments of a call as sent to a provider."""
    request = call.request
    for tool in request.tools:
        yield Segment(CacheBlock.TOOLS, tool)
    if request.schema is not None and call.data.cache.kind in _READS_SCHEMA:
        yield Segment(CacheBlock.SYSTEM, request.schema)
    if request.system:
        yield Segment(CacheBlock.SYSTEM, Text(request.system))
    for index in _message_order(call):
        yield from segments_of_message(call, provider, request.messages[index], index)
    if request.schema is not None and schema_method_of(call) is SchemaMethod.EXTRACTION:
        hint = Text(schema_hint(request.schema.document))
        yield Segment(
            CacheBlock.MESSAGE,
            hint,
            ChatRole.USER,
            len(request.messages) - 1,
            is_first=False,
            is_repeated=False,
        )


def segments_of_message(
    call: ProviderCall,
    provider: str,
    message: ChatMessage,
    index: int,
) -> Iterator[Segment]:
    """Yield the segments of a message as sent, without reasoning and other providers' state."""
    contents: list[SegmentContent] = [
        part
        for part in message.parts
        if not isinstance(part, Reasoning)
        and (not isinstance(part, ProviderState) or _is_repeated(call, provider, message, part))
    ]
    for place, content in enumerate(contents):
        yield Segment(
            CacheBlock.MESSAGE,
            content,
            message.role,
            index,
            is_first=place == 0,
            is_last=place == len(contents) - 1 or isinstance(content, ToolResult),
        )


def _is_repeated(call: ProviderCall, provider: str, message: ChatMessage, state: ProviderState) -> bool:
    if state.issuer != provider:
        return False
    # DeepSeek gets its reasoning back only for answers with tool calls.
    return call.data.cache.kind is not CacheKind.UNITS or bool(message.tool_calls)


def _message_order(call: ProviderCall) -> Iterable[int]:
    """Yield the messages as sent, by index: for Anthropic, instructions come last in a user's turn."""
    messages = call.request.messages
    if call.data.cache.kind is not CacheKind.BREAKPOINTS or not call.data.traits.system_messages:
        return range(len(messages))
    return [
        index
        for _, turn in groupby(range(len(messages)), lambda at: messages[at].role is ChatRole.ASSISTANT)
        for index in sorted(turn, key=lambda at: messages[at].role is ChatRole.SYSTEM)
    ]


CountTokens: TypeAlias = "Callable[[Segment], int]"
"""Returns the tokens of a segment; 0 if it is not sent to the provider."""

_DIGEST_BYTES = 16
# Adjacent blocks of one of these kinds share a position.
_MERGED_KINDS = (ToolCall, ToolResult)


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """One block of a prompt, and the prefix that ends with it.

    Attributes:
        section: section of the prompt.
        message: index of its message, from 0.
        key: digest of the prefix; equal keys mean equal prefixes of one account and one model.
        tokens: size of the prefix in tokens.
        position: position in the provider's count for the lookback, from 0.
        is_markable: whether it can carry a marker.
        is_last: whether it is the last of its message.
    """

    section: CacheBlock
    message: int
    key: bytes
    tokens: int
    position: int
    is_markable: bool
    is_last: bool


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

    def __init__(self, call: ProviderCall, provider: str, account: str, count: CountTokens) -> None:
        self._call = adapt_schema_as_sent(call)
        self._provider = provider
        self._kind = call.data.cache.kind
        self._settings = _invalidating_settings(self._call)
        self._root = _digest(provider, account, call.model, _cache_partition(call))
        self.blocks = tuple(self._blocks(count))

    @property
    def tokens(self) -> int:
        """Return its size in tokens."""
        return self.blocks[-1].tokens if self.blocks else 0

    def key_with_answer(self, answer: ChatMessage) -> bytes:
        """Return the key of the prompt with its answer appended, as the next prompt repeats it."""
        key = self.blocks[-1].key if self.blocks else self._root
        index = len(self._call.request.messages)
        for piece in segments_of_message(self._call, self._provider, answer, index):
            key = self._extend_key(key, piece)
        return key

    def _blocks(self, count: CountTokens) -> Iterator[PromptBlock]:
        key, tokens, position = self._root, 0, -1
        before: type | None = None
        for piece in segments_of(self._call, self._provider):
            if not (own := count(piece)):
                continue
            key = self._extend_key(key, piece)
            tokens += own
            content = type(piece.content)
            position += content is not before or content not in _MERGED_KINDS
            before = content
            markable = piece.is_repeated and self._is_markable(piece)
            yield PromptBlock(piece.section, piece.message, key, tokens, position, markable, piece.is_last)

    def _extend_key(self, key: bytes, segment: Segment) -> bytes:
        return _digest(self._settings[segment.section], *_segment_content(segment), key=key)

    def _is_markable(self, segment: Segment) -> bool:
        match self._kind:
            case CacheKind.BREAKPOINTS:
                return not isinstance(segment.content, ProviderState)
            case CacheKind.AUTOMATIC_BREAKPOINTS:
                # A lookup from a later prompt without a marker inside its message would not find this one.
                return segment.is_last and isinstance(segment.content, Text | ToolResult)
            case _:
                return False


def _cache_partition(call: ProviderCall) -> str:
    """Return the cache partition at providers whose machines have separate caches."""
    if call.data.cache.kind is not CacheKind.AUTOMATIC:
        return ""
    # Requests are routed by the cache key that the provider is given.
    return call.request.conversation_id or _instruction_digest(call.request)


def _invalidating_settings(call: ProviderCall) -> Mapping[CacheBlock, str]:
    """Return, for each section, the settings whose change invalidates the cache from that section on."""
    schema, choice = call.request.schema, call.request.tool_choice or ToolChoice()
    answer = ""
    if schema is not None and schema_method_of(call) is not SchemaMethod.EXTRACTION:
        answer = json.dumps(dict(schema.document))
    if call.data.cache.kind is not CacheKind.BREAKPOINTS:
        return dict.fromkeys(CacheBlock, f"{choice.disable_parallel} {answer}")
    chosen = f"{choice.mode.value} {choice.disable_parallel} {choice.name} {answer}"
    return {CacheBlock.TOOLS: "", CacheBlock.SYSTEM: answer, CacheBlock.MESSAGE: chosen}


def _segment_content(segment: Segment) -> tuple[str, ...]:
    """Return the whole content of a segment."""
    content = segment.content
    match content:
        case Text(text):
            return "text", segment.role.value, text
        case ToolCall(call_id, name, arguments):
            return "call", call_id, name, arguments
        case ToolResult(call_id, text, is_error):
            return "result", call_id, text, str(is_error)
        case ProviderState(issuer, data):
            return "state", issuer, data.decode("latin-1")
        case Tool():
            return "tool", json.dumps(encode_tool(content))
        case ResponseSchema(name, document):
            return "schema", name, json.dumps(dict(document))


def _digest(*texts: str, key: bytes = b"") -> bytes:
    digest = blake2b(key, digest_size=_DIGEST_BYTES)
    for text in texts:
        data = text.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.digest()


def conversation_key(request: GenerateRequest) -> str:
    """Return the id of a request's conversation, or else a digest of its first messages."""
    if request.conversation_id is not None:
        return request.conversation_id
    return _digest(_instruction_digest(request), json.dumps(encode_message(request.messages[0]))).hex()


def prefix_key(request: GenerateRequest) -> str | None:
    """Return a key of the common prefix of requests; None without instructions and tools."""
    if not request.system and not request.tools:
        return None
    return _digest(request.model or "", _instruction_digest(request)).hex()


def _instruction_digest(request: GenerateRequest) -> str:
    return json.dumps([request.system or "", *(encode_tool(tool) for tool in request.tools)])

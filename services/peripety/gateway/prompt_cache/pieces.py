"""Segments of a prompt, in the order of the cached prefix: tools, system text, messages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from peripety.gateway.catalogue import CacheKind
from peripety.gateway.model import (
    CacheBlock,
    ChatRole,
    ProviderState,
    Reasoning,
    ResponseSchema,
    SchemaMethod,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from peripety.gateway.objects.structured import schema_hint
from peripety.gateway.providers.schemas import hint_stays, method_of, with_answer_tool, with_hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.gateway.model import ChatMessage
    from peripety.gateway.providers.base import Call

__all__ = ["Content", "Piece", "as_sent", "pieces_of", "pieces_of_message"]

Content: TypeAlias = Tool | ResponseSchema | Text | ToolCall | ToolResult | ProviderState

# OpenAI's models read the schema of their answer as a part of the prompt.
_SCHEMA_IS_READ = frozenset({CacheKind.AUTOMATIC, CacheKind.AUTOMATIC_BREAKPOINTS})


@dataclass(frozen=True, slots=True)
class Piece:
    """One segment of a prompt: the unit that a provider counts and caches as one block.

    Attributes:
        section: section of the prompt.
        content: its content; the system text is a `Text` as well.
        role: role of the message.
        message: index of its message, from 0.
        begins: whether it is the first of its message.
        ends: whether it is the last of its message. Each tool result is a message of its own if the provider
            distinguishes them.
        stays: whether later requests repeat it.
    """

    section: CacheBlock
    content: Content
    role: ChatRole = ChatRole.SYSTEM
    message: int = 0
    begins: bool = True
    ends: bool = True
    stays: bool = True


def as_sent(call: Call) -> Call:
    """Return the call with the stable replacement of its schema: a tool, or a part of the system text."""
    request, method = call.request, method_of(call)
    if request.schema is not None and method is SchemaMethod.TOOL:
        return replace(call, request=with_answer_tool(request, request.schema))
    if request.schema is not None and method is SchemaMethod.EXTRACTION and hint_stays(request):
        return replace(call, request=replace(with_hint(request, request.schema), schema=None))
    return call


def pieces_of(call: Call, provider: str) -> Iterator[Piece]:
    """Yield the segments of a call as sent to a provider."""
    request = call.request
    for tool in request.tools:
        yield Piece(CacheBlock.TOOLS, tool)
    if request.schema is not None and call.data.cache.kind in _SCHEMA_IS_READ:
        yield Piece(CacheBlock.SYSTEM, request.schema)
    if request.system:
        yield Piece(CacheBlock.SYSTEM, Text(request.system))
    for index in _in_order(call):
        yield from pieces_of_message(call, provider, request.messages[index], index)
    if request.schema is not None and method_of(call) is SchemaMethod.EXTRACTION:
        hint = Text(schema_hint(request.schema.document))
        yield Piece(
            CacheBlock.MESSAGE, hint, ChatRole.USER, len(request.messages) - 1, begins=False, stays=False
        )


def pieces_of_message(call: Call, provider: str, message: ChatMessage, index: int) -> Iterator[Piece]:
    """Yield the segments of a message as sent, without reasoning and other providers' state."""
    contents: list[Content] = [
        part
        for part in message.parts
        if not isinstance(part, Reasoning)
        and (not isinstance(part, ProviderState) or _is_repeated(call, provider, message, part))
    ]
    for place, content in enumerate(contents):
        yield Piece(
            CacheBlock.MESSAGE,
            content,
            message.role,
            index,
            begins=place == 0,
            ends=place == len(contents) - 1 or isinstance(content, ToolResult),
        )


def _is_repeated(call: Call, provider: str, message: ChatMessage, state: ProviderState) -> bool:
    if state.issuer != provider:
        return False
    # DeepSeek gets its reasoning back only for answers with tool calls.
    return call.data.cache.kind is not CacheKind.UNITS or bool(message.tool_calls)


def _in_order(call: Call) -> Iterable[int]:
    """Yield the messages as sent, by index: for Anthropic, instructions come last in a user's turn."""
    messages = call.request.messages
    if call.data.cache.kind is not CacheKind.BREAKPOINTS or not call.data.traits.system_messages:
        return range(len(messages))
    return [
        index
        for _, turn in groupby(range(len(messages)), lambda at: messages[at].role is ChatRole.ASSISTANT)
        for index in sorted(turn, key=lambda at: messages[at].role is ChatRole.SYSTEM)
    ]

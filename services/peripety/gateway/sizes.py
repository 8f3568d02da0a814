"""Token estimate of a prompt, without a model: rather too high than too low."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from peripety.gateway.model import ProviderState, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.gateway.model import ChatMessage, GenerateRequest, Part, Tool

__all__ = ["fixed_tokens", "message_tokens", "prompt_tokens"]

_BYTES_PER_TOKEN = 3
"""Tokenizers need about one token per four bytes of English, and per three bytes of most other scripts."""

_TOKENS_PER_TEXT = 8
"""Overhead per text: role, position and markers."""


def prompt_tokens(request: GenerateRequest) -> int:
    """Return the estimated tokens of everything that a request sends."""
    schema = [] if request.schema is None else [json.dumps(dict(request.schema.document))]
    messages = sum(map(message_tokens, request.messages))
    return fixed_tokens(request.system or "", request.tools) + messages + _tokens(schema)


def fixed_tokens(system: str, tools: Iterable[Tool]) -> int:
    """Return the estimated tokens of the fixed prefix of a conversation."""
    offered = [json.dumps([tool.name, tool.description, dict(tool.input_schema)]) for tool in tools]
    return _tokens([system, *offered])


def message_tokens(message: ChatMessage) -> int:
    """Return the estimated tokens of a message."""
    return _tokens([_text_of(part) for part in message.parts])


def _tokens(texts: Iterable[str]) -> int:
    sizes = [len(text.encode(errors="surrogatepass")) for text in texts]
    return sum(-(-size // _BYTES_PER_TOKEN) + _TOKENS_PER_TEXT for size in sizes)


def _text_of(part: Part) -> str:
    match part:
        case ToolCall():
            return part.name + part.arguments
        case ProviderState():
            return part.data.decode(errors="replace")
        case _:
            return part.text

"""How many tokens a prompt may have, told without its model: rather too many than too few."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from peripety.gateway.model import ProviderState, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.gateway.model import ChatMessage, GenerateRequest, Part, Tool

__all__ = ["fixed_tokens", "message_tokens", "prompt_tokens"]

_BYTES_PER_TOKEN = 3
"""Tokenizers make a token of four bytes of English, and of three of most other scripts."""

_TOKENS_PER_TEXT = 8
"""What stands around a text: its role, its place, its marks."""


def prompt_tokens(request: GenerateRequest) -> int:
    """The tokens of all that is sent for a request."""
    schema = [] if request.schema is None else [json.dumps(dict(request.schema.document))]
    messages = sum(map(message_tokens, request.messages))
    return fixed_tokens(request.system or "", request.tools) + messages + _tokens(schema)


def fixed_tokens(system: str, tools: Iterable[Tool]) -> int:
    """The tokens of what a conversation begins with."""
    offered = [json.dumps([tool.name, tool.description, dict(tool.input_schema)]) for tool in tools]
    return _tokens([system, *offered])


def message_tokens(message: ChatMessage) -> int:
    """The tokens of a message."""
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

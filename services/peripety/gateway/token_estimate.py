"""Token estimate of a prompt without a model, calibrated with the counts that providers report.

It is rather too high than too low, because limits depend on it.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Protocol

from peripety.core.lru import LruCache
from peripety.gateway.types.message import ProviderState, Text, Tool, ToolCall, ToolResult
from peripety.gateway.types.request import ResponseSchema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.gateway.prompt_cache.prefix import CountTokens, Segment
    from peripety.gateway.providers.provider import ProviderCall
    from peripety.gateway.types.message import ChatMessage, Part
    from peripety.gateway.types.request import GenerateRequest


_SEGMENT_BYTES_PER_TOKEN = 4
_TOKENS_PER_SEGMENT = 4
_MAX_MODELS = 256
# Weight of the newest report (exponential moving average).
_NEWEST_WEIGHT = 0.3


class TokenEstimator(Protocol):
    """Token counter for prompts."""

    def counter_for(self, call: ProviderCall) -> CountTokens:
        """Return the counter for the segments of a call's prompt."""
        ...

    def calibrate(self, call: ProviderCall, counted: int, reported: int) -> None:
        """Compare the estimate for a call's prompt with the provider's count."""
        ...


class LengthTokenEstimator:
    """`TokenEstimator` by text length, with a correction factor per model learned from providers' reports."""

    def __init__(self) -> None:
        self._factors: LruCache[str, float] = LruCache(_MAX_MODELS)

    def counter_for(self, call: ProviderCall) -> CountTokens:
        """Return the counter for the segments of a call's prompt."""
        factor = self._factors.get(_model_key(call)) or 1.0
        return lambda piece: math.ceil(factor * _estimate_segment(piece))

    def calibrate(self, call: ProviderCall, counted: int, reported: int) -> None:
        """Update the correction factor from a report."""
        if counted and reported:
            factor = self._factors.get(_model_key(call)) or 1.0
            seen = factor * reported / counted
            self._factors.put(_model_key(call), factor + _NEWEST_WEIGHT * (seen - factor))


def _model_key(call: ProviderCall) -> str:
    return f"{call.data.provider}/{call.model}"


def _estimate_segment(segment: Segment) -> int:
    content = segment.content
    match content:
        case Text(text) if not text.strip():
            return 0
        case Text(text):
            size = _byte_size(text)
        case ToolCall(_, name, arguments):
            size = _byte_size(name) + _byte_size(arguments)
        case ToolResult(call_id, text):
            size = _byte_size(call_id) + _byte_size(text)
        case Tool(name, description, schema):
            size = _byte_size(name) + _byte_size(description) + _byte_size(json.dumps(dict(schema)))
        case ResponseSchema(name, document):
            size = _byte_size(name) + _byte_size(json.dumps(dict(document)))
        case ProviderState():
            size = len(content.data)
    return -(-size // _SEGMENT_BYTES_PER_TOKEN) + _TOKENS_PER_SEGMENT


def _byte_size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


_TEXT_BYTES_PER_TOKEN = 3
"""Tokenizers need about one token per four bytes of English, and per three bytes of most other scripts."""

_TOKENS_PER_TEXT = 8
"""Overhead per text: role, position and markers."""


def estimate_prompt_tokens(request: GenerateRequest) -> int:
    """Return the estimated tokens of everything that a request sends."""
    schema = [] if request.schema is None else [json.dumps(dict(request.schema.document))]
    messages = sum(map(estimate_message_tokens, request.messages))
    return estimate_fixed_tokens(request.system or "", request.tools) + messages + _estimate_tokens(schema)


def estimate_fixed_tokens(system: str, tools: Iterable[Tool]) -> int:
    """Return the estimated tokens of the fixed prefix of a conversation."""
    offered = [json.dumps([tool.name, tool.description, dict(tool.input_schema)]) for tool in tools]
    return _estimate_tokens([system, *offered])


def estimate_message_tokens(message: ChatMessage) -> int:
    """Return the estimated tokens of a message."""
    return _estimate_tokens([_part_text(part) for part in message.parts])


def _estimate_tokens(texts: Iterable[str]) -> int:
    sizes = [len(text.encode(errors="surrogatepass")) for text in texts]
    return sum(-(-size // _TEXT_BYTES_PER_TOKEN) + _TOKENS_PER_TEXT for size in sizes)


def _part_text(part: Part) -> str:
    match part:
        case ToolCall():
            return part.name + part.arguments
        case ProviderState():
            return part.data.decode(errors="replace")
        case _:
            return part.text

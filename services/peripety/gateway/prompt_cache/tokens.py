"""Token estimate for prompts, calibrated with the counts that providers report."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Protocol

from peripety.gateway.model import ProviderState, ResponseSchema, Text, Tool, ToolCall, ToolResult
from peripety.gateway.prompt_cache.recent import Recent

if TYPE_CHECKING:
    from peripety.gateway.prompt_cache.pieces import Piece
    from peripety.gateway.prompt_cache.prompt import Count
    from peripety.gateway.providers.base import Call

__all__ = ["Estimate", "Tokens"]

_BYTES_PER_TOKEN = 4
_TOKENS_PER_PIECE = 4
_MAX_MODELS = 256
# Weight of the newest report (exponential moving average).
_WEIGHT = 0.3


class Tokens(Protocol):
    """Token counter for prompts."""

    def count_for(self, call: Call) -> Count:
        """Return the counter for the segments of a call's prompt."""
        ...

    def learn(self, call: Call, counted: int, reported: int) -> None:
        """Compare the estimate for a call's prompt with the provider's count."""
        ...


class Estimate:
    """`Tokens` by text length, with a correction factor per model learned from providers' reports."""

    def __init__(self) -> None:
        self._factors: Recent[str, float] = Recent(_MAX_MODELS)

    def count_for(self, call: Call) -> Count:
        """Return the counter for the segments of a call's prompt."""
        factor = self._factors.get(_model(call)) or 1.0
        return lambda piece: math.ceil(factor * _estimated(piece))

    def learn(self, call: Call, counted: int, reported: int) -> None:
        """Update the correction factor from a report."""
        if counted and reported:
            factor = self._factors.get(_model(call)) or 1.0
            seen = factor * reported / counted
            self._factors.put(_model(call), factor + _WEIGHT * (seen - factor))


def _model(call: Call) -> str:
    return f"{call.data.provider}/{call.model}"


def _estimated(piece: Piece) -> int:
    content = piece.content
    match content:
        case Text(text) if not text.strip():
            return 0
        case Text(text):
            size = _size(text)
        case ToolCall(_, name, arguments):
            size = _size(name) + _size(arguments)
        case ToolResult(call_id, text):
            size = _size(call_id) + _size(text)
        case Tool(name, description, schema):
            size = _size(name) + _size(description) + _size(json.dumps(dict(schema)))
        case ResponseSchema(name, document):
            size = _size(name) + _size(json.dumps(dict(document)))
        case ProviderState():
            size = len(content.data)
    return -(-size // _BYTES_PER_TOKEN) + _TOKENS_PER_PIECE


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))

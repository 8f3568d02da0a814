"""Cache fields of OpenAI requests: the cache key and the breakpoints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from peripety.gateway.catalogue import CacheKind
from peripety.gateway.model import CacheBlock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.gateway.model import GenerateRequest
    from peripety.gateway.providers.base import Call

__all__ = ["CacheMarks", "cache_fields", "cache_marks"]

_KEY_LENGTH = 32
# The default lifetime is used: the automatic breakpoint has it too.
_MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}


@dataclass(frozen=True, slots=True)
class CacheMarks:
    """Breakpoints of a call, in the form written into a text part.

    Attributes:
        system: breakpoint after the system text.
        messages: breakpoints after messages, by index.
    """

    system: Mapping[str, Any]
    messages: Mapping[int, Mapping[str, Any]]


def cache_fields(call: Call) -> dict[str, Any]:
    """Return the request fields that control the cache as a whole.

    The key is equal for all requests of a conversation, so that they are routed to the machine with its
    cached prefix; without a conversation, it is equal for all requests with the same instructions and tools.
    """
    if call.request.cache.enabled and call.data.cache.kind is not CacheKind.NONE:
        return {"prompt_cache_key": _key(call.request)}
    if call.data.cache.kind is CacheKind.AUTOMATIC_BREAKPOINTS:
        # Without a breakpoint, this mode reads nothing and writes nothing.
        return {"prompt_cache_options": {"mode": "explicit"}}
    return {}


def cache_marks(call: Call) -> CacheMarks:
    """Return the breakpoints of a call, for models that support them.

    The last message needs none, because the provider sets one there automatically. Tools cannot carry one,
    and are covered by the one after the system text.
    """
    if call.data.cache.kind is not CacheKind.AUTOMATIC_BREAKPOINTS or not call.request.cache.enabled:
        return CacheMarks({}, {})
    system: Mapping[str, Any] = {}
    messages: dict[int, Mapping[str, Any]] = {}
    for point in call.breakpoints:
        if point.block is CacheBlock.SYSTEM:
            system = _MARK
        elif point.block is CacheBlock.MESSAGE and point.message_index < len(call.request.messages) - 1:
            messages[point.message_index] = _MARK
    return CacheMarks(system, messages)


def _key(request: GenerateRequest) -> str:
    tools = [[tool.name, tool.description, dict(tool.input_schema)] for tool in request.tools]
    same = [request.conversation_id] if request.conversation_id else [request.system, tools]
    return sha256(json.dumps(same).encode()).hexdigest()[:_KEY_LENGTH]

"""Dialects of Chat Completions servers, as data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.gateway.model import SchemaMethod

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AZURE", "DEEPSEEK", "GENERIC", "OPENAI", "Dialect"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of server; differences between models are in the catalog.

    Attributes:
        path: path of calls, relative to the base URL.
        deployment_path: the same for models with an API version.
        key_header: the header of the key.
        key_prefix: prefix of the key in the header.
        schema_method: how the server enforces a schema.
        json_mode: whether it can enforce arbitrary JSON where it cannot enforce the schema.
        cache_controls: whether it accepts a cache key and breakpoints.
        one_call_at_a_time: whether parallel tool calls can be disabled.
        without_reasoning: the fields that disable reasoning; empty if that is impossible.
        max_stops: the maximum number of stop sequences.
        inline_thoughts: whether reasoning may be in the text, between tags.
        opened_thoughts: models whose templates open the reasoning: only the closing tag is in the text.
    """

    path: str = "/chat/completions"
    deployment_path: str | None = None
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    schema_method: SchemaMethod = SchemaMethod.NATIVE
    json_mode: bool = False
    cache_controls: bool = False
    one_call_at_a_time: bool = True
    without_reasoning: Mapping[str, Any] = field(default_factory=dict)
    max_stops: int = 16
    inline_thoughts: bool = False
    opened_thoughts: re.Pattern[str] | None = None


OPENAI = Dialect(
    json_mode=True, cache_controls=True, without_reasoning={"reasoning_effort": "none"}, max_stops=4
)
AZURE = Dialect(
    path="/openai/v1/chat/completions",
    deployment_path="/openai/deployments/{model}/chat/completions?api-version={api_version}",
    key_header="api-key",
    key_prefix="",
    json_mode=True,
    cache_controls=True,
    without_reasoning={"reasoning_effort": "none"},
    max_stops=4,
)
# Its `user_id` would separate the caches of callers; all callers share one account and one cache.
DEEPSEEK = Dialect(
    json_mode=True, one_call_at_a_time=False, without_reasoning={"thinking": {"type": "disabled"}}
)
# llama.cpp, vLLM and similar servers compile a schema to a grammar for the sampler.
GENERIC = Dialect(
    schema_method=SchemaMethod.GRAMMAR,
    inline_thoughts=True,
    opened_thoughts=re.compile(r"deepseek-r1|qwq|qwen3.*thinking", re.IGNORECASE),
)

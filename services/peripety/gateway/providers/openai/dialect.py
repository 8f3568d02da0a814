"""How the servers that speak Chat Completions differ, as data."""

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
    """One kind of server; what differs from model to model stands in the data of models.

    Attributes:
        path: where calls are posted, behind the base URL.
        deployment_path: the same for models that want a certain version of the API.
        key_header: the header with the key.
        key_prefix: what stands before the key there.
        schema_method: what a server does that is told a schema.
        json_mode: whether it can be held to JSON of any shape where it cannot be told the schema.
        cache_controls: whether it is told which prompts belong together, and where to cache them.
        one_call_at_a_time: whether it can be told to call one tool at a time.
        without_reasoning: what makes a model answer without reasoning; empty where nothing does.
        max_stops: the most texts that may end an answer.
        inline_thoughts: whether what a model thinks may stand in its text, between tags.
        opened_thoughts: names of models whose templates open the thought: only its end is in their text.
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
# Its `user_id` would keep the caches of callers apart; all who ask here share one account and one cache.
DEEPSEEK = Dialect(
    json_mode=True, one_call_at_a_time=False, without_reasoning={"thinking": {"type": "disabled"}}
)
# llama.cpp, vLLM and their like make a grammar of a schema, which their sampler follows.
GENERIC = Dialect(
    schema_method=SchemaMethod.GRAMMAR,
    inline_thoughts=True,
    opened_thoughts=re.compile(r"deepseek-r1|qwq|qwen3.*thinking", re.IGNORECASE),
)

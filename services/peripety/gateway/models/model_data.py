"""Data of one model: capabilities, prompt-cache rules, request quirks and prices."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read at run time
from dataclasses import dataclass, field
from datetime import date  # noqa: TC003 - read at run time
from enum import Enum
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from peripety.gateway.models.prices import Price  # noqa: TC001 - read at run time

if TYPE_CHECKING:
    from peripety.gateway.types.request import GenerateRequest


_RESPONSES_PROVIDER = "openai-responses"
_Count = Annotated[int, Field(ge=0)]
_THOUGHT_TOKENS = 8_192
"""Tokens that a model may use to reason before a short answer."""


class Capability(Enum):
    """A capability of a model."""

    TOOLS = "tools"
    """Calls tools."""
    PARALLEL_TOOLS = "parallel_tools"
    """Calls several tools in parallel."""
    NATIVE_SCHEMA = "native_schema"
    """Enforces a JSON Schema natively."""
    GRAMMAR = "grammar"
    """Follows a grammar."""
    REASONING = "reasoning"
    """Reasons before it answers."""
    PROMPT_CACHE = "prompt_cache"
    """Caches prompts."""
    SEED = "seed"
    """Repeats its answer for the same seed."""


class CacheKind(Enum):
    """Prompt-cache mechanisms of providers."""

    NONE = "none"
    """No cache, or unknown."""
    BREAKPOINTS = "breakpoints"
    """Anthropic: markers on blocks end the prefixes that are written.

    An entry is readable as soon as the first answer starts; its lifetime runs from the start of the request
    that last used it.
    """
    AUTOMATIC = "automatic"
    """OpenAI before GPT-5.6: every prefix, without markers and free of charge."""
    AUTOMATIC_BREAKPOINTS = "automatic_breakpoints"
    """OpenAI from GPT-5.6 on: one automatic breakpoint, others by markers.

    An entry is readable when the first answer has ended; its lifetime runs from its last use.
    """
    UNITS = "units"
    """DeepSeek: units on disk, without markers.

    They end where prompts and answers end, and where prompts diverge.
    """
    IMPLICIT = "implicit"
    """Gemini: common prefixes, without markers and without guarantee."""


@dataclass(frozen=True, slots=True)
class CacheRules:
    """Prompt-cache rules of a model; 0 where its kind of cache has no such rule.

    Attributes:
        kind: the mechanism.
        minimum_tokens: shorter prefixes are not cached.
        step_tokens: prefixes are cached at multiples of this size.
        max_breakpoints: maximum number of markers per request, automatic ones included.
        lookback: how far back an earlier entry is found. `BREAKPOINTS`: in positions before a marker, the
            marker's included. `AUTOMATIC_BREAKPOINTS`: in breakpoints before the end of the prompt.
        ttls: lifetimes of entries in seconds, by the provider's name, shortest first; the first is the
            default.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    kind: CacheKind = CacheKind.NONE
    minimum_tokens: _Count = 0
    step_tokens: _Count = 0
    max_breakpoints: _Count = 0
    lookback: _Count = 0
    ttls: Mapping[str, Annotated[int, Field(gt=0)]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """Request quirks in which models of one provider differ.

    Attributes:
        sampling: whether it accepts temperature and similar options; else the provider rejects them.
        system_messages: whether messages with the role `system` are allowed between others.
        forced_tool_choice: whether a tool call can be required.
        assistant_prefill: whether the last message may be the start of its answer.
        reasoning_can_be_off: whether reasoning can be disabled.
        tools_while_reasoning: whether it calls tools while reasoning, in Chat Completions; else a request
            with tools must disable reasoning.
        reasoning_efforts: the efforts that a request may select; none if the model has no such option.
        length_field: the field that limits the answer, in Chat Completions.
        instructions_role: the role of the instructions, in Chat Completions.
        strict_schema: whether it accepts only the strict subset of JSON Schema.
        replays_reasoning: whether the reasoning of an answer with tool calls must be sent back.
        api_version: the API version; empty if unversioned.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    sampling: bool = True
    system_messages: bool = True
    forced_tool_choice: bool = True
    assistant_prefill: bool = False
    reasoning_can_be_off: bool = True
    tools_while_reasoning: bool = True
    reasoning_efforts: tuple[str, ...] = ()
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    instructions_role: Literal["system", "developer"] = "system"
    strict_schema: bool = False
    replays_reasoning: bool = False
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class ModelData:
    """Data of one model, or of all other models of a provider.

    Attributes:
        provider: the provider.
        name: the name in requests; `*` means any other name.
        names: aliases, with the wildcards `*` and `?`. Snapshots (`name-2026-01-31`, `name-20260131`,
            `name-latest`) are implied.
        released: release date, if known.
        retired: first day on which it is unavailable, if announced.
        capabilities: its capabilities.
        context_tokens: maximum of prompt and answer together; 0 if unknown.
        max_output_tokens: maximum of an answer, reasoning included; 0 if unknown.
        default_output_tokens: maximum to request by default; enough for reasoning and an answer.
        cache: prompt-cache rules.
        traits: request quirks.
        prices: its prices; empty if unknown.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    provider: str
    name: str
    capabilities: frozenset[Capability]
    default_output_tokens: Annotated[int, Field(gt=0)]
    names: tuple[str, ...] = ()
    released: date | None = None
    retired: date | None = None
    context_tokens: _Count = 0
    max_output_tokens: _Count = 0
    cache: CacheRules = CacheRules()
    traits: ModelTraits = ModelTraits()
    prices: tuple[Price, ...] = ()

    @property
    def is_default_entry(self) -> bool:
        """Return True if this is the entry for all unnamed models of a provider."""
        return self.name == "*"

    @property
    def thought_tokens(self) -> int:
        """Return the allowance for reasoning before an answer, in tokens; 0 if the model does not reason."""
        if Capability.REASONING not in self.capabilities:
            return 0
        return min(_THOUGHT_TOKENS, max(0, self.max_output_tokens // 2) or _THOUGHT_TOKENS)

    def tokens_for_answer(self, answer_tokens: int) -> int:
        """Return the maximum of output tokens that leaves room for thoughts and an answer of a length."""
        wanted = answer_tokens + self.thought_tokens
        return min(wanted, self.max_output_tokens or wanted)

    def effort_to_request(self, request: GenerateRequest) -> str | None:
        """Return the effort that a request sets; None if this model has no such option."""
        effort = request.reasoning_effort
        known = effort is not None and effort.value in self.traits.reasoning_efforts
        return effort.value if effort and known and Capability.REASONING in self.capabilities else None

    @property
    def stops_reasoning_for_tools(self) -> bool:
        """Return True if the model reasons, but not in a request with tools."""
        # The Responses API of the same models has no such limit.
        is_limited = not self.traits.tools_while_reasoning and self.provider != _RESPONSES_PROVIDER
        return is_limited and Capability.REASONING in self.capabilities

    @property
    def output_tokens_to_request(self) -> int | None:
        """Return the default maximum of output tokens.

        None if the model is unknown: its server might reject a value above its own maximum.
        """
        return self.default_output_tokens if self.max_output_tokens or not self.is_default_entry else None

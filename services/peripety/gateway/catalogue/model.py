"""What is known of one model: what it can do, how its prompts are cached, how it wants to be asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from peripety.gateway.catalogue.prices import Price

__all__ = ["CacheKind", "CacheRules", "Capability", "ModelData", "Traits"]

_Count = Annotated[int, Field(ge=0)]


class Capability(Enum):
    """Something a model can do."""

    TOOLS = "tools"
    """Calls tools."""
    PARALLEL_TOOLS = "parallel_tools"
    """Calls several tools at once."""
    NATIVE_SCHEMA = "native_schema"
    """Holds its answer to a JSON Schema by itself."""
    GRAMMAR = "grammar"
    """Follows a grammar."""
    REASONING = "reasoning"
    """Reasons before it answers."""
    PROMPT_CACHE = "prompt_cache"
    """Caches prompts."""
    SEED = "seed"
    """Repeats itself for the same seed."""


class CacheKind(Enum):
    """The ways in which providers cache the beginnings of prompts."""

    NONE = "none"
    """They do not, or nothing is known of it."""
    BREAKPOINTS = "breakpoints"
    """Anthropic: markers on blocks end the prefixes that are written. An entry can be read as soon as the
    first answer begins; it lives from the beginning of the request that last used it."""
    AUTOMATIC = "automatic"
    """OpenAI before GPT-5.6: every prefix, without markers and at no price."""
    AUTOMATIC_BREAKPOINTS = "automatic_breakpoints"
    """OpenAI from GPT-5.6 on: one breakpoint is set automatically, others by markers. An entry can be read
    when the first answer has ended; it lives from its last use."""
    UNITS = "units"
    """DeepSeek: units on disk, at the ends of prompts and answers and where prompts part, without markers."""
    IMPLICIT = "implicit"
    """Gemini: what prompts have in common, without markers and without any promise."""


@dataclass(frozen=True, slots=True)
class CacheRules:
    """How a model's prompts are cached; 0 is where its kind of cache has no such rule.

    Attributes:
        kind: the way.
        minimum_tokens: shorter prefixes are not cached.
        step_tokens: prefixes are cached at multiples of so many tokens.
        max_breakpoints: the most markers of one request, automatic ones included.
        lookback: how far back an earlier entry is found: for `BREAKPOINTS` in positions before a marker, its
            own included; for `AUTOMATIC_BREAKPOINTS` in breakpoints before the end of the prompt.
        ttls: how long entries live, in seconds, by the provider's name of it, the shortest first; the first
            is what who asks for none gets.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    kind: CacheKind = CacheKind.NONE
    minimum_tokens: _Count = 0
    step_tokens: _Count = 0
    max_breakpoints: _Count = 0
    lookback: _Count = 0
    ttls: Mapping[str, Annotated[int, Field(gt=0)]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Traits:
    """How a model wants to be asked, where models of one provider differ.

    Attributes:
        sampling: whether it takes temperature and the like; else they are refused.
        system_messages: whether instructions may come between messages, with the role `system`.
        forced_tool_choice: whether a tool may be demanded.
        assistant_prefill: whether the last message may be the beginning of its own answer.
        reasoning_can_be_off: whether it answers without reasoning when told to.
        tools_while_reasoning: whether it calls tools while it reasons, in Chat Completions; else a request
            with tools has to turn reasoning off there.
        length_field: the field that limits the answer, in Chat Completions.
        instructions_role: the role of the instructions, in Chat Completions.
        strict_schema: whether it takes only the strict subset of JSON Schema.
        replays_reasoning: whether the reasoning of an answer that called tools has to be sent back with it.
        api_version: the version of the API to ask for; empty where there is none.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    sampling: bool = True
    system_messages: bool = True
    forced_tool_choice: bool = True
    assistant_prefill: bool = False
    reasoning_can_be_off: bool = True
    tools_while_reasoning: bool = True
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    instructions_role: Literal["system", "developer"] = "system"
    strict_schema: bool = False
    replays_reasoning: bool = False
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class ModelData:
    """What is known of one model, or of all others of a provider.

    Attributes:
        provider: who serves it.
        name: what to ask for; `*` stands for any other name.
        names: other names it goes by; `*` and `?` stand for any characters and any one. Its snapshots
            (`name-2026-01-31`, `name-20260131`, `name-latest`) need not be named.
        released: the day on which it could first be asked for, where known.
        retired: the day from which on it cannot be asked for, where announced.
        capabilities: what it can do.
        context_tokens: most tokens of prompt and answer together; 0 when not known.
        max_output_tokens: most tokens of an answer, reasoning included; 0 when not known.
        default_output_tokens: how many to ask for when a request leaves it open; enough to reason and answer.
        cache: how its prompts are cached.
        traits: how it wants to be asked.
        prices: what it costs; none when not known.
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
    traits: Traits = Traits()
    prices: tuple[Price, ...] = ()

    @property
    def is_any_other(self) -> bool:
        """Whether it stands for all models that are not named."""
        return self.name == "*"

    @property
    def usual_output_tokens(self) -> int | None:
        """How many tokens to ask for when a request leaves it open.

        None where nothing is known of the model: its server would refuse more than it takes.
        """
        return self.default_output_tokens if self.max_output_tokens or not self.is_any_other else None

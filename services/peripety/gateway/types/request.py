"""Request types of the gateway: provider-neutral messages, options, schema, cache settings and budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Self, TypeAlias

from peripety.errors import Finding
from peripety.gateway.types.message import (  # noqa: TC001 - read at run time
    ChatMessage,
    Tool,
    ToolChoice,
)

AcceptCheck: TypeAlias = Callable[[Any], Awaitable[Sequence[Finding]]]
"""A check beyond the schema: returns findings about the parsed value; no errors means accepted.

Asynchronous, so that a long check can run off the event loop.
"""


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """Schema and checks of a structured answer.

    Attributes:
        name: kind of answer ("scenario_spec", "outcome", ...); letters, digits, `_` and `-`, at most 64.
        document: the JSON Schema; the answer is always validated against this original document.
        accept: the caller's own check. It runs in the caller's process and is not sent over the wire. Its
            findings take part in the one repair like those of the schema.
        advisory: whether an invalid answer is returned with its findings instead of being repaired; for
            callers that continue the conversation themselves.
    """

    name: str
    document: Mapping[str, Any]
    accept: AcceptCheck | None = None
    advisory: bool = False


class CacheTTL(Enum):
    """Lifetime class of a cached prefix; the provider defines the actual time."""

    FIVE_MINUTES = "5m"
    """Cheaper to write."""
    ONE_HOUR = "1h"
    """More expensive to write, for prompts that recur after a pause."""


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """Use of the provider's prompt cache.

    Attributes:
        enabled: whether to use it.
        ttl: lifetime of written prefixes.
        expected_reuse: expected number of further requests with the same prefix and schema; 0 if unknown.
    """

    enabled: bool = True
    ttl: CacheTTL = CacheTTL.FIVE_MINUTES
    expected_reuse: int = 0


class ReasoningEffort(Enum):
    """Effort of a model that reasons before it answers."""

    LOW = "low"
    """For short answers that a person waits for."""
    MEDIUM = "medium"
    HIGH = "high"


class ResponseCacheMode(Enum):
    """Use of stored answers to exactly the same request."""

    OFF = "off"
    """Always call the model; store nothing."""
    USE = "use"
    """Use a stored answer, else call the model and store its answer."""
    REFRESH = "refresh"
    """Call the model, and replace the stored answer."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Caps on work; None means no cap. Work stops before a cap is exceeded.

    Attributes:
        max_calls: requests sent to providers, retries and repairs included.
        max_tokens: input and output tokens together.
        max_cost: cost, in 10^-12 dollars.
        max_seconds: time; the caller's deadline applies as well.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One request to a model, with the turns before it.

    Attributes:
        system: the instructions; byte-identical over a conversation, so that providers can cache them.
        messages: oldest first; the first and the last are from the user.
        schema: requests a JSON answer; `Completion.value` then holds it.
        model: `provider/model`, a model whose name implies its provider, or None for the configured one.
        max_output_tokens: truncates the answer (`StopReason.LENGTH`), thoughts included; None is the model's
            default.
        temperature: None uses the model's default; dropped for models that reject it.
        seed: requests a repeatable answer, where supported.
        response_cache: use of stored answers; a request whose schema has an `accept` never uses them.
        tools: the tools that the model may call; constant over a conversation, like the instructions.
        tool_choice: which of them to call; None leaves it to the model.
        fallback_models: models to try in this order if the first fails before its first token.
        stop_sequences: texts that end the answer.
        cache: use of the provider's prompt cache.
        budget: caps of this request; None means no cap.
        conversation_id: the stored conversation that it continues, whose budget it counts towards.
        conversation_budget: caps of all requests of that conversation together; None means no cap.
        answer_tokens: truncates the answer without the thoughts: the model's allowance for thoughts is added
            to it. It takes the place of an absent `max_output_tokens`.
        reasoning_effort: sent to models that are known to support it; None is the model's default.
    """

    system: str | None
    messages: tuple[ChatMessage, ...]
    schema: ResponseSchema | None = None
    model: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    response_cache: ResponseCacheMode = ResponseCacheMode.OFF
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    fallback_models: tuple[str, ...] = ()
    stop_sequences: tuple[str, ...] = ()
    cache: CacheConfig = CacheConfig()
    budget: Budget | None = None
    conversation_id: str | None = None
    conversation_budget: Budget | None = None
    answer_tokens: int | None = None
    reasoning_effort: ReasoningEffort | None = None


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """Partial generation options: fields of `GenerateRequest`, in which None is unset."""

    model: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    stop_sequences: tuple[str, ...] | None = None
    fallback_models: tuple[str, ...] | None = None
    cache: CacheConfig | None = None
    response_cache: ResponseCacheMode | None = None
    budget: Budget | None = None
    answer_tokens: int | None = None
    reasoning_effort: ReasoningEffort | None = None

    @classmethod
    def from_request(cls, request: GenerateRequest) -> Self:
        """Return the options of a request."""
        return cls(**{one.name: getattr(request, one.name) for one in fields(cls)})

    def set_fields(self) -> dict[str, Any]:
        """Return the options that are set, by name."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

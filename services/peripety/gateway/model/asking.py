"""What is asked of a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from peripety.errors import Finding

if TYPE_CHECKING:
    from peripety.gateway.model.parts import ChatMessage, Tool, ToolChoice

__all__ = [
    "Accept",
    "Budget",
    "CacheConfig",
    "CacheTTL",
    "GenerateRequest",
    "Options",
    "ResponseCacheMode",
    "ResponseSchema",
]

Accept: TypeAlias = Callable[[Any], Awaitable[Sequence[Finding]]]
"""A check beyond the schema: what is wrong with the parsed value; no errors among it means accepted.

It is awaited, so that one that takes long can do its work beside the event loop.
"""


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """What a structured answer has to satisfy.

    Attributes:
        name: what the answer is ("scenario_spec", "outcome", ...); letters, digits, `_` and `-`, at most 64.
        document: the JSON Schema of the answer; the answer is always validated against this very document.
        accept: the caller's own check, run where the request was made (it does not cross the wire); its
            findings take part in the one repair like those of the schema.
        advisory: whether an answer that is not valid is handed over with its findings, instead of being
            asked for once more; for callers who go on with the conversation themselves.
    """

    name: str
    document: Mapping[str, Any]
    accept: Accept | None = None
    advisory: bool = False


class CacheTTL(Enum):
    """How long a provider keeps a cached prefix; what it takes for that is the provider's matter."""

    FIVE_MINUTES = "5m"
    """Cheaper to write."""
    ONE_HOUR = "1h"
    """Dearer to write, for prompts that come back after a pause."""


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """How to use the provider's prompt cache.

    Attributes:
        enabled: whether to use it at all.
        ttl: how long to keep what is written.
        expected_reuse: how many more requests will start the same way, with the same schema; 0 when that is
            not known.
    """

    enabled: bool = True
    ttl: CacheTTL = CacheTTL.FIVE_MINUTES
    expected_reuse: int = 0


class ResponseCacheMode(Enum):
    """What to do with answers that were stored for exactly the same request."""

    OFF = "off"
    """Always ask the model, store nothing."""
    USE = "use"
    """Use a stored answer, else ask and store."""
    REFRESH = "refresh"
    """Ask the model, and store its answer in place of the old one."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A cap on work; None is no cap. Work stops before a cap would be passed.

    Attributes:
        max_calls: requests sent to providers, repeated ones and repairs included.
        max_tokens: input and output tokens together.
        max_cost: money, in 10^-12 dollars.
        max_seconds: time; the deadline of the caller bounds it as well.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One question to a model, with the turns before it.

    Attributes:
        system: the instructions; kept byte-identical over a conversation so that providers can cache them.
        messages: oldest first; the first is from the user, and so is the last.
        schema: asks for a JSON answer; `Completion.value` then holds it.
        model: `provider/model`, a model whose name gives its provider away, or None for the configured one.
        max_output_tokens: stops the answer there (`StopReason.LENGTH`); None is the model's default.
        temperature: None leaves it to the model; dropped for models that take none.
        seed: asks for a repeatable answer where the provider can give one.
        response_cache: what to do with stored answers; a request whose schema has an `accept` never uses any.
        tools: what the model may call; kept the same over a conversation, like the instructions.
        tool_choice: which of them to call; None leaves it to the model.
        fallback_models: models to try in this order when the first fails before its first token.
        stop_sequences: texts that end the answer.
        cache: use of the provider's prompt cache.
        budget: the most that this request may use; None is no cap.
        conversation_id: the stored conversation that it continues, whose budget it counts towards.
        conversation_budget: the most that all requests of that conversation may use together, over its life;
            None is no cap.
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


@dataclass(frozen=True, slots=True)
class Options:
    """How to generate, as far as somebody has said: fields of `GenerateRequest`, in which None is unset."""

    model: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    stop_sequences: tuple[str, ...] | None = None
    fallback_models: tuple[str, ...] | None = None
    cache: CacheConfig | None = None
    response_cache: ResponseCacheMode | None = None
    budget: Budget | None = None

    @classmethod
    def of(cls, request: GenerateRequest) -> Self:
        """The options of a request."""
        return cls(**{one.name: getattr(request, one.name) for one in fields(cls)})

    def set_fields(self) -> dict[str, Any]:
        """The options that are set, by name."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

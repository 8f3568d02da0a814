"""What comes back from a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from peripety.errors import Finding, PeripetyError
    from peripety.gateway.model.asking import CacheTTL
    from peripety.gateway.model.parts import ChatMessage, ToolCall

__all__ = [
    "CacheBlock",
    "CacheBreakpoint",
    "CachePlan",
    "Completed",
    "Completion",
    "FallingBack",
    "GatewayEvent",
    "ReasoningDelta",
    "Repairing",
    "SchemaMethod",
    "SchemaReport",
    "Spent",
    "StopReason",
    "TextDelta",
    "ToolCallDelta",
    "Usage",
    "sum_of_known",
]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of all model calls behind one answer.

    Attributes:
        input_tokens: all that was read, from a prompt cache too.
        output_tokens: all that was written, reasoning included.
        cache_read_tokens: the part of the input that was read from a prompt cache.
        cache_write_tokens: the part of the input that was written to one.
        reasoning_tokens: the part of the output that was spent on reasoning.
        long_cache_write_tokens: the part of what was written that is kept for the longer time.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    long_cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """The tokens of two calls together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.long_cache_write_tokens + other.long_cache_write_tokens,
        )


def sum_of_known(one: int | None, other: int | None) -> int | None:
    """Add two amounts; None when one of them is not known, which is never taken for nothing."""
    return None if one is None or other is None else one + other


class StopReason(Enum):
    """Why the model stopped."""

    END = "end"
    """It had finished, or met a stop sequence."""
    LENGTH = "length"
    REFUSAL = "refusal"
    TOOL_USE = "tool_use"
    """It wants tools called."""
    OTHER = "other"


class SchemaMethod(Enum):
    """How an answer was brought to match its schema."""

    NATIVE = "native"
    """The provider's own structured output."""
    TOOL = "tool"
    """A tool whose arguments are the answer."""
    GRAMMAR = "grammar"
    """A grammar that the sampler follows."""
    EXTRACTION = "extraction"
    """The JSON was found in free text."""


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """What was done so that a provider could work with a schema; the answer is checked against the original.

    Attributes:
        method: how the answer was obtained.
        dropped: what the provider could not be told, or is not held to; the paths point into the schema.
    """

    method: SchemaMethod
    dropped: tuple[Finding, ...] = ()


class CacheBlock(Enum):
    """What a cache breakpoint stands behind."""

    TOOLS = "tools"
    """The last tool."""
    SYSTEM = "system"
    """The system text."""
    MESSAGE = "message"
    """A message."""
    MODEL = "model"
    """The choice of the model, each of which has a cache of its own; only as a difference."""


@dataclass(frozen=True, slots=True)
class CacheBreakpoint:
    """A place up to which the provider is asked to cache the prompt.

    Attributes:
        block: what it stands behind.
        ttl: how long to keep what comes before it.
        message_index: which message, from 0, when it stands behind one.
    """

    block: CacheBlock
    ttl: CacheTTL
    message_index: int = 0


@dataclass(frozen=True, slots=True)
class CachePlan:
    """What the prompt cache is expected to do; what it did is in the usage.

    Attributes:
        breakpoints: at most four, in the order of the prompt.
        predicted_read_tokens: tokens expected to be read from the cache.
        predicted_write_tokens: tokens expected to be written to it.
        first_difference: where the prompt leaves what was cached of its conversation, when it should not.
    """

    breakpoints: tuple[CacheBreakpoint, ...] = ()
    predicted_read_tokens: int = 0
    predicted_write_tokens: int = 0
    first_difference: CacheBreakpoint | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer.

    Attributes:
        message: what the model said last (after a repair: the repaired answer), as a conversation keeps it.
        value: the parsed and validated JSON value; None without a schema, and when tools are to be called.
            With an advisory schema it may be invalid, and None when the answer could not be read.
        usage: tokens of every call made, the repair's included.
        stop_reason: why the model stopped.
        model: the model that answered, as the provider names it.
        provider: the provider that answered.
        repaired: whether the first answer was refused and asked for again.
        findings: what the repair had to fix; with an advisory schema, what is wrong with this answer.
        calls: requests sent to the provider for this answer.
        from_response_cache: whether no model was called for this answer, because it was stored, or because
            somebody else had just asked exactly the same; it then has no usage and no calls.
        schema_report: what became of the schema, when one was given.
        cost: what all calls cost, in 10^-12 dollars; None when a price is not known.
        cache_savings: what the prompt cache saved against full price, in 10^-12 dollars; negative when
            writing cost more than reading saved; None when a price is not known.
        cache_plan: what the prompt cache was expected to do in the last call.
        conversation_turn: the turn that it became, from 1; 0 outside of a stored conversation.
    """

    message: ChatMessage
    value: Any | None
    usage: Usage
    stop_reason: StopReason
    model: str
    provider: str
    repaired: bool = False
    findings: tuple[Finding, ...] = ()
    calls: int = 1
    from_response_cache: bool = False
    schema_report: SchemaReport | None = None
    cost: int | None = None
    cache_savings: int | None = None
    cache_plan: CachePlan | None = None
    conversation_turn: int = 0

    @property
    def text(self) -> str:
        """All text of the answer."""
        return self.message.text

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools that the model wants called, in its order."""
        return self.message.tool_calls


@dataclass(frozen=True, slots=True)
class Spent:
    """What calls used.

    Attributes:
        calls: requests sent to providers.
        usage: their tokens.
        cost: what they cost, in 10^-12 dollars; None when a price is not known.
        cache_savings: what the prompt cache saved of that; None when a price is not known.
    """

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: int | None = 0
    cache_savings: int | None = 0

    def __add__(self, other: Spent) -> Spent:
        """What two pieces of work used together."""
        return Spent(
            self.calls + other.calls,
            self.usage + other.usage,
            sum_of_known(self.cost, other.cost),
            sum_of_known(self.cache_savings, other.cache_savings),
        )

    @classmethod
    def on(cls, completion: Completion) -> Spent:
        """What an answer used."""
        return cls(completion.calls, completion.usage, completion.cost, completion.cache_savings)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer, as it arrives."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of what the model thinks, where the provider tells."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """The next piece of a tool call; the whole call is in the completion.

    Attributes:
        call_id: the call that it belongs to.
        arguments_text: the next characters of the arguments' JSON; no document by itself.
        name: the tool as it was offered; only in the first piece of a call.
    """

    call_id: str
    arguments_text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Repairing:
    """The answer was refused and is asked for once more; what was released so far is void.

    Attributes:
        findings: why it was refused.
        usage: tokens of the calls so far.
        calls: those calls.
    """

    findings: tuple[Finding, ...]
    usage: Usage = Usage()
    calls: int = 1


@dataclass(frozen=True, slots=True)
class FallingBack:
    """The request goes to another model, before anything of its answer was released.

    Attributes:
        from_model: the model that failed, as `provider/model`.
        to_model: the model that is tried next, as `provider/model`.
        cause: why the first one failed.
    """

    from_model: str
    to_model: str
    cause: PeripetyError


@dataclass(frozen=True, slots=True)
class Completed:
    """The last event of every stream that does not raise."""

    completion: Completion


GatewayEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta | Repairing | FallingBack | Completed

"""Response types of the gateway: deltas, completion, usage, cache plan, and the `ModelGateway` protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from peripety.core.concurrency import closing
from peripety.errors import InternalError
from peripety.gateway.types.message import Reasoning, Text, ToolCall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from peripety.errors import Finding, PeripetyError
    from peripety.gateway.types.message import ChatMessage, Part
    from peripety.gateway.types.request import CacheTTL, GenerateRequest


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of all model calls behind one answer.

    Attributes:
        input_tokens: all input tokens, cached ones included.
        output_tokens: all output tokens, reasoning included.
        cache_read_tokens: input tokens read from a prompt cache.
        cache_write_tokens: input tokens written to a prompt cache.
        reasoning_tokens: output tokens used for reasoning.
        long_cache_write_tokens: the part of the written tokens with the longer lifetime.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    long_cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the tokens of two calls together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.long_cache_write_tokens + other.long_cache_write_tokens,
        )


def sum_optional(left: int | None, right: int | None) -> int | None:
    """Return the sum of two amounts; None if one is unknown, because unknown does not mean zero."""
    return None if left is None or right is None else left + right


class StopReason(Enum):
    """Reason why the model stopped."""

    END = "end"
    """It finished, or reached a stop sequence."""
    LENGTH = "length"
    REFUSAL = "refusal"
    TOOL_USE = "tool_use"
    """It requests tool calls."""
    OTHER = "other"


class SchemaMethod(Enum):
    """Method by which an answer was made to match its schema."""

    NATIVE = "native"
    """The provider's native structured output."""
    TOOL = "tool"
    """A tool whose arguments are the answer."""
    GRAMMAR = "grammar"
    """A grammar that the sampler follows."""
    EXTRACTION = "extraction"
    """JSON extracted from free text."""


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """Adaptation of a schema to a provider; the answer is validated against the original.

    Attributes:
        method: how the answer was obtained.
        dropped: parts of the schema that the provider was not given or does not enforce, as paths into it.
    """

    method: SchemaMethod
    dropped: tuple[Finding, ...] = ()


class CacheBlock(Enum):
    """Position of a cache breakpoint."""

    TOOLS = "tools"
    """After the last tool."""
    SYSTEM = "system"
    """After the system text."""
    MESSAGE = "message"
    """After a message."""
    MODEL = "model"
    """The model itself, because each has its own cache; only as a first difference."""


@dataclass(frozen=True, slots=True)
class CacheBreakpoint:
    """The end of a prefix that the provider should cache.

    Attributes:
        block: the block before it.
        ttl: lifetime of the prefix.
        message_index: index of the message before it, from 0, if there is one.
    """

    block: CacheBlock
    ttl: CacheTTL
    message_index: int = 0


@dataclass(frozen=True, slots=True)
class CachePlan:
    """Predicted effect of a call on the prompt cache; the actual effect is in the usage.

    Attributes:
        breakpoints: at most four, in the order of the prompt.
        predicted_read_tokens: tokens expected to be read from the cache.
        predicted_write_tokens: tokens expected to be written to it.
        first_difference: the first unexpected difference from the cached prefix of its conversation.
    """

    breakpoints: tuple[CacheBreakpoint, ...] = ()
    predicted_read_tokens: int = 0
    predicted_write_tokens: int = 0
    first_difference: CacheBreakpoint | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A complete answer.

    Attributes:
        message: the model's last message (after a repair: the repaired answer), as a conversation stores it.
        value: the parsed and validated JSON value; None without a schema, and if tool calls are requested.
            Under an advisory schema it may be invalid, and None if the answer could not be parsed.
        usage: tokens of every call made, the repair's included.
        stop_reason: why the model stopped.
        model: the model that answered, in the provider's spelling.
        provider: the provider that answered.
        repaired: whether the first answer was rejected and requested again.
        findings: the problems that the repair fixed; under an advisory schema, the problems of this answer.
        calls: requests sent to the provider for this answer.
        from_response_cache: whether the answer was stored or shared with an equal request, without a model
            call; it then has no usage and no calls.
        schema_report: how the schema was adapted, if there was one.
        cost: cost of all calls, in 10^-12 dollars; None if a price is unknown.
        cache_savings: savings of the prompt cache against full price, in 10^-12 dollars; negative if writing
            cost more than reading saved; None if a price is unknown.
        cache_plan: the predicted effect of the last call on the prompt cache.
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
        """Return the text of the answer."""
        return self.message.text

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the requested tool calls, in order."""
        return self.message.tool_calls


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """Total usage of several calls.

    Attributes:
        calls: requests sent to providers.
        usage: their tokens.
        cost: their cost, in 10^-12 dollars; None if a price is unknown.
        cache_savings: savings of the prompt cache; None if a price is unknown.
    """

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: int | None = 0
    cache_savings: int | None = 0

    def __add__(self, other: UsageTotal) -> UsageTotal:
        """Return the sum of both."""
        return UsageTotal(
            self.calls + other.calls,
            self.usage + other.usage,
            sum_optional(self.cost, other.cost),
            sum_optional(self.cache_savings, other.cache_savings),
        )

    @classmethod
    def from_completion(cls, completion: Completion) -> UsageTotal:
        """Return the usage of an answer."""
        return cls(completion.calls, completion.usage, completion.cost, completion.cache_savings)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer, as it arrives."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of reasoning, if the provider discloses it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """The next piece of a tool call; the whole call is in the completion.

    Attributes:
        call_id: the call that it belongs to.
        arguments_text: the next characters of the arguments' JSON; not a document by itself.
        name: the tool's name as offered; only in the first piece of a call.
    """

    call_id: str
    arguments_text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Repairing:
    """The answer was rejected and is requested once more; everything released so far is void.

    Attributes:
        findings: why it was rejected.
        usage: tokens of the calls so far.
        calls: number of those calls.
    """

    findings: tuple[Finding, ...]
    usage: Usage = Usage()
    calls: int = 1


@dataclass(frozen=True, slots=True)
class FallingBack:
    """The request falls back to another model, before any part of its answer was released.

    Attributes:
        from_model: the model that failed, as `provider/model`.
        to_model: the next model, as `provider/model`.
        cause: the error of the first one.
    """

    from_model: str
    to_model: str
    cause: PeripetyError


@dataclass(frozen=True, slots=True)
class Completed:
    """The last event of every stream that does not raise."""

    completion: Completion


GatewayEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta | Repairing | FallingBack | Completed


class ModelGateway(Protocol):
    """Protocol of a model gateway, independent of the provider and of the process it runs in."""

    def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream the answer of a request as it is generated.

        Cancellation closes the call to the provider. A caller that may leave the iteration early must wrap it
        in `peripety.core.concurrency.closing`.

        Yields:
            Fallbacks before any delta, deltas, at most one `Repairing`, and `Completed` as the last event.

        Raises:
            InvalidArgumentError: the request is malformed.
            FailedPreconditionError: the provider is not configured or rejects the credentials, or (code
                ANSWER_INVALID, the findings as violations) the answer was still invalid after the repair;
                never under an advisory schema.
            NotFoundError: the provider does not know the model.
            ResourceExhaustedError: a limit, a budget or the provider's quota is exhausted.
            UnavailableError: the provider does not answer, or broke off.
            DeadlineError: the caller's deadline passed.
        """
        ...

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return the whole answer of a request; raises the errors of `stream`."""
        ...


_DELTA_CHARACTERS = 512


async def collect_completion(events: AsyncIterator[GatewayEvent]) -> Completion:
    """Read an answer to its end and return it whole."""
    completion: Completion | None = None
    async with closing(events):
        async for event in events:
            if isinstance(event, Completed):
                completion = event.completion
    if completion is None:
        raise InternalError("event stream ended without a Completed event")
    return completion


def replay_completion(completion: Completion) -> Iterator[GatewayEvent]:
    """Yield an existing answer as a stream of events."""
    for part in completion.message.parts:
        yield from _part_to_deltas(part)
    yield Completed(completion)


def _part_to_deltas(part: Part) -> Iterator[GatewayEvent]:
    match part:
        case Text():
            yield from map(TextDelta, _split_text(part.text))
        case Reasoning():
            yield from map(ReasoningDelta, _split_text(part.text))
        case ToolCall():
            yield ToolCallDelta(part.call_id, part.arguments, part.name)


def _split_text(text: str) -> list[str]:
    return [text[start : start + _DELTA_CHARACTERS] for start in range(0, len(text), _DELTA_CHARACTERS)]

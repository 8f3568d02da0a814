"""What the gateway speaks: provider-neutral requests, the events of an answer, and the protocol itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from peripety.errors import Finding

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = [
    "Accept",
    "ChatMessage",
    "ChatRole",
    "Completed",
    "Completion",
    "GatewayEvent",
    "GenerateRequest",
    "ModelGateway",
    "Repairing",
    "ResponseCacheMode",
    "ResponseSchema",
    "SchemaMethod",
    "SchemaReport",
    "StopReason",
    "TextDelta",
    "Usage",
]

Accept: TypeAlias = Callable[[Any], Awaitable[Sequence[Finding]]]
"""A check beyond the schema: what is wrong with the parsed value; no errors among it means accepted.

It is awaited, so that one that takes long can do its work beside the event loop.
"""


class ChatRole(Enum):
    """Who said a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation."""

    role: ChatRole
    content: str


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """What a structured answer has to satisfy.

    Attributes:
        name: what the answer is ("scenario_spec", "outcome", ...); letters, digits, `_` and `-`, at most 64.
        document: the JSON Schema of the answer; the answer is always validated against this very document.
        accept: the caller's own check, run where the request was made (it does not cross the wire); its
            findings take part in the one repair like those of the schema.
    """

    name: str
    document: Mapping[str, Any]
    accept: Accept | None = None


class ResponseCacheMode(Enum):
    """What to do with answers that were stored for exactly the same request."""

    OFF = "off"
    """Always ask the model, store nothing."""
    USE = "use"
    """Use a stored answer, else ask and store."""
    REFRESH = "refresh"
    """Ask the model, and store its answer in place of the old one."""


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One question to a model.

    Attributes:
        system: the instructions; kept byte-identical over a conversation so that providers can cache them.
        messages: oldest first; the first is from the user, and so is the last.
        schema: asks for a JSON answer; `Completion.value` then holds it.
        model: `provider/model`, a bare model name of the configured provider, or None for the configured one.
        max_output_tokens: stops the answer there (`StopReason.LENGTH`); None leaves it to the provider.
        temperature: None leaves it to the provider.
        seed: asks for a repeatable answer where the provider can give one.
        response_cache: what to do with stored answers; a request whose schema has an `accept` never uses any.
    """

    system: str | None
    messages: tuple[ChatMessage, ...]
    schema: ResponseSchema | None = None
    model: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    response_cache: ResponseCacheMode = ResponseCacheMode.OFF


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of all model calls behind one answer.

    Attributes:
        input_tokens: those of the prompts, cached ones included.
        output_tokens: those of the answers, reasoning included.
        cache_read_tokens: the part of the input that was read from a prompt cache.
        cache_write_tokens: the part of the input that was written to one.
        reasoning_tokens: the part of the output that was spent on reasoning.
        long_cache_write_tokens: the part of those written that is kept for a longer time than the shortest.
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


class StopReason(Enum):
    """Why the model stopped."""

    END = "end"
    LENGTH = "length"
    REFUSAL = "refusal"
    OTHER = "other"


class SchemaMethod(Enum):
    """How an answer was brought to match its schema."""

    NATIVE = "native"
    EXTRACTION = "extraction"


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """What was done so that a provider could work with a schema; the answer is checked against the original.

    Attributes:
        method: how the answer was obtained.
        dropped: what the provider could not be told, or is not held to; the paths point into the schema.
    """

    method: SchemaMethod
    dropped: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer.

    Attributes:
        text: what the model wrote last (after a repair: the repaired answer).
        value: the parsed and validated JSON value; None without a schema.
        usage: tokens of every call made, the repair's included.
        stop_reason: why the model stopped.
        model: the model that answered, as the provider names it.
        provider: the provider that answered.
        repaired: whether the first answer was refused and asked for again.
        findings: what the repair had to fix.
        calls: requests sent to the provider for this answer.
        from_response_cache: whether no model was called for this answer, because it was stored, or because
            somebody else had just asked exactly the same; it then has no usage and no calls.
        schema_report: what became of the schema, when one was given.
    """

    text: str
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


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer, as it arrives."""

    text: str


@dataclass(frozen=True, slots=True)
class Repairing:
    """The answer was refused and is asked for once more; text released so far is void.

    Attributes:
        findings: why it was refused.
        usage: tokens of the calls so far.
        calls: those calls.
    """

    findings: tuple[Finding, ...]
    usage: Usage = Usage()
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Completed:
    """The last event of every stream that does not raise."""

    completion: Completion


GatewayEvent: TypeAlias = TextDelta | Repairing | Completed


class ModelGateway(Protocol):
    """A way to ask a model, whichever provider answers and wherever the gateway runs."""

    def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Ask, and follow the answer as it is written.

        Being cancelled closes the call to the provider; whoever may leave the iteration early does so
        inside of `peripety.gateway.streams.following`.

        Yields:
            Deltas, at most one `Repairing`, and `Completed` as the last event.

        Raises:
            InvalidArgumentError: the request is malformed.
            FailedPreconditionError: the provider is not set up or refuses the credentials, or (code
                ANSWER_INVALID, the findings as violations) the answer was not valid even when asked again.
            NotFoundError: the provider does not know the model.
            ResourceExhaustedError: the provider's rate limit or quota is used up.
            UnavailableError: the provider does not answer, or broke off.
            DeadlineError: the caller's time ran out.
        """
        ...

    async def generate(self, request: GenerateRequest) -> Completion:
        """Ask, and wait for the whole answer; raises what `stream` raises."""
        ...

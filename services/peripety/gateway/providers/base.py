"""What every provider offers to the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from peripety.gateway.model import (
    CacheBreakpoint,
    GenerateRequest,
    Part,
    ReasoningDelta,
    SchemaReport,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.catalogue import ModelData

__all__ = ["Call", "Delta", "Finished", "Provider", "ProviderEvent"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a provider.

    Attributes:
        request: what is asked; checked, its messages merged.
        model: the model to ask, as the provider names it.
        data: what is known of the model.
        breakpoints: up to where the provider is asked to cache the prompt.
    """

    request: GenerateRequest
    model: str
    data: ModelData
    breakpoints: tuple[CacheBreakpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer that arrived whole; a stream without it was cut off.

    Attributes:
        parts: the answer, as a conversation keeps it: together the deltas say the same.
        stop_reason: why the model stopped.
        usage: the tokens of the call; all zero when the provider did not say.
        model: the model that answered, as the provider names it.
        schema_report: what became of the schema, when one was given.
    """

    parts: tuple[Part, ...]
    stop_reason: StopReason
    usage: Usage
    model: str
    schema_report: SchemaReport | None = None


Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta
ProviderEvent: TypeAlias = Delta | Finished


class Provider(Protocol):
    """One source of answers.

    A provider does one call per `stream`: no retry, no validation against a schema, no repair. It raises from
    `peripety.errors`, and the class says whose fault it was: `UnavailableError` the provider's,
    `ResourceExhaustedError` its limits', `FailedPreconditionError` the configuration's,
    `InvalidArgumentError` the request's. The codes are those of docs/gateway.md; what
    follows from them stands in `gateway.calling.faults`.
    """

    @property
    def name(self) -> str:
        """The name by which `provider/model` selects it."""
        ...

    @property
    def model(self) -> str | None:
        """The model that answers when a request names none; None when there is no such model."""
        ...

    @property
    def account(self) -> str:
        """A digest of the server and the key: what one account was answered is none of another's business."""
        ...

    def stream(self, call: Call) -> AsyncIterator[ProviderEvent]:
        """Make a call.

        Yields:
            Deltas as they arrive, then exactly one `Finished`.
        """
        ...

    async def count_tokens(self, call: Call) -> int | None:
        """Return the input tokens of a call without making it; None when the provider does not count."""
        ...

    async def aclose(self) -> None:
        """Let go of connections; the provider is not used afterwards."""
        ...

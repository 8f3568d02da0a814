"""Interface of providers."""

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
        request: the request; checked, its messages normalized.
        model: the model, in the provider's spelling.
        data: catalog data of the model.
        breakpoints: ends of the prefixes that the provider should cache.
    """

    request: GenerateRequest
    model: str
    data: ModelData
    breakpoints: tuple[CacheBreakpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a complete answer; a stream without it was truncated.

    Attributes:
        parts: the answer as a conversation stores it; equal to the sum of the deltas.
        stop_reason: why the model stopped.
        usage: tokens of the call; all zero if the provider did not report them.
        model: the model that answered, in the provider's spelling.
        schema_report: how the schema was adapted, if there was one.
    """

    parts: tuple[Part, ...]
    stop_reason: StopReason
    usage: Usage
    model: str
    schema_report: SchemaReport | None = None


Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta
ProviderEvent: TypeAlias = Delta | Finished


class Provider(Protocol):
    """Source of answers.

    A provider makes one call per `stream`: no retry, no schema validation, no repair. It raises errors of
    `peripety.errors`, and the class attributes the fault: `UnavailableError` to the provider,
    `ResourceExhaustedError` to its limits, `FailedPreconditionError` to the configuration,
    `InvalidArgumentError` to the request. The codes are listed in docs/gateway.md; `gateway.calling.faults`
    derives retry and fallback from them.
    """

    @property
    def name(self) -> str:
        """Return the provider's name in `provider/model`."""
        ...

    @property
    def model(self) -> str | None:
        """Return the default model, or None."""
        ...

    @property
    def account(self) -> str:
        """Return a digest of server and key. Answers to one account must not be served to another."""
        ...

    def stream(self, call: Call) -> AsyncIterator[ProviderEvent]:
        """Make a call.

        Yields:
            Deltas as they arrive, then exactly one `Finished`.
        """
        ...

    async def count_tokens(self, call: Call) -> int | None:
        """Return the input tokens of a call without making it; None if the provider does not count."""
        ...

    async def aclose(self) -> None:
        """Close all connections; the provider is not used afterwards."""
        ...

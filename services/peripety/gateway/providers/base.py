"""What every provider offers to the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from peripety.gateway.model import GenerateRequest, SchemaReport, StopReason, TextDelta, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Finished", "Provider", "ProviderEvent"]


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer that arrived whole; a stream without it was cut off."""

    stop_reason: StopReason
    usage: Usage
    model: str
    schema_report: SchemaReport | None = None


ProviderEvent: TypeAlias = TextDelta | Finished


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

    def stream(self, request: GenerateRequest) -> AsyncIterator[ProviderEvent]:
        """Answer `request`, whose `model` is a bare model name here, or None for the provider's default.

        Yields:
            Text as it arrives, then exactly one `Finished`.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections; the provider is not used afterwards."""
        ...

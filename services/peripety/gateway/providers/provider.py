"""Provider protocol: adapter from neutral requests to provider calls, and from answers to neutral events.

An endpoint is a server with credentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol, TypeAlias

from peripety.gateway.types.message import Part  # noqa: TC001 - read at run time
from peripety.gateway.types.request import GenerateRequest  # noqa: TC001 - read at run time
from peripety.gateway.types.response import (
    CacheBreakpoint,
    ReasoningDelta,
    SchemaReport,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic import SecretStr

    from peripety.gateway.models.model_data import ModelData


@dataclass(frozen=True, slots=True)
class ProviderCall:
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
class AnswerFinished:
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
ProviderEvent: TypeAlias = Delta | AnswerFinished


class Provider(Protocol):
    """Source of answers.

    A provider makes one call per `stream`: no retry, no schema validation, no repair. It raises errors of
    `peripety.errors`, and the class attributes the fault: `UnavailableError` to the provider,
    `ResourceExhaustedError` to its limits, `FailedPreconditionError` to the configuration,
    `InvalidArgumentError` to the request. The codes are listed in docs/reference/gateway.md;
    `gateway.calling.faults`
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

    def stream(self, call: ProviderCall) -> AsyncIterator[ProviderEvent]:
        """Make a call.

        Yields:
            Deltas as they arrive, then exactly one `AnswerFinished`.
        """
        ...

    async def count_tokens(self, call: ProviderCall) -> int | None:
        """Return the input tokens of a call without making it; None if the provider does not count."""
        ...

    async def aclose(self) -> None:
        """Close all connections; the provider is not used afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server and one account there.

    Attributes:
        name: the provider.
        base_url: base URL of its API, without trailing slash.
        key: the API key; used only in a header.
        model: the default model.
        base_variable: the variable of the base URL, for messages.
        key_variable: the variable of the key, for messages.
    """

    name: str
    base_url: str
    key: SecretStr | None = None
    model: str | None = None
    base_variable: str = "OPENAI_API_BASE"
    key_variable: str = "OPENAI_API_KEY"

    @property
    def account(self) -> str:
        """Return a digest of server and key."""
        secret = self.key.get_secret_value() if self.key else ""
        return sha256(f"{self.base_url}\n{secret}".encode()).hexdigest()

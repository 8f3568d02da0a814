"""The provider for OpenAI and for every server that speaks its Chat Completions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.errors import FailedPreconditionError, PeripetyError, UnavailableError
from peripety.gateway.model import GenerateRequest, TextDelta
from peripety.gateway.providers.openai.body import to_openai_body
from peripety.gateway.providers.openai.failures import Failures
from peripety.gateway.providers.openai.stream import ChatCompletionStream
from peripety.gateway.providers.transport import EventStreamTransport, Timeouts
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic import SecretStr

    from peripety.gateway.providers.base import ProviderEvent
    from peripety.gateway.providers.openai.dialect import Dialect
    from peripety.gateway.providers.sse import ServerSentEvent

__all__ = ["OpenAIProvider"]

_DRAIN_SECONDS = 0.2


class OpenAIProvider:
    """Asks one server over HTTP and streams what it answers.

    Args:
        dialect: what kind of server it is.
        base_url: where its API starts, such as `https://host/v1`; the dialect may know one.
        api_key: its key; it goes into the Authorization header and nowhere else.
        model: the model to ask for when a request names none.
        timeouts: how long to wait for it.

    Raises:
        FailedPreconditionError: a setting that this kind of server needs is missing.
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        base_url: str | None,
        api_key: SecretStr | None,
        model: str | None,
        timeouts: Timeouts = Timeouts(),  # noqa: B008 - frozen
    ) -> None:
        base_url = base_url or dialect.default_base_url
        if base_url is None:
            raise _unset("OPENAI_API_BASE", dialect, "the URL of the server to ask")
        if dialect.needs_key and api_key is None:
            raise _unset("OPENAI_API_KEY", dialect, "the key of your account")
        self._dialect = dialect
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._api_key = api_key
        self.model = model
        self._transport = EventStreamTransport(dialect.name, timeouts)

    @property
    def name(self) -> str:
        """The name by which `provider/model` selects it."""
        return self._dialect.name

    async def stream(self, request: GenerateRequest) -> AsyncIterator[ProviderEvent]:
        """Answer `request`; text that arrived together is yielded together."""
        model = request.model or self.model
        if model is None:
            raise _unset("MODEL_NAME", self._dialect, "the model to ask for")
        failures = Failures(self.name, model, self._api_key)
        answer = ChatCompletionStream(failures, model)
        body, report = to_openai_body(request, model, self._dialect)
        async with following(
            self._transport.events(self._url, body, self._headers(), failures.by_status)
        ) as arrivals:
            async with following(_texts(arrivals, answer)) as texts:
                async for text in texts:
                    yield TextDelta(text)
            await _drain(arrivals)
        yield replace(answer.finish(), schema_report=report)

    async def aclose(self) -> None:
        """Close the pooled connections."""
        await self._transport.aclose()

    def _headers(self) -> dict[str, str]:
        return (
            {} if self._api_key is None else {"Authorization": f"Bearer {self._api_key.get_secret_value()}"}
        )


async def _texts(
    arrivals: AsyncIterator[list[ServerSentEvent]], answer: ChatCompletionStream
) -> AsyncIterator[str]:
    try:
        async for events in arrivals:
            text = "".join([answer.feed(event.data) for event in events])
            if text:
                yield text
            if answer.done:
                return
    except UnavailableError:
        # A connection that dies after the whole text costs the usage figures, not the answer.
        if not answer.complete:
            raise


async def _drain(arrivals: AsyncIterator[list[ServerSentEvent]]) -> None:
    """Read to the end, which is near: only then can the connection serve another request."""
    with suppress(TimeoutError, PeripetyError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in arrivals:
                pass


def _unset(variable: str, dialect: Dialect, meaning: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"The provider {dialect.name} needs {meaning}: set {variable}", code="PROVIDER_NOT_CONFIGURED"
    )

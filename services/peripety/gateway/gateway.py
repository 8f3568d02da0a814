"""The gateway in this process: checks the request, asks the provider, holds the answer against its schema."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from peripety.gateway.checks import check_options, check_schema, merge_messages
from peripety.gateway.model import Completed, Completion, GatewayEvent, GenerateRequest, TextDelta
from peripety.gateway.streams import completion_of, following
from peripety.gateway.structured import ask_until_valid

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.providers.base import Provider
    from peripety.gateway.providers.registry import Providers

__all__ = ["LocalModelGateway"]


class LocalModelGateway:
    """Implements `ModelGateway` over the providers of this process.

    Args:
        providers: who may answer.
    """

    def __init__(self, providers: Providers) -> None:
        self._providers = providers

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Ask, and follow the answer as it is written; see `ModelGateway.stream`."""
        check_options(request)
        if request.schema is not None:
            check_schema(request.schema)
        request = replace(request, messages=merge_messages(request.messages))
        provider, request = self._providers.select(request)
        ask = partial(_call, provider)
        events = ask(request) if request.schema is None else ask_until_valid(ask, request, request.schema)
        async with following(events):
            async for event in events:
                yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        """Ask, and wait for the whole answer; see `ModelGateway.generate`."""
        return await completion_of(self.stream(request))


async def _call(provider: Provider, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
    """One call of one provider, its text gathered into a completion."""
    texts: list[str] = []
    async with following(provider.stream(request)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                texts.append(event.text)
                yield event
            else:
                yield Completed(
                    Completion(
                        "".join(texts), None, event.usage, event.stop_reason, event.model, provider.name
                    )
                )

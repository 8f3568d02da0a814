"""The gateway in this process: checks the request, asks the provider, holds the answer against its schema."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from peripety.gateway.checks import check_options, check_schema, merge_messages
from peripety.gateway.streams import completion_of, following
from peripety.gateway.structured import ask_until_valid

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.calling import Caller
    from peripety.gateway.model import Completion, GatewayEvent, GenerateRequest
    from peripety.gateway.providers.registry import Providers

__all__ = ["LocalModelGateway"]


class LocalModelGateway:
    """Implements `ModelGateway` over the providers of this process.

    Args:
        providers: who may answer.
        caller: makes the calls.
    """

    def __init__(self, providers: Providers, caller: Caller) -> None:
        self._providers = providers
        self._caller = caller

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Ask, and follow the answer as it is written; see `ModelGateway.stream`."""
        check_options(request)
        if request.schema is not None:
            check_schema(request.schema)
        request = replace(request, messages=merge_messages(request.messages))
        provider, request = self._providers.select(request)
        ask = partial(self._caller.call, provider)
        events = ask(request) if request.schema is None else ask_until_valid(ask, request, request.schema)
        async with following(events):
            async for event in events:
                yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        """Ask, and wait for the whole answer; see `ModelGateway.generate`."""
        return await completion_of(self.stream(request))

"""In-process gateway: checks the request, calls the provider, validates the answer against its schema."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.gateway.calling.budgets import within
from peripety.gateway.calling.fallbacks import Candidates
from peripety.gateway.checks import check_options, check_schema, check_tools
from peripety.gateway.history import merge_messages
from peripety.gateway.model.replay import completion_of
from peripety.gateway.objects.structured import ask_until_valid
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.calling import Caller
    from peripety.gateway.model import Completion, GatewayEvent, GenerateRequest
    from peripety.gateway.providers.registry import Providers

__all__ = ["LocalModelGateway"]


class LocalModelGateway:
    """`ModelGateway` over the providers of this process.

    Args:
        providers: the providers.
        caller: executes the calls.
    """

    def __init__(self, providers: Providers, caller: Caller) -> None:
        self._providers = providers
        self._caller = caller

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream the answer of a request; see `ModelGateway.stream`."""
        check_options(request)
        if request.schema is not None:
            check_schema(request.schema)
        check_tools(request.tools, request.tool_choice)
        request = replace(request, messages=merge_messages(request.messages))
        async with following(self._answer(request)) as events:
            async for event in events:
                yield event

    def _answer(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream the valid answer of the first model that gives one, within the budgets of the request."""
        candidates = Candidates(request, self._providers.select, self._caller, self._caller.purse(request))
        schema = request.schema
        events = (
            candidates.ask(request) if schema is None else ask_until_valid(candidates.ask, request, schema)
        )
        seconds = None if request.budget is None else request.budget.max_seconds
        return events if seconds is None else within(seconds, events)

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return the whole answer of a request; see `ModelGateway.generate`."""
        return await completion_of(self.stream(request))

"""Remote gateway: `ModelGateway` over the GatewayService of another process."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.errors import Severity
from peripety.gateway.calling.budgets import Amount, remaining
from peripety.gateway.messages.answers import event_from_proto
from peripety.gateway.messages.requests import to_proto
from peripety.gateway.model import Completed, Completion, GenerateRequest, ResponseCacheMode, ResponseSchema
from peripety.gateway.model.replay import completion_of
from peripety.gateway.objects.structured import Verdict, ask_until_valid
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

    from peripety.gateway.model import Budget, GatewayEvent
    from peripety.gateway.objects.structured import Ask

__all__ = ["RemoteModelGateway"]


class RemoteModelGateway:
    """`ModelGateway` that calls a GatewayService.

    The service validates answers against their schema. The caller's own check (`ResponseSchema.accept`)
    cannot be sent, so it runs in this process, together with the repair that it requires if the service
    needed none.

    Args:
        channel: the gRPC channel of the service.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = GatewayServiceStub(channel)

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream the answer of a request; see `ModelGateway.stream`."""
        schema = request.schema
        if schema is None or schema.accept is None:
            events = self._call(request)
        else:
            # The service does not know the check: it would store an answer that is rejected here.
            request = replace(request, response_cache=ResponseCacheMode.OFF)
            events = ask_until_valid(
                _WithinBudget(self._call, request.budget).ask, request, schema, _judge_value
            )
        async with following(events):
            async for event in events:
                yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return the whole answer of a request; see `ModelGateway.generate`."""
        return await completion_of(self.stream(request))

    async def _call(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        async with following(aiter(self._stub.Generate(to_proto(request)))) as responses:
            async for response in responses:
                event = event_from_proto(response)
                if event is not None:
                    yield event


class _WithinBudget:
    """Executor of the service calls of one request: the second call has the rest of its budget."""

    def __init__(self, ask: Ask, budget: Budget | None) -> None:
        self._ask = ask
        self._budget = budget
        self._used = Amount()
        self._begun = time.monotonic()

    async def ask(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        if self._budget is not None:
            left = remaining(self._budget, self._used, time.monotonic() - self._begun)
            request = replace(request, budget=left)
        async with following(self._ask(request)) as events:
            async for event in events:
                if isinstance(event, Completed):
                    made, usage = event.completion, event.completion.usage
                    self._used += Amount(made.calls, usage.input_tokens + usage.output_tokens, made.cost or 0)
                yield event


async def _judge_value(completion: Completion, schema: ResponseSchema) -> Verdict:
    if schema.advisory and completion.findings:
        return Verdict(completion.value, completion.findings)
    findings = () if schema.accept is None else await schema.accept(completion.value)
    return Verdict(completion.value, tuple(f for f in findings if f.severity is Severity.ERROR))

"""Remote gateway: `ModelGateway` over the GatewayService of another process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.core.concurrency import closing
from peripety.errors import Severity
from peripety.gateway.budgets.order_budget import OrderBudget
from peripety.gateway.pb.requests import request_to_proto
from peripety.gateway.pb.responses import event_from_proto
from peripety.gateway.structured_output.validator import AnswerValidation, generate_valid
from peripety.gateway.types.request import GenerateRequest, ResponseCacheMode, ResponseSchema
from peripety.gateway.types.response import Completed, Completion, UsageTotal, collect_completion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

    from peripety.gateway.structured_output.validator import SendRequest
    from peripety.gateway.types.request import Budget
    from peripety.gateway.types.response import GatewayEvent


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
            events = generate_valid(
                _BudgetedCalls(self._call, request.budget).call,
                request,
                schema,
                _validate_value,
            )
        async with closing(events):
            async for event in events:
                yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return the whole answer of a request; see `ModelGateway.generate`."""
        return await collect_completion(self.stream(request))

    async def _call(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        async with closing(aiter(self._stub.Generate(request_to_proto(request)))) as responses:
            async for response in responses:
                event = event_from_proto(response)
                if event is not None:
                    yield event


class _BudgetedCalls:
    """Executor of the service calls of one request: the second call has the rest of its budget."""

    def __init__(self, send: SendRequest, budget: Budget | None) -> None:
        self._send = send
        self._budget = None if budget is None else OrderBudget(budget)

    async def call(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        if self._budget is not None:
            request = replace(request, budget=self._budget.remaining())
        async with closing(self._send(request)) as events:
            async for event in events:
                if self._budget is not None and isinstance(event, Completed):
                    self._budget.add_usage(UsageTotal.from_completion(event.completion))
                yield event


async def _validate_value(completion: Completion, schema: ResponseSchema) -> AnswerValidation:
    if schema.advisory and completion.findings:
        return AnswerValidation(completion.value, completion.findings)
    findings = () if schema.accept is None else await schema.accept(completion.value)
    return AnswerValidation(completion.value, tuple(f for f in findings if f.severity is Severity.ERROR))

"""The model gateway of another process, behind the protocol that the one of this process implements."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.errors import Severity
from peripety.gateway.messages.answers import event_from_proto
from peripety.gateway.messages.requests import to_proto
from peripety.gateway.model import Completion, GenerateRequest, ResponseCacheMode, ResponseSchema
from peripety.gateway.streams import completion_of, following
from peripety.gateway.structured import Verdict, ask_until_valid

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

    from peripety.gateway.model import GatewayEvent

__all__ = ["RemoteModelGateway"]


class RemoteModelGateway:
    """Implements `ModelGateway` by calling a GatewayService.

    The service holds answers against their schema. The caller's own check (`ResponseSchema.accept`) cannot
    travel, so it runs here, and so does the repair that it asks for when the service needed none.

    Args:
        channel: leads to the service.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = GatewayServiceStub(channel)

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Ask, and follow the answer as it is written; see `ModelGateway.stream`."""
        schema = request.schema
        if schema is None or schema.accept is None:
            events = self._call(request)
        else:
            # The service does not know of the check: it would store an answer that is refused here.
            request = replace(request, response_cache=ResponseCacheMode.OFF)
            events = ask_until_valid(self._call, request, schema, _judge_value)
        async with following(events):
            async for event in events:
                yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        """Ask, and wait for the whole answer; see `ModelGateway.generate`."""
        return await completion_of(self.stream(request))

    async def _call(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        async with following(aiter(self._stub.Generate(to_proto(request)))) as responses:
            async for response in responses:
                event = event_from_proto(response)
                if event is not None:
                    yield event


async def _judge_value(completion: Completion, schema: ResponseSchema) -> Verdict:
    findings = () if schema.accept is None else await schema.accept(completion.value)
    return Verdict(completion.value, tuple(f for f in findings if f.severity is Severity.ERROR))

"""GatewayService: a handler for each of its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceServicer
from peripety.errors import UnsupportedError
from peripety.gateway.growing import GrowingValue
from peripety.gateway.messages.answers import event_response, object_response
from peripety.gateway.messages.models import models_to_proto
from peripety.gateway.messages.requests import generate_request, object_request
from peripety.gateway.model import Repairing
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.api.gateway.v1 import gateway_pb2 as pb
    from peripety.gateway.model import ModelGateway
    from peripety.gateway.models import ModelList

__all__ = ["GatewayServicer"]


class GatewayServicer(GatewayServiceServicer):
    """Answers prompts over gRPC.

    Args:
        gateway: who answers them.
        models: the models that can be asked for.
    """

    def __init__(self, gateway: ModelGateway, models: ModelList) -> None:
        self._gateway = gateway
        self._models = models

    async def Generate(  # noqa: N802 - the contract's name
        self, request: pb.GenerateRequest, _context: Any
    ) -> AsyncIterator[pb.GenerateResponse]:
        """Answer a prompt and stream the answer as the model writes it."""
        _refuse_conversations(request)
        sequence = 0
        async with following(self._gateway.stream(generate_request(request))) as events:
            async for event in events:
                sequence += 1
                yield event_response(sequence, event)

    async def GenerateObject(  # noqa: N802 - the contract's name
        self, request: pb.GenerateObjectRequest, _context: Any
    ) -> AsyncIterator[pb.GenerateObjectResponse]:
        """Answer with a valid object and stream it while it grows."""
        _refuse_conversations(request)
        sequence = 0
        growing = GrowingValue()
        async with following(self._gateway.stream(object_request(request))) as events:
            async for event in events:
                if isinstance(event, Repairing):
                    growing = GrowingValue()
                response = object_response(event, growing)
                if response is not None:
                    sequence += 1
                    response.sequence = sequence
                    yield response

    async def ListModels(  # noqa: N802 - the contract's name
        self, request: pb.ListModelsRequest, _context: Any
    ) -> pb.ListModelsResponse:
        """List the models that can be asked for."""
        return models_to_proto(self._models.page(request.provider, request.page_size, request.page_token))


def _refuse_conversations(request: pb.GenerateRequest | pb.GenerateObjectRequest) -> None:
    if request.conversation_id:
        raise UnsupportedError(
            "This server does not support .conversation_id yet; leave it out", code="FIELD_UNSUPPORTED"
        )

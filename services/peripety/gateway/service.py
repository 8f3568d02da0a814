"""gRPC servicer of GatewayService."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceServicer
from peripety.gateway.messages.answers import count_to_proto, event_response, object_response
from peripety.gateway.messages.batch import items_from_proto, results_to_proto
from peripety.gateway.messages.conversations import (
    charter_from_proto,
    check_turn,
    conversation_to_proto,
    conversations_to_proto,
    named,
    question_from_proto,
    turns_to_proto,
)
from peripety.gateway.messages.models import models_to_proto
from peripety.gateway.messages.requests import from_proto, generate_request, object_schema
from peripety.gateway.messages.usage import query_from_proto, usage_page_to_proto
from peripety.gateway.objects.growing import GrowingValue
from peripety.gateway.streams import following
from peripety.requests import refuse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.batch import Batches
    from peripety.gateway.catalogue import ModelList
    from peripety.gateway.conversations.conversations import Conversations
    from peripety.gateway.counting import TokenCounter
    from peripety.gateway.model import GatewayEvent, ModelGateway
    from peripety.gateway.usage import UsageBook

__all__ = ["GatewayParts", "GatewayServicer"]


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """Components behind the RPC handlers.

    Attributes:
        gateway: answers prompts.
        batches: answers batches of prompts.
        counter: counts tokens.
        conversations: the stored conversations.
        models: the available models.
        usage: usage statistics.
    """

    gateway: ModelGateway
    batches: Batches
    counter: TokenCounter
    conversations: Conversations
    models: ModelList
    usage: UsageBook


class GatewayServicer(GatewayServiceServicer):
    """Handlers of GatewayService.

    Args:
        parts: the components behind them.
    """

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts

    async def Generate(  # noqa: N802 - the contract's name
        self, request: pb.GenerateRequest, _context: Any
    ) -> AsyncIterator[pb.GenerateResponse]:
        """Stream the answer to a prompt as the model generates it."""
        sequence = 0
        async with following(self._events(request)) as events:
            async for event in events:
                sequence += 1
                yield event_response(sequence, event)

    async def GenerateObject(  # noqa: N802 - the contract's name
        self, request: pb.GenerateObjectRequest, _context: Any
    ) -> AsyncIterator[pb.GenerateObjectResponse]:
        """Stream a growing object that is valid at the end."""
        sequence = 0
        growing = GrowingValue(object_schema(request).document)
        async with following(self._events(request)) as events:
            async for event in events:
                response = object_response(event, growing)
                if response is not None:
                    sequence += 1
                    response.sequence = sequence
                    yield response

    def _events(self, request: pb.GenerateRequest | pb.GenerateObjectRequest) -> AsyncIterator[GatewayEvent]:
        if request.conversation_id:
            return self._parts.conversations.stream(question_from_proto(request))
        if request.HasField("expected_turn_count"):
            raise refuse(".expected_turn_count", "requires a conversation; set its id, or remove this field")
        return self._parts.gateway.stream(generate_request(request))

    async def GenerateMany(  # noqa: N802 - the contract's name
        self, requests: AsyncIterator[pb.GenerateManyRequest], _context: Any
    ) -> AsyncIterator[pb.GenerateManyResponse]:
        """Answer many prompts, in any order."""
        sequence = 0
        async with following(self._parts.batches.answer(items_from_proto(requests))) as batches:
            async for results in batches:
                for response in results_to_proto(results):
                    sequence += 1
                    response.sequence = sequence
                    yield response

    async def CountTokens(  # noqa: N802 - the contract's name
        self, request: pb.CountTokensRequest, _context: Any
    ) -> pb.CountTokensResponse:
        """Count the tokens of a prompt."""
        asked = from_proto("", request)
        if request.conversation_id:
            check_turn(request.prompt)
            conversation = await self._parts.conversations.get(request.conversation_id)
            asked = await self._parts.conversations.request_for(conversation, asked)
        return count_to_proto(await self._parts.counter.count(asked))

    async def CreateConversation(  # noqa: N802 - the contract's name
        self, request: pb.CreateConversationRequest, _context: Any
    ) -> pb.CreateConversationResponse:
        """Start a conversation."""
        made = await self._parts.conversations.create(charter_from_proto(request), named(request))
        return pb.CreateConversationResponse(conversation=conversation_to_proto(made))

    async def GetConversation(  # noqa: N802 - the contract's name
        self, request: pb.GetConversationRequest, _context: Any
    ) -> pb.GetConversationResponse:
        """Return a conversation."""
        found = await self._parts.conversations.get(request.conversation_id)
        return pb.GetConversationResponse(conversation=conversation_to_proto(found))

    async def ListConversations(  # noqa: N802 - the contract's name
        self, request: pb.ListConversationsRequest, _context: Any
    ) -> pb.ListConversationsResponse:
        """List conversations."""
        return conversations_to_proto(
            await self._parts.conversations.list(request.page_size, request.page_token)
        )

    async def ListConversationTurns(  # noqa: N802 - the contract's name
        self, request: pb.ListConversationTurnsRequest, _context: Any
    ) -> pb.ListConversationTurnsResponse:
        """List the turns of a conversation."""
        return turns_to_proto(
            await self._parts.conversations.turns(
                request.conversation_id, request.page_size, request.page_token
            )
        )

    async def DeleteConversation(  # noqa: N802 - the contract's name
        self, request: pb.DeleteConversationRequest, _context: Any
    ) -> pb.DeleteConversationResponse:
        """Delete a conversation."""
        await self._parts.conversations.delete(request.conversation_id, named(request))
        return pb.DeleteConversationResponse()

    async def ForkConversation(  # noqa: N802 - the contract's name
        self, request: pb.ForkConversationRequest, _context: Any
    ) -> pb.ForkConversationResponse:
        """Start a conversation with the first turns of another."""
        count = request.turn_count if request.HasField("turn_count") else None
        fork = await self._parts.conversations.fork(request.conversation_id, count, named(request))
        return pb.ForkConversationResponse(conversation=conversation_to_proto(fork))

    async def RewindConversation(  # noqa: N802 - the contract's name
        self, request: pb.RewindConversationRequest, _context: Any
    ) -> pb.RewindConversationResponse:
        """Remove the last turns of a conversation."""
        expected = request.expected_turn_count if request.HasField("expected_turn_count") else None
        rewound = await self._parts.conversations.rewind(
            request.conversation_id, request.turn_count, expected, named(request)
        )
        return pb.RewindConversationResponse(conversation=conversation_to_proto(rewound))

    async def GetUsage(  # noqa: N802 - the contract's name
        self, request: pb.GetUsageRequest, _context: Any
    ) -> pb.GetUsageResponse:
        """Return sums of tokens and cost."""
        query = query_from_proto(request)
        return usage_page_to_proto(await self._parts.usage.page(query, request.page_size, request.page_token))

    async def ListModels(  # noqa: N802 - the contract's name
        self, request: pb.ListModelsRequest, _context: Any
    ) -> pb.ListModelsResponse:
        """List the available models."""
        return models_to_proto(
            self._parts.models.page(request.provider, request.page_size, request.page_token)
        )

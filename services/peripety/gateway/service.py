"""gRPC servicer of GatewayService."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceServicer
from peripety.core.concurrency import closing
from peripety.errors import field_error, require_field
from peripety.gateway.pb.requests import object_schema_from_proto, prompt_from_proto, request_from_proto
from peripety.gateway.pb.resources import (
    check_turn_prompt,
    config_from_proto,
    conversation_to_proto,
    conversations_to_proto,
    models_to_proto,
    pending_turn_from_proto,
    providers_to_proto,
    query_from_proto,
    request_key_from_proto,
    scripted_call_to_proto,
    turns_to_proto,
    usage_page_to_proto,
)
from peripety.gateway.pb.responses import (
    answer_event_to_proto,
    count_to_proto,
    items_from_proto,
    object_event_to_proto,
    results_to_proto,
)
from peripety.gateway.structured_output.incremental_json import GrowingValue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.batch import BatchRunner
    from peripety.gateway.calls.executor import CallExecutor
    from peripety.gateway.conversations.manager import ConversationManager
    from peripety.gateway.local_gateway import TokenCounter
    from peripety.gateway.models.catalog import ModelList
    from peripety.gateway.scripted_calls import ScriptedCallLog
    from peripety.gateway.types.response import GatewayEvent, ModelGateway
    from peripety.gateway.usage import UsageAggregator


@dataclass(frozen=True, slots=True)
class GatewayComponents:
    """Components behind the RPC handlers.

    Attributes:
        gateway: answers prompts.
        batches: answers batches of prompts.
        counter: counts tokens.
        conversations: the stored conversations.
        models: the available models.
        usage: usage statistics.
        executor: circuit breakers and rate limits.
        scripted_calls: capture log of the scripted LLM.
    """

    gateway: ModelGateway
    batches: BatchRunner
    counter: TokenCounter
    conversations: ConversationManager
    models: ModelList
    usage: UsageAggregator
    executor: CallExecutor
    scripted_calls: ScriptedCallLog


class GatewayServicer(GatewayServiceServicer):
    """Handlers of GatewayService.

    Args:
        components: the components behind them.
    """

    def __init__(self, components: GatewayComponents) -> None:
        self._components = components

    async def Generate(  # noqa: N802 - the contract's name
        self,
        request: pb.GenerateRequest,
        _context: Any,
    ) -> AsyncIterator[pb.GenerateResponse]:
        """Stream the answer to a prompt as the model generates it."""
        sequence = 0
        async with closing(self._events(request)) as events:
            async for event in events:
                sequence += 1
                yield answer_event_to_proto(sequence, event)

    async def GenerateObject(  # noqa: N802 - the contract's name
        self,
        request: pb.GenerateObjectRequest,
        _context: Any,
    ) -> AsyncIterator[pb.GenerateObjectResponse]:
        """Stream a growing object that is valid at the end."""
        sequence = 0
        growing = GrowingValue(object_schema_from_proto(request).document)
        async with closing(self._events(request)) as events:
            async for event in events:
                response = object_event_to_proto(event, growing)
                if response is not None:
                    sequence += 1
                    response.sequence = sequence
                    yield response

    def _events(self, request: pb.GenerateRequest | pb.GenerateObjectRequest) -> AsyncIterator[GatewayEvent]:
        if request.conversation_id:
            return self._components.conversations.stream(pending_turn_from_proto(request))
        if request.HasField("expected_turn_count"):
            raise field_error(
                ".expected_turn_count",
                "requires a conversation; set its id, or remove this field",
            )
        return self._components.gateway.stream(request_from_proto(request))

    async def GenerateMany(  # noqa: N802 - the contract's name
        self,
        requests: AsyncIterator[pb.GenerateManyRequest],
        _context: Any,
    ) -> AsyncIterator[pb.GenerateManyResponse]:
        """Answer many prompts, in any order."""
        sequence = 0
        async with closing(self._components.batches.run(items_from_proto(requests))) as batches:
            async for results in batches:
                for response in results_to_proto(results):
                    sequence += 1
                    response.sequence = sequence
                    yield response

    async def CountTokens(  # noqa: N802 - the contract's name
        self,
        request: pb.CountTokensRequest,
        _context: Any,
    ) -> pb.CountTokensResponse:
        """Count the tokens of a prompt."""
        asked = prompt_from_proto("", request)
        if request.conversation_id:
            check_turn_prompt(request.prompt)
            conversation = await self._components.conversations.get(request.conversation_id)
            asked = await self._components.conversations.request_for(conversation, asked)
        return count_to_proto(await self._components.counter.count(asked))

    async def CreateConversation(  # noqa: N802 - the contract's name
        self,
        request: pb.CreateConversationRequest,
        _context: Any,
    ) -> pb.CreateConversationResponse:
        """Start a conversation."""
        made = await self._components.conversations.create(
            config_from_proto(request),
            request_key_from_proto(request),
        )
        return pb.CreateConversationResponse(conversation=conversation_to_proto(made))

    async def GetConversation(  # noqa: N802 - the contract's name
        self,
        request: pb.GetConversationRequest,
        _context: Any,
    ) -> pb.GetConversationResponse:
        """Return a conversation."""
        found = await self._components.conversations.get(request.conversation_id)
        return pb.GetConversationResponse(conversation=conversation_to_proto(found))

    async def ListConversations(  # noqa: N802 - the contract's name
        self,
        request: pb.ListConversationsRequest,
        _context: Any,
    ) -> pb.ListConversationsResponse:
        """List conversations."""
        return conversations_to_proto(
            await self._components.conversations.list(request.page_size, request.page_token),
        )

    async def ListConversationTurns(  # noqa: N802 - the contract's name
        self,
        request: pb.ListConversationTurnsRequest,
        _context: Any,
    ) -> pb.ListConversationTurnsResponse:
        """List the turns of a conversation."""
        return turns_to_proto(
            await self._components.conversations.turns(
                request.conversation_id,
                request.page_size,
                request.page_token,
            ),
        )

    async def DeleteConversation(  # noqa: N802 - the contract's name
        self,
        request: pb.DeleteConversationRequest,
        _context: Any,
    ) -> pb.DeleteConversationResponse:
        """Delete a conversation."""
        await self._components.conversations.delete(request.conversation_id, request_key_from_proto(request))
        return pb.DeleteConversationResponse()

    async def ForkConversation(  # noqa: N802 - the contract's name
        self,
        request: pb.ForkConversationRequest,
        _context: Any,
    ) -> pb.ForkConversationResponse:
        """Start a conversation with the first turns of another."""
        count = request.turn_count if request.HasField("turn_count") else None
        fork = await self._components.conversations.fork(
            request.conversation_id,
            count,
            request_key_from_proto(request),
        )
        return pb.ForkConversationResponse(conversation=conversation_to_proto(fork))

    async def RewindConversation(  # noqa: N802 - the contract's name
        self,
        request: pb.RewindConversationRequest,
        _context: Any,
    ) -> pb.RewindConversationResponse:
        """Remove the last turns of a conversation."""
        expected = request.expected_turn_count if request.HasField("expected_turn_count") else None
        rewound = await self._components.conversations.rewind(
            request.conversation_id,
            request.turn_count,
            expected,
            request_key_from_proto(request),
        )
        return pb.RewindConversationResponse(conversation=conversation_to_proto(rewound))

    async def GetUsage(  # noqa: N802 - the contract's name
        self,
        request: pb.GetUsageRequest,
        _context: Any,
    ) -> pb.GetUsageResponse:
        """Return sums of tokens and cost."""
        query = query_from_proto(request)
        return usage_page_to_proto(
            await self._components.usage.page(query, request.page_size, request.page_token),
        )

    async def ListModels(  # noqa: N802 - the contract's name
        self,
        request: pb.ListModelsRequest,
        _context: Any,
    ) -> pb.ListModelsResponse:
        """List the available models."""
        return models_to_proto(
            self._components.models.page(request.provider, request.page_size, request.page_token),
        )

    async def GetProviderStatus(  # noqa: N802 - the contract's name
        self,
        _request: pb.GetProviderStatusRequest,
        _context: Any,
    ) -> pb.GetProviderStatusResponse:
        """Return circuit breakers and rate limits."""
        return providers_to_proto(await self._components.executor.read_status())

    async def WatchScriptedCalls(  # noqa: N802 - the contract's name
        self,
        request: pb.WatchScriptedCallsRequest,
        _context: Any,
    ) -> AsyncIterator[pb.WatchScriptedCallsResponse]:
        """Stream the captured calls of the scripted LLM."""
        require_field(request.after_sequence >= 0, ".after_sequence", "must not be negative")
        require_field(request.max_recorded >= 0, ".max_recorded", "must not be negative")
        calls = self._components.scripted_calls.follow(request.after_sequence, request.max_recorded)
        async with closing(calls) as events:
            async for call in events:
                yield scripted_call_to_proto(call)

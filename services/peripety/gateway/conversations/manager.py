"""Stored conversations: create, continue, fork, rewind."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.core.concurrency import closing, shield_until_done
from peripety.core.validation import Page, PagePosition, decode_page_token, make_page, resolve_page_size
from peripety.errors import FailedPreconditionError, PeripetyError
from peripety.gateway.conversations.conversation import (
    ConversationTurn,
    StoredConversation,
    conversation_busy_error,
    estimate_turn_size,
    first_turn_index,
)
from peripety.gateway.conversations.store import stale_turn_error
from peripety.gateway.request_checks import check_tools
from peripety.gateway.structured_output.validator import usage_until
from peripety.gateway.token_estimate import estimate_fixed_tokens
from peripety.gateway.types.response import Completed, UsageTotal, replay_completion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.core.idempotency.store import RequestKey
    from peripety.gateway.conversations.conversation import (
        ConversationConfig,
        IdempotentResult,
        PendingTurn,
        StoredTurn,
    )
    from peripety.gateway.conversations.store import ConversationStore
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import Completion, GatewayEvent, ModelGateway


class ConversationManager:
    """Manager of the stored conversations of a gateway.

    Args:
        gateway: answers the turns.
        store: the tables of conversations.
        context_tokens: returns the context window for a request's model; 0 if unknown.
        now: clock, in microseconds since 1970.
    """

    def __init__(
        self,
        gateway: ModelGateway,
        store: ConversationStore,
        context_tokens: Callable[[GenerateRequest], int],
        now: Callable[[], int],
    ) -> None:
        self._gateway = gateway
        self._store = store
        self._context_tokens = context_tokens
        self._now = now
        self._busy: set[str] = set()

    async def create(self, config: ConversationConfig, request: RequestKey) -> StoredConversation:
        """Create a conversation. Idempotent: a repeated request returns the same one.

        Raises:
            InvalidArgumentError: its tools are invalid.
        """
        check_tools(config.tools, None)
        now = self._now()
        return await self._store.create(StoredConversation(_new_id(), config, now, now), request)

    async def get(self, conversation_id: str) -> StoredConversation:
        """Return a conversation.

        Raises:
            NotFoundError: it does not exist; also raised by the other methods.
        """
        return await self._store.get(conversation_id)

    async def list(self, asked_size: int, token: str) -> Page[StoredConversation]:
        """Return a page of conversations, newest first."""
        size = resolve_page_size(asked_size)
        found = await self._store.list_newest(decode_page_token(token, has_name=True), size + 1)
        return make_page(found, size, lambda one: PagePosition(one.created, one.conversation_id))

    async def turns(self, conversation_id: str, asked_size: int, token: str) -> Page[StoredTurn]:
        """Return a page of the turns of a conversation, oldest first."""
        size, after = resolve_page_size(asked_size), decode_page_token(token)
        await self._store.get(conversation_id)
        found = await self._store.turns(conversation_id, after.number if after else 0, size + 1)
        return make_page(found, size, lambda turn: PagePosition(turn.number))

    async def turn(self, conversation_id: str, number: int) -> StoredTurn | None:
        """Return a turn of a conversation; None if the conversation is shorter."""
        found = await self._store.turns(conversation_id, number - 1, 1)
        return found[0] if found else None

    async def fork(
        self,
        conversation_id: str,
        turn_count: int | None,
        request: RequestKey,
    ) -> StoredConversation:
        """Create a conversation with the first turns of another, by default all of them."""
        return await self._store.fork(conversation_id, _new_id(), turn_count, request)

    async def rewind(
        self,
        conversation_id: str,
        turn_count: int,
        expected_turn_count: int | None,
        request: RequestKey,
    ) -> StoredConversation:
        """Remove the last turns, so that `turn_count` remain."""
        return await self._store.rewind(conversation_id, turn_count, expected_turn_count, request)

    async def delete(self, conversation_id: str, request: RequestKey) -> None:
        """Delete a conversation with its turns; its forks are not affected."""
        await self._store.delete(conversation_id, request)

    async def stream(self, pending: PendingTurn) -> AsyncIterator[GatewayEvent]:
        """Continue a conversation and stream the answer.

        The turn is stored if the answer is complete and valid.

        Idempotent: if the request already became a turn, that answer is replayed without a model call.

        Yields:
            The events of `ModelGateway.stream`; the completion has the number of the new turn.

        Raises:
            ConflictError: another turn is in progress, or the conversation does not have the expected length.
            PeripetyError: any error of `ModelGateway.stream`; no turn is stored then.
        """
        conversation = await self._store.get(pending.conversation_id)
        # This order matters: if the same request commits a turn in between, this conversation is stale.
        done = await self._store.find_by_request(pending.request_key)
        if done is not None:
            for event in replay_completion(await self._replay_answer(done)):
                yield event
            return
        if pending.conversation_id in self._busy:
            raise conversation_busy_error()
        self._busy.add(pending.conversation_id)
        try:
            async with closing(self._stream_turn(pending, conversation)) as events:
                async for event in events:
                    yield event
        finally:
            self._busy.discard(pending.conversation_id)

    async def _replay_answer(self, result: IdempotentResult) -> Completion:
        found = await self.turn(result.conversation_id, result.turn) if result.turn else None
        if found is None:
            raise FailedPreconditionError(
                "request_id: belongs to a turn that was rewound; use a new id for each request",
                code="TURN_REWOUND",
            )
        return found.turn.completion

    async def _stream_turn(
        self,
        pending: PendingTurn,
        conversation: StoredConversation,
    ) -> AsyncIterator[GatewayEvent]:
        if pending.expected_turn_count not in {None, conversation.turn_count}:
            raise stale_turn_error(conversation.conversation_id, conversation.turn_count)
        request = await self.request_for(conversation, pending.request)
        try:
            async with closing(self._gateway.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Completed):
                        yield Completed(await self._store_turn(pending, conversation, event.completion))
                    else:
                        yield event
        except PeripetyError as error:
            used = usage_until(error)
            if used is not None:
                await shield_until_done(self._store.add_usage(pending.conversation_id, used))
            raise

    async def request_for(
        self,
        conversation: StoredConversation,
        request: GenerateRequest,
    ) -> GenerateRequest:
        """Return the request for the next turn: the fixed parts, the history window and the new messages.

        Raises:
            FailedPreconditionError: the history is full, and its policy forbids truncation.
        """
        charter = conversation.charter
        sizes = await self._store.turn_sizes(conversation.conversation_id)
        first = first_turn_index(
            [*sizes, estimate_turn_size(request.messages)],
            charter.history,
            fixed_tokens=estimate_fixed_tokens(charter.system, charter.tools),
            context_tokens=self._context_tokens(request),
        )
        history = await self._store.turns(conversation.conversation_id, first)
        return replace(
            request,
            system=charter.system or None,
            tools=charter.tools,
            messages=(*(said for kept in history for said in kept.turn.messages), *request.messages),
            conversation_id=conversation.conversation_id,
            conversation_budget=charter.budget,
        )

    async def _store_turn(
        self,
        pending: PendingTurn,
        conversation: StoredConversation,
        completion: Completion,
    ) -> Completion:
        completion = replace(completion, conversation_turn=conversation.turn_count + 1)
        turn = ConversationTurn(pending.request.messages, completion)
        # The answer is already paid for: it is stored even if the client disconnects now.
        await shield_until_done(
            self._store.commit(
                conversation,
                turn,
                UsageTotal.from_completion(completion),
                pending.request_key,
            ),
        )
        return completion


def _new_id() -> str:
    return str(uuid.uuid4())

"""Stored conversations: create, continue, fork, rewind."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.errors import InvalidArgumentError, PeripetyError
from peripety.gateway.checks import check_tools
from peripety.gateway.conversations.conversation import Turn, under_way
from peripety.gateway.conversations.model import StoredConversation, size_of
from peripety.gateway.conversations.store import stale
from peripety.gateway.conversations.window import first_sent
from peripety.gateway.model import Completed, Spent
from peripety.gateway.model.replay import told_again
from peripety.gateway.objects.structured import used_until
from peripety.gateway.sizes import fixed_tokens
from peripety.gateway.streams import following
from peripety.pages import Page, Position, page_of, page_size, position_in
from peripety.tasks import finish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.durable.requests import Request
    from peripety.gateway.conversations.model import Charter, CommittedTurn, Done, Question
    from peripety.gateway.conversations.store import ConversationStore
    from peripety.gateway.model import Completion, GatewayEvent, GenerateRequest, ModelGateway

__all__ = ["Conversations"]


class Conversations:
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

    async def create(self, charter: Charter, request: Request) -> StoredConversation:
        """Create a conversation. Idempotent: a repeated request returns the same one.

        Raises:
            InvalidArgumentError: its tools are invalid.
        """
        check_tools(charter.tools, None)
        now = self._now()
        return await self._store.create(StoredConversation(_new_id(), charter, now, now), request)

    async def get(self, conversation_id: str) -> StoredConversation:
        """Return a conversation.

        Raises:
            NotFoundError: it does not exist; also raised by the other methods.
        """
        return await self._store.get(conversation_id)

    async def list(self, asked_size: int, token: str) -> Page[StoredConversation]:
        """Return a page of conversations, newest first."""
        size = page_size(asked_size)
        found = await self._store.newest(position_in(token, named=True), size + 1)
        return page_of(found, size, lambda one: Position(one.created, one.conversation_id))

    async def turns(self, conversation_id: str, asked_size: int, token: str) -> Page[CommittedTurn]:
        """Return a page of the turns of a conversation, oldest first."""
        size, after = page_size(asked_size), position_in(token)
        await self._store.get(conversation_id)
        found = await self._store.turns(conversation_id, after.number if after else 0, size + 1)
        return page_of(found, size, lambda turn: Position(turn.number))

    async def turn(self, conversation_id: str, number: int) -> CommittedTurn | None:
        """Return a turn of a conversation; None if the conversation is shorter."""
        found = await self._store.turns(conversation_id, number - 1, 1)
        return found[0] if found else None

    async def fork(
        self, conversation_id: str, turn_count: int | None, request: Request
    ) -> StoredConversation:
        """Create a conversation with the first turns of another, by default all of them."""
        return await self._store.fork(conversation_id, _new_id(), turn_count, request)

    async def rewind(
        self, conversation_id: str, turn_count: int, expected: int | None, request: Request
    ) -> StoredConversation:
        """Remove the last turns, so that `turn_count` remain."""
        return await self._store.rewind(conversation_id, turn_count, expected, request)

    async def delete(self, conversation_id: str, request: Request) -> None:
        """Delete a conversation with its turns; its forks are not affected."""
        await self._store.delete(conversation_id, request)

    async def stream(self, question: Question) -> AsyncIterator[GatewayEvent]:
        """Continue a conversation and stream the answer.

        The turn is stored if the answer is complete and valid.

        Idempotent: if the request already became a turn, that answer is replayed without a model call.

        Yields:
            The events of `ModelGateway.stream`; the completion has the number of the new turn.

        Raises:
            ConflictError: another turn is in progress, or the conversation does not have the expected length.
            PeripetyError: any error of `ModelGateway.stream`; no turn is stored then.
        """
        conversation = await self._store.get(question.conversation_id)
        # This order matters: if the same request commits a turn in between, this conversation is stale.
        done = await self._store.done_by(question.named)
        if done is not None:
            for event in told_again(await self._answer(done)):
                yield event
            return
        if question.conversation_id in self._busy:
            raise under_way()
        self._busy.add(question.conversation_id)
        try:
            async with following(self._ask(question, conversation)) as events:
                async for event in events:
                    yield event
        finally:
            self._busy.discard(question.conversation_id)

    async def _answer(self, done: Done) -> Completion:
        found = await self.turn(done.conversation_id, done.turn) if done.turn else None
        if found is None:
            raise InvalidArgumentError(
                ".request_id: belongs to a turn that was rewound; use a new id for each request",
                code="TURN_REWOUND",
            )
        return found.turn.completion

    async def _ask(self, question: Question, conversation: StoredConversation) -> AsyncIterator[GatewayEvent]:
        if question.expected_turn_count not in {None, conversation.turn_count}:
            raise stale(conversation.conversation_id, conversation.turn_count)
        request = await self.request_for(conversation, question.request)
        try:
            async with following(self._gateway.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Completed):
                        yield Completed(await self._kept(question, conversation, event.completion))
                    else:
                        yield event
        except PeripetyError as error:
            used = used_until(error)
            if used is not None:
                await finish(self._store.spend(question.conversation_id, used))
            raise

    async def request_for(
        self, conversation: StoredConversation, request: GenerateRequest
    ) -> GenerateRequest:
        """Return the request for the next turn: the fixed parts, the history window and the new messages.

        Raises:
            FailedPreconditionError: the history is full, and its policy forbids truncation.
        """
        charter = conversation.charter
        sizes = await self._store.sizes(conversation.conversation_id)
        first = first_sent(
            [*sizes, size_of(request.messages)],
            charter.history,
            fixed_tokens=fixed_tokens(charter.system, charter.tools),
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

    async def _kept(
        self, question: Question, conversation: StoredConversation, completion: Completion
    ) -> Completion:
        completion = replace(completion, conversation_turn=conversation.turn_count + 1)
        turn = Turn(question.request.messages, completion)
        # The answer is already paid for: it is stored even if the client disconnects now.
        await finish(self._store.commit(conversation, turn, Spent.on(completion), question.named))
        return completion


def _new_id() -> str:
    return str(uuid.uuid4())

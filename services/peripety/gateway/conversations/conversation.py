"""A conversation as an append-only ledger: a turn is kept only when its answer was accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.errors import ConflictError
from peripety.gateway.history import never_empty
from peripety.gateway.model import (
    ChatMessage,
    Completed,
    Completion,
    GatewayEvent,
    GenerateRequest,
    ModelGateway,
    Options,
    ResponseSchema,
)
from peripety.gateway.model.replay import completion_of
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

__all__ = ["Conversation", "Turn", "under_way"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One kept exchange.

    Attributes:
        said: what the user said, with the results of tools.
        completion: the answer that was accepted: valid, or to an advisory schema.
    """

    said: tuple[ChatMessage, ...]
    completion: Completion

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The exchange as the model sees it."""
        return (*self.said, never_empty(self.completion.message))


class Conversation:
    """Several turns with one model, held by whoever has them.

    The system text and the turns before are sent unchanged every time, so a provider's prompt cache keeps
    matching. A repair that was needed inside a turn is not part of the history: only the good answer is.

    Args:
        gateway: answers.
        system: the instructions, for good.
        options: how to generate, where a turn says nothing else.
        turns: earlier turns to go on from.
    """

    def __init__(
        self,
        gateway: ModelGateway,
        system: str | None,
        *,
        options: Options = Options(),  # noqa: B008 - frozen
        turns: Sequence[Turn] = (),
    ) -> None:
        self._gateway = gateway
        self._options = options
        self._turns = list(turns)
        self._busy = False
        self.system = system

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns that were kept, oldest first."""
        return tuple(self._turns)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The messages of all turns, oldest first."""
        return tuple(message for turn in self._turns for message in turn.messages)

    async def stream(
        self,
        text: str,
        *,
        schema: ResponseSchema | None = None,
        options: Options = Options(),  # noqa: B008 - frozen
    ) -> AsyncIterator[GatewayEvent]:
        """Say `text` and follow the answer; the turn is kept when the answer is complete and was accepted.

        Args:
            text: what the user says.
            schema: what the answer has to satisfy.
            options: how to generate, before what the conversation has.

        Raises:
            ConflictError: another turn of this conversation is under way.
            PeripetyError: what `ModelGateway.stream` raises; the conversation is then as it was.
        """
        if self._busy:
            raise under_way()
        user = ChatMessage.user(text)
        request = GenerateRequest(
            system=self.system,
            messages=(*self.messages, user),
            schema=schema,
            **(self._options.set_fields() | options.set_fields()),
        )
        self._busy = True
        try:
            async with following(self._gateway.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Completed):
                        self._turns.append(Turn((user,), event.completion))
                    yield event
        finally:
            self._busy = False

    async def send(
        self,
        text: str,
        *,
        schema: ResponseSchema | None = None,
        options: Options = Options(),  # noqa: B008 - frozen
    ) -> Completion:
        """Say `text` and wait for the whole answer; see `stream`."""
        return await completion_of(self.stream(text, schema=schema, options=options))


def under_way() -> ConflictError:
    """The error of a turn that comes while another one waits for its answer."""
    return ConflictError("This conversation is waiting for an answer; wait too", code="TURN_UNDER_WAY")

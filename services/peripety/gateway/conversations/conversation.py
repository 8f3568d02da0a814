"""Conversation in memory: an append-only list of turns; a turn is added only if its answer was accepted."""

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
    """One completed exchange.

    Attributes:
        said: the user message, with tool results.
        completion: the accepted answer: valid, or with findings under an advisory schema.
    """

    said: tuple[ChatMessage, ...]
    completion: Completion

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """Return the exchange as messages."""
        return (*self.said, never_empty(self.completion.message))


class Conversation:
    """Conversation with one model, held in memory.

    The system text and earlier turns are sent unchanged every time, so the provider's prompt cache matches. A
    repair within a turn is not part of the history: only the valid answer is.

    Args:
        gateway: the model gateway.
        system: the instructions, fixed.
        options: generation options; a turn can override them.
        turns: earlier turns.
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
        """Return the completed turns, oldest first."""
        return tuple(self._turns)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """Return the messages of all turns, oldest first."""
        return tuple(message for turn in self._turns for message in turn.messages)

    async def stream(
        self,
        text: str,
        *,
        schema: ResponseSchema | None = None,
        options: Options = Options(),  # noqa: B008 - frozen
    ) -> AsyncIterator[GatewayEvent]:
        """Send `text` and stream the answer; the turn is added once the answer is complete and accepted.

        Args:
            text: the user message.
            schema: the schema of the answer.
            options: generation options, with precedence over those of the conversation.

        Raises:
            ConflictError: another turn of this conversation is in progress.
            PeripetyError: any error of `ModelGateway.stream`; the conversation is then unchanged.
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
        """Send `text` and return the whole answer; see `stream`."""
        return await completion_of(self.stream(text, schema=schema, options=options))


def under_way() -> ConflictError:
    """Return the error of a turn that starts while another one is in progress."""
    return ConflictError(
        "conversation busy: another turn is in progress; retry after it", code="TURN_UNDER_WAY"
    )

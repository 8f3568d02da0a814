"""Types of stored conversations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.gateway.conversations.window import HistoryPolicy, TurnSize
from peripety.gateway.model import Budget, Spent, Tool, ToolResult
from peripety.gateway.sizes import message_tokens

if TYPE_CHECKING:
    from peripety.durable.requests import Request
    from peripety.gateway.conversations.conversation import Turn
    from peripety.gateway.model import ChatMessage, GenerateRequest

__all__ = [
    "Charter",
    "CommittedTurn",
    "Done",
    "Question",
    "Spent",
    "StoredConversation",
    "size_of",
]


@dataclass(frozen=True, slots=True)
class Charter:
    """Immutable configuration of a conversation.

    Attributes:
        system: the instructions; empty for none.
        tools: the tools that the model may call.
        history: the part of the history that is sent to the model.
        budget: the maximum usage over its life; None means no cap.
    """

    system: str = ""
    tools: tuple[Tool, ...] = ()
    history: HistoryPolicy = field(default_factory=HistoryPolicy)
    budget: Budget | None = None


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation, without its turns.

    Attributes:
        conversation_id: its id.
        charter: the immutable configuration.
        turn_count: number of turns.
        parent_id: the conversation that it was forked from; None for none.
        parent_turn_count: number of turns shared with the parent.
        spent: usage of all turns, including rewound ones.
        created: creation time, in microseconds since 1970.
        updated: time of the last commit or rewind.
    """

    conversation_id: str
    charter: Charter
    created: int
    updated: int
    turn_count: int = 0
    parent_id: str | None = None
    parent_turn_count: int = 0
    spent: Spent = field(default_factory=Spent)


@dataclass(frozen=True, slots=True)
class CommittedTurn:
    """A turn of a stored conversation.

    Attributes:
        number: turn number, from 1.
        turn: the exchange.
        committed: commit time, in microseconds since 1970.
    """

    number: int
    turn: Turn
    committed: int


@dataclass(frozen=True, slots=True)
class Done:
    """Effect of an earlier request, for idempotency.

    Attributes:
        conversation_id: the conversation that the request created or changed.
        turn: the turn that it became; 0 if that was rewound, and for other requests.
    """

    conversation_id: str
    turn: int


@dataclass(frozen=True, slots=True)
class Question:
    """The next turn of a conversation, as requested.

    Attributes:
        conversation_id: the conversation.
        named: the idempotency key; a repeated request returns the turn that it became.
        request: the new messages and options; without system text and tools.
        expected_turn_count: the required current length; None for no check.
    """

    conversation_id: str
    named: Request
    request: GenerateRequest
    expected_turn_count: int | None = None


def size_of(said: tuple[ChatMessage, ...], answer: ChatMessage | None = None) -> TurnSize:
    """Return the estimated prompt size of a turn."""
    first = said[0].parts[:1] if said else ()
    return TurnSize(
        sum(map(message_tokens, said)),
        0 if answer is None else message_tokens(answer),
        may_be_first=not any(isinstance(part, ToolResult) for part in first),
    )

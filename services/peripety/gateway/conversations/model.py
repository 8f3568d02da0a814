"""Conversations as they are stored."""

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
    """What of a conversation never changes.

    Attributes:
        system: the instructions; empty for none.
        tools: the tools that the model may call.
        history: how much of it is sent to the model.
        budget: the most that it may use over its life; None is no cap.
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
        charter: what of it never changes.
        turn_count: how many turns it has.
        parent_id: the conversation that it was forked from; None for none.
        parent_turn_count: how many turns it shares with that one.
        spent: what all its turns used, those too that were taken back.
        created: when, in microseconds since 1970.
        updated: when its last turn was committed, or when it was rewound.
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
        number: from 1.
        turn: what was said.
        committed: when, in microseconds since 1970.
    """

    number: int
    turn: Turn
    committed: int


@dataclass(frozen=True, slots=True)
class Done:
    """What a request has done.

    Attributes:
        conversation_id: the conversation that it made or changed.
        turn: the turn that it became; 0 when that was taken back, and for other requests.
    """

    conversation_id: str
    turn: int


@dataclass(frozen=True, slots=True)
class Question:
    """The next turn of a conversation, as it is asked for.

    Attributes:
        conversation_id: the conversation.
        named: the request; the same one again returns the turn that it has become.
        request: what is asked: the new messages, and how to answer; without system text and tools.
        expected_turn_count: how many turns the conversation must have now; None to not check.
    """

    conversation_id: str
    named: Request
    request: GenerateRequest
    expected_turn_count: int | None = None


def size_of(said: tuple[ChatMessage, ...], answer: ChatMessage | None = None) -> TurnSize:
    """What a turn takes of a prompt."""
    first = said[0].parts[:1] if said else ()
    return TurnSize(
        sum(map(message_tokens, said)),
        0 if answer is None else message_tokens(answer),
        may_be_first=not any(isinstance(part, ToolResult) for part in first),
    )

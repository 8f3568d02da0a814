"""Protobuf codec of stored conversations."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.durable.requests import Request
from peripety.gateway.conversations.model import Charter, Question
from peripety.gateway.conversations.window import HistoryPolicy, HistoryStrategy
from peripety.gateway.messages.answers import completion_to_proto, spent_to_proto
from peripety.gateway.messages.parts import message_to_proto, tool_from_proto, tool_to_proto
from peripety.gateway.messages.requests import (
    budget_from_proto,
    budget_to_proto,
    generate_request,
)
from peripety.requests import check_request_id, refuse

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from peripety.gateway.conversations.model import CommittedTurn, StoredConversation
    from peripety.pages import Page

__all__ = [
    "charter_from_proto",
    "check_turn",
    "conversation_to_proto",
    "conversations_to_proto",
    "history_from_proto",
    "history_to_proto",
    "named",
    "question_from_proto",
    "time_to_proto",
    "turns_to_proto",
]

_STRATEGIES = {
    pb.HISTORY_STRATEGY_UNSPECIFIED: HistoryStrategy.COMPACT,
    **{pb.HistoryStrategy.Value(f"HISTORY_STRATEGY_{one.name}"): one for one in HistoryStrategy},
}


class Changing(Protocol):
    """A message that requests a change, with a request id."""

    DESCRIPTOR: Descriptor
    request_id: str

    def SerializeToString(self, *, deterministic: bool = ...) -> bytes:  # noqa: N802 - protobuf's name
        """Return the message as bytes."""


def named(request: Changing) -> Request:
    """Return the idempotency key of a request.

    Raises:
        InvalidArgumentError: its id is not a UUID.
    """
    check_request_id(request.request_id)
    # Fork and delete requests can have the same bytes; the message type distinguishes them.
    kind, wanted = request.DESCRIPTOR.full_name, request.SerializeToString(deterministic=True)
    return Request(request.request_id, sha256(kind.encode() + b"\0" + wanted).hexdigest())


def charter_from_proto(request: pb.CreateConversationRequest) -> Charter:
    """Convert the immutable configuration of a conversation from protobuf.

    Raises:
        InvalidArgumentError: a field is wrong.
    """
    if request.budget.HasField("max_time"):
        raise refuse(".budget.max_time", "is only valid for single requests; remove it")
    return Charter(
        system=request.system,
        tools=tuple(tool_from_proto(f".tools[{index}]", tool) for index, tool in enumerate(request.tools)),
        history=history_from_proto(".history", request.history),
        budget=budget_from_proto(".budget", request.budget) if request.HasField("budget") else None,
    )


def history_from_proto(field: str, history: pb.HistoryPolicy) -> HistoryPolicy:
    """Convert a history policy from protobuf.

    Raises:
        InvalidArgumentError: a limit is negative, or the strategy is not in the contract.
    """
    if history.strategy not in _STRATEGIES:
        raise refuse(f"{field}.strategy", "must be a known strategy")
    for name in ("max_turns", "max_input_tokens"):
        if getattr(history, name) < 0:
            raise refuse(f"{field}.{name}", "must be 0 (no separate limit) or more")
    return HistoryPolicy(_STRATEGIES[history.strategy], history.max_turns, history.max_input_tokens)


def history_to_proto(history: HistoryPolicy) -> pb.HistoryPolicy:
    """Convert a history policy to protobuf."""
    return pb.HistoryPolicy(
        strategy=pb.HistoryStrategy.Value(f"HISTORY_STRATEGY_{history.strategy.name}"),
        max_turns=history.max_turns,
        max_input_tokens=history.max_input_tokens,
    )


def check_turn(prompt: pb.Prompt) -> None:
    """Reject a prompt that sets what its conversation already fixes.

    Raises:
        InvalidArgumentError: it has a system text, tools, or an answer.
    """
    for name in ("system", "tools"):
        if getattr(prompt, name):
            raise refuse(f".prompt.{name}", "must be empty: the conversation defines it")
    for index, message in enumerate(prompt.messages):
        if message.role == pb.CHAT_ROLE_ASSISTANT:
            raise refuse(
                f".prompt.messages[{index}].role",
                "must not be CHAT_ROLE_ASSISTANT: the conversation already contains its answers",
            )


def question_from_proto(request: pb.GenerateRequest | pb.GenerateObjectRequest) -> Question:
    """Convert the next turn of a conversation from protobuf.

    Raises:
        InvalidArgumentError: a field is wrong, or belongs to the conversation and not to its turns.
    """
    check_turn(request.prompt)
    return Question(
        conversation_id=request.conversation_id,
        named=named(request),
        request=generate_request(request),
        expected_turn_count=request.expected_turn_count if request.HasField("expected_turn_count") else None,
    )


def conversations_to_proto(page: Page[StoredConversation]) -> pb.ListConversationsResponse:
    """Convert a page of conversations to protobuf."""
    return pb.ListConversationsResponse(
        conversations=map(conversation_to_proto, page.items), next_page_token=page.next_page_token
    )


def conversation_to_proto(conversation: StoredConversation) -> pb.Conversation:
    """Convert a conversation, without its turns, to protobuf."""
    charter = conversation.charter
    return pb.Conversation(
        conversation_id=conversation.conversation_id,
        system=charter.system,
        tools=map(tool_to_proto, charter.tools),
        turn_count=conversation.turn_count,
        history=history_to_proto(charter.history),
        parent_conversation_id=conversation.parent_id or "",
        parent_turn_count=conversation.parent_turn_count,
        usage=spent_to_proto(conversation.spent),
        budget=None if charter.budget is None else budget_to_proto(charter.budget),
        create_time=time_to_proto(conversation.created),
        update_time=time_to_proto(conversation.updated),
    )


def turns_to_proto(page: Page[CommittedTurn]) -> pb.ListConversationTurnsResponse:
    """Convert a page of turns to protobuf."""
    turns = [
        pb.ConversationTurn(
            turn=turn.number,
            messages=map(message_to_proto, turn.turn.said),
            completion=completion_to_proto(turn.turn.completion),
            commit_time=time_to_proto(turn.committed),
        )
        for turn in page.items
    ]
    return pb.ListConversationTurnsResponse(turns=turns, next_page_token=page.next_page_token)


def time_to_proto(microseconds: int) -> Timestamp:
    """Convert microseconds since 1970 to a protobuf timestamp."""
    timestamp = Timestamp()
    timestamp.FromMicroseconds(microseconds)
    return timestamp

"""Conversations: an append-only list of turns in memory, their stored form, and the history window.

A turn is added only if its answer was accepted.

The window is the part of a history that is sent to a model. A prompt cache needs a stable prefix. A history
that has grown too long is therefore cut rarely and far: to half of its limit. A sliding window would
rewrite the whole cache at every turn.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import asdict, dataclass, field
from enum import Enum
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import closing
from peripety.errors import ConflictError, FailedPreconditionError
from peripety.gateway.codec import (
    decode_completion,
    decode_message,
    decode_tool,
    encode_completion,
    encode_message,
    encode_tool,
    to_json_text,
)
from peripety.gateway.message_normalization import replace_empty_answer
from peripety.gateway.token_estimate import estimate_message_tokens
from peripety.gateway.types.message import ChatMessage, Tool, ToolResult
from peripety.gateway.types.request import Budget, GenerateRequest, GenerationOptions, ResponseSchema
from peripety.gateway.types.response import (
    Completed,
    Completion,
    GatewayEvent,
    ModelGateway,
    Usage,
    UsageTotal,
    collect_completion,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from peripety.core.idempotency.store import RequestKey


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One completed exchange.

    Attributes:
        user_messages: the user message, with tool results.
        completion: the accepted answer: valid, or with findings under an advisory schema.
    """

    user_messages: tuple[ChatMessage, ...]
    completion: Completion

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """Return the exchange as messages."""
        return (*self.user_messages, replace_empty_answer(self.completion.message))


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
        options: GenerationOptions = GenerationOptions(),  # noqa: B008 - frozen
        turns: Sequence[ConversationTurn] = (),
    ) -> None:
        self._gateway = gateway
        self._options = options
        self._turns = list(turns)
        self._busy = False
        self.system = system

    @property
    def turns(self) -> tuple[ConversationTurn, ...]:
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
        options: GenerationOptions = GenerationOptions(),  # noqa: B008 - frozen
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
            raise conversation_busy_error()
        user = ChatMessage.user(text)
        request = GenerateRequest(
            system=self.system,
            messages=(*self.messages, user),
            schema=schema,
            **(self._options.set_fields() | options.set_fields()),
        )
        self._busy = True
        try:
            async with closing(self._gateway.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Completed):
                        self._turns.append(ConversationTurn((user,), event.completion))
                    yield event
        finally:
            self._busy = False

    async def send(
        self,
        text: str,
        *,
        schema: ResponseSchema | None = None,
        options: GenerationOptions = GenerationOptions(),  # noqa: B008 - frozen
    ) -> Completion:
        """Send `text` and return the whole answer; see `stream`."""
        return await collect_completion(self.stream(text, schema=schema, options=options))


def conversation_busy_error() -> ConflictError:
    """Return the error of a turn that starts while another one is in progress."""
    return ConflictError(
        "conversation busy: another turn is in progress; retry after it",
        code="TURN_UNDER_WAY",
    )


class HistoryStrategy(Enum):
    """Policy for a history that has grown too long."""

    COMPACT = "compact"
    """Cut to half the limit at once, rarely."""
    SLIDING_WINDOW = "sliding_window"
    """Drop the oldest turns at every new turn."""
    REFUSE = "refuse"
    """Reject further turns."""


@dataclass(frozen=True, slots=True)
class HistoryPolicy:
    """Limits of the history window; the stored history is not affected.

    Attributes:
        strategy: what to do at the limit.
        max_turns: the maximum number of earlier turns sent; 0 for no limit.
        max_input_tokens: the maximum estimated tokens sent; 0 uses the model's context window.
    """

    strategy: HistoryStrategy = HistoryStrategy.COMPACT
    max_turns: int = 0
    max_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TurnSize:
    """Estimated prompt size of a turn.

    Attributes:
        user_tokens: tokens of the user message.
        answer_tokens: tokens of the answer.
        may_be_first: whether a prompt may start with this turn; False if it starts with tool results.
    """

    user_tokens: int
    answer_tokens: int = 0
    may_be_first: bool = True


def first_turn_index(
    turns: Sequence[TurnSize],
    policy: HistoryPolicy,
    *,
    fixed_tokens: int = 0,
    context_tokens: int = 0,
) -> int:
    """Return the index of the first turn to send.

    Deterministic in the history alone: each past turn is evaluated as it was when requested, so a growing
    history is always cut at the same places. The work grows linearly with the number of turns.

    Args:
        turns: oldest first; the last one is the new turn.
        policy: the limits.
        fixed_tokens: tokens of the system text and the tools.
        context_tokens: the context window of the model; 0 if unknown.

    Raises:
        FailedPreconditionError: the history is full, and the policy forbids truncation.
    """
    limits = _Limits(policy.max_turns, policy.max_input_tokens or context_tokens)
    goal = limits.halved() if policy.strategy is HistoryStrategy.COMPACT else limits
    before = [0, *accumulate(turn.user_tokens + turn.answer_tokens for turn in turns)]
    cuts = deque(index for index, turn in enumerate(turns) if index and turn.may_be_first)
    first = 0

    def fits(limits: _Limits, index: int) -> bool:
        tokens = fixed_tokens + before[index] - before[first] + turns[index].user_tokens
        return limits.are_met(index - first, tokens)

    for index in range(len(turns)):
        if fits(limits, index):
            continue
        if policy.strategy is HistoryStrategy.REFUSE:
            raise _history_full_error()
        while cuts and cuts[0] <= index:
            first = cuts.popleft()
            if fits(goal, index):
                break
    return first


@dataclass(frozen=True, slots=True)
class _Limits:
    turns: int
    tokens: int

    def halved(self) -> _Limits:
        return _Limits(-(-self.turns // 2), -(-self.tokens // 2))

    def are_met(self, turns: int, tokens: int) -> bool:
        return (not self.turns or turns <= self.turns) and (not self.tokens or tokens <= self.tokens)


def _history_full_error() -> FailedPreconditionError:
    return FailedPreconditionError(
        "conversation history is full; start a new conversation, rewind it, or fork its first turns",
        code="HISTORY_FULL",
    )


@dataclass(frozen=True, slots=True)
class ConversationConfig:
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
    charter: ConversationConfig
    created: int
    updated: int
    turn_count: int = 0
    parent_id: str | None = None
    parent_turn_count: int = 0
    spent: UsageTotal = field(default_factory=UsageTotal)


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn of a stored conversation.

    Attributes:
        number: turn number, from 1.
        turn: the exchange.
        committed: commit time, in microseconds since 1970.
    """

    number: int
    turn: ConversationTurn
    committed: int


@dataclass(frozen=True, slots=True)
class IdempotentResult:
    """Effect of an earlier request, for idempotency.

    Attributes:
        conversation_id: the conversation that the request created or changed.
        turn: the turn that it became; 0 if that was rewound, and for other requests.
    """

    conversation_id: str
    turn: int


@dataclass(frozen=True, slots=True)
class PendingTurn:
    """The next turn of a conversation, as requested.

    Attributes:
        conversation_id: the conversation.
        request_key: the idempotency key; a repeated request returns the turn that it became.
        request: the new messages and options; without system text and tools.
        expected_turn_count: the required current length; None for no check.
    """

    conversation_id: str
    request_key: RequestKey
    request: GenerateRequest
    expected_turn_count: int | None = None


def estimate_turn_size(user_messages: tuple[ChatMessage, ...], answer: ChatMessage | None = None) -> TurnSize:
    """Return the estimated prompt size of a turn."""
    first = user_messages[0].parts[:1] if user_messages else ()
    return TurnSize(
        sum(map(estimate_message_tokens, user_messages)),
        0 if answer is None else estimate_message_tokens(answer),
        may_be_first=not any(isinstance(part, ToolResult) for part in first),
    )


def encode_config(config: ConversationConfig) -> str:
    """Encode the immutable configuration of a conversation."""
    return to_json_text(
        {
            "system": config.system,
            "tools": [encode_tool(tool) for tool in config.tools],
            "history": encode_history_policy(config.history),
            "budget": None if config.budget is None else asdict(config.budget),
        },
    )


def decode_config(text: str) -> ConversationConfig:
    """Decode a configuration; inverse of `encode_config`."""
    written = json.loads(text)
    return ConversationConfig(
        system=written["system"],
        tools=tuple(map(decode_tool, written["tools"])),
        history=decode_history_policy(written["history"]),
        budget=None if written["budget"] is None else Budget(**written["budget"]),
    )


def encode_history_policy(history: HistoryPolicy) -> list[Any]:
    """Encode a history policy."""
    return [history.strategy.value, history.max_turns, history.max_input_tokens]


def decode_history_policy(written: Sequence[Any]) -> HistoryPolicy:
    """Decode a history policy; inverse of `encode_history_policy`."""
    strategy, max_turns, max_input_tokens = written
    return HistoryPolicy(HistoryStrategy(strategy), max_turns, max_input_tokens)


def encode_usage_total(spent: UsageTotal) -> str:
    """Encode usage."""
    return to_json_text(asdict(spent))


def decode_usage_total(text: str) -> UsageTotal:
    """Decode usage; inverse of `encode_usage_total`."""
    written = json.loads(text)
    return UsageTotal(**{**written, "usage": Usage(**written["usage"])})


def encode_turn(turn: ConversationTurn) -> str:
    """Encode a turn."""
    said = [encode_message(message) for message in turn.user_messages]
    return to_json_text({"said": said, "completion": encode_completion(turn.completion)})


def decode_turn(text: str) -> ConversationTurn:
    """Decode a turn; inverse of `encode_turn`."""
    written = json.loads(text)
    return ConversationTurn(
        tuple(map(decode_message, written["said"])),
        decode_completion(written["completion"]),
    )

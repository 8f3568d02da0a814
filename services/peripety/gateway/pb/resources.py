"""Conversations, models and usage to and from protobuf."""

from __future__ import annotations

from datetime import UTC, datetime, time
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.core.idempotency.store import RequestKey
from peripety.core.validation import check_request_id
from peripety.errors import field_error
from peripety.gateway.conversations.conversation import (
    ConversationConfig,
    HistoryPolicy,
    HistoryStrategy,
    PendingTurn,
)
from peripety.gateway.pb.requests import (
    budget_from_proto,
    budget_to_proto,
    message_to_proto,
    request_from_proto,
    tool_from_proto,
    tool_to_proto,
)
from peripety.gateway.pb.responses import completion_to_proto, spent_to_proto
from peripety.gateway.usage import UsageDimension, UsageQuery
from peripety.rpc.messages import copy_fields, members_by_number, time_to_proto

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from google.protobuf.descriptor import Descriptor
    from google.protobuf.timestamp_pb2 import Timestamp

    from peripety.core.validation import Page
    from peripety.gateway.calls.executor import ProviderStatus
    from peripety.gateway.conversations.conversation import StoredConversation, StoredTurn
    from peripety.gateway.models.catalog import ListedModel
    from peripety.gateway.models.model_data import ModelData
    from peripety.gateway.models.prices import Price
    from peripety.gateway.usage import UsageRow


_STRATEGIES = members_by_number(pb.HistoryStrategy, HistoryStrategy, HistoryStrategy.COMPACT)


class ChangeMessage(Protocol):
    """A message that requests a change, with a request id."""

    DESCRIPTOR: Descriptor
    request_id: str

    def SerializeToString(self, *, deterministic: bool = ...) -> bytes:  # noqa: N802 - protobuf's name
        """Return the message as bytes."""


def request_key_from_proto(request: ChangeMessage) -> RequestKey:
    """Return the idempotency key of a request.

    Raises:
        InvalidArgumentError: its id is not a UUID.
    """
    check_request_id(request.request_id)
    # Fork and delete requests can have the same bytes; the message type distinguishes them.
    kind, wanted = request.DESCRIPTOR.full_name, request.SerializeToString(deterministic=True)
    return RequestKey(request.request_id, sha256(kind.encode() + b"\0" + wanted).hexdigest())


def config_from_proto(request: pb.CreateConversationRequest) -> ConversationConfig:
    """Convert the immutable configuration of a conversation from protobuf.

    Raises:
        InvalidArgumentError: a field is wrong.
    """
    if request.budget.HasField("max_time"):
        raise field_error(".budget.max_time", "is only valid for single requests; remove it")
    return ConversationConfig(
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
        raise field_error(f"{field}.strategy", "must be a known strategy")
    for name in ("max_turns", "max_input_tokens"):
        if getattr(history, name) < 0:
            raise field_error(f"{field}.{name}", "must be 0 (no separate limit) or more")
    return HistoryPolicy(_STRATEGIES[history.strategy], history.max_turns, history.max_input_tokens)


def check_turn_prompt(prompt: pb.Prompt) -> None:
    """Reject a prompt that sets what its conversation already fixes.

    Raises:
        InvalidArgumentError: it has a system text, tools, or an answer.
    """
    for name in ("system", "tools"):
        if getattr(prompt, name):
            raise field_error(f".prompt.{name}", "must be empty: the conversation defines it")
    for index, message in enumerate(prompt.messages):
        if message.role == pb.CHAT_ROLE_ASSISTANT:
            raise field_error(
                f".prompt.messages[{index}].role",
                "must not be CHAT_ROLE_ASSISTANT: the conversation already contains its answers",
            )


def pending_turn_from_proto(request: pb.GenerateRequest | pb.GenerateObjectRequest) -> PendingTurn:
    """Convert the next turn of a conversation from protobuf.

    Raises:
        InvalidArgumentError: a field is wrong, or belongs to the conversation and not to its turns.
    """
    check_turn_prompt(request.prompt)
    return PendingTurn(
        conversation_id=request.conversation_id,
        request_key=request_key_from_proto(request),
        request=request_from_proto(request),
        expected_turn_count=request.expected_turn_count if request.HasField("expected_turn_count") else None,
    )


def conversations_to_proto(page: Page[StoredConversation]) -> pb.ListConversationsResponse:
    """Convert a page of conversations to protobuf."""
    return pb.ListConversationsResponse(
        conversations=map(conversation_to_proto, page.items),
        next_page_token=page.next_page_token,
    )


def conversation_to_proto(conversation: StoredConversation) -> pb.Conversation:
    """Convert a conversation, without its turns, to protobuf."""
    charter = conversation.charter
    return copy_fields(
        pb.Conversation,
        conversation,
        system=charter.system,
        tools=map(tool_to_proto, charter.tools),
        history=charter.history,
        parent_conversation_id=conversation.parent_id,
        usage=spent_to_proto(conversation.spent),
        budget=None if charter.budget is None else budget_to_proto(charter.budget),
        create_time=conversation.created,
        update_time=conversation.updated,
    )


def turns_to_proto(page: Page[StoredTurn]) -> pb.ListConversationTurnsResponse:
    """Convert a page of turns to protobuf."""
    turns = [
        pb.ConversationTurn(
            turn=turn.number,
            messages=map(message_to_proto, turn.turn.user_messages),
            completion=completion_to_proto(turn.turn.completion),
            commit_time=time_to_proto(turn.committed),
        )
        for turn in page.items
    ]
    return pb.ListConversationTurnsResponse(turns=turns, next_page_token=page.next_page_token)


def models_to_proto(page: Page[ListedModel]) -> pb.ListModelsResponse:
    """Convert a page of models to protobuf."""
    return pb.ListModelsResponse(
        models=map(_model_to_proto, page.items),
        next_page_token=page.next_page_token,
    )


def _model_to_proto(model: ListedModel) -> pb.Model:
    data = model.data
    return copy_fields(
        pb.Model,
        data,
        name=model.name,
        capabilities=sorted(
            pb.ModelCapability.Value(f"MODEL_CAPABILITY_{one.name}") for one in data.capabilities
        ),
        prices=[each for price in data.prices for each in _prices_to_proto(price, data)],
        is_default=model.is_default,
    )


def _prices_to_proto(price: Price, data: ModelData) -> Iterator[pb.ModelPrice]:
    """Yield one message per cache lifetime with a write price, or one for all."""
    ttls = list(price.cache_write) or [""]
    for ttl in ttls:
        yield copy_fields(
            pb.ModelPrice,
            price,
            effective_time=price.effective and datetime.combine(price.effective, time(), UTC),
            input_token=price.input,
            output_token=price.output,
            cache_read_token=price.cache_read,
            cache_write_token=price.cache_write.get(ttl, price.input),
            cache_ttl=None if ttl == ttls[0] else data.cache.ttls[ttl],
            peak=price.peak is not None,
        )


_DIMENSIONS = members_by_number(pb.UsageDimension, UsageDimension)


def query_from_proto(request: pb.GetUsageRequest) -> UsageQuery:
    """Convert a usage query from protobuf.

    Raises:
        InvalidArgumentError: a dimension is not in the contract, or a time is invalid.
    """
    for index, dimension in enumerate(request.group_by):
        if dimension not in _DIMENSIONS:
            raise field_error(f".group_by[{index}]", "must be a known dimension")
    return UsageQuery(
        start=_time_from_proto(".start_time", request.start_time) if request.HasField("start_time") else None,
        end=_time_from_proto(".end_time", request.end_time) if request.HasField("end_time") else None,
        group_by=tuple(dict.fromkeys(_DIMENSIONS[dimension] for dimension in request.group_by)),
        provider=request.provider,
        model=request.model,
        conversation_id=request.conversation_id,
    )


def usage_page_to_proto(page: Page[UsageRow]) -> pb.GetUsageResponse:
    """Convert a page of usage sums to protobuf."""
    return pb.GetUsageResponse(rows=map(_row_to_proto, page.items), next_page_token=page.next_page_token)


def _row_to_proto(row: UsageRow) -> pb.UsageRow:
    usage = spent_to_proto(row.spent)
    return copy_fields(pb.UsageRow, row.group, usage=usage, response_cache_hits=row.hits)


def _time_from_proto(field: str, timestamp: Timestamp) -> datetime:
    try:
        return timestamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise field_error(field, "must be a time between the years 1 and 9999") from None


def providers_to_proto(found: Iterable[ProviderStatus]) -> pb.GetProviderStatusResponse:
    """Convert circuit breakers and rate limits to protobuf."""
    return pb.GetProviderStatusResponse(providers=map(_status_to_proto, found))


def _status_to_proto(status: ProviderStatus) -> pb.ProviderStatus:
    limits, used = status.limits, status.used
    amounts = (
        ("REQUESTS", limits.requests_per_minute, used.requests),
        ("INPUT_TOKENS", limits.input_tokens_per_minute, used.input_tokens),
        ("OUTPUT_TOKENS", limits.output_tokens_per_minute, used.output_tokens),
        ("COST", limits.pico_dollars_per_minute, used.cost),
        ("CONCURRENCY", limits.concurrency, used.concurrency),
    )
    rows = [
        pb.RateLimitStatus(kind=pb.RateLimitKind.Value(f"RATE_LIMIT_KIND_{kind}"), limit=limit, used=amount)
        for kind, limit, amount in amounts
    ]
    return copy_fields(pb.ProviderStatus, status, limits=rows)


def scripted_call_to_proto(call: Mapping[str, Any]) -> pb.WatchScriptedCallsResponse:
    """Convert a captured call from JSON to protobuf."""
    request, outcome = call["request"], call["outcome"]
    message = pb.ScriptedCall(
        api=request["api"],
        model=request["model"],
        prompt=request["prompt"],
        messages=request["messages"],
        tools=request["tools"],
        rule=call["label"] or "",
    )
    message.time.FromJsonString(call["time"])
    match outcome["type"]:
        case "response":
            usage = outcome["usage"]
            message.answer.text = outcome["refusal"] or outcome["text"]
            message.answer.tool_calls.extend(one["tool"] for one in outcome["tool_calls"])
            message.answer.stop_reason = outcome["stop"]
            message.answer.input_tokens = usage["fresh"] + usage["read"] + sum(usage["written"].values())
            message.answer.output_tokens = usage["output"]
            message.answer.cache_read_tokens = usage["read"]
            message.answer.fault = outcome["failure"] or ""
            message.answer.delay.FromMilliseconds(outcome["delay_ms"])
        case "failure":
            message.failure.kind = outcome["failure"]
            message.failure.message = outcome["message"]
        case _:
            message.no_match.closest_rules.extend(outcome["closest"])
    return pb.WatchScriptedCallsResponse(sequence=call["number"], call=message)

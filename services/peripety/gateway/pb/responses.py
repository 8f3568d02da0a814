"""Completions, events and batches to and from protobuf."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.core.validation import check_request_id
from peripety.errors import PeripetyError, SpecError, UnavailableError, field_error
from peripety.gateway.batch import BatchItem
from peripety.gateway.pb.requests import message_from_proto, message_to_proto, prompt_from_proto
from peripety.gateway.types.request import CacheTTL
from peripety.gateway.types.response import (
    CacheBlock,
    CacheBreakpoint,
    CachePlan,
    Completed,
    Completion,
    FallingBack,
    ReasoningDelta,
    Repairing,
    SchemaMethod,
    SchemaReport,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageTotal,
)
from peripety.rpc.messages import copy_fields, members_by_number
from peripety.rpc.status import finding_from_proto, item_error_from_proto, item_error_to_proto

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from peripety.gateway.batch import BatchItemResult
    from peripety.gateway.local_gateway import TokenCount
    from peripety.gateway.structured_output.incremental_json import GrowingValue
    from peripety.gateway.types.response import GatewayEvent


_STOP_REASONS = members_by_number(pb.StopReason, StopReason)
_SCHEMA_METHODS = members_by_number(pb.SchemaMethod, SchemaMethod)
_CACHE_BLOCKS = members_by_number(pb.CacheBlock, CacheBlock)
_CACHE_TTLS = members_by_number(pb.CacheTtl, CacheTTL)


def answer_event_to_proto(sequence: int, event: GatewayEvent) -> pb.GenerateResponse:
    """Convert an event of an answer to protobuf."""
    match event:
        case TextDelta():
            return pb.GenerateResponse(sequence=sequence, text_delta=event.text)
        case ReasoningDelta():
            return pb.GenerateResponse(sequence=sequence, reasoning_delta=event.text)
        case ToolCallDelta():
            delta = pb.ToolCallDelta(
                call_id=event.call_id,
                name=event.name,
                arguments_text=event.arguments_text,
            )
            return pb.GenerateResponse(sequence=sequence, tool_call_delta=delta)
        case Repairing():
            return pb.GenerateResponse(sequence=sequence, repair_started=copy_fields(pb.RepairStarted, event))
        case FallingBack():
            started = copy_fields(pb.FallbackStarted, event)
            return pb.GenerateResponse(sequence=sequence, fallback_started=started)
        case Completed():
            return pb.GenerateResponse(sequence=sequence, completed=completion_to_proto(event.completion))


def object_event_to_proto(
    event: GatewayEvent,
    growing_value: GrowingValue,
) -> pb.GenerateObjectResponse | None:
    """Convert an event to an update of a growing object, without a sequence.

    None if the object did not grow.
    """
    match event:
        case TextDelta():
            value = growing_value.feed(event.text)
            return None if value is None else pb.GenerateObjectResponse(partial=_to_json_bytes(value))
        case Repairing():
            growing_value.restart()
            return pb.GenerateObjectResponse(repair_started=copy_fields(pb.RepairStarted, event))
        case FallingBack():
            return pb.GenerateObjectResponse(fallback_started=copy_fields(pb.FallbackStarted, event))
        case Completed():
            return pb.GenerateObjectResponse(completed=completion_to_proto(event.completion))
        case _:
            return None


def completion_to_proto(completion: Completion) -> pb.Completion:
    """Convert a completion to protobuf."""
    return copy_fields(
        pb.Completion,
        completion,
        value=None if completion.value is None else _to_json_bytes(completion.value),
        message=message_to_proto(completion.message),
    )


def count_to_proto(count: TokenCount) -> pb.CountTokensResponse:
    """Convert a token count to protobuf."""
    return copy_fields(pb.CountTokensResponse, count)


def event_from_proto(response: pb.GenerateResponse) -> GatewayEvent | None:
    """Convert an event from protobuf; None for a kind that only a newer server knows.

    Raises:
        UnavailableError: the response is invalid.
    """
    event: GatewayEvent | None = None
    match response.WhichOneof("event"):
        case "text_delta":
            event = TextDelta(response.text_delta)
        case "reasoning_delta":
            event = ReasoningDelta(response.reasoning_delta)
        case "tool_call_delta":
            delta = response.tool_call_delta
            event = ToolCallDelta(delta.call_id, delta.arguments_text, delta.name)
        case "repair_started":
            repairing = response.repair_started
            usage = _usage_from_proto(repairing.usage)
            event = Repairing(tuple(map(finding_from_proto, repairing.findings)), usage, repairing.calls)
        case "fallback_started":
            falling = response.fallback_started
            cause = item_error_from_proto(falling.cause)
            event = FallingBack(falling.from_model, falling.to_model, cause)
        case "completed":
            event = Completed(_completion_from_proto(response.completed))
    return event


def spent_to_proto(spent: UsageTotal) -> common.ModelUsage:
    """Convert the usage of calls to protobuf."""
    return copy_fields(common.ModelUsage, spent, tokens=spent.usage)


def _usage_from_proto(usage: common.TokenUsage) -> Usage:
    return Usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    )


def _completion_from_proto(completion: pb.Completion) -> Completion:
    has = completion.HasField
    return Completion(
        message=message_from_proto(".completed.message", completion.message),
        value=_parse_json_bytes(completion.value) if has("value") else None,
        usage=_usage_from_proto(completion.usage),
        stop_reason=_STOP_REASONS.get(completion.stop_reason, StopReason.OTHER),
        model=completion.model,
        provider=completion.provider,
        repaired=completion.repaired,
        findings=tuple(map(finding_from_proto, completion.findings)),
        calls=completion.calls,
        from_response_cache=completion.from_response_cache,
        schema_report=_report_from_proto(completion.schema_report) if has("schema_report") else None,
        cost=completion.cost.pico_units if has("cost") else None,
        cache_savings=completion.cache_savings.pico_units if has("cache_savings") else None,
        cache_plan=_plan_from_proto(completion.cache_plan) if has("cache_plan") else None,
        conversation_turn=completion.conversation_turn,
    )


def _report_from_proto(report: pb.SchemaReport) -> SchemaReport | None:
    """Convert a schema report from protobuf; None for a method that only a newer server knows."""
    method = _SCHEMA_METHODS.get(report.method)
    return None if method is None else SchemaReport(method, tuple(map(finding_from_proto, report.dropped)))


def _plan_from_proto(plan: pb.CachePlan) -> CachePlan:
    return CachePlan(
        tuple(_breakpoint_from_proto(breakpoint_) for breakpoint_ in plan.breakpoints),
        plan.predicted_read_tokens,
        plan.predicted_write_tokens,
        _breakpoint_from_proto(plan.first_difference) if plan.HasField("first_difference") else None,
    )


def _breakpoint_from_proto(breakpoint_: pb.CacheBreakpoint) -> CacheBreakpoint:
    block = _CACHE_BLOCKS.get(breakpoint_.block, CacheBlock.MESSAGE)
    return CacheBreakpoint(
        block,
        _CACHE_TTLS.get(breakpoint_.ttl, CacheTTL.FIVE_MINUTES),
        breakpoint_.message_index,
    )


def _to_json_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _parse_json_bytes(data: bytes) -> object:
    try:
        return engine.parse(data)
    except SpecError:
        raise UnavailableError("gateway service: value is not JSON", code="GATEWAY_MALFORMED") from None


_MAX_ITEMS = 1_000
# Large enough to amortize the cost of a message, and well below the maximum message size.
_TARGET_MESSAGE_BYTES = 1_048_576


async def items_from_proto(requests: AsyncIterator[pb.GenerateManyRequest]) -> AsyncIterator[BatchItem]:
    """Convert the prompts of a batch from protobuf; an invalid prompt fails only its own item.

    Raises:
        InvalidArgumentError: the first message has no UUID, or one has too many items.
    """
    batch_id = ""
    async for request in requests:
        if not batch_id:
            check_request_id(request.request_id)
            batch_id = request.request_id
        if len(request.items) > _MAX_ITEMS:
            raise field_error(".items", f"has more than {_MAX_ITEMS} items; send fewer in one message")
        for item in request.items:
            yield _item_from_proto(batch_id, item)


def results_to_proto(results: Iterable[BatchItemResult]) -> Iterator[pb.GenerateManyResponse]:
    """Convert results to as many messages as needed, without sequences."""
    response = pb.GenerateManyResponse()
    for result in map(_result_to_proto, results):
        if response.results and response.ByteSize() + result.ByteSize() > _TARGET_MESSAGE_BYTES:
            yield response
            response = pb.GenerateManyResponse()
        response.results.append(result)
    if response.results:
        yield response


def _item_from_proto(batch_id: str, item: pb.GenerateItem) -> BatchItem:
    try:
        return BatchItem(batch_id, item.item_id, prompt_from_proto("", item))
    except PeripetyError as error:
        return BatchItem(batch_id, item.item_id, error)


def _result_to_proto(result: BatchItemResult) -> pb.GenerateResult:
    if isinstance(result.outcome, PeripetyError):
        return pb.GenerateResult(item_id=result.item_id, error=item_error_to_proto(result.outcome))
    return pb.GenerateResult(item_id=result.item_id, completion=completion_to_proto(result.outcome))

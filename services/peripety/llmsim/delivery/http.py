"""HTTP delivery of an answer: the head, and the plan of its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.llmsim.delivery.connection_faults import (
    apply_fault,
    break_document,
    break_stream,
    error_page,
    split_characters,
    split_document,
)
from peripety.llmsim.delivery.plan import (
    DeliveryPlan,
    DeliveryStep,
    ResponseEnd,
    answer_duration,
    answer_start_ms,
    pace_frames,
)
from peripety.llmsim.wire.base import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.llmsim.delivery.plan import DeliverySettings
    from peripety.llmsim.script.types import Fault
    from peripety.llmsim.types import ApiError, SimReply, SimRequest, StreamFrame
    from peripety.llmsim.wire.base import Wire


_OK = 200
_JSON = "application/json"
_SILENT_FAULTS = frozenset({"network_unreachable", "connection_timeout", "hang"})


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """Head of an HTTP response.

    Attributes:
        status: the HTTP status.
        media_type: the content type.
        headers: the other headers.
        length: the announced `Content-Length`; None for chunked transfer.
    """

    status: int
    media_type: str
    headers: Mapping[str, str]
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """A complete HTTP response.

    Attributes:
        head: sent with the first step, or at the end without steps; None sends no head.
        plan: the body.
    """

    head: ResponseHead | None
    plan: DeliveryPlan[bytes]


def stream_delivery(
    wire: Wire,
    request: SimRequest,
    reply: SimReply,
    settings: DeliverySettings,
    headers: Mapping[str, str],
    request_id: str,
) -> Delivery:
    """Return an answer as a stream.

    Args:
        wire: the API.
        request: the request.
        reply: the answer.
        settings: the delivery settings.
        headers: the headers of every answer.
        request_id: the request id, for an error inside the stream.
    """
    plan = pace_frames(wire.frames(request, reply), settings)
    head = ResponseHead(_OK, wire.media_type(request), headers)
    failure = settings.fault
    if failure is None:
        return _apply_fault(head, plan, settings)
    if failure.type == "html_error":
        return _page_delivery(failure, headers, answer_start_ms(plan))
    return _apply_fault(head, apply_fault(break_stream(plan, failure, wire, request_id), failure), settings)


def document_delivery(
    wire: Wire,
    request: SimRequest,
    reply: SimReply,
    settings: DeliverySettings,
    headers: Mapping[str, str],
    request_id: str,
) -> Delivery:
    """Return an answer as one document, sent when it is complete. See `streamed` for the arguments."""
    body = compact_json(wire.document(request, reply))
    at_ms = settings.delay_ms + answer_duration(settings.pace, reply.usage.output)
    failure = settings.fault
    if failure is None:
        return _whole_body(ResponseHead(_OK, _JSON, headers, len(body)), body, at_ms)
    if failure.type == "html_error":
        return _page_delivery(failure, headers, at_ms)
    body = break_document(body, failure, wire, request_id)
    steps = [DeliveryStep(at_ms, frame) for frame in split_document(body, reply, failure)]
    plan = apply_fault(DeliveryPlan(steps, ends_ms=at_ms), failure)
    arriving = sum(len(step.data.data) for step in plan.steps)
    length = arriving if plan.end is ResponseEnd.CLEAN else len(body)
    return _apply_fault(ResponseHead(_OK, _JSON, headers, length), plan, settings)


def error_delivery(
    wire: Wire,
    error: ApiError,
    headers: Mapping[str, str],
    request_id: str,
    now: float,
    delay_ms: float = 0,
) -> Delivery:
    """Return an error response.

    Args:
        wire: the API.
        error: the error.
        headers: the headers of every answer.
        request_id: the request id.
        now: seconds since 1970 by the machine's clock, for retry dates.
        delay_ms: the delay before the response.
    """
    answer = wire.error(error, request_id, now)
    status = error.status or answer.status
    head = ResponseHead(status, answer.media_type, {**headers, **answer.headers}, len(answer.body))
    return _whole_body(head, answer.body, delay_ms)


def _whole_body(head: ResponseHead, body: bytes, at_ms: float) -> Delivery:
    return Delivery(head, DeliveryPlan([DeliveryStep(at_ms, body)], ends_ms=at_ms))


def _page_delivery(failure: Fault, headers: Mapping[str, str], at_ms: float) -> Delivery:
    status = failure.settings["status"]
    body = error_page(status).encode()
    return _whole_body(ResponseHead(status, "text/html", headers, len(body)), body, at_ms)


def _apply_fault(
    head: ResponseHead,
    plan: DeliveryPlan[StreamFrame[bytes]],
    manner: DeliverySettings,
) -> Delivery:
    steps = [DeliveryStep(step.at_ms, step.data.data) for step in plan.steps]
    failing = manner.fault.type if manner.fault else None
    if failing == "split_utf8":
        steps = list(split_characters(steps))
    ends_ms = max(plan.ends_ms, steps[-1].at_ms if steps else 0)
    if head.length is None and manner.pace.bytes_per_write is not None:
        steps = list(_split_writes(steps, manner.pace.bytes_per_write))
    return Delivery(None if failing in _SILENT_FAULTS else head, DeliveryPlan(steps, plan.end, ends_ms))


def _split_writes(steps: Iterable[DeliveryStep[bytes]], size: int) -> Iterator[DeliveryStep[bytes]]:
    for at_ms, data in steps:
        for begin in range(0, len(data), size):
            yield DeliveryStep(at_ms, data[begin : begin + size])

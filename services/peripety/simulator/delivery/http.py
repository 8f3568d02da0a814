"""HTTP delivery of an answer: the head, and the plan of its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.simulator.delivery.bodies import page, pieces, split_characters, spoilt_document, spoilt_stream
from peripety.simulator.delivery.breaks import broken
from peripety.simulator.delivery.plan import Ending, Plan, Step, begins_ms, duration, paced
from peripety.simulator.wire.json_text import compact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.simulator.delivery.plan import Manner
    from peripety.simulator.model import ApiError, Frame, Reply, Request
    from peripety.simulator.scenario.model import Failure
    from peripety.simulator.wire.base import Wire

__all__ = ["Delivery", "Head", "document", "refused", "streamed"]

_OK = 200
_JSON = "application/json"
_UNANSWERED = frozenset({"network_unreachable", "connection_timeout", "hang"})


@dataclass(frozen=True, slots=True)
class Head:
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

    head: Head | None
    plan: Plan[bytes]


def streamed(
    wire: Wire, request: Request, reply: Reply, manner: Manner, headers: Mapping[str, str], request_id: str
) -> Delivery:
    """Return an answer as a stream.

    Args:
        wire: the API.
        request: the request.
        reply: the answer.
        manner: the delivery settings.
        headers: the headers of every answer.
        request_id: the request id, for an error inside the stream.
    """
    plan = paced(wire.frames(request, reply), manner)
    head = Head(_OK, wire.media_type(request), headers)
    failure = manner.failure
    if failure is None:
        return _delivery(head, plan, manner)
    if failure.type == "html_error":
        return _page(failure, headers, begins_ms(plan))
    return _delivery(head, broken(spoilt_stream(plan, failure, wire, request_id), failure), manner)


def document(
    wire: Wire, request: Request, reply: Reply, manner: Manner, headers: Mapping[str, str], request_id: str
) -> Delivery:
    """Return an answer as one document, sent when it is complete. See `streamed` for the arguments."""
    body = compact(wire.document(request, reply))
    at_ms = manner.delay_ms + duration(manner.pace, reply.usage.output)
    failure = manner.failure
    if failure is None:
        return _whole(Head(_OK, _JSON, headers, len(body)), body, at_ms)
    if failure.type == "html_error":
        return _page(failure, headers, at_ms)
    body = spoilt_document(body, failure, wire, request_id)
    steps = [Step(at_ms, frame) for frame in pieces(body, reply, failure)]
    plan = broken(Plan(steps, ends_ms=at_ms), failure)
    arriving = sum(len(step.data.data) for step in plan.steps)
    length = arriving if plan.ending is Ending.CLEAN else len(body)
    return _delivery(Head(_OK, _JSON, headers, length), plan, manner)


def refused(
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
    head = Head(status, answer.media_type, {**headers, **answer.headers}, len(answer.body))
    return _whole(head, answer.body, delay_ms)


def _whole(head: Head, body: bytes, at_ms: float) -> Delivery:
    return Delivery(head, Plan([Step(at_ms, body)], ends_ms=at_ms))


def _page(failure: Failure, headers: Mapping[str, str], at_ms: float) -> Delivery:
    status = failure.settings["status"]
    body = page(status).encode()
    return _whole(Head(status, "text/html", headers, len(body)), body, at_ms)


def _delivery(head: Head, plan: Plan[Frame[bytes]], manner: Manner) -> Delivery:
    steps = [Step(step.at_ms, step.data.data) for step in plan.steps]
    failing = manner.failure.type if manner.failure else None
    if failing == "split_utf8":
        steps = list(split_characters(steps))
    ends_ms = max(plan.ends_ms, steps[-1].at_ms if steps else 0)
    if head.length is None and manner.pace.bytes_per_write is not None:
        steps = list(_writes(steps, manner.pace.bytes_per_write))
    return Delivery(None if failing in _UNANSWERED else head, Plan(steps, plan.ending, ends_ms))


def _writes(steps: Iterable[Step[bytes]], size: int) -> Iterator[Step[bytes]]:
    for at_ms, data in steps:
        for begin in range(0, len(data), size):
            yield Step(at_ms, data[begin : begin + size])

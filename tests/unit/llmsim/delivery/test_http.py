"""Effect of each kind of failure on the bytes of an answer, on a small API of server-sent events."""

# ruff: noqa: ARG002 - an API need not use every argument

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest

from peripety.llmsim.delivery.http import Delivery, document_delivery, error_delivery, stream_delivery
from peripety.llmsim.delivery.plan import DeliverySettings, ResponseEnd
from peripety.llmsim.faults.injection import fault_error
from peripety.llmsim.faults.kinds import KINDS, FaultStage
from peripety.llmsim.script.types import Fault, Pace
from peripety.llmsim.types import (
    Api,
    ApiError,
    ApiErrorKind,
    BilledUsage,
    FrameTag,
    SimReply,
    SimRequest,
    SimStopReason,
    StreamFrame,
    TextPart,
)
from peripety.llmsim.wire import base
from peripety.llmsim.wire.base import HttpDocument, Wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


REQUEST = SimRequest(Api.OPENAI_CHAT, "m", ())
REPLY = SimReply(
    "id",
    0,
    "m",
    (TextPart(("grüß ", "dich ", "€")),),
    SimStopReason.END,
    BilledUsage(fresh=5, output=3),
)
HEADERS = {"x-request-id": "r"}


class Words:
    api = Api.OPENAI_CHAT
    routes: ClassVar[Sequence[Any]] = ()

    def media_type(self, request: SimRequest) -> str:
        return "text/event-stream"

    def document(self, request: SimRequest, reply: SimReply) -> Any:
        text = "".join(piece for part in reply.parts for piece in part.pieces)
        return {"id": reply.id, "text": text, "usage": {"output": reply.usage.output}}

    def frames(self, request: SimRequest, reply: SimReply) -> list[StreamFrame[bytes]]:
        started = {"message": {"usage": {"input": 5}, "role": "assistant"}}
        pieces = [piece for part in reply.parts for piece in part.pieces]
        return [
            StreamFrame(_event("start", started), FrameTag.START),
            *(StreamFrame(_event("text", {"text": piece}), FrameTag.TEXT, 1) for piece in pieces),
            StreamFrame(_event("usage", {"usage": {"output": 3}}), FrameTag.USAGE),
            StreamFrame(_event("stop", {"stop": "end", "usage": {"output": 3}}), FrameTag.STOP),
            StreamFrame(b"data: [DONE]\n\n", FrameTag.END),
        ]

    def error(self, error: ApiError, request_id: str, now: float) -> HttpDocument:
        return HttpDocument(418, self._error(error), {"retry-after": "2"})

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[StreamFrame[bytes]]) -> bytes:
        return base.sse_event(self._error(error))

    def _error(self, error: ApiError) -> bytes:
        return json.dumps({"error": error.message}).encode()


def _event(name: str, value: Mapping[str, Any]) -> bytes:
    return base.sse_event(json.dumps(value, ensure_ascii=False).encode(), name)


WIRE = cast("Wire", Words())


def manner(kind: str | None, pace: Pace, settings: Mapping[str, Any]) -> DeliverySettings:
    failure = None if kind is None else Fault(kind, {**KINDS[kind].default_settings, **settings})
    return DeliverySettings(pace, lambda _purpose, index: index, fault=failure)


def stream(kind: str | None = None, pace: Pace | None = None, **settings: Any) -> Delivery:
    return stream_delivery(WIRE, REQUEST, REPLY, manner(kind, pace or Pace(), settings), HEADERS, "r")


def whole(
    kind: str | None = None,
    pace: Pace | None = None,
    reply: SimReply = REPLY,
    **settings: Any,
) -> Delivery:
    return document_delivery(WIRE, REQUEST, reply, manner(kind, pace or Pace(), settings), HEADERS, "r")


def body(delivery: Delivery) -> bytes:
    return b"".join(step.data for step in delivery.plan.steps)


def length(delivery: Delivery) -> int | None:
    assert delivery.head is not None
    return delivery.head.length


STREAM = body(stream())
WHOLE = body(whole())
BODILY = ["malformed_json", "empty_body", "html_error", "error_in_200"]


def test_a_stream_is_what_the_api_writes() -> None:
    delivery = stream()
    assert delivery.head is not None
    assert (delivery.head.status, delivery.head.media_type) == (200, "text/event-stream")
    assert (delivery.head.headers, delivery.head.length) == (HEADERS, None)
    assert b"".join(frame.data for frame in Words().frames(REQUEST, REPLY)) == STREAM


def test_a_document_takes_as_long_as_its_tokens() -> None:
    delivery = whole(pace=Pace(first_token_ms=20, tokens_per_second=10))
    assert [step.at_ms for step in delivery.plan.steps] == [320]
    assert length(delivery) == len(WHOLE)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_bytes_are_written_as_few_at_a_time_as_wanted(size: int) -> None:
    delivery = stream(pace=Pace(bytes_per_write=size))
    assert max(len(step.data) for step in delivery.plan.steps) <= size
    assert body(delivery) == STREAM


@pytest.mark.parametrize("deliver", [stream, whole])
@pytest.mark.parametrize("name", ["network_unreachable", "connection_timeout", "hang"])
def test_not_even_headers_come_over_a_dead_connection(deliver: Any, name: str) -> None:
    delivery = deliver(name)
    assert delivery.head is None
    assert delivery.plan.steps == []


@pytest.mark.parametrize("deliver", [stream, whole])
def test_headers_come_before_a_reset(deliver: Any) -> None:
    delivery = deliver("connection_reset")
    assert delivery.head is not None
    assert (delivery.plan.steps, delivery.plan.end) == ([], ResponseEnd.RESET)


def test_a_malformed_stream_has_text_in_the_place_of_its_first_content() -> None:
    first = json.dumps({"text": "grüß "}, ensure_ascii=False).encode()
    assert body(stream("malformed_json", raw='{"a')) == STREAM.replace(first, b'{"a')


def test_malformed_text_of_several_lines_stays_one_event() -> None:
    assert b'event: text\ndata: {\ndata: "a\n\n' in body(stream("malformed_json", raw='{\n"a'))


def test_a_malformed_document_is_the_text() -> None:
    delivery = whole("malformed_json", raw="{ü")
    assert (body(delivery), length(delivery)) == ("{ü".encode(), 3)


def test_an_empty_body_is_empty() -> None:
    assert body(stream("empty_body")) == body(whole("empty_body")) == b""
    assert length(whole("empty_body")) == 0
    assert stream("empty_body").plan.end is ResponseEnd.CLEAN


@pytest.mark.parametrize("deliver", [stream, whole])
def test_a_page_is_no_json(deliver: Any) -> None:
    delivery = deliver("html_error", status=502)
    assert (delivery.head.status, delivery.head.media_type) == (502, "text/html")
    assert b"<h1>502 Bad Gateway</h1>" in body(delivery)
    assert b"599 Error" in body(deliver("html_error", status=599))


def test_an_error_can_come_with_success() -> None:
    assert body(stream("error_in_200")) == b'data: {"error": "Overloaded"}\n\n'
    delivery = whole("error_in_200", message="sorry")
    assert delivery.head is not None
    assert (delivery.head.status, body(delivery)) == (200, b'{"error": "sorry"}')


def test_an_error_in_a_stream_is_its_last_event() -> None:
    delivery = stream("error_in_stream", after_chunks=2)
    assert body(delivery) == STREAM[: STREAM.index(b"event: text\ndata: " + '{"text": "€'.encode())] + (
        b'data: {"error": "Overloaded"}\n\n'
    )
    assert delivery.plan.end is ResponseEnd.CLEAN


def test_missing_usage_is_missing_everywhere() -> None:
    assert b"usage" not in body(stream("missing_usage"))
    assert json.loads(body(whole("missing_usage"))) == {"id": "id", "text": "grüß dich €"}
    assert body(stream("missing_usage")).endswith(b'event: stop\ndata: {"stop":"end"}\n\ndata: [DONE]\n\n')


def test_characters_of_several_bytes_arrive_in_two_pieces() -> None:
    for delivery, sent in ((stream("split_utf8"), STREAM), (whole("split_utf8"), WHOLE)):
        inside = [step.data for step in delivery.plan.steps if step.data[-1] >= 0xC0]
        assert len(inside) == 3
        assert body(delivery) == sent
        times = [step.at_ms for step in delivery.plan.steps]
        assert times == sorted(times)
        assert times[-1] <= delivery.plan.ends_ms


def test_a_partial_document_ends_within_its_text() -> None:
    partial = SimReply("id", 0, "m", (TextPart(('Say "hi',)),), SimStopReason.END, BilledUsage(output=2))
    delivery = whole("partial_response", reply=partial, partial_text='Say "hi')
    assert body(delivery) == b'{"id":"id","text":"Say \\"hi'
    assert delivery.plan.end is ResponseEnd.CLOSED
    assert length(delivery) == len(body(whole(reply=partial)))


@pytest.mark.parametrize("name", ["stream_cut", "reset_at_token"])
def test_a_document_that_is_cut_promises_more_than_arrives(name: str) -> None:
    delivery = whole(name)
    assert 0 < len(body(delivery)) < len(WHOLE)
    assert WHOLE.startswith(body(delivery))
    assert length(delivery) == len(WHOLE)


@pytest.mark.parametrize("name", ["duplicate_chunk", "missing_chunk", "reordered_chunks", "missing_end"])
def test_a_document_with_wrong_pieces_arrives_whole_and_is_wrong(name: str) -> None:
    delivery = whole(name)
    assert body(delivery) != WHOLE
    assert length(delivery) == len(body(delivery))


@pytest.mark.parametrize("name", ["stall", "slow_drip", "late_usage"])
def test_a_late_document_is_the_same(name: str) -> None:
    delivery = whole(name)
    assert body(delivery) == WHOLE
    assert delivery.plan.ends_ms >= 1000


@pytest.mark.parametrize("deliver", [stream, whole])
@pytest.mark.parametrize(
    "name",
    [name for name, kind in KINDS.items() if kind.stage in {FaultStage.BODY, FaultStage.STREAM}],
)
def test_every_kind_changes_what_arrives_or_when(deliver: Any, name: str) -> None:
    if deliver is whole and name == "error_in_stream":
        assert fault_error(Fault(name, KINDS[name].default_settings), stream=False) is not None
    else:
        assert deliver(name) != deliver()


def test_an_error_has_the_words_of_the_api_and_all_headers() -> None:
    delivery = error_delivery(
        WIRE,
        ApiError(ApiErrorKind.OVERLOADED, "busy"),
        HEADERS,
        "r",
        now=0,
        delay_ms=5,
    )
    assert delivery.head is not None
    assert (delivery.head.status, delivery.head.headers) == (418, {**HEADERS, "retry-after": "2"})
    assert [(step.at_ms, step.data) for step in delivery.plan.steps] == [(5, b'{"error": "busy"}')]


def test_an_error_may_have_a_status_of_its_own() -> None:
    delivery = error_delivery(WIRE, ApiError(ApiErrorKind.SERVER, "broken", status=599), HEADERS, "r", now=0)
    assert delivery.head is not None
    assert delivery.head.status == 599

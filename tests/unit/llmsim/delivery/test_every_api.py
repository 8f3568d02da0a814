"""Each kind of failure, on each API, streamed and not: it has the documented effect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine.patterns.syntax import Pattern
from peripety.llmsim.delivery.plan import ResponseEnd
from peripety.llmsim.faults.kinds import KINDS, FaultStage
from peripety.llmsim.record.provider_readers import AnswerReader
from peripety.llmsim.script.types import Fault, Script, ScriptedCall, ScriptResponse, ScriptRule
from peripety.llmsim.server.routing import delivery_from_exchange
from peripety.llmsim.simulator import Simulator
from peripety.llmsim.types import Api, ToolUsePart
from support.gateway.requests import APIS, full_request

if TYPE_CHECKING:
    from peripety.llmsim.delivery.http import Delivery
    from peripety.llmsim.record.response_draft import ResponseDraft
    from peripety.llmsim.wire.base import Wire


TEXT = "Grüß dich, wie geht's dir €?"
SPOKEN = ScriptResponse(text=TEXT, reasoning="What would be fitting?")
CALLING = ScriptResponse(
    tool_calls=(ScriptedCall("look", {"at": "a", "deep": 2}), ScriptedCall("look", {"at": "b", "deep": 3})),
)

apis = pytest.mark.parametrize("wire", APIS, ids=lambda wire: type(wire).__name__)
ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def deliver(wire: Wire, kind: str | None, *, stream: bool, **settings: Any) -> Delivery:
    failure = None if kind is None else Fault(kind, {**KINDS[kind].default_settings, **settings})
    response = CALLING if kind is not None and KINDS[kind].needs_tool_calls else SPOKEN
    simulator = Simulator(Script((ScriptRule(Pattern(), response, failure),), seed=1))
    return delivery_from_exchange(wire, simulator.begin(full_request(wire, stream=stream)), simulator.now())


def healthy(wire: Wire, *, stream: bool, calls: bool = False) -> Delivery:
    simulator = Simulator(Script((ScriptRule(Pattern(), CALLING if calls else SPOKEN),), seed=1))
    return delivery_from_exchange(wire, simulator.begin(full_request(wire, stream=stream)), simulator.now())


def body(delivery: Delivery) -> bytes:
    return b"".join(step.data for step in delivery.plan.steps)


def read(wire: Wire, delivery: Delivery) -> ResponseDraft:
    assert delivery.head is not None
    reader = AnswerReader(wire.api, delivery.head.media_type)
    reader.feed(body(delivery), 0.0)
    reader.close()
    return reader.draft


def status(delivery: Delivery) -> int | None:
    return None if delivery.head is None else delivery.head.status


@apis
@ways
@pytest.mark.parametrize("kind", KINDS)
def test_every_failure_changes_what_arrives(wire: Wire, stream: bool, kind: str) -> None:
    failed = deliver(wire, kind, stream=stream)
    usual = healthy(wire, stream=stream, calls=KINDS[kind].needs_tool_calls)
    seen, expected = (
        (status(each), body(each), each.plan.end, each.plan.ends_ms, len(each.plan.steps))
        for each in (failed, usual)
    )
    assert seen != expected


@apis
@ways
@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.stage is FaultStage.ERROR])
def test_an_error_is_a_document_with_the_message(wire: Wire, stream: bool, kind: str) -> None:
    delivery = deliver(wire, kind, stream=stream, message="this went wrong")
    assert (status(delivery) or 0) >= 400
    assert "this went wrong" in json.dumps(json.loads(body(delivery)))


@apis
@ways
@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        ("network_unreachable", ResponseEnd.RESET),
        ("connection_reset", ResponseEnd.RESET),
        ("reset_at_token", ResponseEnd.RESET),
        ("connection_timeout", ResponseEnd.CLOSED),
        ("stream_cut", ResponseEnd.CLOSED),
        ("partial_response", ResponseEnd.CLOSED),
        ("hang", ResponseEnd.HANG),
    ],
)
def test_a_broken_connection_ends_as_its_kind_says(
    wire: Wire,
    stream: bool,
    kind: str,
    ending: ResponseEnd,
) -> None:
    assert deliver(wire, kind, stream=stream).plan.end is ending


@apis
@ways
def test_a_partial_response_has_its_text_and_no_end(wire: Wire, stream: bool) -> None:
    delivery = deliver(wire, "partial_response", stream=stream, partial_text="Grüß di")
    if stream:
        draft = read(wire, delivery)
        assert "".join(piece for part in draft.parts for piece in part.pieces) == "Grüß di"
        assert not draft.ended
    else:
        assert body(delivery).endswith("Grüß di".encode())


@apis
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_a_cut_stream_has_so_many_chunks(wire: Wire, chunks: int) -> None:
    draft = read(wire, deliver(wire, "stream_cut", stream=True, after_chunks=chunks))
    assert len(draft.chunk_times) == chunks
    assert not draft.ended


@apis
def test_without_the_mark_of_the_end_a_stream_has_all_its_text(wire: Wire) -> None:
    draft = read(wire, deliver(wire, "missing_end", stream=True))
    usual = read(wire, healthy(wire, stream=True))
    assert draft.parts == usual.parts
    assert usual.ended
    assert not draft.ended


@apis
@ways
def test_missing_usage_is_all_that_is_missing(wire: Wire, stream: bool) -> None:
    draft, usual = (read(wire, each) for each in (
        deliver(wire, "missing_usage", stream=stream), healthy(wire, stream=stream),
    ))  # fmt: skip
    assert draft.parts == usual.parts
    assert draft.ended
    assert usual.usage is not None
    if wire.api is Api.OLLAMA:
        assert draft.usage is not None
        assert (draft.usage.input, draft.usage.output) == (0, 0)
    else:
        assert draft.usage is None


@apis
@ways
@pytest.mark.parametrize("kind", ["late_usage", "stall", "slow_drip", "split_utf8"])
def test_what_is_only_late_or_cut_up_arrives_whole(wire: Wire, stream: bool, kind: str) -> None:
    assert body(deliver(wire, kind, stream=stream)) == body(healthy(wire, stream=stream))


@apis
@ways
def test_filters_refusals_and_limits_are_said_as_the_api_says_them(wire: Wire, stream: bool) -> None:
    stops = {
        kind: read(wire, deliver(wire, kind, stream=stream)).stop
        for kind in ("content_filter", "refusal", "length")
    }
    assert stops["length"] == "length"
    # APIs without a word of their own for these let the answer end as usual, and Anthropic has one for both.
    assert stops["content_filter"] in {"content_filter", "refusal", "end"}
    assert stops["refusal"] in {"refusal", "content_filter", "end"}


@apis
@ways
def test_invalid_arguments_are_json_and_not_what_was_scripted(wire: Wire, stream: bool) -> None:
    draft = read(wire, deliver(wire, "invalid_arguments", stream=stream))
    inputs = [part.arguments for part in draft.parts if isinstance(part, ToolUsePart)]
    assert inputs == [{"at": 0, "deep": 2}, {"at": 0, "deep": 3}]

"""Round trip: the readers parse the output of the wire modules, however the bytes are split."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.record.provider_readers import AnswerReader
from peripety.llmsim.types import (
    ApiError,
    ApiErrorKind,
    BilledUsage,
    ReasoningPart,
    RefusalPart,
    SimReply,
    SimStopReason,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire.anthropic.api import AnthropicWire
from peripety.llmsim.wire.base import compact_json
from peripety.llmsim.wire.deepseek import DeepSeekWire
from peripety.llmsim.wire.gemini.api import GeminiWire
from peripety.llmsim.wire.ollama.api import OllamaWire
from peripety.llmsim.wire.openai.api import OpenAiChat, OpenAiResponses
from support.gateway.requests import APIS, full_request

if TYPE_CHECKING:
    from peripety.llmsim.record.response_draft import ResponseDraft
    from peripety.llmsim.types import ReplyPart
    from peripety.llmsim.wire.base import Wire


USAGE = BilledUsage(fresh=40, read=7, output=12, reasoning=0)
CALLS = (
    ToolUsePart("abc1", "weather", ('{"city":', '"Zürich"}')),
    ToolUsePart("abc2", "clock", ("{}",)),
)


def reply(stop: SimStopReason, *parts: ReplyPart, usage: BilledUsage = USAGE) -> SimReply:
    return SimReply("a1b2c3d4e5f6a1b2c3d4e5f6", 1_767_225_600, "m", parts, stop, usage)


def read(
    wire: Wire,
    answer: SimReply,
    *,
    stream: bool,
    size: int = 10_000,
    sse: bool = True,
) -> ResponseDraft:
    request = full_request(wire, stream=stream, sse=sse)
    if stream:
        data = b"".join(frame.data for frame in wire.frames(request, answer))
        reader = AnswerReader(wire.api, wire.media_type(request))
    else:
        data = compact_json(wire.document(request, answer))
        reader = AnswerReader(wire.api, "application/json")
    for begin in range(0, len(data), size):
        reader.feed(data[begin : begin + size], float(begin))
    reader.close()
    return reader.draft


def said(parts: Any, kind: type[ReplyPart]) -> str:
    return "".join(piece for part in parts if isinstance(part, kind) for piece in part.pieces)


def calls(parts: Any) -> list[tuple[str, Any]]:
    return [(part.name, part.arguments) for part in parts if isinstance(part, ToolUsePart)]


WIRES = [pytest.param(wire, id=type(wire).__name__) for wire in APIS]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("stream", "size"), [(False, 10_000), (True, 10_000), (True, 1), (True, 7)])
def test_text_and_parallel_calls_are_read_back(wire: Wire, stream: bool, size: int) -> None:
    answer = reply(SimStopReason.TOOL_USE, TextPart(("Grüß ", "Gott\u2028", "!")), *CALLS)
    draft = read(wire, answer, stream=stream, size=size)
    assert said(draft.parts, TextPart) == "Grüß Gott\u2028!"
    assert calls(draft.parts) == [("weather", {"city": "Zürich"}), ("clock", {})]
    assert draft.stop is SimStopReason.TOOL_USE
    assert draft.ended
    assert draft.error is None


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [False, True])
def test_usage_is_read_back(wire: Wire, stream: bool) -> None:
    draft = read(wire, reply(SimStopReason.END, TextPart(("a", "b"))), stream=stream)
    assert draft.usage is not None
    assert (draft.usage.input, draft.usage.output) == (47, 12)
    if not isinstance(wire, OllamaWire):  # which does not report it
        assert draft.usage.read == 7


@pytest.mark.parametrize("stream", [False, True])
def test_what_was_written_to_the_cache_is_read_back_with_its_lifetime(stream: bool) -> None:
    usage = BilledUsage(fresh=3, read=2, written={"5m": 4, "1h": 5}, output=12, reasoning=6)
    draft = read(AnthropicWire(), reply(SimStopReason.END, TextPart(("a",)), usage=usage), stream=stream)
    assert draft.usage == usage


@pytest.mark.parametrize("wire", [param for param in WIRES if param.values[0].__class__ is not OpenAiChat])
@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_are_read_back(wire: Wire, stream: bool) -> None:
    answer = reply(SimStopReason.END, ReasoningPart(("Let me ", "see"), "sig"), TextPart(("Yes",)))
    draft = read(wire, answer, stream=stream)
    assert said(draft.parts, ReasoningPart) == "Let me see"
    assert said(draft.parts, TextPart) == "Yes"


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_was_too_long_is_read_as_such(wire: Wire, stream: bool) -> None:
    assert (
        read(wire, reply(SimStopReason.LENGTH, TextPart(("a",))), stream=stream).stop is SimStopReason.LENGTH
    )


@pytest.mark.parametrize("wire", [OpenAiChat(), OpenAiResponses(), AnthropicWire()])
@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_is_read_back(wire: Wire, stream: bool) -> None:
    draft = read(wire, reply(SimStopReason.REFUSAL, RefusalPart(("I ", "can't"))), stream=stream)
    assert said(draft.parts, RefusalPart) == "I can't"
    assert draft.stop is SimStopReason.REFUSAL


@pytest.mark.parametrize("stream", [False, True])
def test_the_text_that_ended_an_answer_is_read_back(stream: bool) -> None:
    answer = SimReply("a", 0, "m", (TextPart(("a",)),), SimStopReason.STOP_SEQUENCE, USAGE, "END")
    draft = read(AnthropicWire(), answer, stream=stream)
    assert (draft.stop, draft.stop_sequence) == (SimStopReason.STOP_SEQUENCE, "END")


def test_an_array_of_documents_is_read_as_a_stream() -> None:
    draft = read(GeminiWire(), reply(SimStopReason.END, TextPart(("a", "b"))), stream=True, size=5, sse=False)
    assert said(draft.parts, TextPart) == "ab"
    assert draft.ended


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_is_cut_has_what_arrived_and_no_end(wire: Wire) -> None:
    request = full_request(wire, stream=True)
    frames = wire.frames(request, reply(SimStopReason.END, TextPart(("one ", "two ", "three"))))
    begun = [place for place, frame in enumerate(frames) if b"two " in frame.data]
    reader = AnswerReader(wire.api, wire.media_type(request))
    reader.feed(b"".join(frame.data for frame in frames[: begun[0]]), 5.0)
    reader.close()
    assert said(reader.draft.parts, TextPart) == "one "
    assert not reader.draft.ended
    assert reader.draft.chunk_times == [5.0]


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_in_a_stream_is_noted(wire: Wire) -> None:
    request = full_request(wire, stream=True)
    frames = wire.frames(request, reply(SimStopReason.END, TextPart(("one ", "two "))))[:2]
    error = wire.error_frame(ApiError(ApiErrorKind.OVERLOADED, "busy"), "r" * 24, frames)
    reader = AnswerReader(wire.api, wire.media_type(request))
    reader.feed(b"".join(frame.data for frame in frames) + error, 0.0)
    reader.close()
    told = "insufficient_system_resource" if isinstance(wire, DeepSeekWire) else "busy"
    assert told in json.dumps(reader.draft.error)


def test_what_scenarios_have_no_words_for_is_left_out() -> None:
    events = [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "t", "name": "a"},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": "{}"},
        },
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "server_tool_use", "name": "b"},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "{1}"},
        },
        {"type": "unheard_of"},
    ]
    reader = AnswerReader(AnthropicWire.api, "text/event-stream; charset=utf-8")
    reader.feed(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events), 0.0)
    reader.close()
    assert reader.draft.parts == [ToolUsePart("t", "a", ("{}",))]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]x", b'{"a":1}', b"[1]", b"null"])
def test_what_is_no_answer_is_no_answer(wire: Wire, body: bytes) -> None:
    reader = AnswerReader(wire.api, "application/json")
    reader.feed(body, 0.0)
    if wire.api in {"gemini", "ollama"} and body == b'{"a":1}':  # nothing has to be there
        reader.close()
        assert not reader.draft.ended
    else:
        with pytest.raises(ValueError, match="not an answer"):
            reader.close()

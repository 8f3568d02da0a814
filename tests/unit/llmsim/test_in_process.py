from __future__ import annotations

import asyncio
from typing import Any

import pytest

from peripety.llmsim.delivery.plan import DeliverySettings
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.in_process import (
    Event,
    FinishedEvent,
    InterruptedAnswerError,
    ReasoningDeltaEvent,
    RefusalDeltaEvent,
    TextDeltaEvent,
    ToolCallDeltaEvent,
    UnreadableAnswerError,
    plan_events,
    play_events,
)
from peripety.llmsim.script.types import Fault, Pace
from peripety.llmsim.types import (
    ApiError,
    BilledUsage,
    ReasoningPart,
    RefusalPart,
    SimReply,
    SimStopReason,
    TextPart,
    ToolUsePart,
)

USAGE = BilledUsage(fresh=4, output=9)
REPLY = SimReply(
    "id",
    0,
    "m",
    (ReasoningPart(("hm",), "s"), TextPart(("one ", "two")), ToolUsePart("c", "weather", ('{"a"', ":1}"))),
    SimStopReason.TOOL_USE,
    USAGE,
)
EVENTS: list[Event] = [
    ReasoningDeltaEvent("hm"),
    TextDeltaEvent("one "),
    TextDeltaEvent("two"),
    ToolCallDeltaEvent("c", "weather", '{"a"'),
    ToolCallDeltaEvent("c", "weather", ":1}"),
    FinishedEvent(SimStopReason.TOOL_USE, USAGE),
]


async def collect(
    kind: str | None = None,
    reply: SimReply = REPLY,
    **settings: Any,
) -> tuple[list[Event], Any]:
    failure = None if kind is None else Fault(kind, {**KINDS[kind].default_settings, **settings})
    seen: list[Event] = []
    try:
        async for event in play_events(
            plan_events(reply, DeliverySettings(Pace(), lambda *_: 0, fault=failure)),
        ):
            seen.append(event)  # noqa: PERF401 - what was seen before an error counts
    except (ApiError, InterruptedAnswerError, UnreadableAnswerError) as error:
        return seen, error
    return seen, None


async def test_an_answer_is_its_pieces_and_its_end() -> None:
    assert await collect() == (EVENTS, None)


async def test_a_refusal_is_no_text() -> None:
    reply = SimReply("id", 0, "m", (RefusalPart(("no",)),), SimStopReason.REFUSAL, USAGE)
    assert await collect(reply=reply) == (
        [RefusalDeltaEvent("no"), FinishedEvent(SimStopReason.REFUSAL, USAGE)],
        None,
    )


@pytest.mark.parametrize(
    ("kind", "seen"),
    [("stream_cut", 1), ("reset_at_token", 1), ("partial_response", 5), ("connection_reset", 0)],
)
async def test_a_broken_connection_raises_after_what_arrived(kind: str, seen: int) -> None:
    events, error = await collect(kind)
    assert events == EVENTS[:seen]
    assert isinstance(error, InterruptedAnswerError)


@pytest.mark.parametrize(
    ("kind", "told"),
    [("malformed_json", "{"), ("html_error", "502"), ("empty_body", "''")],
)
async def test_what_is_no_answer_raises(kind: str, told: str) -> None:
    events, error = await collect(kind)
    assert events == []
    assert isinstance(error, UnreadableAnswerError)
    assert told in str(error)


@pytest.mark.parametrize(("kind", "seen"), [("error_in_stream", 1), ("error_in_200", 0)])
async def test_an_error_inside_an_answer_raises_as_itself(kind: str, seen: int) -> None:
    events, error = await collect(kind, error="timeout")
    assert events == EVENTS[:seen]
    assert isinstance(error, ApiError)
    assert error.kind == "timeout"


async def test_chunks_can_be_wrong() -> None:
    assert (await collect("missing_chunk", chunk=1))[0] == [EVENTS[0], *EVENTS[2:]]
    assert (await collect("duplicate_chunk", chunk=1))[0] == [*EVENTS[:2], *EVENTS[1:]]
    assert (await collect("reordered_chunks", chunk=1))[0] == [EVENTS[0], EVENTS[2], EVENTS[1], *EVENTS[3:]]


async def test_usage_and_the_end_can_be_missing() -> None:
    assert (await collect("missing_usage"))[0] == [*EVENTS[:-1], FinishedEvent(SimStopReason.TOOL_USE, None)]
    assert (await collect("missing_end"))[0] == EVENTS[:-1]


async def test_an_answer_that_never_comes_can_be_given_up() -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(collect("hang"), 0.01)


async def test_events_come_in_their_time() -> None:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    await collect("stall", for_ms=30)
    assert loop.time() - begin >= 0.03

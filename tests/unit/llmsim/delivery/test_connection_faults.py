from __future__ import annotations

from typing import Any

import pytest

from peripety.llmsim.delivery.connection_faults import apply_fault, end_with_frame
from peripety.llmsim.delivery.plan import DeliveryPlan, DeliveryStep, ResponseEnd
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.types import Fault
from peripety.llmsim.types import FrameTag, StreamFrame

STREAM = [
    StreamFrame("start", FrameTag.START),
    StreamFrame("ping", FrameTag.NOISE),
    StreamFrame("a", FrameTag.TEXT, 1),
    StreamFrame("ping", FrameTag.NOISE),
    StreamFrame("b", FrameTag.TEXT, 2),
    StreamFrame("c", FrameTag.ARGUMENTS, 1),
    StreamFrame("stop", FrameTag.STOP),
    StreamFrame("usage", FrameTag.USAGE),
    StreamFrame("end", FrameTag.END),
]
WHOLE = [frame.data for frame in STREAM]


def fail(
    kind: str,
    frames: list[StreamFrame[str]] | None = None,
    **settings: Any,
) -> DeliveryPlan[StreamFrame[str]]:
    steps = [DeliveryStep(float(10 * place), frame) for place, frame in enumerate(frames or STREAM)]
    plan = DeliveryPlan(steps, ends_ms=steps[-1].at_ms)
    changed = apply_fault(plan, Fault(kind, {**KINDS[kind].default_settings, **settings}))
    at = [step.at_ms for step in changed.steps]
    assert at == sorted(at)
    assert not at or at[-1] <= changed.ends_ms
    return changed


def data(plan: DeliveryPlan[StreamFrame[str]]) -> list[str]:
    return [step.data.data for step in plan.steps]


def timed(plan: DeliveryPlan[StreamFrame[str]]) -> dict[str, float]:
    return {step.data.data: step.at_ms for step in plan.steps}


@pytest.mark.parametrize(
    ("kind", "ending", "ends_ms"),
    [
        ("network_unreachable", ResponseEnd.RESET, 0),
        ("connection_timeout", ResponseEnd.CLOSED, 5000),
        ("hang", ResponseEnd.HANG, 0),
        ("connection_reset", ResponseEnd.RESET, 0),
    ],
)
def test_of_a_broken_connection_nothing_arrives(kind: str, ending: ResponseEnd, ends_ms: float) -> None:
    assert fail(kind) == DeliveryPlan([], ending, ends_ms) or fail(kind) == DeliveryPlan((), ending, ends_ms)


@pytest.mark.parametrize(("chunks", "left"), [(0, 2), (1, 4), (2, 5), (3, 6), (99, 6)])
def test_a_cut_stream_closes_after_so_many_chunks_or_after_all_of_them(chunks: int, left: int) -> None:
    plan = fail("stream_cut", after_chunks=chunks)
    assert (data(plan), plan.end) == (WHOLE[:left], ResponseEnd.CLOSED)


@pytest.mark.parametrize(("token", "left"), [(0, 2), (1, 4), (2, 4), (3, 5), (4, 8), (99, 8)])
def test_a_stream_resets_before_more_than_so_many_tokens_have_left(token: int, left: int) -> None:
    plan = fail("reset_at_token", token=token)
    assert (data(plan), plan.end) == (WHOLE[:left], ResponseEnd.RESET)


def test_a_partial_response_closes_after_its_text() -> None:
    plan = fail("partial_response")
    assert (data(plan), plan.end) == (WHOLE[:6], ResponseEnd.CLOSED)


def test_a_stall_holds_back_the_rest() -> None:
    plan = fail("stall", after_chunks=2, for_ms=1000)
    assert data(plan) == WHOLE
    assert timed(plan)["b"] == 40
    assert timed(plan)["c"] == 1050
    assert plan.ends_ms == 1080


def test_a_slow_drip_spaces_the_chunks() -> None:
    plan = fail("slow_drip", ms_per_chunk=500)
    assert data(plan) == WHOLE
    assert [timed(plan)[name] for name in "abc"] == [20, 530, 1030]
    assert plan.ends_ms == 1030


def test_a_slow_drip_is_never_faster_than_the_pace() -> None:
    assert timed(fail("slow_drip", ms_per_chunk=1)) == timed(fail("split_utf8"))


@pytest.mark.parametrize(("chunk", "twice"), [(0, "a"), (1, "b"), (9, "c")])
def test_a_duplicate_chunk_arrives_twice(chunk: int, twice: str) -> None:
    names = data(fail("duplicate_chunk", chunk=chunk))
    assert names == [each for name in WHOLE for each in ([name, name] if name == twice else [name])]


@pytest.mark.parametrize(("chunk", "missing"), [(0, "a"), (1, "b"), (9, "c")])
def test_a_missing_chunk_is_one_with_content(chunk: int, missing: str) -> None:
    assert data(fail("missing_chunk", chunk=chunk)) == [name for name in WHOLE if name != missing]


def test_reordered_chunks_change_places_and_keep_their_times() -> None:
    plan = fail("reordered_chunks", chunk=1)
    assert data(plan)[4:6] == ["c", "b"]
    assert [step.at_ms for step in plan.steps] == [10.0 * place for place in range(9)]


def test_a_chunk_is_not_reordered_with_noise() -> None:
    assert data(fail("reordered_chunks", chunk=0))[2:5] == ["b", "ping", "a"]


def test_without_the_mark_of_the_end_everything_else_arrives() -> None:
    assert data(fail("missing_end")) == WHOLE[:-1]


def test_where_the_stop_is_the_mark_of_the_end_it_is_missing() -> None:
    assert data(fail("missing_end", STREAM[:-2])) == WHOLE[:-3]


def test_late_usage_holds_back_the_usage_and_what_follows() -> None:
    plan = fail("late_usage", delay_ms=300)
    assert [timed(plan)[name] for name in ("stop", "usage", "end")] == [60, 370, 380]


def test_usage_that_comes_with_the_stop_is_late_with_it() -> None:
    plan = fail("late_usage", STREAM[:-2], delay_ms=300)
    assert [timed(plan)[name] for name in ("c", "stop")] == [50, 360]


def test_an_answer_without_content_breaks_as_well() -> None:
    frames = [
        StreamFrame("start", FrameTag.START),
        StreamFrame("ping", FrameTag.NOISE),
        StreamFrame("end", FrameTag.END),
    ]
    assert data(fail("missing_chunk", frames)) == ["ping", "end"]
    assert data(fail("stream_cut", frames)) == ["start", "ping"]
    assert data(fail("partial_response", frames)) == ["start", "ping"]


def test_a_single_frame_breaks_as_well() -> None:
    frames = [StreamFrame("all", FrameTag.STOP, 3)]
    for kind in KINDS:
        fail(kind, frames)


def test_something_else_can_end_a_stream_early() -> None:
    plan = DeliveryPlan(
        [DeliveryStep(float(10 * place), frame) for place, frame in enumerate(STREAM)],
        ends_ms=80,
    )
    ended = end_with_frame(plan, 2, lambda sent: f"after {len(sent)}")
    assert data(ended) == [*WHOLE[:5], "after 5"]
    assert (ended.end, ended.ends_ms) == (ResponseEnd.CLEAN, 50)

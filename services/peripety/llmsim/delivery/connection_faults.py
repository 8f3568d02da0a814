"""Connection faults: each kind is a function that changes the frames of a delivery plan.

Kinds are cuts, slow pieces, invalid JSON, errors, missing usage and split characters. Faults count chunks
with content: frames with text, reasoning or arguments. An answer that is not streamed is sent in pieces if
it is to break; each piece counts as such a chunk.
"""

from __future__ import annotations

import itertools
from http.client import responses
from typing import TYPE_CHECKING, Any, TypeVar

from peripety.llmsim.delivery.plan import (
    DeliveryPlan,
    DeliveryStep,
    ResponseEnd,
    answer_start_ms,
    replace_text,
    strip_usage,
)
from peripety.llmsim.faults.injection import embedded_error
from peripety.llmsim.faults.kinds import KINDS, FaultStage
from peripety.llmsim.types import FrameTag, StreamFrame
from peripety.llmsim.wire.base import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.llmsim.script.types import Fault
    from peripety.llmsim.types import SimReply
    from peripety.llmsim.wire.base import Wire


T = TypeVar("T")

_CONTENT_TAGS = frozenset({FrameTag.TEXT, FrameTag.REASONING, FrameTag.ARGUMENTS})


def apply_fault(plan: DeliveryPlan[StreamFrame[T]], fault: Fault) -> DeliveryPlan[StreamFrame[T]]:
    """Return the plan changed by a fault; the same plan if the fault does not affect delivery."""
    change = _FAULT_FUNCTIONS.get(fault.type)
    return plan if change is None else change(plan, fault.settings)


def chunk_index(plan: DeliveryPlan[StreamFrame[T]], number: int) -> int:
    """Return the index of a content chunk, counted from 0; of the last one if there are fewer."""
    places = _content_indexes(plan)
    return places[min(number, len(places) - 1)]


def end_with_frame(
    plan: DeliveryPlan[StreamFrame[T]],
    chunks: int,
    last: Callable[[Sequence[StreamFrame[T]]], T],
) -> DeliveryPlan[StreamFrame[T]]:
    """End a plan with a final frame after a number of chunks.

    Args:
        plan: the plan.
        chunks: number of chunks that still leave.
        last: returns the final frame from the frames that have left.
    """
    kept = _cut_plan(plan, _index_after(plan, chunks), ResponseEnd.CLEAN)
    frame = StreamFrame(last([step.data for step in kept.steps]), FrameTag.END)
    return DeliveryPlan([*kept.steps, DeliveryStep(kept.ends_ms, frame)], ResponseEnd.CLEAN, kept.ends_ms)


def _content_indexes(plan: DeliveryPlan[StreamFrame[T]]) -> list[int]:
    places = [place for place, step in enumerate(plan.steps) if step.data.tag in _CONTENT_TAGS]
    return places or [place for place, step in enumerate(plan.steps) if step.data.tag is not FrameTag.NOISE]


def _index_after(plan: DeliveryPlan[StreamFrame[T]], chunks: int) -> int:
    """Return the index after a number of chunks: the next chunk, or the frame after the last one."""
    places = _content_indexes(plan)
    return places[chunks] if chunks < len(places) else min(places[-1] + 1, len(plan.steps) - 1)


def _cut_plan(
    plan: DeliveryPlan[StreamFrame[T]],
    place: int,
    ending: ResponseEnd,
) -> DeliveryPlan[StreamFrame[T]]:
    return DeliveryPlan(plan.steps[:place], ending, plan.steps[place].at_ms)


def _delay_plan(
    plan: DeliveryPlan[StreamFrame[T]],
    place: int,
    delay_ms: float,
) -> DeliveryPlan[StreamFrame[T]]:
    late = [DeliveryStep(step.at_ms + delay_ms, step.data) for step in plan.steps[place:]]
    return DeliveryPlan([*plan.steps[:place], *late], plan.end, plan.ends_ms + delay_ms)


# ---- nothing of an answer arrives


def _network_unreachable(
    _plan: DeliveryPlan[StreamFrame[T]],
    _settings: Mapping[str, Any],
) -> DeliveryPlan[StreamFrame[T]]:
    return DeliveryPlan((), ResponseEnd.RESET)


def _connection_timeout(
    _plan: DeliveryPlan[StreamFrame[T]],
    settings: Mapping[str, Any],
) -> DeliveryPlan[StreamFrame[T]]:
    return DeliveryPlan((), ResponseEnd.CLOSED, settings["after_ms"])


def _hang(_plan: DeliveryPlan[StreamFrame[T]], _settings: Mapping[str, Any]) -> DeliveryPlan[StreamFrame[T]]:
    return DeliveryPlan((), ResponseEnd.HANG)


# ---- it ends before its end


def _partial_response(
    plan: DeliveryPlan[StreamFrame[T]],
    _settings: Mapping[str, Any],
) -> DeliveryPlan[StreamFrame[T]]:
    return _cut_plan(plan, _index_after(plan, len(plan.steps)), ResponseEnd.CLOSED)


def _stream_cut(
    plan: DeliveryPlan[StreamFrame[T]],
    settings: Mapping[str, Any],
) -> DeliveryPlan[StreamFrame[T]]:
    return _cut_plan(plan, _index_after(plan, settings["after_chunks"]), ResponseEnd.CLOSED)


def _reset_at_token(
    plan: DeliveryPlan[StreamFrame[T]],
    settings: Mapping[str, Any],
) -> DeliveryPlan[StreamFrame[T]]:
    tokens = 0
    for place, step in enumerate(plan.steps):
        tokens += step.data.tokens
        if tokens > settings["token"]:
            return _cut_plan(plan, place, ResponseEnd.RESET)
    return _cut_plan(plan, len(plan.steps) - 1, ResponseEnd.RESET)


def _missing_end(
    plan: DeliveryPlan[StreamFrame[T]],
    _settings: Mapping[str, Any],
) -> DeliveryPlan[StreamFrame[T]]:
    for tag in (FrameTag.END, FrameTag.STOP):
        kept = [step for step in plan.steps if step.data.tag is not tag]
        if len(kept) < len(plan.steps):
            return plan.with_steps(kept)
    return plan


# ---- it is late


def _stall(plan: DeliveryPlan[StreamFrame[T]], settings: Mapping[str, Any]) -> DeliveryPlan[StreamFrame[T]]:
    return _delay_plan(plan, _index_after(plan, settings["after_chunks"]), settings["for_ms"])


def _slow_drip(
    plan: DeliveryPlan[StreamFrame[T]],
    settings: Mapping[str, Any],
) -> DeliveryPlan[StreamFrame[T]]:
    chunks = frozenset(_content_indexes(plan)[1:])
    steps: list[DeliveryStep[StreamFrame[T]]] = []
    latest = 0.0
    for place, step in enumerate(plan.steps):
        latest = max(step.at_ms, latest + (settings["ms_per_chunk"] if place in chunks else 0))
        steps.append(DeliveryStep(latest, step.data))
    return DeliveryPlan(steps, plan.end, max(plan.ends_ms, latest))


def _late_usage(
    plan: DeliveryPlan[StreamFrame[T]],
    settings: Mapping[str, Any],
) -> DeliveryPlan[StreamFrame[T]]:
    tags = [step.data.tag for step in plan.steps]
    place = next(
        (tags.index(tag) for tag in (FrameTag.USAGE, FrameTag.STOP, FrameTag.END) if tag in tags),
        len(tags) - 1,
    )
    return _delay_plan(plan, place, settings["delay_ms"])


# ---- its chunks are not what was sent


def _duplicate_chunk(
    plan: DeliveryPlan[StreamFrame[T]],
    settings: Mapping[str, Any],
) -> DeliveryPlan[StreamFrame[T]]:
    place = chunk_index(plan, settings["chunk"])
    return plan.with_steps([*plan.steps[: place + 1], *plan.steps[place:]])


def _missing_chunk(
    plan: DeliveryPlan[StreamFrame[T]],
    settings: Mapping[str, Any],
) -> DeliveryPlan[StreamFrame[T]]:
    place = chunk_index(plan, settings["chunk"])
    return plan.with_steps([*plan.steps[:place], *plan.steps[place + 1 :]])


def _reordered_chunks(
    plan: DeliveryPlan[StreamFrame[T]],
    settings: Mapping[str, Any],
) -> DeliveryPlan[StreamFrame[T]]:
    steps = list(plan.steps)
    place = chunk_index(plan, settings["chunk"])
    following = (at for at in range(place + 1, len(steps)) if steps[at].data.tag is not FrameTag.NOISE)
    other = next(following, max(place - 1, 0))
    first, second = steps[place], steps[other]
    steps[place], steps[other] = (
        DeliveryStep(first.at_ms, second.data),
        DeliveryStep(second.at_ms, first.data),
    )
    return plan.with_steps(steps)


_FAULT_FUNCTIONS: Mapping[
    str,
    Callable[[DeliveryPlan[StreamFrame[Any]], Mapping[str, Any]], DeliveryPlan[StreamFrame[Any]]],
] = {
    "network_unreachable": _network_unreachable,
    "connection_timeout": _connection_timeout,
    "hang": _hang,
    "connection_reset": _network_unreachable,
    "partial_response": _partial_response,
    "stream_cut": _stream_cut,
    "reset_at_token": _reset_at_token,
    "missing_end": _missing_end,
    "stall": _stall,
    "slow_drip": _slow_drip,
    "late_usage": _late_usage,
    "duplicate_chunk": _duplicate_chunk,
    "missing_chunk": _missing_chunk,
    "reordered_chunks": _reordered_chunks,
}


_PIECE_COUNT = 8
_SPLIT_GAP_MS = 2.0
_LEAD_BYTE = 0xC0  # lead byte of a multi-byte character


def error_page(status: int) -> str:
    """Return the HTML error page of a proxy."""
    title = f"{status} {responses.get(status, 'Error')}"
    return f"<html>\n<head><title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n</body>\n</html>\n"


def break_stream(
    plan: DeliveryPlan[StreamFrame[bytes]],
    fault: Fault,
    wire: Wire,
    request_id: str,
) -> DeliveryPlan[StreamFrame[bytes]]:
    """Return a stream with faulty bytes; the same stream if the fault does not affect bytes."""
    begins = answer_start_ms(plan)
    settings = fault.settings
    match fault.type:
        case "empty_body":
            return DeliveryPlan(ends_ms=begins)
        case "error_in_200":
            frame = StreamFrame(wire.error_frame(embedded_error(fault), request_id, ()), FrameTag.END)
            return DeliveryPlan([DeliveryStep(begins, frame)], ends_ms=begins)
        case "error_in_stream":
            error = embedded_error(fault)
            return end_with_frame(
                plan,
                settings["after_chunks"],
                lambda sent: wire.error_frame(error, request_id, sent),
            )
        case "malformed_json":
            place = chunk_index(plan, 0)
            at_ms, frame = plan.steps[place]
            wrong = DeliveryStep(
                at_ms,
                StreamFrame(replace_text(frame.data, settings["raw"]), frame.tag, frame.tokens),
            )
            return plan.with_steps([*plan.steps[:place], wrong, *plan.steps[place + 1 :]])
        case "missing_usage":
            return plan.with_steps(
                [
                    DeliveryStep(at_ms, StreamFrame(strip_usage(frame.data), frame.tag, frame.tokens))
                    for at_ms, frame in plan.steps
                    if frame.tag is not FrameTag.USAGE
                ],
            )
    return plan


def break_document(body: bytes, fault: Fault, wire: Wire, request_id: str) -> bytes:
    """Return a faulty document; the same document if the fault does not affect bytes."""
    match fault.type:
        case "empty_body":
            return b""
        case "error_in_200":
            return wire.error(embedded_error(fault), request_id, now=0).body  # only headers contain dates
        case "malformed_json":
            return str(fault.settings["raw"]).encode()
        case "missing_usage":
            return strip_usage(body)
    return body


def split_document(body: bytes, reply: SimReply, fault: Fault) -> Iterator[StreamFrame[bytes]]:
    """Yield a document as chunks, for faults that occur between chunks.

    Args:
        body: the document.
        reply: the answer in the document; its tokens are spread evenly.
        fault: the fault.
    """
    if KINDS[fault.type].stage is not FaultStage.STREAM:
        yield StreamFrame(body, FrameTag.END)
        return
    if fault.type == "partial_response":
        bounds = [0, _text_end(body, fault.settings["partial_text"]), len(body)]
    else:
        bounds = [len(body) * number // _PIECE_COUNT for number in range(_PIECE_COUNT + 1)]
    tokens = reply.usage.output
    for begin, end in itertools.pairwise(bounds):
        share = tokens * end // len(body) - tokens * begin // len(body)
        yield StreamFrame(body[begin:end], FrameTag.END if end == len(body) else FrameTag.TEXT, share)


def _text_end(body: bytes, text: str) -> int:
    written = compact_json(text)[1:-1]
    return body.rfind(written) + len(written) if written in body else len(body) // 2


def split_characters(steps: Iterable[DeliveryStep[bytes]]) -> Iterator[DeliveryStep[bytes]]:
    """Split each multi-byte character.

    The parts leave at different times, so that they arrive separately.
    """
    late_ms = 0.0
    for at_ms, data in steps:
        begin = 0
        for place in (place for place, byte in enumerate(data) if byte >= _LEAD_BYTE):
            yield DeliveryStep(at_ms + late_ms, data[begin : place + 1])
            late_ms += _SPLIT_GAP_MS
            begin = place + 1
        yield DeliveryStep(at_ms + late_ms, data[begin:])

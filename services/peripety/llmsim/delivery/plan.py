"""Delivery plan: the time of each chunk of an answer, and the way the response ends.

A plan is a list of steps with absolute times, in milliseconds after the request, and an ending. It is pure
data. Pacing, jitter and every fault are functions from a plan to a plan, so they combine freely and can be
tested without a clock or a socket. Two executors exist: one writes bytes to a connection, one yields events
in process. Both read the same plan, therefore a test in process sees the faults of a real connection.

The parameter of a plan is the type of its frames: bytes for a wire, events in process.

Times are absolute and not gaps. A step that leaves late, because the client is slow or the event loop is
busy, does not delay the steps after it. An answer of n tokens at a given rate ends at its planned time.
Jitter moves each chunk by at most half a chunk around its own time, so it never accumulates.

Invariants:

- The times of steps never decrease, and `ends_ms` is not before the last step.
- Steps due at the same time leave in one write if the executor can do that.
- An ending other than a clean one determines the state of the connection after the last step.

A generator that sleeps between chunks would be shorter. But its errors add up, faults such as reordering
need lookahead, and a test would have to wait in real time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from peripety.llmsim.types import FrameTag
from peripety.llmsim.wire.base import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from peripety.llmsim.script.types import Fault, Pace
    from peripety.llmsim.types import StreamFrame


_USAGE = frozenset({"usage", "usageMetadata", "prompt_eval_count", "eval_count"})
_NESTING_MEMBERS = ("message", "response")
_EVENT = b"data: "


def replace_text(frame: bytes, text: str) -> bytes:
    """Return a frame of the same form with another text."""
    before, _, after = _split_frame(frame)
    newline = b"\n" + _EVENT if before.endswith(_EVENT) else b"\n"
    return before + newline.join(text.encode().splitlines()) + after


def strip_usage(text: bytes) -> bytes:
    """Return a document or frame without its token counts."""
    before, data, after = _split_frame(text)
    value = json.loads(data) if data else None
    stripped = _strip_usage_members(value)
    return text if stripped == value else before + compact_json(stripped) + after


def _split_frame(frame: bytes) -> tuple[bytes, bytes, bytes]:
    """Split a frame into the text before its object, the object, and the text after it."""
    begin = frame.find(b"{")
    end = frame.rfind(b"}") + 1
    return (frame[:begin], frame[begin:end], frame[end:]) if begin >= 0 else (b"", b"", frame)


def _strip_usage_members(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kept = {name: each for name, each in value.items() if name not in _USAGE}
    return kept | {name: _strip_usage_members(kept[name]) for name in _NESTING_MEMBERS if name in kept}


T = TypeVar("T")


class ResponseEnd(StrEnum):
    """The ways in which a response ends."""

    CLEAN = "clean"
    CLOSED = "closed"  # the connection is closed before the answer is complete
    RESET = "reset"
    HANG = "hang"  # no more data, and the connection stays open until the caller closes it


class DeliveryStep(NamedTuple, Generic[T]):
    """Data that leaves at a time, in milliseconds after the request."""

    at_ms: float
    data: T


@dataclass(frozen=True, slots=True)
class DeliveryPlan(Generic[T]):
    """Steps and the end of a response.

    Attributes:
        steps: ordered by time.
        end: the way the response ends.
        ends_ms: the time of the end, in milliseconds after the request; not before the last step.
    """

    steps: Sequence[DeliveryStep[T]] = ()
    end: ResponseEnd = ResponseEnd.CLEAN
    ends_ms: float = 0.0

    def with_steps(self, steps: Sequence[DeliveryStep[T]]) -> DeliveryPlan[T]:
        """Return the same plan with other steps."""
        return DeliveryPlan(steps, self.end, self.ends_ms)


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """Delivery settings of an answer.

    Attributes:
        pace: the timing of chunks.
        draw: returns an unsigned 64-bit integer for a purpose and an index; decides the jitter.
        delay_ms: the delay before the whole answer.
        fault: the fault.
    """

    pace: Pace
    draw: Callable[[str, int], int]
    delay_ms: float = 0
    fault: Fault | None = None


def answer_duration(pace: Pace, tokens: int) -> float:
    """Return the milliseconds that an answer of this number of tokens takes."""
    return pace.first_token_ms + tokens * _token_gap_ms(pace)


def pace_frames(frames: Sequence[StreamFrame[T]], settings: DeliverySettings) -> DeliveryPlan[StreamFrame[T]]:
    """Return the plan without faults: each frame with its time.

    A chunk leaves with its first token: token n (from 0) leaves n / `tokens_per_second` after the first.
    Pings before the answer leave at once.
    """
    begin = settings.delay_ms + settings.pace.first_token_ms
    noise = list(takewhile(lambda frame: frame.tag is FrameTag.NOISE, frames))
    steps, rest = [DeliveryStep(0.0, frame) for frame in noise], frames[len(noise) :]
    if settings.pace.tokens_per_second is None:
        return DeliveryPlan([*steps, *(DeliveryStep(begin, frame) for frame in rest)], ends_ms=begin)
    ends = settings.delay_ms + answer_duration(settings.pace, sum(frame.tokens for frame in frames))
    return DeliveryPlan([*steps, *_paced_steps(rest, settings.pace, begin, settings.draw)], ends_ms=ends)


def answer_start_ms(plan: DeliveryPlan[StreamFrame[T]]) -> float:
    """Return the start of the answer itself, in milliseconds after the request."""
    return next((step.at_ms for step in plan.steps if step.data.tag is not FrameTag.NOISE), plan.ends_ms)


def _paced_steps(
    frames: Sequence[StreamFrame[T]],
    pace: Pace,
    begin: float,
    draw: Callable[[str, int], int],
) -> Iterator[DeliveryStep[StreamFrame[T]]]:
    gap, jitter = _token_gap_ms(pace), pace.jitter
    before = 0
    latest = begin
    for frame in frames:
        at = float(before)
        if jitter and before and frame.tokens:
            # at most half a chunk around its own time, so that jitter does not accumulate
            at += jitter * frame.tokens * (draw("jitter", before) * 2.0**-64 - 0.5)
        latest = max(latest, begin + gap * at)
        yield DeliveryStep(latest, frame)
        before += frame.tokens


def _token_gap_ms(pace: Pace) -> float:
    return 0.0 if pace.tokens_per_second is None else 1000 / pace.tokens_per_second

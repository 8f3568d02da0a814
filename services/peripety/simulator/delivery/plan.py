"""When each chunk of an answer leaves, and how the whole ends.

A plan is made of frames, whatever they carry: bytes for a wire, events in process. Its times are absolute, so
that a chunk that leaves late makes no other one late.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from peripety.simulator.model import Tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from peripety.simulator.model import Frame
    from peripety.simulator.scenario.model import Failure, Pace

__all__ = ["Ending", "Manner", "Plan", "Step", "begins_ms", "duration", "paced"]

T = TypeVar("T")


class Ending(StrEnum):
    """How an answer ends."""

    CLEAN = "clean"
    CLOSED = "closed"  # the connection is closed before the answer is complete
    RESET = "reset"
    HANG = "hang"  # nothing more comes, and the connection stays open until the caller goes


class Step(NamedTuple, Generic[T]):
    """Something that leaves, so many milliseconds after the request came in."""

    at_ms: float
    data: T


@dataclass(frozen=True, slots=True)
class Plan(Generic[T]):
    """What leaves when, and how it ends.

    Attributes:
        steps: in the order in which they leave; their times never fall.
        ending: how it ends.
        ends_ms: when it ends, in milliseconds after the request; never before the last step.
    """

    steps: Sequence[Step[T]] = ()
    ending: Ending = Ending.CLEAN
    ends_ms: float = 0.0

    def replaced(self, steps: Sequence[Step[T]]) -> Plan[T]:
        """The same plan with other steps."""
        return Plan(steps, self.ending, self.ends_ms)


@dataclass(frozen=True, slots=True)
class Manner:
    """How an answer is delivered.

    Attributes:
        pace: how it arrives.
        draw: an unsigned 64-bit integer for each purpose and index; decides the jitter.
        delay_ms: how long it is held back as a whole.
        failure: what goes wrong.
    """

    pace: Pace
    draw: Callable[[str, int], int]
    delay_ms: float = 0
    failure: Failure | None = None


def duration(pace: Pace, tokens: int) -> float:
    """How many milliseconds an answer of so many tokens takes."""
    return pace.first_token_ms + tokens * _gap(pace)


def paced(frames: Sequence[Frame[T]], manner: Manner) -> Plan[Frame[T]]:
    """Say when each frame leaves if nothing goes wrong.

    A chunk leaves with its first token: token n (from 0) leaves n / `tokens_per_second` after the first.
    Noise that comes before the answer is there to be waited with, and leaves at once.
    """
    begin = manner.delay_ms + manner.pace.first_token_ms
    noise = list(takewhile(lambda frame: frame.tag is Tag.NOISE, frames))
    steps, rest = [Step(0.0, frame) for frame in noise], frames[len(noise) :]
    if manner.pace.tokens_per_second is None:
        return Plan([*steps, *(Step(begin, frame) for frame in rest)], ends_ms=begin)
    ends = manner.delay_ms + duration(manner.pace, sum(frame.tokens for frame in frames))
    return Plan([*steps, *_steps(rest, manner.pace, begin, manner.draw)], ends_ms=ends)


def begins_ms(plan: Plan[Frame[T]]) -> float:
    """When the answer itself begins, in milliseconds after the request."""
    return next((step.at_ms for step in plan.steps if step.data.tag is not Tag.NOISE), plan.ends_ms)


def _steps(
    frames: Sequence[Frame[T]], pace: Pace, begin: float, draw: Callable[[str, int], int]
) -> Iterator[Step[Frame[T]]]:
    gap, jitter = _gap(pace), pace.jitter
    before = 0
    latest = begin
    for frame in frames:
        at = float(before)
        if jitter and before and frame.tokens:
            # at most half a chunk off its own place: gaps vary by the whole share, and nothing adds up
            at += jitter * frame.tokens * (draw("jitter", before) * 2.0**-64 - 0.5)
        latest = max(latest, begin + gap * at)
        yield Step(latest, frame)
        before += frame.tokens


def _gap(pace: Pace) -> float:
    return 0.0 if pace.tokens_per_second is None else 1000 / pace.tokens_per_second

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

A generator that sleeps between chunks would be shorter. But its errors add up, faults such as reordering need
lookahead, and a test would have to wait in real time.
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
    """The ways in which a response ends."""

    CLEAN = "clean"
    CLOSED = "closed"  # the connection is closed before the answer is complete
    RESET = "reset"
    HANG = "hang"  # no more data, and the connection stays open until the caller closes it


class Step(NamedTuple, Generic[T]):
    """Data that leaves at a time, in milliseconds after the request."""

    at_ms: float
    data: T


@dataclass(frozen=True, slots=True)
class Plan(Generic[T]):
    """Steps and the end of a response.

    Attributes:
        steps: ordered by time.
        ending: the way the response ends.
        ends_ms: the time of the end, in milliseconds after the request; not before the last step.
    """

    steps: Sequence[Step[T]] = ()
    ending: Ending = Ending.CLEAN
    ends_ms: float = 0.0

    def replaced(self, steps: Sequence[Step[T]]) -> Plan[T]:
        """Return the same plan with other steps."""
        return Plan(steps, self.ending, self.ends_ms)


@dataclass(frozen=True, slots=True)
class Manner:
    """Delivery settings of an answer.

    Attributes:
        pace: the timing of chunks.
        draw: returns an unsigned 64-bit integer for a purpose and an index; decides the jitter.
        delay_ms: the delay before the whole answer.
        failure: the fault.
    """

    pace: Pace
    draw: Callable[[str, int], int]
    delay_ms: float = 0
    failure: Failure | None = None


def duration(pace: Pace, tokens: int) -> float:
    """Return the milliseconds that an answer of this number of tokens takes."""
    return pace.first_token_ms + tokens * _gap(pace)


def paced(frames: Sequence[Frame[T]], manner: Manner) -> Plan[Frame[T]]:
    """Return the plan without faults: each frame with its time.

    A chunk leaves with its first token: token n (from 0) leaves n / `tokens_per_second` after the first.
    Pings before the answer leave at once.
    """
    begin = manner.delay_ms + manner.pace.first_token_ms
    noise = list(takewhile(lambda frame: frame.tag is Tag.NOISE, frames))
    steps, rest = [Step(0.0, frame) for frame in noise], frames[len(noise) :]
    if manner.pace.tokens_per_second is None:
        return Plan([*steps, *(Step(begin, frame) for frame in rest)], ends_ms=begin)
    ends = manner.delay_ms + duration(manner.pace, sum(frame.tokens for frame in frames))
    return Plan([*steps, *_steps(rest, manner.pace, begin, manner.draw)], ends_ms=ends)


def begins_ms(plan: Plan[Frame[T]]) -> float:
    """Return the start of the answer itself, in milliseconds after the request."""
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
            # at most half a chunk around its own time, so that jitter does not accumulate
            at += jitter * frame.tokens * (draw("jitter", before) * 2.0**-64 - 0.5)
        latest = max(latest, begin + gap * at)
        yield Step(latest, frame)
        before += frame.tokens


def _gap(pace: Pace) -> float:
    return 0.0 if pace.tokens_per_second is None else 1000 / pace.tokens_per_second

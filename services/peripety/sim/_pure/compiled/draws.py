"""The draws of a run, a block of turns at once.

A large integer is a vector here: in each lane of 128 bits stands one 64-bit number, with room above it for a
product. So Python's slow operations on one number become as many on those of sixteen turns.
"""

from __future__ import annotations

import struct
from itertools import chain, count
from typing import TYPE_CHECKING

from peripety.sim._pure.events import EVENT_STREAM
from peripety.sim._pure.rng import INCREMENT, MULTIPLIERS, mix, stream_key
from peripety.sim._pure.turn import POLICY_STREAM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["POLICY_KEY", "Draws"]

POLICY_KEY = stream_key(POLICY_STREAM)
_EVENT_KEY = stream_key(EVENT_STREAM)
_BLOCK_TURNS = 16
_LANE_BITS = 128
_FULL = (1 << 64) - 1


class Draws:
    """The first draws of each turn: of the event, and so many of the persona.

    Args:
        width: how many draws of the persona a row has.
    """

    def __init__(self, width: int) -> None:
        lanes = (width + 1) * _BLOCK_TURNS
        self._width = width
        self._bytes = lanes * _LANE_BITS // 8
        self._rows = struct.Struct("<" + "Q8x" * (width + 1))
        self._events = _vector([1, *[0] * width] * _BLOCK_TURNS)
        self._policies = _vector([0, *[1] * width] * _BLOCK_TURNS)
        self._full = _vector([_FULL] * lanes)
        self._counters: dict[int, int] = {}  # by block; threads that fill it at once write the same

    def of(self, seed: int) -> Iterator[tuple[int, ...]]:
        """For each turn, from the first: the event's draw, then those of the persona, each of 64 bits."""
        bases = mix(seed ^ _EVENT_KEY) * self._events + mix(seed ^ POLICY_KEY) * self._policies
        return chain.from_iterable(self._block(bases, number) for number in count())

    def _block(self, bases: int, number: int) -> Iterable[tuple[int, ...]]:
        if number not in self._counters:
            self._counters[number] = self._steps(number * _BLOCK_TURNS + 1)
        full, (first, second) = self._full, MULTIPLIERS
        value = (bases + self._counters[number]) & full
        value = ((value ^ (value >> 30)) & full) * first & full
        value = ((value ^ (value >> 27)) & full) * second & full
        value ^= value >> 31  # what this leaves above a number is not read
        return self._rows.iter_unpack(value.to_bytes(self._bytes, "little"))

    def _steps(self, turn: int) -> int:
        """What `draw` adds to its base for each draw of a block of turns."""
        indices = [0, *range(self._width)]
        return _vector(
            [
                INCREMENT * ((now << 32) + index + 1) & _FULL
                for now in range(turn, turn + _BLOCK_TURNS)
                for index in indices
            ]
        )


def _vector(numbers: list[int]) -> int:
    return sum(number << (lane * _LANE_BITS) for lane, number in enumerate(numbers))

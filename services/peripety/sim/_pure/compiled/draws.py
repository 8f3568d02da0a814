"""Random draws of a run, computed for a block of turns at once.

A large integer serves as a vector: each lane of 128 bits holds one 64-bit number, with room for a product.
One slow operation on integers so handles sixteen turns.
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
    """First draws of each turn: one for the event, and several for the persona.

    Args:
        width: number of the persona's draws in a row.
    """

    def __init__(self, width: int) -> None:
        lanes = (width + 1) * _BLOCK_TURNS
        self._width = width
        self._bytes = lanes * _LANE_BITS // 8
        self._rows = struct.Struct("<" + "Q8x" * (width + 1))
        self._events = _vector([1, *[0] * width] * _BLOCK_TURNS)
        self._policies = _vector([0, *[1] * width] * _BLOCK_TURNS)
        self._full = _vector([_FULL] * lanes)
        self._counters: dict[int, int] = {}  # by block; concurrent threads compute equal entries

    def of(self, seed: int) -> Iterator[tuple[int, ...]]:
        """Yield for each turn the draw of the event and those of the persona, each of 64 bits."""
        bases = mix(seed ^ _EVENT_KEY) * self._events + mix(seed ^ POLICY_KEY) * self._policies
        return chain.from_iterable(self._block(bases, number) for number in count())

    def _block(self, bases: int, number: int) -> Iterable[tuple[int, ...]]:
        if number not in self._counters:
            self._counters[number] = self._steps(number * _BLOCK_TURNS + 1)
        full, (first, second) = self._full, MULTIPLIERS
        value = (bases + self._counters[number]) & full
        value = ((value ^ (value >> 30)) & full) * first & full
        value = ((value ^ (value >> 27)) & full) * second & full
        value ^= value >> 31  # bits above each number are not read
        return self._rows.iter_unpack(value.to_bytes(self._bytes, "little"))

    def _steps(self, turn: int) -> int:
        """Return the counter offset of each draw in a block of turns."""
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

"""Counter-based random numbers: every draw is a pure function of seed, stream, turn and index.

Version 1: `draw = mix(mix(seed ^ stream) + G·(turn·2^32 + index + 1))` in 64-bit arithmetic, where `mix` is
SplitMix64's finaliser, `G` its increment, and `stream` the first eight bytes of SHA-256 of the stream's tag,
big-endian.

Why keyed: with a sequential generator, one more draw anywhere would change every later number, so an edit of
one rule would change unrelated events. With keys, runs can be split over threads and machines, and replayed
from any turn.
"""

from __future__ import annotations

import hashlib

RNG_VERSION = 1
_MASK = (1 << 64) - 1
INCREMENT = 0x9E3779B97F4A7C15
MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def mix(value: int) -> int:
    """Mix the bits of a number with SplitMix64's finaliser."""
    first, second = MULTIPLIERS
    value = ((value ^ (value >> 30)) * first) & _MASK
    value = ((value ^ (value >> 27)) * second) & _MASK
    return value ^ (value >> 31)


def stream_key(tag: str) -> int:
    """Return the 64-bit key of a stream of draws, such as `event` or `policy`."""
    return int.from_bytes(hashlib.sha256(tag.encode("utf-8")).digest()[:8], "big")


def draw(seed: int, stream: int, turn: int, index: int) -> int:
    """Return draw number `index` of a stream within a turn, as an unsigned 64-bit integer."""
    counter = (turn << 32) + index + 1
    return mix((mix(seed ^ stream) + INCREMENT * counter) & _MASK)


def run_seed(seed: int, run: int) -> int:
    """Return the seed of dry-run number `run`; consecutive runs get the SplitMix64 sequence of `seed`."""
    return mix((seed + INCREMENT * (run + 1)) & _MASK)


def to_unit_interval(value: int) -> float:
    """Convert a draw to a number in [0, 1) by its top 53 bits."""
    return (value >> 11) * 2.0**-53


def choose(value: int, count: int) -> int:
    """Convert a draw to a choice among `count` possibilities, 0 … count - 1."""
    return ((value >> 32) * count) >> 32

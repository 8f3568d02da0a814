"""Good specifications at random: valid, playable, as hard as others are, and winnable where they can be won.

They are made for trying out whatever takes many specifications. No model is asked and nothing is simulated:
`calibration` says why they can be lost and won. The specification of a seed and an index is the same on every
machine, on both cores, and whatever else is asked for.
"""

from __future__ import annotations

from peripety import sim
from peripety.errors import InvalidArgumentError
from peripety.scenarios.random_specs.author import write_spec
from peripety.scenarios.random_specs.source import MAX_INDEX

__all__ = ["MAX_INDEX", "random_spec"]


def random_spec(seed: int, index: int) -> bytes:
    """The canonical JSON of a specification.

    Args:
        seed: an unsigned 64-bit integer.
        index: number of the specification under this seed, up to `MAX_INDEX`.

    Raises:
        InvalidArgumentError: one of them is out of range.
    """
    if not 0 <= index <= MAX_INDEX:
        raise InvalidArgumentError(f"index must be an integer, 0 … {MAX_INDEX}, not {index}")
    return sim.canonical(write_spec(seed, index))

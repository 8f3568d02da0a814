"""Generator of random specifications: valid, playable, of usual difficulty, and winnable if they have a goal.

They serve as test data for anything that needs many specifications. Generation needs neither a model nor
simulation: The analytic calibration explains why they can be lost and won. The specification of a seed and an
index is the same on every machine and backend.
"""

from __future__ import annotations

from peripety import sim
from peripety.errors import InvalidArgumentError
from peripety.scenarios.random_specs.author import write_spec
from peripety.scenarios.random_specs.source import MAX_INDEX

__all__ = ["MAX_INDEX", "random_spec"]


def random_spec(seed: int, index: int) -> bytes:
    """Return a specification as canonical JSON.

    Args:
        seed: an unsigned 64-bit integer.
        index: the number of the specification under this seed, up to `MAX_INDEX`.

    Raises:
        InvalidArgumentError: an argument is out of range.
    """
    if not 0 <= index <= MAX_INDEX:
        raise InvalidArgumentError(f"index must be an integer, 0 … {MAX_INDEX}, not {index}")
    return sim.canonical(write_spec(seed, index))

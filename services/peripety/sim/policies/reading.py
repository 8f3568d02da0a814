"""How matchers read values, for those who ask what rules mean without a request."""

from __future__ import annotations

from peripety.sim._core import CoreError
from peripety.sim._pure.policies.values import READERS

__all__ = ["read_value"]


def read_value(kind: str, text: str) -> str | None:
    """A text as matchers of a kind compare it, such as a path without `..`; None when it cannot be read.

    Args:
        kind: `path`, `domain`, `email` or `identifier`.
        text: what stands in an argument.
    """
    try:
        return READERS[kind](text)
    except CoreError:
        return None

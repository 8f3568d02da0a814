"""Normal forms of argument values, for analysis of rules without a request."""

from __future__ import annotations

from peripety.sim._core import CoreError
from peripety.sim._pure.policies.values import READERS

__all__ = ["read_value"]


def read_value(kind: str, text: str) -> str | None:
    """Return the normal form in which matchers of a kind compare a text, or None if it is invalid.

    A path, for example, is compared without `..`.

    Args:
        kind: `path`, `domain`, `email` or `identifier`.
        text: the value of an argument.
    """
    try:
        return READERS[kind](text)
    except CoreError:
        return None

"""Retry headers."""

from __future__ import annotations

from email.utils import formatdate
from math import ceil
from typing import TYPE_CHECKING

from peripety.simulator.model import RetryForm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.model import RetryHint

__all__ = ["retry_headers"]


def retry_headers(hint: RetryHint | None, now: float) -> Mapping[str, str]:
    """Return the retry header, if there is a hint. A date is rounded up.

    Args:
        hint: the retry delay.
        now: the base of a date, in seconds since 1970.
    """
    if hint is None:
        return {}
    if hint.form is RetryForm.MILLISECONDS:
        return {"retry-after-ms": f"{hint.seconds * 1000:.10g}"}
    if hint.form is RetryForm.DATE:
        return {"retry-after": formatdate(ceil(now + hint.seconds), usegmt=True)}
    return {"retry-after": f"{hint.seconds:.10g}"}

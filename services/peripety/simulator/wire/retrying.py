"""When to come back, as a header says it."""

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
    """The header that holds the hint, if there is one; a date is never too early.

    Args:
        hint: when to come back.
        now: what a date is counted from, in seconds since 1970.
    """
    if hint is None:
        return {}
    if hint.form is RetryForm.MILLISECONDS:
        return {"retry-after-ms": f"{hint.seconds * 1000:.10g}"}
    if hint.form is RetryForm.DATE:
        return {"retry-after": formatdate(ceil(now + hint.seconds), usegmt=True)}
    return {"retry-after": f"{hint.seconds:.10g}"}

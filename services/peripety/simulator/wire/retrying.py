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


def retry_headers(hint: RetryHint | None) -> Mapping[str, str]:
    """The header that holds the hint, if there is one; a date is never too early."""
    if hint is None:
        return {}
    if hint.form is RetryForm.MILLISECONDS:
        return {"retry-after-ms": f"{hint.seconds * 1000:.10g}"}
    if hint.form is RetryForm.DATE:
        return {"retry-after": formatdate(ceil(hint.now + hint.seconds), usegmt=True)}
    return {"retry-after": f"{hint.seconds:.10g}"}

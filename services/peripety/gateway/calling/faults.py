"""What a failed call says: whose fault it was, and whether it may go better next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import DeadlineError, UnavailableError

if TYPE_CHECKING:
    from peripety.errors import PeripetyError

__all__ = ["is_provider_fault", "may_pass", "was_answered"]

_BUSY = "PROVIDER_BUSY"
_ANSWERS_THAT_MAY_PASS = frozenset({_BUSY, "PROVIDER_FAILED", "PROVIDER_RATE_LIMITED"})
_MAY_PASS = _ANSWERS_THAT_MAY_PASS | {"PROVIDER_UNREACHABLE", "STREAM_MALFORMED", "STREAM_TRUNCATED"}


def is_provider_fault(error: PeripetyError) -> bool:
    """Whether the provider failed: not when it refused a request, a key or more of the same."""
    return isinstance(error, UnavailableError) and error.code != _BUSY


def may_pass(error: PeripetyError) -> bool:
    """Whether the same request may succeed a little later.

    A time-out is not taken for that: the caller has waited for long, and the provider may be at work still.
    """
    return error.code in _MAY_PASS


def was_answered(error: PeripetyError) -> bool:
    """Whether the provider said that it would not do it, and so used no tokens."""
    return error.code in _ANSWERS_THAT_MAY_PASS or not isinstance(error, UnavailableError | DeadlineError)

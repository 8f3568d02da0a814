"""What a failed call says: whose fault it was, and whether it may go better next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import DeadlineError, UnavailableError

if TYPE_CHECKING:
    from peripety.errors import PeripetyError

__all__ = ["another_may_answer", "is_provider_fault", "may_pass", "was_answered"]

_BUSY = "PROVIDER_BUSY"
_ANSWERS_THAT_MAY_PASS = frozenset({_BUSY, "PROVIDER_FAILED", "PROVIDER_RATE_LIMITED"})
_MAY_PASS = _ANSWERS_THAT_MAY_PASS | {"PROVIDER_UNREACHABLE", "STREAM_MALFORMED", "STREAM_TRUNCATED"}

# What says something about one provider, or one model of it. Not here: a request that is refused as
# malformed, a budget that is used up, the caller's deadline, and what is our own.
_MAY_GO_BETTER_ELSEWHERE = _MAY_PASS | {
    "CONTEXT_LENGTH_EXCEEDED",
    "LIMIT_REACHED",
    "LIMIT_TOO_SMALL",
    "MODEL_NOT_FOUND",
    "PRICE_UNKNOWN",
    "PROVIDER_CIRCUIT_OPEN",
    "PROVIDER_NOT_CONFIGURED",
    "PROVIDER_QUOTA_EXHAUSTED",
    "PROVIDER_REDIRECTS",
    "PROVIDER_REFUSED_KEY",
    "PROVIDER_TIMEOUT",
}


def is_provider_fault(error: PeripetyError) -> bool:
    """Whether the provider failed: not when it refused a request, a key or more of the same."""
    return isinstance(error, UnavailableError) and error.code != _BUSY


def may_pass(error: PeripetyError) -> bool:
    """Whether the same request may succeed a little later.

    A time-out is not taken for that: the caller has waited for long, and the provider may be at work still.
    A provider that says itself whether to ask again is believed.
    """
    told = error.details.get("should_retry")
    return error.code in _MAY_PASS if told is None else told == "true"


def another_may_answer(error: PeripetyError) -> bool:
    """Whether another model may answer where this one failed."""
    return error.code in _MAY_GO_BETTER_ELSEWHERE


def was_answered(error: PeripetyError) -> bool:
    """Whether the provider said that it would not do it, and so used no tokens."""
    return error.code in _ANSWERS_THAT_MAY_PASS or not isinstance(error, UnavailableError | DeadlineError)

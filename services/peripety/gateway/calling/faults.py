"""Retry policy: classifies a failed call by its cause, and decides on retry and fallback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import DeadlineError, UnavailableError

if TYPE_CHECKING:
    from peripety.errors import PeripetyError

__all__ = ["another_may_answer", "is_provider_fault", "may_pass", "was_answered"]

_BUSY = "PROVIDER_BUSY"
_ANSWERS_THAT_MAY_PASS = frozenset({_BUSY, "PROVIDER_FAILED", "PROVIDER_RATE_LIMITED"})
_MAY_PASS = _ANSWERS_THAT_MAY_PASS | {"PROVIDER_UNREACHABLE", "STREAM_MALFORMED", "STREAM_TRUNCATED"}

# Codes that describe one provider, or one of its models. Not included: requests rejected as malformed,
# exhausted budgets, the caller's deadline, and internal errors.
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
    """Return True if the provider failed; False if it rejected the request, the key or the quota."""
    return isinstance(error, UnavailableError) and error.code != _BUSY


def may_pass(error: PeripetyError) -> bool:
    """Return True if the same request may succeed a little later.

    A time-out is not transient: the caller has waited long, and the provider may still be working. An
    explicit retry hint of the provider takes precedence.
    """
    told = error.details.get("should_retry")
    return error.code in _MAY_PASS if told is None else told == "true"


def another_may_answer(error: PeripetyError) -> bool:
    """Return True if another model may answer where this one failed."""
    return error.code in _MAY_GO_BETTER_ELSEWHERE


def was_answered(error: PeripetyError) -> bool:
    """Return True if the provider rejected the request explicitly, and so used no tokens."""
    return error.code in _ANSWERS_THAT_MAY_PASS or not isinstance(error, UnavailableError | DeadlineError)

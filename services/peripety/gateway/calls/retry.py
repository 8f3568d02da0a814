"""Retry decision: classifies a failed call by its cause, and decides on retry, fallback and delay.

`RetryBudget` limits the retries of a process to a share of its calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import DeadlineError, UnavailableError

if TYPE_CHECKING:
    from random import Random

    from peripety.errors import PeripetyError


_BUSY_CODE = "PROVIDER_BUSY"
_TRANSIENT_REJECTIONS = frozenset({_BUSY_CODE, "PROVIDER_FAILED", "PROVIDER_RATE_LIMITED"})
_TRANSIENT_CODES = _TRANSIENT_REJECTIONS | {"PROVIDER_UNREACHABLE", "STREAM_MALFORMED", "STREAM_TRUNCATED"}

# Codes that describe one provider, or one of its models. Not included: requests rejected as malformed,
# exhausted budgets, the caller's deadline, and internal errors.
_FALLBACK_CODES = _TRANSIENT_CODES | {
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
    return isinstance(error, UnavailableError) and error.code != _BUSY_CODE


def is_transient(error: PeripetyError) -> bool:
    """Return True if the same request may succeed a little later.

    A time-out is not transient: the caller has waited long, and the provider may still be working. An
    explicit retry hint of the provider takes precedence.
    """
    told = error.details.get("should_retry")
    return error.code in _TRANSIENT_CODES if told is None else told == "true"


def allows_fallback(error: PeripetyError) -> bool:
    """Return True if another model may answer where this one failed."""
    return error.code in _FALLBACK_CODES


def is_explicit_rejection(error: PeripetyError) -> bool:
    """Return True if the provider rejected the request explicitly, and so used no tokens."""
    return error.code in _TRANSIENT_REJECTIONS or not isinstance(error, UnavailableError | DeadlineError)


_MAX_ATTEMPTS = 3
_INITIAL_DELAY = 0.5
_MAX_RETRY_AFTER = 60.0
_MAX_BALANCE = 10.0
_DEPOSIT_PER_CALL = 0.1


class RetryBudget:
    """Retry budget: one retry per ten calls, plus up to ten saved ones."""

    def __init__(self) -> None:
        self._balance = _MAX_BALANCE

    def deposit(self) -> None:
        """Count a call, which adds a tenth of a retry."""
        self._balance = min(_MAX_BALANCE, self._balance + _DEPOSIT_PER_CALL)

    def withdraw(self) -> bool:
        """Withdraw one retry; return False if the budget is exhausted."""
        if self._balance < 1:
            return False
        self._balance -= 1
        return True


def backoff_delay(attempts: int, retry_after: float | None, random: Random) -> float | None:
    """Return the delay before a retry in seconds; None after the last attempt.

    Exponential backoff with jitter: the range doubles with each attempt, so that clients that failed together
    do not retry together. The delay starts at the time that the provider has named. If that time is too far
    off, the call fails instead.

    Args:
        attempts: number of attempts so far.
        retry_after: delay requested by the provider, in seconds; None without one.
        random: source of the jitter.
    """
    earliest = retry_after or 0.0
    if attempts >= _MAX_ATTEMPTS or earliest > _MAX_RETRY_AFTER:
        return None
    return earliest + random.uniform(0, _INITIAL_DELAY * 2 ** (attempts - 1))


def decide_retry(
    error: PeripetyError,
    attempts: int,
    budget: RetryBudget,
    max_delay: float,
    random: Random,
) -> float | None:
    """Return the delay before a retry in seconds; None if the call must not be retried.

    Args:
        error: the error of the last attempt.
        attempts: number of attempts so far.
        budget: pays for the retry.
        max_delay: a retry that would start after these seconds is not worth its wait.
        random: source of the jitter.
    """
    delay = backoff_delay(attempts, error.retry_after, random) if is_transient(error) else None
    return delay if delay is not None and delay < max_delay and budget.withdraw() else None

"""Rate limits of the scripted LLM per API key: token buckets, as providers apply them.

Keys are stored and logged as fingerprints only.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from peripety.llmsim.types import ApiError, ApiErrorKind, BilledUsage, RetryHint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.llmsim.script.types import RateLimit
    from peripety.llmsim.state import StateTable


FINGERPRINT_LENGTH = 12


def fingerprint(key: str) -> str:
    """Return the first digits of the SHA-256 of a key; `-` for an empty key."""
    return (
        hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:FINGERPRINT_LENGTH] if key else "-"
    )


MICROSECONDS = 1_000_000
# Levels are in units of 1/60,000,000, so that a bucket of `n` per minute gains `n` units per microsecond.
UNITS_PER_TOKEN = 60 * MICROSECONDS

_REQUESTS = "requests"
_TOKENS = "tokens"
_INPUT = "input_tokens"
_OUTPUT = "output_tokens"
_DIMENSION_WORDS = {
    _REQUESTS: "requests per min (RPM)",
    _TOKENS: "tokens per min (TPM)",
    _INPUT: "input tokens per min (ITPM)",
    _OUTPUT: "output tokens per min (OTPM)",
}


@dataclass(frozen=True, slots=True)
class BucketState:
    """State of one limit: its size, its level, and the seconds until it is full."""

    limit: int
    remaining: int
    reset_seconds: float


@dataclass(frozen=True, slots=True)
class RateAllowance:
    """Remaining limits after a request, for rate limit headers; None for an unlimited dimension.

    Attributes:
        requests: requests per minute.
        tokens: input and output tokens per minute, together.
        input_tokens: input tokens per minute.
        output_tokens: output tokens per minute.
    """

    requests: BucketState | None = None
    tokens: BucketState | None = None
    input_tokens: BucketState | None = None
    output_tokens: BucketState | None = None


class RateLimits:
    """Token buckets with continuous refill, and counts of concurrent requests, per key and limit.

    Args:
        limits: the first limit that matches a model applies to it.
        table: the bucket levels. Concurrent requests are counted in memory only.
    """

    def __init__(self, limits: Sequence[RateLimit], table: StateTable) -> None:
        self._limits = tuple(limits)
        self._table = table
        self._active_requests: Counter[str] = Counter()

    def replace_limits(self, limits: Sequence[RateLimit]) -> None:
        """Replace the limits; usage under a limit with the same model glob is preserved."""
        self._limits = tuple(limits)

    def admit(self, key: str, model: str, usage: BilledUsage, now: float) -> RateAdmission:
        """Admit a request.

        Deducts its input and the output it reserves at once. The output limit reserves nothing: a request is
        admitted while the bucket is not empty, and pays once its output is known.

        Args:
            key: the fingerprint of the key.
            model: the model name.
            usage: the input of the request, and the output it reserves.
            now: seconds since 1970.

        Raises:
            ApiError: the request exceeds a limit; with a retry delay if waiting helps.
        """
        limit = self._limit_for(model)
        if limit is None:
            return RateAdmission(None, BilledUsage(), Counter())
        buckets = self._buckets(key, limit)
        if limit.concurrency is not None and self._active_requests[buckets.name] >= limit.concurrency:
            raise ApiError(
                ApiErrorKind.RATE_LIMIT,
                f"Rate limit reached for {model} on concurrent requests: Limit {limit.concurrency}. "
                "Please try again when one of them has ended.",
            )
        wanted = _counted_usage(usage) | {_REQUESTS: 1}
        buckets.raise_if_exceeded(model, wanted | {_OUTPUT: 1}, now)
        buckets.deduct(wanted | {_OUTPUT: 0}, now)
        self._active_requests[buckets.name] += 1
        return RateAdmission(buckets, usage, self._active_requests)

    def remaining_limits(self, key: str, model: str, now: float) -> RateAllowance | None:
        """Return the remaining limits of a key for a model; None without limits."""
        limit = self._limit_for(model)
        return None if limit is None else self._buckets(key, limit).remaining_limits(now)

    def _limit_for(self, model: str) -> RateLimit | None:
        return next((limit for limit in self._limits if fnmatchcase(model, limit.models)), None)

    def _buckets(self, key: str, limit: RateLimit) -> _Buckets:
        return _Buckets(limit, f"{key} {limit.models}", self._table)


class RateAdmission:
    """An admitted request, which is settled exactly once."""

    def __init__(self, buckets: _Buckets | None, reserved: BilledUsage, under_way: Counter[str]) -> None:
        self._buckets = buckets
        self._reserved = reserved
        self._under_way = under_way
        self._settled = False

    def settle(self, usage: BilledUsage, now: float) -> None:
        """Pay for the actual usage and release the concurrency slot. Only the first call has an effect."""
        if self._buckets is None or self._settled:
            return
        self._settled = True
        reserved = _counted_usage(self._reserved) | {_OUTPUT: 0}
        owed = {
            dimension: amount - reserved[dimension] for dimension, amount in _counted_usage(usage).items()
        }
        self._buckets.deduct(owed, now)
        self._under_way[self._buckets.name] -= 1
        if not self._under_way[self._buckets.name]:
            del self._under_way[self._buckets.name]

    def remaining_limits(self, now: float) -> RateAllowance | None:
        """Return the remaining limits; None without limits."""
        return None if self._buckets is None else self._buckets.remaining_limits(now)


class _Buckets:
    """The buckets of one limit and one key.

    Args:
        limit: the sizes.
        name: the key in the table.
        table: the levels at the last change.
    """

    def __init__(self, limit: RateLimit, name: str, table: StateTable) -> None:
        self.name = name
        self._sizes = _bucket_sizes(limit)
        self._table = table

    def raise_if_exceeded(self, model: str, wanted: Mapping[str, int], now: float) -> None:
        """Raise an error if the buckets do not hold enough.

        Raises:
            ApiError: the request exceeds a limit.
        """
        _, levels = self._current_levels(now)
        waits: dict[str, int] = {}
        for dimension, size in self._sizes.items():
            amount = wanted[dimension]
            if amount > size:
                raise ApiError(
                    ApiErrorKind.RATE_LIMIT,
                    f"Request too large for {model} on {_DIMENSION_WORDS[dimension]}: Limit {size}, "
                    f"Requested {amount}. The input or output tokens must be reduced in order to run "
                    "successfully.",
                )
            missing = amount * UNITS_PER_TOKEN - levels[dimension]
            # Round up to whole microseconds, so that a client that waits for the stated delay is not rejected
            # again.
            if missing > size:
                waits[dimension] = -(-missing // size)
        if waits:
            dimension = max(waits, key=lambda each: waits[each])
            size, seconds = self._sizes[dimension], waits[dimension] / MICROSECONDS
            raise ApiError(
                ApiErrorKind.RATE_LIMIT,
                f"Rate limit reached for {model} on {_DIMENSION_WORDS[dimension]}: Limit {size}, "
                f"Used {size - levels[dimension] // UNITS_PER_TOKEN}, Requested {wanted[dimension]}. "
                f"Please try again in {seconds:g}s.",
                retry=RetryHint(seconds),
            )

    def deduct(self, amounts: Mapping[str, int], now: float) -> None:
        """Deduct amounts from the buckets; negative amounts are refunds."""
        at, levels = self._current_levels(now)
        left = {
            dimension: level - amounts.get(dimension, 0) * UNITS_PER_TOKEN
            for dimension, level in levels.items()
        }
        self._table.put(self.name, {"at": at, "levels": left})

    def remaining_limits(self, now: float) -> RateAllowance:
        """Return the remaining limits."""
        _, levels = self._current_levels(now)
        return RateAllowance(
            **{name: _bucket_state(size, levels[name]) for name, size in self._sizes.items()},
        )

    def _current_levels(self, now: float) -> tuple[int, dict[str, int]]:
        """Return the time, which never decreases, and the level of each bucket."""
        row = self._table.get(self.name)
        at = round(now * MICROSECONDS)
        if row is None:
            return at, {dimension: size * UNITS_PER_TOKEN for dimension, size in self._sizes.items()}
        at, passed = max(at, row["at"]), max(0, at - row["at"])
        return at, {
            dimension: min(
                size * UNITS_PER_TOKEN,
                row["levels"].get(dimension, size * UNITS_PER_TOKEN) + passed * size,
            )
            for dimension, size in self._sizes.items()
        }


def _bucket_sizes(limit: RateLimit) -> dict[str, int]:
    """Return the size of each bucket, which is also its refill per minute."""
    sizes = {
        _REQUESTS: limit.requests_per_minute,
        _TOKENS: limit.tokens_per_minute,
        _INPUT: limit.input_tokens_per_minute,
        _OUTPUT: limit.output_tokens_per_minute,
    }
    return {dimension: size for dimension, size in sizes.items() if size is not None}


def _counted_usage(usage: BilledUsage) -> dict[str, int]:
    """Return the usage per dimension; input read from the cache is not limited."""
    return {
        _TOKENS: usage.input + usage.output,
        _INPUT: usage.input - usage.read,
        _OUTPUT: usage.output,
    }


def _bucket_state(size: int, level: int) -> BucketState:
    return BucketState(
        size,
        max(0, level // UNITS_PER_TOKEN),
        -((level - size * UNITS_PER_TOKEN) // size) / MICROSECONDS,
    )

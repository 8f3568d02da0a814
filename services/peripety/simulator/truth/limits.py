"""What a key may use of a model in a minute, and what is left of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from peripety.simulator.model import ApiError, ErrorKind, RetryHint, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.simulator.scenario.model import Limit
    from peripety.simulator.state import Table

__all__ = ["Admission", "Allowance", "Bucket", "Limits"]

MICROSECONDS = 1_000_000
# Levels are counted in sixty-millionths: a bucket of `n` a minute gains `n` of these each microsecond.
UNIT = 60 * MICROSECONDS

_REQUESTS = "requests"
_TOKENS = "tokens"
_INPUT = "input_tokens"
_OUTPUT = "output_tokens"
_WORDS = {
    _REQUESTS: "requests per min (RPM)",
    _TOKENS: "tokens per min (TPM)",
    _INPUT: "input tokens per min (ITPM)",
    _OUTPUT: "output tokens per min (OTPM)",
}


@dataclass(frozen=True, slots=True)
class Bucket:
    """One limit: how much there is in all, how much is left, and in how many seconds it is full again."""

    limit: int
    remaining: int
    reset_seconds: float


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left after a request, for the headers that say so; None where there is no limit.

    Attributes:
        requests: requests per minute.
        tokens: input and output tokens per minute, together.
        input_tokens: input tokens per minute.
        output_tokens: output tokens per minute.
    """

    requests: Bucket | None = None
    tokens: Bucket | None = None
    input_tokens: Bucket | None = None
    output_tokens: Bucket | None = None


class Limits:
    """Token buckets that refill continuously, and counts of what is under way, per key and limit.

    Args:
        limits: the first that names a model holds for it.
        table: keeps how full the buckets are. What is under way is known to this process alone.
    """

    def __init__(self, limits: Sequence[Limit], table: Table) -> None:
        self._limits = tuple(limits)
        self._table = table
        self._under_way: Counter[str] = Counter()

    def change(self, limits: Sequence[Limit]) -> None:
        """Let other limits hold from now on; what was used under a limit for the same models stays used."""
        self._limits = tuple(limits)

    def admit(self, key: str, model: str, usage: Usage, now: float) -> Admission:
        """Let a request in.

        Its input, and the output it reserves, are taken at once. Of the limit for output alone nothing is
        reserved: as long as there is some left, a request is let in, and pays when it is known how much.

        Args:
            key: the fingerprint of who asks.
            model: the name of the model.
            usage: the request's input, and the output it reserves.
            now: when, in seconds since 1970.

        Raises:
            ApiError: it would exceed a limit; if waiting helps, it says for how long.
        """
        limit = self._holding(model)
        if limit is None:
            return Admission(None, Usage(), Counter())
        buckets = self._buckets(key, limit)
        if limit.concurrency is not None and self._under_way[buckets.name] >= limit.concurrency:
            raise ApiError(
                ErrorKind.RATE_LIMIT,
                f"Rate limit reached for {model} on concurrent requests: Limit {limit.concurrency}. "
                "Please try again when one of them has ended.",
            )
        wanted = _counted(usage) | {_REQUESTS: 1}
        buckets.refuse(model, wanted | {_OUTPUT: 1}, now)
        buckets.take(wanted | {_OUTPUT: 0}, now)
        self._under_way[buckets.name] += 1
        return Admission(buckets, usage, self._under_way)

    def allowance(self, key: str, model: str, now: float) -> Allowance | None:
        """What a key has left for a model, without a request; None where nothing is limited."""
        limit = self._holding(model)
        return None if limit is None else self._buckets(key, limit).allowance(now)

    def _holding(self, model: str) -> Limit | None:
        return next((limit for limit in self._limits if fnmatchcase(model, limit.models)), None)

    def _buckets(self, key: str, limit: Limit) -> _Buckets:
        return _Buckets(limit, f"{key} {limit.models}", self._table)


class Admission:
    """A request that was let in; it is settled once, however it ends."""

    def __init__(self, buckets: _Buckets | None, reserved: Usage, under_way: Counter[str]) -> None:
        self._buckets = buckets
        self._reserved = reserved
        self._under_way = under_way
        self._settled = False

    def settle(self, usage: Usage, now: float) -> None:
        """Pay for what was really used, and make room for another request; only the first call counts."""
        if self._buckets is None or self._settled:
            return
        self._settled = True
        reserved = _counted(self._reserved) | {_OUTPUT: 0}
        owed = {dimension: amount - reserved[dimension] for dimension, amount in _counted(usage).items()}
        self._buckets.take(owed, now)
        self._under_way[self._buckets.name] -= 1
        if not self._under_way[self._buckets.name]:
            del self._under_way[self._buckets.name]

    def allowance(self, now: float) -> Allowance | None:
        """What is left now; None where nothing is limited."""
        return None if self._buckets is None else self._buckets.allowance(now)


class _Buckets:
    """The buckets of one limit and one key.

    Args:
        limit: how large they are.
        name: under which name the table keeps them.
        table: how full they were when something was taken last.
    """

    def __init__(self, limit: Limit, name: str, table: Table) -> None:
        self.name = name
        self._sizes = _sizes(limit)
        self._table = table

    def refuse(self, model: str, wanted: Mapping[str, int], now: float) -> None:
        """Refuse what is more than there is.

        Raises:
            ApiError: it is too much for any bucket.
        """
        _, levels = self._state(now)
        waits: dict[str, int] = {}
        for dimension, size in self._sizes.items():
            amount = wanted[dimension]
            if amount > size:
                raise ApiError(
                    ErrorKind.RATE_LIMIT,
                    f"Request too large for {model} on {_WORDS[dimension]}: Limit {size}, "
                    f"Requested {amount}. The input or output tokens must be reduced in order to run "
                    "successfully.",
                )
            missing = amount * UNIT - levels[dimension]
            # Clocks are read to the microsecond: who comes back when told is not refused for the last one.
            if missing > size:
                waits[dimension] = -(-missing // size)
        if waits:
            dimension = max(waits, key=lambda each: waits[each])
            size, seconds = self._sizes[dimension], waits[dimension] / MICROSECONDS
            raise ApiError(
                ErrorKind.RATE_LIMIT,
                f"Rate limit reached for {model} on {_WORDS[dimension]}: Limit {size}, "
                f"Used {size - levels[dimension] // UNIT}, Requested {wanted[dimension]}. "
                f"Please try again in {seconds:g}s.",
                retry=RetryHint(seconds),
            )

    def take(self, amounts: Mapping[str, int], now: float) -> None:
        """Take so much out of each bucket; less than nothing is given back."""
        at, levels = self._state(now)
        left = {dimension: level - amounts.get(dimension, 0) * UNIT for dimension, level in levels.items()}
        self._table.put(self.name, {"at": at, "levels": left})

    def allowance(self, now: float) -> Allowance:
        """What is left."""
        _, levels = self._state(now)
        return Allowance(**{name: _bucket(size, levels[name]) for name, size in self._sizes.items()})

    def _state(self, now: float) -> tuple[int, dict[str, int]]:
        """How late it is, at least as late as it was, and how much is in each bucket."""
        row = self._table.get(self.name)
        at = round(now * MICROSECONDS)
        if row is None:
            return at, {dimension: size * UNIT for dimension, size in self._sizes.items()}
        at, passed = max(at, row["at"]), max(0, at - row["at"])
        return at, {
            dimension: min(size * UNIT, row["levels"].get(dimension, size * UNIT) + passed * size)
            for dimension, size in self._sizes.items()
        }


def _sizes(limit: Limit) -> dict[str, int]:
    """How much fits into each bucket, which is also what it gains in a minute."""
    sizes = {
        _REQUESTS: limit.requests_per_minute,
        _TOKENS: limit.tokens_per_minute,
        _INPUT: limit.input_tokens_per_minute,
        _OUTPUT: limit.output_tokens_per_minute,
    }
    return {dimension: size for dimension, size in sizes.items() if size is not None}


def _counted(usage: Usage) -> dict[str, int]:
    """What counts against which limit: what is read from the cache is no input that is limited."""
    return {
        _TOKENS: usage.input + usage.output,
        _INPUT: usage.input - usage.read,
        _OUTPUT: usage.output,
    }


def _bucket(size: int, level: int) -> Bucket:
    return Bucket(size, max(0, level // UNIT), -((level - size * UNIT) // size) / MICROSECONDS)

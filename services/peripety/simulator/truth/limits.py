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
        limit = next((limit for limit in self._limits if fnmatchcase(model, limit.models)), None)
        if limit is None:
            return Admission(self, None, "", Usage())
        name = f"{key} {limit.models}"
        if limit.concurrency is not None and self._under_way[name] >= limit.concurrency:
            raise ApiError(
                ErrorKind.RATE_LIMIT,
                f"Rate limit reached for {model} on concurrent requests: Limit {limit.concurrency}. "
                "Please try again when one of them has ended.",
            )
        wanted = _counted(usage) | {_REQUESTS: 1}
        _refuse(limit, model, self._levels(limit, name, now), wanted | {_OUTPUT: 1})
        self._take(limit, name, wanted | {_OUTPUT: 0}, now)
        self._under_way[name] += 1
        return Admission(self, limit, name, usage)

    def _levels(self, limit: Limit, name: str, now: float) -> dict[str, int]:
        """How much there is in each bucket."""
        at = _microseconds(now)
        row = self._table.get(name) or {}
        levels: dict[str, int] = {}
        for dimension, size in _sizes(limit).items():
            full = size * UNIT
            level, since = row.get(dimension, (full, at))
            levels[dimension] = min(full, level + max(0, at - since) * size)
        return levels

    def _take(self, limit: Limit, name: str, amounts: Mapping[str, int], now: float) -> None:
        at = _microseconds(now)
        levels = self._levels(limit, name, now)
        row = {
            dimension: [level - amounts.get(dimension, 0) * UNIT, at] for dimension, level in levels.items()
        }
        self._table.put(name, row)

    def _leave(self, name: str) -> None:
        self._under_way[name] -= 1
        if not self._under_way[name]:
            del self._under_way[name]


class Admission:
    """A request that was let in; it is settled once, however it ends."""

    def __init__(self, limits: Limits, limit: Limit | None, name: str, reserved: Usage) -> None:
        self._limits = limits
        self._limit = limit
        self._name = name
        self._reserved = reserved
        self._settled = False

    def settle(self, usage: Usage, now: float) -> None:
        """Pay for what was really used, and make room for another request; only the first call counts."""
        if self._limit is None or self._settled:
            return
        self._settled = True
        reserved = _counted(self._reserved) | {_OUTPUT: 0}
        used = _counted(usage)
        owed = {dimension: amount - reserved[dimension] for dimension, amount in used.items()}
        self._limits._take(self._limit, self._name, owed, now)  # noqa: SLF001 one thing in two classes
        self._limits._leave(self._name)  # noqa: SLF001

    def allowance(self, now: float) -> Allowance | None:
        """What is left now; None where nothing is limited."""
        if self._limit is None:
            return None
        levels = self._limits._levels(self._limit, self._name, now)  # noqa: SLF001
        sizes = _sizes(self._limit)
        return Allowance(**{name: _bucket(sizes[name], level) for name, level in levels.items()})


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


def _refuse(limit: Limit, model: str, levels: Mapping[str, int], wanted: Mapping[str, int]) -> None:
    """Refuse what is more than there is."""
    sizes = _sizes(limit)
    for dimension, size in sizes.items():
        if wanted[dimension] > size:
            raise ApiError(
                ErrorKind.RATE_LIMIT,
                f"Request too large for {model} on {_WORDS[dimension]}: Limit {size}, "
                f"Requested {wanted[dimension]}. The input or output tokens must be reduced in order to run "
                "successfully.",
            )
    waits = {
        dimension: -((levels[dimension] - wanted[dimension] * UNIT) // size)
        for dimension, size in sizes.items()
        # Clocks are read to the microsecond: nobody who comes back when told is refused for the one missing.
        if levels[dimension] + size < wanted[dimension] * UNIT
    }
    if waits:
        dimension = max(waits, key=lambda each: waits[each])
        size, seconds = sizes[dimension], waits[dimension] / MICROSECONDS
        raise ApiError(
            ErrorKind.RATE_LIMIT,
            f"Rate limit reached for {model} on {_WORDS[dimension]}: Limit {size}, "
            f"Used {size - levels[dimension] // UNIT}, Requested {wanted[dimension]}. "
            f"Please try again in {seconds:g}s.",
            retry=RetryHint(seconds),
        )


def _bucket(size: int, level: int) -> Bucket:
    return Bucket(size, max(0, level // UNIT), -((level - size * UNIT) // size) / MICROSECONDS)


def _microseconds(seconds: float) -> int:
    return round(seconds * MICROSECONDS)

"""Usage counters of rate limits, optionally shared by replicas.

All state between a gateway and its provider's limits is behind `Counters`: two calls, each atomic. The
implementation in memory is in this module, the one for several replicas uses Redis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.config import ProviderLimits

__all__ = ["Counters", "Demand", "MemoryCounters", "Reservation"]

_MINUTE = 60.0
_SLOT = 0.1


@dataclass(frozen=True, slots=True)
class Demand:
    """Estimated or actual usage of a call, beside the one request.

    Attributes:
        input_tokens: tokens of the prompt.
        output_tokens: tokens of the answer, reasoning included.
        cost: cost in 10^-12 dollars; None if a price is unknown.
    """

    input_tokens: int
    output_tokens: int
    cost: int | None = 0


@dataclass(frozen=True, slots=True)
class Reservation:
    """Reservation of an admitted call.

    Attributes:
        account: the account whose limits it counts towards.
        demand: the reserved usage.
        moment: time of the reservation.
        number: id of the reservation, where the implementation needs one.
    """

    account: str
    demand: Demand
    moment: float
    number: str = ""


class Counters(Protocol):
    """Usage counters of rate limits."""

    async def reserve(self, account: str, limits: ProviderLimits, demand: Demand) -> Reservation | float:
        """Admit a call.

        Args:
            account: a credential and a model family.
            limits: the limits of the account.
            demand: the estimated usage; never more than a whole limit.

        Returns:
            The reservation, or the seconds to wait before the next attempt: infinity if a call in flight must
            end first.
        """
        ...

    async def settle(self, reservation: Reservation, used: Demand | None) -> None:
        """Settle a finished call; each reservation is settled once.

        Args:
            reservation: its reservation.
            used: its usage; None if no request was sent.
        """
        ...


class MemoryCounters:
    """`Counters` in memory: a sliding window of one minute.

    Usage counts for a minute, so no minute, wherever it begins, exceeds a limit. A request and its input
    count from their admission. The output of a call and its cost count while the call runs and for a minute
    after its end, because a provider may count them at any time in between.

    Args:
        now: clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._used: dict[str, _Use] = {}

    async def reserve(self, account: str, limits: ProviderLimits, demand: Demand) -> Reservation | float:
        """See `Counters.reserve`."""
        use = self._used.setdefault(account, _Use())
        now = self._now()
        wait = use.wait(limits, demand, now)
        if wait > 0:
            return wait
        use.begin(demand, now)
        return Reservation(account, demand, now)

    async def settle(self, reservation: Reservation, used: Demand | None) -> None:
        """See `Counters.settle`."""
        self._used[reservation.account].end(reservation, used, self._now())


class _Use:
    """Usage of one account for each of its limits."""

    def __init__(self) -> None:
        self._requests = _Minute()
        self._input = _Minute()
        self._output = _Minute()
        self._cost = _Minute()
        self._under_way = 0
        self._output_under_way = 0
        self._cost_under_way = 0

    def wait(self, limits: ProviderLimits, demand: Demand, now: float) -> float:
        if limits.concurrency is not None and self._under_way >= limits.concurrency:
            return math.inf
        return max(
            self._requests.wait(limits.requests_per_minute, 1, now),
            self._input.wait(limits.input_tokens_per_minute, demand.input_tokens, now),
            self._output.wait(
                limits.output_tokens_per_minute, self._output_under_way + demand.output_tokens, now
            ),
            self._cost.wait(limits.pico_dollars_per_minute, self._cost_under_way + (demand.cost or 0), now),
        )

    def begin(self, demand: Demand, now: float) -> None:
        self._under_way += 1
        self._output_under_way += demand.output_tokens
        self._cost_under_way += demand.cost or 0
        self._requests.add(1, now)
        self._input.add(demand.input_tokens, now)

    def end(self, reservation: Reservation, used: Demand | None, now: float) -> None:
        self._under_way -= 1
        self._output_under_way -= reservation.demand.output_tokens
        self._cost_under_way -= reservation.demand.cost or 0
        reserved = reservation.demand.input_tokens
        if used is None:
            self._requests.correct(-1, reservation.moment, now)
            self._input.correct(-reserved, reservation.moment, now)
        else:
            self._input.correct(used.input_tokens - reserved, reservation.moment, now)
            self._output.add(used.output_tokens, now)
            self._cost.add(used.cost or 0, now)


class _Minute:
    """Sliding window of a minute in slots of a tenth of a second, so its memory is bounded."""

    def __init__(self) -> None:
        self._amounts: dict[int, int] = {}
        self._total = 0

    def add(self, amount: int, now: float) -> None:
        self._forget(now)
        slot = _slot(now)
        self._amounts[slot] = self._amounts.get(slot, 0) + amount
        self._total += amount

    def correct(self, difference: int, moment: float, now: float) -> None:
        """Change an amount that was added at a moment, unless it has expired."""
        self._forget(now)
        slot = _slot(moment)
        if slot in self._amounts:
            self._amounts[slot] += difference
            self._total += difference

    def wait(self, limit: int | None, amount: int, now: float) -> float:
        """Return the seconds until an amount fits; infinity if waiting does not help."""
        self._forget(now)
        excess = 0 if limit is None else self._total + amount - limit
        if excess <= 0:
            return 0.0
        for slot, passing in self._amounts.items():
            excess -= passing
            if excess <= 0:
                return _end(slot) - now
        return math.inf

    def _forget(self, now: float) -> None:
        for slot in list(takewhile(lambda slot: _end(slot) <= now, self._amounts)):
            self._total -= self._amounts.pop(slot)


def _slot(moment: float) -> int:
    return int(moment / _SLOT)


def _end(slot: int) -> float:
    """Return the time at which a slot expires."""
    return (slot + 1) * _SLOT + _MINUTE

"""Rate limiter of an account: admits calls by requests, tokens and concurrency, in order of arrival.

A call reserves its estimated usage before it is sent, and settles the actual usage after. All state is
behind `UsageCounters`: two calls, each atomic. The implementation in memory is in this module; the one for
several replicas uses Redis (`redis_limits`).
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

from peripety.errors import ResourceExhaustedError
from peripety.gateway.models.call_cost import format_dollars, max_cost, unknown_price_error
from peripety.gateway.token_estimate import estimate_prompt_tokens

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from peripety.core.call_context import Clock
    from peripety.core.config import ProviderLimits
    from peripety.gateway.providers.provider import ProviderCall


_MINUTE_SECONDS = 60.0
_SLOT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class CallUsage:
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
class LimitReservation:
    """Reservation of an admitted call.

    Attributes:
        account: the account whose limits it counts towards.
        estimate: the reserved usage.
        reserved_at: time of the reservation.
        number: id of the reservation, where the implementation needs one.
    """

    account: str
    estimate: CallUsage
    reserved_at: float
    number: str = ""


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """Current use of the limits of an account.

    Attributes:
        requests: requests of the last minute.
        input_tokens: input tokens of the last minute.
        output_tokens: output tokens of the last minute, with the reservations of running calls.
        cost: cost of the last minute in 10^-12 dollars, with the reservations of running calls.
        concurrency: running calls.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    concurrency: int = 0


class UsageCounters(Protocol):
    """Usage counters of rate limits."""

    async def reserve(
        self,
        account: str,
        limits: ProviderLimits,
        estimate: CallUsage,
    ) -> LimitReservation | float:
        """Admit a call.

        Args:
            account: a credential and a model family.
            limits: the limits of the account.
            estimate: the estimated usage; never more than a whole limit.

        Returns:
            The reservation, or the seconds to wait before the next attempt: infinity if a call in flight must
            end first.
        """
        ...

    async def settle(self, reservation: LimitReservation, used: CallUsage | None) -> None:
        """Settle a finished call; each reservation is settled once.

        Args:
            reservation: its reservation.
            used: its usage; None if no request was sent.
        """
        ...

    async def read(self, account: str) -> LimitUsage:
        """Return the current use of the limits of an account."""
        ...


class MemoryUsageCounters:
    """`UsageCounters` in memory: a sliding window of one minute.

    Usage counts for a minute, so no minute, wherever it begins, exceeds a limit. A request and its input
    count from their admission. The output of a call and its cost count while the call runs and for a minute
    after its end, because a provider may count them at any time in between.

    Args:
        now: clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._used: dict[str, _AccountUsage] = {}

    async def reserve(
        self,
        account: str,
        limits: ProviderLimits,
        estimate: CallUsage,
    ) -> LimitReservation | float:
        """See `UsageCounters.reserve`."""
        use = self._used.setdefault(account, _AccountUsage())
        now = self._now()
        wait = use.seconds_until_admitted(limits, estimate, now)
        if wait > 0:
            return wait
        use.start(estimate, now)
        return LimitReservation(account, estimate, now)

    async def settle(self, reservation: LimitReservation, used: CallUsage | None) -> None:
        """See `UsageCounters.settle`."""
        self._used[reservation.account].end(reservation, used, self._now())

    async def read(self, account: str) -> LimitUsage:
        """See `UsageCounters.read`."""
        use = self._used.get(account)
        return LimitUsage() if use is None else use.read(self._now())


class _AccountUsage:
    """Usage of one account for each of its limits."""

    def __init__(self) -> None:
        self._requests = _SlidingMinute()
        self._input = _SlidingMinute()
        self._output = _SlidingMinute()
        self._cost = _SlidingMinute()
        self._in_progress = 0
        self._output_in_progress = 0
        self._cost_in_progress = 0

    def seconds_until_admitted(self, limits: ProviderLimits, estimate: CallUsage, now: float) -> float:
        if limits.concurrency is not None and self._in_progress >= limits.concurrency:
            return math.inf
        return max(
            self._requests.seconds_until_fits(limits.requests_per_minute, 1, now),
            self._input.seconds_until_fits(limits.input_tokens_per_minute, estimate.input_tokens, now),
            self._output.seconds_until_fits(
                limits.output_tokens_per_minute,
                self._output_in_progress + estimate.output_tokens,
                now,
            ),
            self._cost.seconds_until_fits(
                limits.pico_dollars_per_minute,
                self._cost_in_progress + (estimate.cost or 0),
                now,
            ),
        )

    def start(self, estimate: CallUsage, now: float) -> None:
        self._in_progress += 1
        self._output_in_progress += estimate.output_tokens
        self._cost_in_progress += estimate.cost or 0
        self._requests.add(1, now)
        self._input.add(estimate.input_tokens, now)

    def end(self, reservation: LimitReservation, used: CallUsage | None, now: float) -> None:
        self._in_progress -= 1
        self._output_in_progress -= reservation.estimate.output_tokens
        self._cost_in_progress -= reservation.estimate.cost or 0
        reserved = reservation.estimate.input_tokens
        if used is None:
            self._requests.correct(-1, reservation.reserved_at, now)
            self._input.correct(-reserved, reservation.reserved_at, now)
        else:
            self._input.correct(used.input_tokens - reserved, reservation.reserved_at, now)
            self._output.add(used.output_tokens, now)
            self._cost.add(used.cost or 0, now)

    def read(self, now: float) -> LimitUsage:
        return LimitUsage(
            requests=self._requests.total(now),
            input_tokens=self._input.total(now),
            output_tokens=self._output.total(now) + self._output_in_progress,
            cost=self._cost.total(now) + self._cost_in_progress,
            concurrency=self._in_progress,
        )


class _SlidingMinute:
    """Sliding window of a minute in slots of a tenth of a second, so its memory is bounded."""

    def __init__(self) -> None:
        self._amounts: dict[int, int] = {}
        self._total = 0

    def add(self, amount: int, now: float) -> None:
        self._drop_expired(now)
        slot = _slot_of(now)
        self._amounts[slot] = self._amounts.get(slot, 0) + amount
        self._total += amount

    def correct(self, difference: int, moment: float, now: float) -> None:
        """Change an amount that was added at a moment, unless it has expired."""
        self._drop_expired(now)
        slot = _slot_of(moment)
        if slot in self._amounts:
            self._amounts[slot] += difference
            self._total += difference

    def total(self, now: float) -> int:
        """Return the sum of the amounts that have not expired."""
        self._drop_expired(now)
        return self._total

    def seconds_until_fits(self, limit: int | None, amount: int, now: float) -> float:
        """Return the seconds until an amount fits; infinity if waiting does not help."""
        self._drop_expired(now)
        excess = 0 if limit is None else self._total + amount - limit
        if excess <= 0:
            return 0.0
        for slot, passing in self._amounts.items():
            excess -= passing
            if excess <= 0:
                return _slot_expiry(slot) - now
        return math.inf

    def _drop_expired(self, now: float) -> None:
        for slot in list(takewhile(lambda slot: _slot_expiry(slot) <= now, self._amounts)):
            self._total -= self._amounts.pop(slot)


def _slot_of(moment: float) -> int:
    return int(moment / _SLOT_SECONDS)


def _slot_expiry(slot: int) -> float:
    """Return the time at which a slot expires."""
    return (slot + 1) * _SLOT_SECONDS + _MINUTE_SECONDS


def estimate_usage(call: ProviderCall, limits: ProviderLimits, now: datetime) -> CallUsage:
    """Return the usage to reserve for a call.

    Args:
        call: the call.
        limits: limits of its account; an answer without a maximum length is assumed to fit into them.
        now: current time.
    """
    prompt = estimate_prompt_tokens(call.request)
    answer = call.request.max_output_tokens
    if answer is None:
        answer = call.data.default_output_tokens
        if limits.output_tokens_per_minute is not None:
            answer = min(answer, limits.output_tokens_per_minute)
        if limits.pico_dollars_per_minute is not None:
            answer = max_affordable_output(call, prompt, answer, limits.pico_dollars_per_minute, now)
    return CallUsage(prompt, answer, max_cost(prompt, answer, call.data, now))


def max_affordable_output(
    call: ProviderCall,
    prompt_tokens: int,
    desired: int,
    cost_limit: int,
    now: datetime,
) -> int:
    """Return the maximum number of output tokens, at least 1, with which a call costs no more than an amount.

    Args:
        call: the call.
        prompt_tokens: tokens of its prompt.
        desired: the desired maximum.
        cost_limit: the amount, in pico-dollars.
        now: current time.
    """
    fits, too_many = 1, desired + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if (max_cost(prompt_tokens, middle, call.data, now) or 0) <= cost_limit:
            fits = middle
        else:
            too_many = middle
    return fits


def with_max_output(call: ProviderCall, tokens: int) -> ProviderCall:
    """Return the call with another maximum of output tokens."""
    return replace(call, request=replace(call.request, max_output_tokens=tokens))


# Avoid a wait so short that rounding leaves the clock unchanged.
_MIN_WAIT = 0.001


class RateLimiter:
    """Rate limiter of one account.

    Args:
        account: a credential and a model family.
        limits: the limits of the account.
        counters: usage of the limits.
        clock: used to wait.
        credential: fingerprint that separates credentials of one provider.
    """

    def __init__(
        self,
        account: str,
        limits: ProviderLimits,
        counters: UsageCounters,
        clock: Clock,
        credential: str = "",
    ) -> None:
        self._account = account
        # With shared counters, the processes may use different keys.
        self._counter_key = f"{account}@{credential}"
        self._limits = limits
        self._counters = counters
        self._clock = clock
        self._queue: deque[asyncio.Event] = deque()

    async def acquire(self, estimate: CallUsage, max_wait: float = math.inf) -> LimitReservation:
        """Wait until the limits admit a call.

        Args:
            demand: its estimated usage.
            patience: the maximum wait in seconds.

        Raises:
            ResourceExhaustedError: the limits do not admit it in time (code LIMIT_REACHED), or never (code
                LIMIT_TOO_SMALL).
            FailedPreconditionError: the cost is limited, and the price of the call is unknown (code
                PRICE_UNKNOWN).
        """
        self._reject_if_too_large(estimate)
        end = self._clock.now() + max_wait
        my_turn = asyncio.Event()
        self._queue.append(my_turn)
        try:
            while True:
                # Cleared before the attempt, so a release during the attempt is not missed.
                my_turn.clear()
                wait = math.inf
                if self._queue[0] is my_turn:
                    answer = await self._counters.reserve(self._counter_key, self._limits, estimate)
                    if isinstance(answer, LimitReservation):
                        return answer
                    wait = answer
                left = min(self._clock.remaining_seconds(), end - self._clock.now())
                if left <= 0 or left < wait < math.inf:
                    raise self._limit_reached_error(wait)
                await self._clock.wait(my_turn, max(_MIN_WAIT, min(wait, left)))
        finally:
            self._queue.remove(my_turn)
            self._wake_first()

    @property
    def waiting(self) -> int:
        """Return the number of calls that wait for the limits."""
        return len(self._queue)

    async def read_usage(self) -> LimitUsage:
        """Return the current use of the limits."""
        return await self._counters.read(self._counter_key)

    async def release(self, reservation: LimitReservation, used: CallUsage | None) -> None:
        """Settle a finished call; see `UsageCounters.settle`."""
        await self._counters.settle(reservation, used)
        self._wake_first()

    def _wake_first(self) -> None:
        with suppress(IndexError):
            self._queue[0].set()

    def _reject_if_too_large(self, estimate: CallUsage) -> None:
        if self._limits.pico_dollars_per_minute is not None:
            self._reject_if_too_expensive(estimate.cost, self._limits.pico_dollars_per_minute)
        for limit, amount, way_out in (
            (self._limits.input_tokens_per_minute, estimate.input_tokens, "shorten the prompt"),
            (self._limits.output_tokens_per_minute, estimate.output_tokens, "request a shorter answer"),
        ):
            if limit is not None and amount > limit:
                raise ResourceExhaustedError(
                    f"request too large: it may use {amount} tokens, and the limit of {self._account} is"
                    f" {limit} per minute; {way_out}, or raise PERIPETY_LIMITS",
                    code="LIMIT_TOO_SMALL",
                )

    def _reject_if_too_expensive(self, cost: int | None, limit: int) -> None:
        if cost is None:
            raise unknown_price_error(self._account, "the dollars_per_minute of PERIPETY_LIMITS")
        if cost > limit:
            raise ResourceExhaustedError(
                f"request too expensive: it may cost {format_dollars(cost)} dollars, and the limit of"
                f" {self._account} is {format_dollars(limit)} per minute; shorten the prompt, request a"
                " shorter answer, or raise PERIPETY_LIMITS",
                code="LIMIT_TOO_SMALL",
            )

    def _limit_reached_error(self, wait: float) -> ResourceExhaustedError:
        return ResourceExhaustedError(
            f"limits of {self._account} reached; try again later, or raise PERIPETY_LIMITS",
            code="LIMIT_REACHED",
            retry_after=None if wait == math.inf else wait,
        )

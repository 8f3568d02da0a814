"""Rate limiter of an account: admits calls in order of arrival."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from peripety.errors import ResourceExhaustedError
from peripety.gateway.calling.counters import Demand, Reservation
from peripety.gateway.catalogue import in_dollars, price_unknown

if TYPE_CHECKING:
    from peripety.config import ProviderLimits
    from peripety.gateway.calling.clock import Clock
    from peripety.gateway.calling.counters import Counters

__all__ = ["Gate"]

# Avoid a wait so short that rounding leaves the clock unchanged.
_SHORTEST_WAIT = 0.001


class Gate:
    """Rate limiter of one account.

    Args:
        account: a credential and a model family.
        limits: the limits of the account.
        counters: usage of the limits.
        clock: used to wait.
        credential: fingerprint that separates credentials of one provider.
    """

    def __init__(
        self, account: str, limits: ProviderLimits, counters: Counters, clock: Clock, credential: str = ""
    ) -> None:
        self._account = account
        # With shared counters, the processes may use different keys.
        self._counted_as = f"{account}@{credential}"
        self._limits = limits
        self._counters = counters
        self._clock = clock
        self._queue: deque[asyncio.Event] = deque()

    async def enter(self, demand: Demand, patience: float = math.inf) -> Reservation:
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
        self._refuse_what_never_fits(demand)
        end = self._clock.now() + patience
        my_turn = asyncio.Event()
        self._queue.append(my_turn)
        try:
            while True:
                # Cleared before the attempt, so a release during the attempt is not missed.
                my_turn.clear()
                wait = math.inf
                if self._queue[0] is my_turn:
                    answer = await self._counters.reserve(self._counted_as, self._limits, demand)
                    if isinstance(answer, Reservation):
                        return answer
                    wait = answer
                left = min(self._clock.left(), end - self._clock.now())
                if left <= 0 or left < wait < math.inf:
                    raise self._used_up(wait)
                await self._clock.wait(my_turn, max(_SHORTEST_WAIT, min(wait, left)))
        finally:
            self._queue.remove(my_turn)
            self._wake_first()

    async def leave(self, reservation: Reservation, used: Demand | None) -> None:
        """Settle a finished call; see `Counters.settle`."""
        await self._counters.settle(reservation, used)
        self._wake_first()

    def _wake_first(self) -> None:
        with suppress(IndexError):
            self._queue[0].set()

    def _refuse_what_never_fits(self, demand: Demand) -> None:
        if self._limits.pico_dollars_per_minute is not None:
            self._refuse_what_costs_too_much(demand.cost, self._limits.pico_dollars_per_minute)
        for limit, amount, way_out in (
            (self._limits.input_tokens_per_minute, demand.input_tokens, "shorten the prompt"),
            (self._limits.output_tokens_per_minute, demand.output_tokens, "request a shorter answer"),
        ):
            if limit is not None and amount > limit:
                raise ResourceExhaustedError(
                    f"request too large: it may use {amount} tokens, and the limit of {self._account} is"
                    f" {limit} per minute; {way_out}, or raise PERIPETY_LIMITS",
                    code="LIMIT_TOO_SMALL",
                )

    def _refuse_what_costs_too_much(self, cost: int | None, limit: int) -> None:
        if cost is None:
            raise price_unknown(self._account, "the dollars_per_minute of PERIPETY_LIMITS")
        if cost > limit:
            raise ResourceExhaustedError(
                f"request too expensive: it may cost {in_dollars(cost)} dollars, and the limit of"
                f" {self._account} is {in_dollars(limit)} per minute; shorten the prompt, request a"
                " shorter answer, or raise PERIPETY_LIMITS",
                code="LIMIT_TOO_SMALL",
            )

    def _used_up(self, wait: float) -> ResourceExhaustedError:
        return ResourceExhaustedError(
            f"limits of {self._account} reached; try again later, or raise PERIPETY_LIMITS",
            code="LIMIT_REACHED",
            retry_after=None if wait == math.inf else wait,
        )

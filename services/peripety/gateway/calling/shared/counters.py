"""Usage counters of rate limits in Redis, shared by all replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.gateway.calling.counters import Demand, Reservation

if TYPE_CHECKING:
    from peripety.config import ProviderLimits
    from peripety.gateway.calling.shared.leases import Leases

__all__ = ["RedisCounters"]

_PREFIX = "peripety:limits"
_POLL = 0.25
"""Poll interval in seconds while a call of another replica must end first; Redis does not notify."""


class RedisCounters:
    """`Counters` in Redis, on the clock of the Redis server.

    The sliding window of a minute has slots of half a second.

    Args:
        leases: reserves on the server.
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    async def reserve(self, account: str, limits: ProviderLimits, demand: Demand) -> Reservation | float:
        """See `Counters.reserve`.

        Raises:
            UnavailableError: the server is unavailable; no call is admitted.
        """
        caps = (
            limits.concurrency,
            limits.requests_per_minute,
            limits.input_tokens_per_minute,
            limits.output_tokens_per_minute,
            limits.pico_dollars_per_minute,
        )
        if caps == (None,) * len(caps):
            return Reservation(account, demand, 0.0)

        async def take(number: str) -> Reservation | float:
            arguments = [-1 if cap is None else cap for cap in caps]
            wait = await self._leases.run(
                ["limits", "limits_reserve"],
                _keys(account),
                [number, self._leases.milliseconds, *arguments, *_amounts(demand)],
            )
            if wait:
                return _POLL if wait < 0 else wait / 1000
            self._leases.began([_leased(account)], number)
            return Reservation(account, demand, 0.0, number)

        return await self._leases.hold(take, self._give_back)

    async def settle(self, reservation: Reservation, used: Demand | None) -> None:
        """See `Counters.settle`."""
        if reservation.number:
            account, number = reservation.account, reservation.number
            sent = [0, 0, 0, 0] if used is None else [1, *_amounts(used)]
            settle = self._leases.run(["limits", "limits_settle"], _keys(account), [number, *sent])
            await self._leases.ended([_leased(account)], number, settle)

    async def _give_back(self, answer: Reservation | float) -> None:
        if isinstance(answer, Reservation):
            await self.settle(answer, None)


def _amounts(demand: Demand) -> list[int]:
    return [demand.input_tokens, demand.output_tokens, demand.cost or 0]


def _leased(account: str) -> tuple[str, str]:
    return f"{_PREFIX}:{account}:leases", f"{_PREFIX}:{account}:holds"


def _keys(account: str) -> list[str]:
    windows = [f"{_PREFIX}:{account}:{kind}" for kind in ("requests", "input", "output", "cost")]
    return [*_leased(account), *windows]

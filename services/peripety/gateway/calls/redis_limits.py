"""Rate limits and budgets in Redis, shared by all replicas.

Reservations are leases: those of a process that stops expire unless renewed. Lua scripts make each
operation atomic; their times are those of the server, in milliseconds since 1970.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from functools import cache
from importlib import resources
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from peripety.core import logging_setup
from peripety.errors import UnavailableError
from peripety.gateway.budgets.types import BudgetAmount, LedgerHold, ReservationRejected
from peripety.gateway.calls.rate_limiter import CallUsage, LimitReservation, LimitUsage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from peripety.core.config import ProviderLimits
    from peripety.core.redis_server import RedisServer
    from peripety.gateway.budgets.types import BudgetScope


_LIMITS_PREFIX = "peripety:limits"
_LIMITS_POLL_SECONDS = 0.25
"""Poll interval in seconds while a call of another replica must end first; Redis does not notify."""


class RedisUsageCounters:
    """`UsageCounters` in Redis, on the clock of the Redis server.

    The sliding window of a minute has slots of half a second.

    Args:
        leases: reserves on the server.
    """

    def __init__(self, leases: LeaseManager) -> None:
        self._leases = leases

    async def reserve(
        self,
        account: str,
        limits: ProviderLimits,
        estimate: CallUsage,
    ) -> LimitReservation | float:
        """See `UsageCounters.reserve`.

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
            return LimitReservation(account, estimate, 0.0)

        async def take(number: str) -> LimitReservation | float:
            arguments = [-1 if cap is None else cap for cap in caps]
            wait = await self._leases.run(
                ["limits", "limits_reserve"],
                _limit_keys(account),
                [number, self._leases.lease_milliseconds, *arguments, *_usage_arguments(estimate)],
            )
            if wait:
                return _LIMITS_POLL_SECONDS if wait < 0 else wait / 1000
            self._leases.start_renewal([_limit_lease_keys(account)], number)
            return LimitReservation(account, estimate, 0.0, number)

        return await self._leases.acquire(take, self._release_reservation)

    async def settle(self, reservation: LimitReservation, used: CallUsage | None) -> None:
        """See `UsageCounters.settle`."""
        if reservation.number:
            account, number = reservation.account, reservation.number
            sent = [0, 0, 0, 0] if used is None else [1, *_usage_arguments(used)]
            settle = self._leases.run(["limits", "limits_settle"], _limit_keys(account), [number, *sent])
            await self._leases.settle_lease([_limit_lease_keys(account)], number, settle)

    async def read(self, account: str) -> LimitUsage:
        """See `UsageCounters.read`.

        Raises:
            UnavailableError: the server is unavailable.
        """
        return LimitUsage(*await self._leases.run(["limits", "limits_read"], _limit_keys(account), []))

    async def _release_reservation(self, answer: LimitReservation | float) -> None:
        if isinstance(answer, LimitReservation):
            await self.settle(answer, None)


def _usage_arguments(demand: CallUsage) -> list[int]:
    return [demand.input_tokens, demand.output_tokens, demand.cost or 0]


def _limit_lease_keys(account: str) -> tuple[str, str]:
    return f"{_LIMITS_PREFIX}:{account}:leases", f"{_LIMITS_PREFIX}:{account}:holds"


def _limit_keys(account: str) -> list[str]:
    windows = [f"{_LIMITS_PREFIX}:{account}:{kind}" for kind in ("requests", "input", "output", "cost")]
    return [*_limit_lease_keys(account), *windows]


_LEASE_SECONDS = 30.0
_RENEWALS_PER_LEASE = 3

_log = logging.getLogger(__name__)
T = TypeVar("T")


class LeaseManager:
    """Runner of the reserve and settle scripts; renews the leases of open reservations.

    Each reservation has a lease. If a process dies or loses the server for longer than the lease, its
    reservations count as fully used.

    Args:
        server: the Redis server of the process.
        seconds: duration of a lease without renewal.
    """

    def __init__(self, server: RedisServer, seconds: float = _LEASE_SECONDS) -> None:
        self._server = server
        self._seconds = seconds
        self._open_leases: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._renewal_task: asyncio.Task[None] | None = None
        self._settlement_tasks: set[asyncio.Task[Any]] = set()

    @property
    def lease_milliseconds(self) -> int:
        """Return the duration of a lease in milliseconds."""
        return int(self._seconds * 1000)

    async def run(self, scripts: Sequence[str], keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
        """Run scripts as one atomic step.

        Args:
            scripts: their names, shared code first.
            keys: the Redis keys.
            arguments: the other arguments.

        Raises:
            UnavailableError: the server is unavailable.
        """
        async with self._server.use() as client:
            return await client.register_script(_load_scripts(tuple(scripts)))(
                keys=list(keys),
                args=list(arguments),
            )

    async def acquire(
        self,
        reserve: Callable[[str], Coroutine[Any, Any, T]],
        release: Callable[[T], Awaitable[None]],
    ) -> T:
        """Reserve under a new number, and release it if the caller was cancelled meanwhile."""
        task = asyncio.ensure_future(reserve(uuid4().hex))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._start_settlement(_release_result(task, release))
            raise

    def start_renewal(self, keys: Sequence[tuple[str, str]], number: str) -> None:
        """Start to renew a reservation; each pair of keys is a key of leases and a key of reservations."""
        for pair in keys:
            self._open_leases[pair].add(number)
        if self._renewal_task is None:
            self._renewal_task = asyncio.create_task(self._renew_periodically())

    async def settle_lease(
        self,
        keys: Sequence[tuple[str, str]],
        number: str,
        settle: Coroutine[Any, Any, Any],
    ) -> None:
        """Settle, even if the caller is cancelled meanwhile, and stop the renewal.

        If the server is unavailable, the lease expires and the reservation counts as fully used.
        """
        for pair in keys:
            self._open_leases[pair].discard(number)
            if not self._open_leases[pair]:
                del self._open_leases[pair]
        try:
            await asyncio.shield(self._start_settlement(settle))
        except UnavailableError as error:
            _log.warning("a call cannot be settled", extra=logging_setup.describe_error(error))

    async def aclose(self) -> None:
        """Wait until all reservations are settled, and stop the renewal."""
        # The Redis client may swallow a cancellation. The renewal then ends because no lease is left.
        self._open_leases.clear()
        if self._renewal_task is not None:
            self._renewal_task.cancel()
            await asyncio.wait([self._renewal_task])
        if self._settlement_tasks:
            await asyncio.wait(self._settlement_tasks)

    def _start_settlement(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self._settlement_tasks.add(task)
        task.add_done_callback(self._settlement_tasks.discard)
        return task

    async def _renew_periodically(self) -> None:
        try:
            while self._open_leases:
                await asyncio.sleep(self._seconds / _RENEWALS_PER_LEASE)
                for pair, numbers in list(self._open_leases.items()):
                    await self._renew(pair, list(numbers))
        finally:
            self._renewal_task = None

    async def _renew(self, pair: tuple[str, str], numbers: list[str]) -> None:
        try:
            await self.run(["renew"], pair, [self.lease_milliseconds, *numbers])
        except UnavailableError as error:
            _log.warning("leases cannot be renewed", extra=logging_setup.describe_error(error))


@cache
def _load_scripts(names: tuple[str, ...]) -> str:
    scripts = resources.files(__package__).joinpath("redis")
    return "\n".join(scripts.joinpath(f"{name}.lua").read_text("utf-8") for name in names)


async def _release_result(task: asyncio.Task[T], release: Callable[[T], Awaitable[None]]) -> None:
    try:
        await release(await task)
    except UnavailableError as error:
        _log.warning(
            "reservation of a cancelled caller cannot be released",
            extra=logging_setup.describe_error(error),
        )


_BUDGETS_PREFIX = "peripety:budget"
_BUDGETS_POLL_SECONDS = 0.25


class RedisBudgetLedger:
    """`BudgetLedger` in Redis.

    Budgets that are idle for a week are dropped; their usage is then read from the history again.

    Args:
        leases: reserves on the server.
    """

    def __init__(self, leases: LeaseManager) -> None:
        self._leases = leases

    async def open(self, scope: BudgetScope, used: BudgetAmount) -> None:
        """See `BudgetLedger.open`."""
        await self._leases.run(["budgets", "budgets_open"], _budget_keys([scope]), _amount_arguments(used))

    async def reserve(
        self,
        scopes: Sequence[BudgetScope],
        amount: BudgetAmount,
    ) -> LedgerHold | ReservationRejected:
        """See `BudgetLedger.reserve`.

        Raises:
            UnavailableError: the server is unavailable; nothing is reserved.
        """

        async def take(number: str) -> LedgerHold | ReservationRejected:
            caps = chain.from_iterable(
                (scope.caps.max_calls, scope.caps.max_tokens, scope.caps.max_cost) for scope in scopes
            )
            answer = await self._leases.run(
                ["budgets", "budgets_reserve"],
                _budget_keys(scopes),
                [
                    number,
                    self._leases.lease_milliseconds,
                    *_amount_arguments(amount),
                    *(-1 if cap is None else cap for cap in caps),
                ],
            )
            if answer:
                short, *used = answer
                return ReservationRejected(
                    tuple(BudgetAmount(*map(int, each)) if each else None for each in used),
                    short,
                )
            self._leases.start_renewal(_budget_lease_keys(scopes), number)
            return LedgerHold(number, tuple(scopes), amount)

        return await self._leases.acquire(take, self._release_hold)

    async def settle(self, hold: LedgerHold, used: BudgetAmount) -> None:
        """See `BudgetLedger.settle`."""
        settle = self._leases.run(
            ["budgets", "budgets_settle"],
            _budget_keys(hold.scopes),
            [hold.number, *_amount_arguments(used)],
        )
        await self._leases.settle_lease(_budget_lease_keys(hold.scopes), hold.number, settle)

    async def wait_for_release(self, seconds: float) -> None:
        """See `BudgetLedger.wait_for_release`. Polls, because other replicas do not send notifications."""
        await asyncio.sleep(min(seconds, _BUDGETS_POLL_SECONDS))

    async def _release_hold(self, answer: LedgerHold | ReservationRejected) -> None:
        if isinstance(answer, LedgerHold):
            await self.settle(answer, BudgetAmount())


def _amount_arguments(amount: BudgetAmount) -> list[Any]:
    return [amount.calls, amount.tokens, amount.cost]


def _budget_lease_keys(scopes: Sequence[BudgetScope]) -> list[tuple[str, str]]:
    return [
        (f"{_BUDGETS_PREFIX}:{scope.key}:leases", f"{_BUDGETS_PREFIX}:{scope.key}:holds") for scope in scopes
    ]


def _budget_keys(scopes: Sequence[BudgetScope]) -> list[str]:
    return [
        key
        for scope, leased in zip(scopes, _budget_lease_keys(scopes), strict=True)
        for key in (f"{_BUDGETS_PREFIX}:{scope.key}", *leased)
    ]

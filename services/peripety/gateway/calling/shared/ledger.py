"""Budget ledger in Redis, shared by all replicas."""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import TYPE_CHECKING, Any

from peripety.gateway.calling.budgets.model import Amount, Hold, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.calling.budgets.model import Scope
    from peripety.gateway.calling.shared.leases import Leases

__all__ = ["RedisLedger"]

_PREFIX = "peripety:budget"
_POLL = 0.25


class RedisLedger:
    """`Ledger` in Redis.

    Budgets that are idle for a week are dropped; their usage is then read from the history again.

    Args:
        leases: reserves on the server.
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    async def open(self, scope: Scope, used: Amount) -> None:
        """See `Ledger.open`."""
        await self._leases.run(["budgets", "budgets_open"], _keys([scope]), _amounts(used))

    async def reserve(self, scopes: Sequence[Scope], amount: Amount) -> Hold | Refused:
        """See `Ledger.reserve`.

        Raises:
            UnavailableError: the server is unavailable; nothing is reserved.
        """

        async def take(number: str) -> Hold | Refused:
            caps = chain.from_iterable(
                (scope.caps.max_calls, scope.caps.max_tokens, scope.caps.max_cost) for scope in scopes
            )
            answer = await self._leases.run(
                ["budgets", "budgets_reserve"],
                _keys(scopes),
                [
                    number,
                    self._leases.milliseconds,
                    *_amounts(amount),
                    *(-1 if cap is None else cap for cap in caps),
                ],
            )
            if answer:
                short, *used = answer
                return Refused(tuple(Amount(*map(int, each)) if each else None for each in used), short)
            self._leases.began(_leased(scopes), number)
            return Hold(number, tuple(scopes), amount)

        return await self._leases.hold(take, self._give_back)

    async def settle(self, hold: Hold, used: Amount) -> None:
        """See `Ledger.settle`."""
        settle = self._leases.run(
            ["budgets", "budgets_settle"], _keys(hold.scopes), [hold.number, *_amounts(used)]
        )
        await self._leases.ended(_leased(hold.scopes), hold.number, settle)

    async def settled(self, seconds: float) -> None:
        """See `Ledger.settled`. Polls, because other replicas do not send notifications."""
        await asyncio.sleep(min(seconds, _POLL))

    async def _give_back(self, answer: Hold | Refused) -> None:
        if isinstance(answer, Hold):
            await self.settle(answer, Amount())


def _amounts(amount: Amount) -> list[Any]:
    return [amount.calls, amount.tokens, amount.cost]


def _leased(scopes: Sequence[Scope]) -> list[tuple[str, str]]:
    return [(f"{_PREFIX}:{scope.key}:leases", f"{_PREFIX}:{scope.key}:holds") for scope in scopes]


def _keys(scopes: Sequence[Scope]) -> list[str]:
    return [
        key
        for scope, leased in zip(scopes, _leased(scopes), strict=True)
        for key in (f"{_PREFIX}:{scope.key}", *leased)
    ]

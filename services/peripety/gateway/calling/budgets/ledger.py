"""Budget ledger in the memory of this process."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from peripety.gateway.calling.budgets.model import Amount, Hold, Refused, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.calling.clock import Clock

__all__ = ["MemoryLedger", "NoHistory"]

_MAX_ENTRIES = 1024


@dataclass(slots=True)
class _Entry:
    used: Amount
    held: Amount


class MemoryLedger:
    """`Ledger` in memory.

    Budgets that are idle for long are dropped; their usage is then read from the history again.

    Args:
        clock: used to wait.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._numbers = count()
        self._news = asyncio.Event()

    async def open(self, scope: Scope, used: Amount) -> None:
        """See `Ledger.open`."""
        self._entries.setdefault(scope.key, _Entry(used, Amount()))
        if len(self._entries) > _MAX_ENTRIES:
            key, oldest = self._entries.popitem(last=False)
            if oldest.held != Amount():
                self._entries[key] = oldest

    async def reserve(self, scopes: Sequence[Scope], amount: Amount) -> Hold | Refused:
        """See `Ledger.reserve`."""
        entries = [self._entries.get(scope.key) for scope in scopes]
        for index, (scope, entry) in enumerate(zip(scopes, entries, strict=True)):
            if entry is None or not (entry.used + entry.held + amount).fits(scope.caps):
                self._news.clear()
                return Refused(tuple(None if entry is None else entry.used for entry in entries), index)
        for scope in scopes:
            self._entries[scope.key].held += amount
            self._entries.move_to_end(scope.key)
        return Hold(str(next(self._numbers)), tuple(scopes), amount)

    async def settle(self, hold: Hold, used: Amount) -> None:
        """See `Ledger.settle`."""
        for scope in hold.scopes:
            entry = self._entries[scope.key]
            entry.held -= hold.amount
            entry.used += used
        self._news.set()

    async def settled(self, seconds: float) -> None:
        """See `Ledger.settled`."""
        await self._clock.wait(self._news, seconds)


class NoHistory:
    """`History` without storage: every budget starts unused."""

    async def used(self, _scope: Scope) -> Amount:
        """See `History.used`."""
        return Amount()

"""Usage aggregator: sums usage in memory and writes it to the database in batches, off the path of calls."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from peripety import logs
from peripety.errors import UnavailableError
from peripety.gateway.usage.model import Sums, UsageKey, key_of, sums_of
from peripety.pages import Page, Position, page_of, page_size, position_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from peripety.gateway.calling.budgets import Amount, Scope
    from peripety.gateway.calling.reports import CallReport
    from peripety.gateway.model import Completion
    from peripety.gateway.usage.model import UsageQuery, UsageRow
    from peripety.gateway.usage.store import UsageStore

__all__ = ["UsageBook"]

_log = logging.getLogger(__name__)
_PAUSE = 1.0
_MAX_PENDING = 10_000
_UNCERTAIN = "STORAGE_UNCERTAIN"


class UsageBook:
    """Aggregator of usage that is partly not written yet.

    Usage is written a second after it occurs, and on close; a crash loses the unwritten part. While the
    database fails, up to 10,000 sums are buffered and retried; beyond that, only the conversation of a call
    is dropped.

    Args:
        store: the table of sums.
        today: date and time, in UTC.
        pause: seconds between two batches.
    """

    def __init__(self, store: UsageStore, today: Callable[[], datetime], pause: float = _PAUSE) -> None:
        self._store = store
        self._today = today
        self._pause = pause
        self._pending: dict[UsageKey, Sums] = {}
        self._closing = asyncio.Event()
        self._writing = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None

    def add_call(self, report: CallReport) -> None:
        """Add a call."""
        self._add(*sums_of(report))

    def add_hit(self, completion: Completion, conversation_id: str | None) -> None:
        """Add an answer without a model call."""
        key = key_of(self._today(), completion.provider, completion.model, conversation_id)
        self._add(key, Sums(hits=1))

    async def used(self, scope: Scope) -> Amount:
        """Return the usage of a budget; see `History.used`."""
        await self._write()
        return await self._store.counted(scope)

    async def page(self, query: UsageQuery, asked_size: int, token: str) -> Page[UsageRow]:
        """Return a page of sums, including all calls that have ended in this process.

        Raises:
            InvalidArgumentError: the size or the token is wrong.
            UnavailableError: the database cannot be used now.
        """
        size = page_size(asked_size)
        position = position_in(token)
        offset = position.number if position else 0
        await self._write()
        found = await self._store.rows(query, offset, size + 1)
        return page_of(found, size, lambda _: Position(offset + size))

    async def aclose(self) -> None:
        """Write all pending usage."""
        self._closing.set()
        if self._writer is not None:
            await asyncio.wait([self._writer])
        try:
            await self._write()
        except UnavailableError as error:
            _log.error("usage is lost", extra={"sums": len(self._pending), **logs.outline(error)})

    def _add(self, key: UsageKey, sums: Sums) -> None:
        if len(self._pending) >= _MAX_PENDING and key not in self._pending:
            key = key._replace(conversation_id="")
        self._pending[key] = self._pending.get(key, Sums()) + sums
        if self._writer is None and not self._closing.is_set():
            self._writer = asyncio.create_task(self._write_from_time_to_time())

    async def _write_from_time_to_time(self) -> None:
        try:
            while self._pending and not self._closing.is_set():
                await self._rest()
                try:
                    await self._write()
                except UnavailableError as error:
                    _log.warning("usage cannot be written", extra=logs.outline(error))
        finally:
            self._writer = None

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(self._pause):
                await self._closing.wait()
        except TimeoutError:
            pass

    async def _write(self) -> None:
        """Write the pending sums, even if the waiting caller is cancelled."""
        await asyncio.shield(asyncio.ensure_future(self._write_pending()))

    async def _write_pending(self) -> None:
        async with self._writing:
            batch, self._pending = self._pending, {}
            if not batch:
                return
            try:
                await self._store.add(batch)
            except UnavailableError as error:
                # A batch that may have been written is not retried, because sums would count it twice.
                if error.code != _UNCERTAIN:
                    for key, sums in batch.items():
                        self._pending[key] = self._pending.get(key, Sums()) + sums
                raise

"""Blocks that write, one after the other, in transactions that they share.

A commit waits for the disk, for as long with one block as with many. So the blocks that wait while another
one is at work join its transaction, and those that come during its commit make up the next. Nobody waits for
company: once no block is waiting, the transaction is committed.

Each block has a savepoint of its own. A block that fails is undone alone. All others share the fate of their
group. A block may have read what those before it wrote, so its caller goes on, with what it found or with why
it failed, when all of that is on the disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from contextlib import asynccontextmanager
from copy import copy
from typing import TYPE_CHECKING, cast

from peripety.errors import PeripetyError
from peripety.storage.faults import commit, connected, unavailable
from peripety.tasks import finish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiosqlite import Connection as DriverConnection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

__all__ = ["MOST_BLOCKS", "GroupedWriter"]

MOST_BLOCKS = 64
"""So many blocks share a transaction at most: the first of them waits for the last."""


class GroupedWriter:
    """The one writer of a database that can have only one.

    Args:
        engine: makes its connection. It drops it when SQLite has rolled a transaction back by itself, and for
            no other reason: what other blocks did in the same transaction would be lost with it.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._waiting: deque[_Block] = deque()
        self._serving: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def block(self) -> AsyncIterator[AsyncConnection]:
        """Run the block when it is its turn, first come, first served; it ends when its group has."""
        block = _Block()
        self._waiting.append(block)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        try:
            yield await block.turn
        except BaseException as error:
            block.ended.set_result(False)
            if isinstance(error, Exception):
                await finish(block.outcome)
            raise
        block.ended.set_result(True)
        await finish(block.outcome)

    async def close(self) -> None:
        """Wait for the blocks under way, and close the connection."""
        if self._serving is not None:
            await asyncio.wait([self._serving])
        await self._engine.dispose()

    async def _serve(self) -> None:
        while self._waiting:
            await self._serve_group()

    async def _serve_group(self) -> None:
        group = [self._waiting.popleft()]
        try:
            async with connected(self._engine) as connection:
                # The first needs no savepoint: when it fails, nothing else is undone with it.
                if await _run(group[0], connection):
                    while self._waiting and len(group) < MOST_BLOCKS:
                        group.append(self._waiting.popleft())
                        await _run_in_savepoint(group[-1], connection)
                    await commit(connection)
                for block in group:
                    block.outcome.set_result(None)
        except BaseException as error:
            for block in group:
                block.fail(error)
            if not isinstance(error, Exception):
                raise


class _Block:
    """A block that wants to write.

    Attributes:
        turn: what it is handed when it may begin.
        ended: whether it ended without an error.
        outcome: done when its group has ended, with the error of that if there was one.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.turn: asyncio.Future[AsyncConnection] = loop.create_future()
        self.ended: asyncio.Future[bool] = loop.create_future()
        self.outcome: asyncio.Future[None] = loop.create_future()

    def fail(self, error: BaseException) -> None:
        for future in (self.turn, self.outcome):
            if not future.done():
                # Each raises one of its own, which collects where it passed.
                future.set_exception(copy(error) if isinstance(error, PeripetyError) else error)
                future.exception()  # The block may have been cancelled; then nobody hears of it.


async def _run(block: _Block, connection: AsyncConnection) -> bool:
    """Let a block run; returns whether to keep what it did."""
    if not block.turn.done():  # as it is when the block was cancelled before
        block.turn.set_result(connection)
    await asyncio.wait([block.ended])
    if connection.invalidated:
        raise unavailable("SQLITE_ABORT_ROLLBACK")
    return block.ended.result()


async def _run_in_savepoint(block: _Block, connection: AsyncConnection) -> None:
    """Let a block run, and undo what it did if it is not to be kept."""
    # Past SQLAlchemy, which goes to the thread of the driver three times for each statement.
    driver = cast("DriverConnection", (await connection.get_raw_connection()).driver_connection)
    try:
        await driver.execute("SAVEPOINT block")
        if not await _run(block, connection):
            await driver.execute("ROLLBACK TO block")
        await driver.execute("RELEASE block")
    except sqlite3.Error as error:
        raise unavailable(error.sqlite_errorname) from error

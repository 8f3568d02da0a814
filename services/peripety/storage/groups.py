"""Blocks that write, one after the other, in transactions that they share.

A commit waits for the disk, for as long with one block as with many. So the blocks that come while another
one is at work join its transaction, and those that come during its commit make up the next. Nobody waits for
company: once no block is at work and none has waited, the transaction is committed.

Each block has a savepoint of its own. A block that fails is undone alone. All others share the fate of their
group. A block may have read what those before it wrote, so its caller goes on, with what it found or with why
it failed, when all of that is on the disk.

Blocks that wait are woken all at once: where they only write, each of them is done before the next one
begins, and a whole group is in one round of the event loop.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from copy import copy
from typing import TYPE_CHECKING, cast

from peripety.errors import PeripetyError
from peripety.storage.faults import commit, connected, unavailable
from peripety.tasks import finish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from peripety.storage.driver import DriverConnection

__all__ = ["MOST_BLOCKS", "GroupedWriter"]

MOST_BLOCKS = 64
"""So many blocks share a transaction at most: the first of them waits for the last."""

_ROLLED_BACK = "SQLITE_ABORT_ROLLBACK"


class GroupedWriter:
    """The one writer of a database that can have only one.

    Args:
        engine: makes its connection. It drops it when SQLite has rolled a transaction back by itself, and for
            no other reason: what other blocks did in the same transaction would be lost with it. Only a block
            that cannot be undone alone makes all of them lose.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._group: _Group | None = None
        self._leading: asyncio.Task[None] | None = None
        self._is_taken = False
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def block(self) -> AsyncIterator[AsyncConnection]:
        """Run the block when it is its turn, first come, first served; it ends when its group has."""
        group = await self._joined()
        try:
            async with _savepoint(group) as connection:
                yield connection
        except BaseException as error:
            self._leave(group)
            if isinstance(error, Exception):
                await group.end()
            raise
        self._leave(group)
        await group.end()

    async def close(self) -> None:
        """Wait for the blocks under way, and close the connection."""
        while self._leading is not None and not self._leading.done():
            await asyncio.wait([self._leading])
        await self._engine.dispose()

    async def _joined(self) -> _Group:
        """The group that a block belongs to, when no other block is at work."""
        while self._is_taken or (self._group is not None and self._group.blocks == MOST_BLOCKS):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._is_taken = True
        if self._group is None:
            self._group = _Group()
            self._leading = asyncio.create_task(self._lead(self._group))
        self._group.blocks += 1
        return self._group

    def _leave(self, group: _Group) -> None:
        """Let others go to work, and commit after those who waited."""
        if group is not self._group:
            return  # It could not begin, or has been cancelled.
        if group.is_lost:
            group.complete.set_result(None)
            return
        self._give_way()
        asyncio.get_running_loop().call_soon(self._conclude, group)

    def _give_way(self) -> None:
        self._is_taken = False
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)

    def _conclude(self, group: _Group) -> None:
        """Have a group committed, if nobody is at work in it any more and nobody else has."""
        if group is self._group and not self._is_taken and not group.complete.done():
            self._is_taken = True
            group.complete.set_result(None)

    async def _lead(self, group: _Group) -> None:
        """Begin the transaction of a group, and commit it when the group is complete."""
        try:
            async with connected(self._engine) as connection:
                group.begun.set_result(connection)
                await group.complete
                await _commit(connection)
            group.outcome.set_result(None)
        except BaseException as error:
            group.fail(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._group = None
            self._give_way()


class _Group:
    """Blocks that share a transaction.

    Attributes:
        blocks: how many they are.
        begun: the connection, once the transaction has begun.
        complete: done when no block joins any more.
        outcome: done when the transaction has ended, with the error of that if there was one.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.blocks = 0
        self.begun: asyncio.Future[AsyncConnection] = loop.create_future()
        self.complete: asyncio.Future[None] = loop.create_future()
        self.outcome: asyncio.Future[None] = loop.create_future()

    @property
    def is_lost(self) -> bool:
        """Whether SQLite has rolled the transaction back by itself, or a block cannot be undone alone."""
        return self.begun.done() and self.begun.exception() is None and self.begun.result().invalidated

    async def end(self) -> None:
        """Wait for the end of the transaction, also when cancelled.

        Raises:
            UnavailableError: nothing of it was kept, or it is not known whether it was.
        """
        try:
            await finish(self.outcome)
        except PeripetyError as error:
            raise copy(error) from error  # Each block has one of its own, which collects where it passed.

    def fail(self, error: BaseException) -> None:
        for future in (self.begun, self.outcome):
            if not future.done():
                future.set_exception(error)
                future.exception()  # Its blocks may have been cancelled; then nobody hears of it.


@asynccontextmanager
async def _savepoint(group: _Group) -> AsyncIterator[AsyncConnection]:
    """What is undone alone when the block fails."""
    connection = await asyncio.shield(group.begun)
    # Past SQLAlchemy, for which these would be three statements more.
    driver = await _driver_of(connection)
    try:
        await driver.execute("SAVEPOINT block")
        try:
            yield connection
        except BaseException:
            if not _is_gone(connection):
                await driver.execute("ROLLBACK TO block")
                await driver.execute("RELEASE block")
            raise
        if _is_gone(connection):
            raise unavailable(_ROLLED_BACK)
        await driver.execute("RELEASE block")
    except sqlite3.Error as error:
        # Some of the block may still be there, or nothing of the whole transaction.
        await finish(connection.invalidate())
        raise unavailable(getattr(error, "sqlite_errorname", type(error).__name__)) from error


def _is_gone(connection: AsyncConnection) -> bool:
    """Whether the transaction has ended before its time."""
    return connection.closed or connection.invalidated


async def _driver_of(connection: AsyncConnection) -> DriverConnection:
    return cast("DriverConnection", (await connection.get_raw_connection()).driver_connection)


async def _commit(connection: AsyncConnection) -> None:
    # Where there is no transaction any more, a commit does nothing, and says that it went well.
    if connection.invalidated or not (await _driver_of(connection)).in_transaction:
        raise unavailable(_ROLLED_BACK)
    await commit(connection)

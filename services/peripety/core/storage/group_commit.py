"""Group commit: write blocks run one after the other and share transactions.

A commit waits for the disk (fsync), and it waits as long for one block as for sixty. With one transaction
per block, the number of turns per second of a process would be the number of fsyncs per second. Group
commit shares one fsync between all blocks that arrive while the disk is busy.

Protocol:

* A block joins the open group, or opens one. A task, the leader, owns the transaction of a group.
* Blocks that arrive while another block is running join its transaction. Blocks that arrive during a commit
  form the next group.
* The group commits as soon as no block is running and none has waited. No timer is involved: a single
  writer pays no latency, and groups grow only under load. A fixed delay would cost every single writer that
  delay.
* The number of members of a group is limited, because the first member waits for the last one.

Invariants:

* One block runs at a time (SQLite allows one writer), so a block sees the database as if it were alone.
* Each block has its own savepoint. If it fails, only its own changes are rolled back.
* A block reports its result only after the commit of its group, even if the block failed: it may have read
  uncommitted changes of earlier members, so neither its result nor its error is valid before they are
  durable.
* If the transaction is lost, all members fail. That happens if SQLite rolled it back by itself, or if a
  savepoint cannot be rolled back. The connection is then discarded, and for no other reason, because
  discarding it loses the changes of the other members.
* A cancelled block is rolled back, and a cancellation that arrives during the commit waits for it.

Waiting blocks are woken all at once, not one by one. A block that only writes finishes before the next one
starts, so a whole group fits in one iteration of the event loop. Fairness between blocks is first come,
first served.

docs/explanation/decisions/0004-storage.md has the measurements. PostgreSQL has concurrent write
transactions and its own group commit, so its backend does not use this module.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from copy import copy
from typing import TYPE_CHECKING, cast

from peripety.core.concurrency import shield_until_done
from peripety.core.storage.errors import commit, open_transaction, storage_unavailable
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from peripety.core.storage.sqlite_driver import DriverConnection


MAX_BLOCKS = 64
"""Maximum number of blocks per transaction: the first of them waits for the last."""

_ROLLED_BACK = "SQLITE_ABORT_ROLLBACK"


class GroupCommitter:
    """Single writer of a database that supports only one.

    Args:
        engine: opens its connection. The connection is discarded if SQLite has rolled a transaction back by
            itself or a block cannot be rolled back alone; otherwise never, as the other blocks would lose
            their changes.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._group: _CommitGroup | None = None
        self._leader: asyncio.Task[None] | None = None
        self._is_block_running = False
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Run the block in its turn, first come, first served; return after the commit of its group."""
        group = await self._join_group()
        try:
            async with _savepoint(group) as connection:
                yield connection
        except BaseException as error:
            self._leave_group(group)
            if isinstance(error, Exception):
                await group.end()
            raise
        self._leave_group(group)
        await group.end()

    async def close(self) -> None:
        """Wait for active blocks, and close the connection."""
        while self._leader is not None and not self._leader.done():
            await asyncio.wait([self._leader])
        await self._engine.dispose()

    async def _join_group(self) -> _CommitGroup:
        """Wait until no other block is running, then join the open group or open one."""
        while self._is_block_running or (self._group is not None and self._group.blocks == MAX_BLOCKS):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._is_block_running = True
        if self._group is None:
            self._group = _CommitGroup()
            self._leader = asyncio.create_task(self._run_group(self._group))
        self._group.blocks += 1
        return self._group

    def _leave_group(self, group: _CommitGroup) -> None:
        """Let the next blocks run, and commit after those that waited."""
        if group is not self._group:
            return  # It could not begin, or was cancelled.
        if group.is_lost:
            group.complete.set_result(None)
            return
        self._wake_waiting()
        asyncio.get_running_loop().call_soon(self._complete_group, group)

    def _wake_waiting(self) -> None:
        self._is_block_running = False
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)

    def _complete_group(self, group: _CommitGroup) -> None:
        """Complete a group if no block is running in it and it is not complete yet."""
        if group is self._group and not self._is_block_running and not group.complete.done():
            self._is_block_running = True
            group.complete.set_result(None)

    async def _run_group(self, group: _CommitGroup) -> None:
        """Begin the transaction of a group, and commit it when the group is complete."""
        try:
            async with open_transaction(self._engine) as connection:
                group.begun.set_result(connection)
                await group.complete
                await _commit_checked(connection)
            group.outcome.set_result(None)
        except BaseException as error:
            group.fail(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._group = None
            self._wake_waiting()


class _CommitGroup:
    """Blocks that share a transaction.

    Attributes:
        blocks: number of blocks.
        begun: the connection, once the transaction has begun.
        complete: done when no more blocks can join.
        outcome: done when the transaction has ended, with its error if it failed.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.blocks = 0
        self.begun: asyncio.Future[AsyncConnection] = loop.create_future()
        self.complete: asyncio.Future[None] = loop.create_future()
        self.outcome: asyncio.Future[None] = loop.create_future()

    @property
    def is_lost(self) -> bool:
        """True if SQLite rolled the transaction back by itself, or a block cannot be rolled back alone."""
        return self.begun.done() and self.begun.exception() is None and self.begun.result().invalidated

    async def end(self) -> None:
        """Wait for the end of the transaction, even if cancelled.

        Raises:
            UnavailableError: nothing was stored, or the outcome of the commit is unknown.
        """
        try:
            await shield_until_done(self.outcome)
        except PeripetyError as error:
            raise copy(error) from error  # Each block gets its own copy, which collects its own traceback.

    def fail(self, error: BaseException) -> None:
        for future in (self.begun, self.outcome):
            if not future.done():
                future.set_exception(error)
                future.exception()  # Marks the exception as retrieved: all blocks may have been cancelled.


@asynccontextmanager
async def _savepoint(group: _CommitGroup) -> AsyncIterator[AsyncConnection]:
    """Run a block in a savepoint, which is rolled back alone if the block fails."""
    connection = await asyncio.shield(group.begun)
    # Bypasses SQLAlchemy, which would need three more statements.
    driver = await _driver_connection(connection)
    try:
        await driver.execute("SAVEPOINT block")
        try:
            yield connection
        except BaseException:
            if not _is_transaction_lost(connection):
                await driver.execute("ROLLBACK TO block")
                await driver.execute("RELEASE block")
            raise
        if _is_transaction_lost(connection):
            raise storage_unavailable(_ROLLED_BACK)
        await driver.execute("RELEASE block")
    except sqlite3.Error as error:
        # Part of the block may still be there, or the whole transaction may be lost.
        await shield_until_done(connection.invalidate())
        raise storage_unavailable(getattr(error, "sqlite_errorname", type(error).__name__)) from error


def _is_transaction_lost(connection: AsyncConnection) -> bool:
    """Return True if the transaction has ended early."""
    return connection.closed or connection.invalidated


async def _driver_connection(connection: AsyncConnection) -> DriverConnection:
    return cast("DriverConnection", (await connection.get_raw_connection()).driver_connection)


async def _commit_checked(connection: AsyncConnection) -> None:
    # Without an active transaction, a commit does nothing and reports success.
    if connection.invalidated or not (await _driver_connection(connection)).in_transaction:
        raise storage_unavailable(_ROLLED_BACK)
    await commit(connection)

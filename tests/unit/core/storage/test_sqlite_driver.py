"""Statements that reach a SQLite file from the event loop, and those that are left to a thread."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from typing import TYPE_CHECKING

import pytest

from peripety.core.storage.sqlite_driver import BEGIN_WRITING, DriverConnection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


LONG = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 300000) SELECT max(i) FROM n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "test.db")


@pytest.fixture
async def reader(path: str) -> AsyncIterator[DriverConnection]:
    opened = await DriverConnection.open(path, busy_seconds=1.0, read_only=True)
    yield opened
    await opened.close()


async def loop_comes_round_in(reader: DriverConnection, statement: str) -> bool:
    came_round: list[None] = []
    asyncio.get_running_loop().call_soon(came_round.append, None)
    cursor = reader.cursor()
    await cursor.execute(statement)
    assert len(await cursor.fetchall()) == 1
    return bool(came_round)


async def test_a_short_read_is_done_before_the_event_loop_comes_round(reader: DriverConnection) -> None:
    assert not await loop_comes_round_in(reader, "SELECT 1")


async def test_a_long_read_leaves_the_event_loop_free_and_ends_all_the_same(reader: DriverConnection) -> None:
    assert await loop_comes_round_in(reader, LONG)


async def test_a_cancelled_read_in_the_thread_leaves_a_connection_that_works(
    reader: DriverConnection,
) -> None:
    reading = asyncio.create_task(reader.execute(LONG))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert not await loop_comes_round_in(reader, "SELECT 1")


async def test_who_begins_to_write_while_others_do_waits_for_them_without_holding_up_the_loop(
    path: str,
) -> None:
    one, other = [await DriverConnection.open(path, busy_seconds=5.0, read_only=False) for _ in range(2)]
    await one.execute(BEGIN_WRITING)
    waiting = asyncio.create_task(other.execute(BEGIN_WRITING))
    await asyncio.sleep(0)
    assert not waiting.done()
    await one.execute("CREATE TABLE t (x)")
    await one.commit()
    await waiting
    assert other.in_transaction
    await other.rollback()
    for connection in (one, other):
        await connection.close()


async def test_a_read_that_another_connection_is_in_the_way_of_waits_without_holding_up_the_loop(
    path: str,
) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("CREATE TABLE t (x)")
    reader = await DriverConnection.open(path, busy_seconds=60.0, read_only=True)
    reading = asyncio.create_task(reader.execute("SELECT * FROM t"))
    await asyncio.sleep(0)
    assert not reading.done()
    other.close()
    await reading
    await reader.close()


async def test_a_wait_for_another_writer_ends(path: str) -> None:
    one, other = [await DriverConnection.open(path, busy_seconds=0.01, read_only=False) for _ in range(2)]
    await one.execute(BEGIN_WRITING)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        await other.execute(BEGIN_WRITING)
    for connection in (one, other):
        await connection.close()


async def test_a_connection_that_is_closed_says_so(path: str) -> None:
    closed = await DriverConnection.open(path, busy_seconds=1.0, read_only=False)
    await closed.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        closed.cursor()


async def test_the_garbage_collector_does_not_wait_for_the_lock_of_another_writer(path: str) -> None:
    first = await DriverConnection.open(path, busy_seconds=30.0, read_only=False)
    second = await DriverConnection.open(path, busy_seconds=30.0, read_only=False)
    await first.execute(BEGIN_WRITING)
    with pytest.raises(sqlite3.OperationalError, match="locked") as caught:
        await second.execute("PRAGMA journal_mode = WAL")
    cycle: list[object] = [caught.value]
    cycle.append(cycle)
    del cycle, caught
    waiting = asyncio.create_task(second.execute(BEGIN_WRITING))
    await asyncio.sleep(0.2)
    # The error refers to its cursor. An open one would block until the thread gives up, after 30 s. The
    # collection itself takes seconds in a process that has run thousands of tests.
    gc.collect()
    await first.rollback()
    await waiting
    await second.rollback()
    for connection in (first, second):
        await connection.close()

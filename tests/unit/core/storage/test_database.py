"""Guarantees of both databases: transactions, snapshots, one writer and crash recovery."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import Column, Integer, LargeBinary, Table, Text, func, insert, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from peripety.core.storage.database import METADATA, Database
from peripety.errors import UnavailableError
from support.servers.processes import add_next_pair, add_pair, halves, pairs, writing

pytestmark = pytest.mark.postgresql

things = Table(
    "things",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("said", Text),
    Column("data", LargeBinary),
)


async def _add_twice(database: Database, number: int) -> None:
    async with database.write() as connection:
        await connection.execute(insert(pairs).values(number=number, half=0))
        await connection.execute(insert(pairs).values(number=number, half=0))


async def test_what_a_write_block_did_is_there_for_the_next_reader(database: Database) -> None:
    await add_pair(database, 1)
    assert await halves(database) == {1: 2}


async def test_a_write_block_that_raises_leaves_nothing(database: Database) -> None:
    with pytest.raises(IntegrityError):
        await _add_twice(database, 1)
    assert await halves(database) == {}


async def test_a_reader_keeps_its_snapshot_while_a_writer_commits(database: Database) -> None:
    await add_pair(database, 1)
    async with database.read() as connection:
        count = select(func.count()).select_from(pairs)
        before = await connection.scalar(count)
        await add_pair(database, 2)
        assert await connection.scalar(count) == before
    assert await halves(database) == {1: 2, 2: 2}


async def test_writing_inside_a_read_block_fails(database: Database) -> None:
    with pytest.raises(DBAPIError, match=r"read-?only"):
        async with database.read() as connection:
            await connection.execute(insert(pairs).values(number=1, half=0))


async def test_a_mistake_in_a_statement_is_not_reported_as_a_fault(database: Database) -> None:
    with pytest.raises(DBAPIError, match="nowhere"):
        async with database.write() as connection:
            await connection.execute(text("select * from nowhere"))


async def test_concurrent_writers_take_turns_and_all_succeed(database: Database) -> None:
    numbers = await asyncio.gather(*(add_next_pair(database) for _ in range(60)))
    assert sorted(numbers) == list(range(60))
    assert await halves(database) == dict.fromkeys(range(60), 2)


async def test_cancelled_writers_leave_whole_transactions_and_a_usable_database(database: Database) -> None:
    tasks = [asyncio.create_task(add_pair(database, number)) for number in range(60)]
    for task in tasks[::2]:
        await asyncio.sleep(0.001)
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    # A connection that is cancelled in the middle of an answer may be gone for the one who was cancelled.
    gone = {type(None), asyncio.CancelledError, UnavailableError}
    assert {type(result) for result in results[::2]} <= gone
    assert results[1::2] == [None] * 30
    await add_pair(database, 1000)
    counted = await halves(database)
    assert set(counted.values()) == {2}
    assert {n for n, result in enumerate(results) if result is None} <= set(counted)


async def test_readers_that_find_every_connection_taken_are_told_to_come_back(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = database._backend._readers.sync_engine.pool  # type: ignore[attr-defined]
    monkeypatch.setattr(pool, "_timeout", 0.05)
    async with AsyncExitStack() as held:
        for _ in range(pool.size()):
            await held.enter_async_context(database.read())
        with pytest.raises(UnavailableError) as caught:
            await halves(database)
    assert caught.value.code == "STORAGE_BUSY"
    assert await halves(database) == {}


@pytest.mark.parametrize("said", ["", "a\x00b", "\x00\x01\x02\x01\x01\x00", "é\u2028\U0001f600", "\\x00"])
async def test_any_text_and_any_bytes_come_back_as_they_were(database: Database, said: str) -> None:
    data = bytes(range(256))
    async with database.write() as connection:
        await connection.execute(insert(things).values(number=1, said=said, data=data))
    async with database.read() as connection:
        row = (await connection.execute(select(things).where(things.c.said == said))).one()
    assert (row.said, row.data) == (said, data)


async def test_opening_again_finds_everything(database_url: str) -> None:
    for round_ in range(3):
        database = await Database.open(database_url)
        assert await add_next_pair(database) == round_
        await database.close()


async def test_several_may_open_an_empty_database_at_once(database_url: str) -> None:
    opened = await asyncio.gather(*(Database.open(database_url) for _ in range(12)))
    for database in opened:
        await add_next_pair(database)
    assert len(await halves(opened[0])) == 12
    for database in opened:
        await database.close()


@pytest.mark.slow_after(2, reason="kills a process")
@pytest.mark.parametrize("reports", [1, 20, 60])
async def test_a_process_killed_while_writing_loses_nothing_it_reported_and_leaves_no_half(
    database_url: str,
    reports: int,
) -> None:
    with writing(database_url) as process:
        assert process.stdout is not None
        for _ in range(reports):
            process.stdout.readline()
        process.kill()
        last = [*range(reports), *map(int, process.stdout.read().split())][-1]
    database = await Database.open(database_url)
    counted = await halves(database)
    await database.close()
    assert set(counted.values()) == {2}
    assert set(range(last + 1)) <= set(counted)

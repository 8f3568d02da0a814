"""One SQLite file: transactions, one writer, crashes, faults and the recorded version."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.exc import IntegrityError, OperationalError

from peripety.errors import FailedPreconditionError, UnavailableError
from peripety.storage import SCHEMA_VERSION, Database
from support.writer import pairs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "not" / "yet" / "there.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(f"sqlite:///{path}")
    yield opened
    await opened.close()


async def _add(database: Database, number: int) -> None:
    async with database.write() as connection:
        await connection.execute(insert(pairs).values(number=number, half=0))
        await asyncio.sleep(0)
        await connection.execute(insert(pairs).values(number=number, half=1))


async def _add_twice(database: Database, number: int) -> None:
    async with database.write() as connection:
        await connection.execute(insert(pairs).values(number=number, half=0))
        await connection.execute(insert(pairs).values(number=number, half=0))


async def _count(database: Database) -> int | None:
    async with database.read() as connection:
        return await connection.scalar(select(func.count()).select_from(pairs))


async def test_what_a_write_block_did_is_there_for_the_next_reader(database: Database) -> None:
    await _add(database, 1)
    assert await _count(database) == 2


async def test_a_write_block_that_raises_leaves_nothing(database: Database) -> None:
    with pytest.raises(IntegrityError):
        await _add_twice(database, 1)
    assert await _count(database) == 0


async def test_a_reader_keeps_its_snapshot_while_a_writer_commits(database: Database) -> None:
    await _add(database, 1)
    async with database.read() as connection:
        count = select(func.count()).select_from(pairs)
        before = await connection.scalar(count)
        await _add(database, 2)
        assert await connection.scalar(count) == before
    assert await _count(database) == 4


async def test_writing_inside_a_read_block_fails(database: Database) -> None:
    with pytest.raises(OperationalError, match="readonly"):
        async with database.read() as connection:
            await connection.execute(insert(pairs).values(number=1, half=0))


async def test_a_mistake_in_a_statement_is_not_reported_as_a_fault_of_the_disk(database: Database) -> None:
    with pytest.raises(OperationalError, match="no such table"):
        async with database.write() as connection:
            await connection.execute(text("select * from nowhere"))


async def test_concurrent_writers_take_turns_and_all_succeed(database: Database) -> None:
    await asyncio.gather(*(_add(database, number) for number in range(60)))
    assert await _count(database) == 120


async def test_cancelled_writers_leave_whole_transactions_and_a_usable_database(database: Database) -> None:
    tasks = [asyncio.create_task(_add(database, number)) for number in range(60)]
    for task in tasks[::2]:
        await asyncio.sleep(0.001)
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(result) for result in results} <= {type(None), asyncio.CancelledError}
    await _add(database, 1000)
    async with database.read() as connection:
        halves = select(pairs.c.number, func.count()).group_by(pairs.c.number)
        counted: dict[int, int] = {row[0]: row[1] for row in await connection.execute(halves)}
    assert set(counted.values()) == {2}
    assert {n for n, result in enumerate(results) if result is None} <= set(counted)


async def test_readers_that_find_every_connection_taken_are_told_to_come_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database._readers.sync_engine.pool, "_timeout", 0.05)
    async with AsyncExitStack() as held:
        for _ in range(4):
            await held.enter_async_context(database.read())
        with pytest.raises(UnavailableError) as caught:
            await _count(database)
    assert caught.value.code == "STORAGE_BUSY"
    assert await _count(database) == 0


async def test_the_file_is_set_up_to_survive_a_crash(database: Database) -> None:
    async def pragma(name: str) -> object:
        async with database.write() as connection:
            return await connection.scalar(text(f"PRAGMA {name}"))

    assert await pragma("journal_mode") == "wal"
    assert await pragma("synchronous") == 2
    assert await pragma("foreign_keys") == 1


async def test_opening_again_finds_everything_and_closing_leaves_one_file(path: Path) -> None:
    for round_ in range(3):
        database = await Database.open(f"sqlite:///{path}")
        await _add(database, round_)
        await database.close()
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    database = await Database.open(f"sqlite:///{path}")
    assert await _count(database) == 6
    await database.close()


async def test_a_file_written_by_a_newer_program_is_refused(path: Path) -> None:
    await (await Database.open(f"sqlite:///{path}")).close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE peripety_schema SET version = ?", (SCHEMA_VERSION + 1,))
    raw.close()
    with pytest.raises(FailedPreconditionError, match=f"version {SCHEMA_VERSION + 1}") as caught:
        await Database.open(f"sqlite:///{path}")
    assert caught.value.code == "NEWER_SCHEMA"


async def test_a_file_that_is_no_database_is_unavailable_not_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(b"text, not a database" * 1000)
    with pytest.raises(UnavailableError) as caught:
        await Database.open(f"sqlite:///{path}")
    assert caught.value.details == {"fault": "SQLITE_NOTADB"}
    assert path.read_bytes().startswith(b"text")


async def test_a_directory_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match="PERIPETY_DATABASE_URL"):
        await Database.open(f"sqlite:///{tmp_path / 'file' / 'a.db'}")


async def test_a_full_disk_is_unavailable_and_changes_nothing(database: Database) -> None:
    await _add(database, 1)
    async with database.write() as connection:
        pages = await connection.scalar(text("PRAGMA page_count"))
        await connection.execute(text(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(UnavailableError) as caught:
        async with database.write() as connection:
            await connection.execute(text("CREATE TABLE filler AS SELECT zeroblob(100000) AS z"))
    assert caught.value.details == {"fault": "SQLITE_FULL"}
    assert await _count(database) == 2


@pytest.mark.parametrize("moment", [0.05, 0.1, 0.2])
def test_a_process_killed_while_writing_loses_nothing_it_reported_and_leaves_no_half(
    path: Path, moment: float
) -> None:
    reported = _write_until_killed(path, moment)
    with sqlite3.connect(path) as raw:
        halves = dict(raw.execute("SELECT number, count(*) FROM pairs GROUP BY number"))
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    raw.close()
    assert reported
    assert set(halves.values()) == {2}
    assert set(range(reported[-1] + 1)) <= set(halves)


def _write_until_killed(path: Path, moment: float) -> list[int]:
    """Run a writer, kill it `moment` seconds after its first commit, return the numbers it reported."""
    tests = Path(__file__).parent.parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    command = [sys.executable, "-m", "support.writer", f"sqlite:///{path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().splitlines(keepends=True)
    return [int(line) for line in (first, *rest) if line.endswith(b"\n")]

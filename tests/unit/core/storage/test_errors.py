"""Faults of each disk operation during a group commit: acknowledged writes are never lost.

This holds for a process that continues, and for one that recovers from the disk image of that moment.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Column, Connection, Text, bindparam, insert, select, text

from peripety.core.storage import migrations
from peripety.core.storage.database import Database
from peripety.core.storage.migrations import add_column
from peripety.errors import ConflictError, UnavailableError
from support.servers.databases import FaultyDisk
from support.servers.processes import add_half, add_pair, found, pairs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator
    from pathlib import Path

    from support.servers.databases import Kind


pytestmark = pytest.mark.slow(reason="injects a fault into each write of the disk")


_LARGE = b"x" * 40_000


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    with FaultyDisk() as faulty:
        yield faulty


async def prepare(database: Database) -> None:
    """One pair, room for large rows, and as much at work on the disk as there can be."""
    async with database.write() as connection:
        await connection.execute(
            text("CREATE TABLE IF NOT EXISTS large (number INTEGER PRIMARY KEY, data BLOB)"),
        )
    await add_pair(database, 0)
    async with database.write() as connection:
        await connection.execute(text("PRAGMA wal_autocheckpoint=1"))  # a checkpoint after each commit
        await connection.execute(text("PRAGMA cache_size=10"))  # pages; others are written before the commit


async def add_large_pair(database: Database, number: int) -> None:
    statement = text("INSERT INTO large VALUES (:number, :data)").bindparams(bindparam("data", _LARGE))
    async with database.write() as connection:
        await connection.execute(insert(pairs).values(number=number, half=0))
        await connection.execute(statement, {"number": number})
        await connection.execute(insert(pairs).values(number=number, half=1))


async def outcomes(*blocks: Awaitable[None]) -> list[str]:
    """Return the outcomes of concurrent write blocks."""

    async def outcome(block: Awaitable[None]) -> str:
        try:
            await block
        except (ConflictError, UnavailableError) as error:
            return error.code
        return "KEPT"

    return await asyncio.gather(*map(outcome, blocks))


def numbers(path: Path) -> set[int]:
    """The pairs in a file, of which those with a large row have it."""
    connection = sqlite3.connect(path)
    try:
        large = {row[0] for row in connection.execute("SELECT number FROM large")}
    finally:
        connection.close()
    there = found(path)
    assert large == {number for number in there if number % 10 == 3}
    return there


def crash_image(path: Path, name: str) -> Path:
    """Copy the files that a crash would leave: the database file and its log, without shared memory."""
    folder = path.parent / name
    folder.mkdir()
    for file in path.parent.glob("*.db*"):
        if not file.name.endswith("-shm"):
            shutil.copy(file, folder)
    return folder / path.name


def assert_kept(there: set[int], ended: dict[int, str]) -> None:
    assert {number for number, outcome in ended.items() if outcome == "KEPT"} <= there
    assert there <= {number for number, outcome in ended.items() if outcome in {"KEPT", "STORAGE_UNCERTAIN"}}


async def write_on_a_failing_disk(path: Path, disk: FaultyDisk, **fault: Any) -> dict[int, str]:
    """Return the outcomes of write blocks: two groups, one hit by a fault, and a last one after it."""
    database = await Database.open(f"sqlite:///{path}")
    try:
        await prepare(database)
        disk.fail(**fault)
        blocks = {1: add_pair, 2: add_half, 3: add_large_pair, 4: add_pair, 13: add_large_pair}
        ended = await outcomes(*(add(database, number) for number, add in blocks.items()))
        ended += await outcomes(*(add_pair(database, number) for number in (5, 6)))
        result = dict(zip([*blocks, 5, 6], ended, strict=True)) | {0: "KEPT"}
        assert len({result[number] for number in (5, 6)}) == 1
        assert_kept(await asyncio.to_thread(lambda: numbers(crash_image(path, "crashed"))), result)
        failed = disk.failed
        disk.mend()
        result[7] = (await outcomes(add_pair(database, 7)))[0]
        assert result[7] == "KEPT"
    finally:
        disk.mend()
        await database.close()
    assert_kept(await asyncio.to_thread(lambda: numbers(path)), result)
    return result if failed else {}


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("kind", ["error", "full", "torn"])
async def test_whatever_fails_of_the_disk_while_a_group_is_written_what_was_acknowledged_is_kept(
    tmp_path: Path,
    disk: FaultyDisk,
    kind: Kind,
    for_good: bool,
) -> None:
    seen: set[str] = set()
    for at in itertools.count(1):
        path = tmp_path / str(at) / "test.db"
        ended = await write_on_a_failing_disk(path, disk, at=at, kind=kind, for_good=for_good)
        if not ended:
            break
        seen |= set(ended.values())
    assert at > 100
    assert seen == {"KEPT", "CONFLICT", "STORAGE_UNAVAILABLE", "STORAGE_UNCERTAIN"}


async def test_when_the_commit_fails_all_of_the_group_hear_that_it_may_have_been_kept(
    tmp_path: Path,
    disk: FaultyDisk,
) -> None:
    database = await Database.open(f"sqlite:///{tmp_path / 'test.db'}")
    await add_pair(database, 0)
    disk.fail(1, "error", for_good=False)  # what little they write is written by the commit
    blocks = add_pair(database, 1), add_half(database, 2), add_pair(database, 3)
    assert await outcomes(*blocks) == ["STORAGE_UNCERTAIN"] * 3
    assert await outcomes(add_pair(database, 4)) == ["KEPT"]
    await database.close()
    assert 2 not in await asyncio.to_thread(found, tmp_path / "test.db")


def add_note(connection: Connection) -> None:
    add_column(connection, "pairs", Column("note", Text, server_default="none"))


@pytest.mark.parametrize("kind", ["error", "full", "torn"])
@pytest.mark.parametrize("exists", [False, True], ids=["new", "older"])
async def test_whatever_fails_of_the_disk_while_a_database_is_opened_the_next_attempt_opens_it(
    tmp_path: Path,
    disk: FaultyDisk,
    monkeypatch: pytest.MonkeyPatch,
    kind: Kind,
    exists: bool,
) -> None:
    old = tmp_path / "old.db"
    if exists:
        database = await Database.open(f"sqlite:///{old}")
        await add_pair(database, 1)
        await database.close()
    monkeypatch.setattr("peripety.core.storage.migrations.STEPS", (*migrations.STEPS, add_note))
    for at in itertools.count(1):
        url = f"sqlite:///{tmp_path / f'{at}.db'}"
        if exists:
            await asyncio.to_thread(shutil.copy, old, tmp_path / f"{at}.db")
        disk.fail(at, kind, for_good=False)
        with suppress(UnavailableError):
            await (await Database.open(url)).close()
        failed = disk.failed
        disk.mend()
        database = await Database.open(url)
        async with database.read() as connection:
            rows = await connection.execute(
                text("SELECT number, note FROM pairs") if exists else select(pairs),
            )
            assert [tuple(row) for row in rows] == [(1, "none")] * 2 * exists
        await database.close()
        if not failed:
            break
    assert at > 5

"""Pairs of rows, one pair a transaction, and a process that adds one after the other and says which."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Column, Integer, Table, func, insert, select

from peripety.core.storage.database import METADATA, Database
from peripety.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Iterator


pairs = Table(
    "pairs",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("half", Integer, primary_key=True),
)


async def add_pair(database: Database, number: int) -> None:
    """Add a pair, and let others have their turn in between."""
    async with database.write() as connection:
        await connection.execute(insert(pairs).values(number=number, half=0))
        await asyncio.sleep(0)
        await connection.execute(insert(pairs).values(number=number, half=1))


async def add_next_pair(database: Database) -> int:
    """Add the pair after the last one, and return its number."""
    async with database.write() as connection:
        last = await connection.scalar(select(func.max(pairs.c.number)))
        number = 0 if last is None else last + 1
        await connection.execute(insert(pairs).values(number=number, half=0))
        await connection.execute(insert(pairs).values(number=number, half=1))
    return number


async def add_half(database: Database, number: int) -> None:
    """Add half of a pair, then fail with a `ConflictError`."""
    async with database.write() as connection:
        await connection.execute(insert(pairs).values(number=number, half=0))
        raise ConflictError("half is enough")


async def halves(database: Database) -> dict[int, int]:
    """How many rows there are of each pair."""
    query = select(pairs.c.number, func.count()).group_by(pairs.c.number)
    async with database.read() as connection:
        return {row[0]: row[1] for row in await connection.execute(query)}


def found(path: Path) -> set[int]:
    """The pairs that a process finds in a SQLite file when it starts; they are whole, and so is the file."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counted = dict(connection.execute("SELECT number, count(*) FROM pairs GROUP BY number").fetchall())
    finally:
        connection.close()
    assert set(counted.values()) <= {2}
    return set(counted)


@contextmanager
def writing(url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that adds pairs and prints the number of each when it is there; the block's end kills it."""
    tests = Path(__file__).parent.parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    command = [sys.executable, "-m", "support.writer", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


async def _write_for_ever(url: str) -> None:
    database = await Database.open(url)
    while True:
        number = await add_next_pair(database)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_write_for_ever(sys.argv[1]))

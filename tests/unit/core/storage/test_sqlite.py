"""A SQLite file: how it is set up, and what its disk may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from peripety.core.storage.database import Database
from peripety.errors import UnavailableError
from support.servers.processes import add_pair, halves

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "not" / "yet" / "there.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(f"sqlite:///{path}")
    yield opened
    await opened.close()


async def test_the_file_is_set_up_to_survive_a_crash(database: Database) -> None:
    async def pragma(name: str) -> object:
        async with database.write() as connection:
            return await connection.scalar(text(f"PRAGMA {name}"))

    assert await pragma("journal_mode") == "wal"
    assert await pragma("synchronous") == 2
    assert await pragma("foreign_keys") == 1


async def test_closing_leaves_one_file(database: Database, path: Path) -> None:
    await add_pair(database, 1)
    await database.close()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


async def test_a_file_that_is_no_database_is_unavailable_not_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(b"text, not a database" * 1000)
    with pytest.raises(UnavailableError) as caught:
        await Database.open(f"sqlite:///{path}")
    assert caught.value.details == {"fault": "SQLITE_NOTADB"}
    assert "set PERIPETY_DATABASE_URL" in caught.value.message
    assert path.read_bytes().startswith(b"text")


async def test_a_directory_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match="PERIPETY_DATABASE_URL"):
        await Database.open(f"sqlite:///{tmp_path / 'file' / 'a.db'}")


async def test_a_full_disk_is_unavailable_and_changes_nothing(database: Database) -> None:
    await add_pair(database, 1)
    async with database.write() as connection:
        pages = await connection.scalar(text("PRAGMA page_count"))
        await connection.execute(text(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(UnavailableError) as caught:
        async with database.write() as connection:
            await connection.execute(text("CREATE TABLE filler AS SELECT zeroblob(100000) AS z"))
    assert caught.value.details == {"fault": "SQLITE_FULL"}
    assert await halves(database) == {1: 2}

"""A database of an older version: it is brought up to date once, wholly or not at all."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Column, Connection, Integer, Text, inspect, select, text

from peripety.core.storage.database import METADATA, Database
from peripety.core.storage.migrations import STEPS, add_column
from peripety.errors import FailedPreconditionError
from support.servers.processes import add_pair, halves, pairs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sqlalchemy.ext.asyncio import AsyncConnection

    Step = Callable[[Connection], None]


pytestmark = pytest.mark.postgresql


_version = METADATA.tables["peripety_schema"]
_NEWEST = 1 + len(STEPS)


def add_note(connection: Connection) -> None:
    add_column(connection, "pairs", Column("note", Text, nullable=False, server_default="it's 100% %s"))


def add_count(connection: Connection) -> None:
    add_column(connection, "pairs", Column("the count", Integer))
    connection.execute(text('UPDATE pairs SET "the count" = number + 1'))


def add_to_what_is_not_there(connection: Connection) -> None:
    add_column(connection, "nowhere", Column("a", Text))


def fail(_connection: Connection) -> None:
    raise RuntimeError("half way")


@pytest.fixture
def know(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make this program one that knows these steps after the real ones."""

    def knows(*steps: Step) -> None:
        monkeypatch.setattr("peripety.core.storage.migrations.STEPS", (*STEPS, *steps))

    return knows


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    database = await Database.open(url)
    try:
        yield database
    finally:
        await database.close()


async def rows(url: str, query: str) -> list[tuple[object, ...]]:
    async with opened(url) as database, database.read() as connection:
        return [tuple(row) for row in await connection.execute(text(query))]


async def recorded(url: str) -> list[int]:
    async with opened(url) as database, database.read() as connection:
        return list(await connection.scalars(select(_version.c.version)))


async def column_names(connection: AsyncConnection) -> list[str]:
    return [c["name"] for c in await connection.run_sync(lambda c: inspect(c).get_columns("pairs"))]


async def test_an_older_database_gets_every_step_it_lacks_in_order_and_keeps_what_it_held(
    database_url: str,
    know: Callable[..., None],
) -> None:
    async with opened(database_url) as database:
        await add_pair(database, 7)
    know(add_note, add_count)
    assert await rows(database_url, 'SELECT note, half, "the count" FROM pairs ORDER BY half') == [
        ("it's 100% %s", 0, 8),
        ("it's 100% %s", 1, 8),
    ]
    assert await recorded(database_url) == [_NEWEST + 2]


async def test_a_step_is_taken_once(database_url: str, know: Callable[..., None]) -> None:
    taken: list[int] = []
    async with opened(database_url):
        pass
    know(lambda _: taken.append(1))
    for _ in range(2):
        async with opened(database_url):
            pass
    know(lambda _: taken.append(1), lambda _: taken.append(2))
    async with opened(database_url):
        pass
    assert taken == [1, 2]


async def test_a_new_database_needs_no_steps(database_url: str, know: Callable[..., None]) -> None:
    know(fail)
    assert await recorded(database_url) == [_NEWEST + 1]


async def test_a_table_that_is_not_there_yet_is_made_whole_and_not_altered(
    database_url: str,
    know: Callable[..., None],
) -> None:
    async with opened(database_url) as database, database.write() as connection:
        await connection.run_sync(pairs.drop)
    know(add_to_what_is_not_there, add_note)
    async with opened(database_url) as database:
        await add_pair(database, 1)
        async with database.read() as connection:
            assert await column_names(connection) == ["number", "half"]


async def test_a_step_that_fails_leaves_the_database_as_it_was(
    database_url: str,
    know: Callable[..., None],
) -> None:
    async with opened(database_url) as database:
        await add_pair(database, 1)
    know(add_note, fail)
    with pytest.raises(RuntimeError, match="half way"):
        await Database.open(database_url)
    know()
    assert await recorded(database_url) == [_NEWEST]
    async with opened(database_url) as database, database.read() as connection:
        assert await column_names(connection) == ["number", "half"]


async def test_processes_that_start_together_take_a_step_once(
    database_url: str,
    know: Callable[..., None],
) -> None:
    async with opened(database_url) as database:
        await add_pair(database, 1)
    know(add_note)
    # A second attempt at the step would fail: the column is there.
    replicas = await asyncio.gather(*(Database.open(database_url) for _ in range(5)))
    for number, replica in enumerate(replicas, 2):
        await add_pair(replica, number)
        await replica.close()
    assert set(await rows(database_url, "SELECT note FROM pairs")) == {("it's 100% %s",)}
    assert await recorded(database_url) == [_NEWEST + 1]


async def test_an_older_program_that_still_runs_goes_on_and_is_refused_once_it_starts_again(
    database_url: str,
    know: Callable[..., None],
) -> None:
    async with opened(database_url) as older:
        await add_pair(older, 1)
        know(add_note)
        async with opened(database_url):
            await add_pair(older, 2)
            assert await halves(older) == {1: 2, 2: 2}
        know()
        with pytest.raises(FailedPreconditionError, match=f"version {_NEWEST + 1}") as caught:
            await Database.open(database_url)
        assert caught.value.code == "NEWER_SCHEMA"

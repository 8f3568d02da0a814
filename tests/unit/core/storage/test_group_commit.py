"""Blocks that share a transaction on a SQLite file: what each of them may lose, and what it never does."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event, insert, select, text
from sqlalchemy.exc import IntegrityError

from peripety.core.storage.database import Database
from peripety.core.storage.group_commit import MAX_BLOCKS
from peripety.core.storage.sqlite_driver import DriverConnection
from peripety.errors import ConflictError, UnavailableError
from support.servers.processes import add_half, add_pair, halves, pairs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


pytestmark = pytest.mark.postgresql


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(f"sqlite:///{tmp_path / 'test.db'}")
    yield opened
    await opened.close()


@pytest.fixture
def commits(database: Database) -> list[object]:
    """Something for each transaction that was committed."""
    counted: list[object] = []
    event.listen(database._backend._writer._engine.sync_engine, "commit", counted.append)  # type: ignore[attr-defined]
    return counted


class Held:
    """A block that adds a pair, then stays at work until it is let go."""

    def __init__(self, database: Database, number: int) -> None:
        self._may_end = asyncio.Event()
        self.at_work = asyncio.Event()
        self.task = asyncio.create_task(self._run(database, number))

    async def _run(self, database: Database, number: int) -> None:
        async with database.write() as connection:
            await connection.execute(insert(pairs).values(number=number, half=0))
            await connection.execute(insert(pairs).values(number=number, half=1))
            self.at_work.set()
            await self._may_end.wait()

    async def end(self) -> None:
        self._may_end.set()
        await self.task


async def add_more_than_there_is_room_for(database: Database) -> None:
    """A row that no page is left for: SQLite gives up the whole transaction."""
    async with database.write() as connection:
        used = await connection.scalar(text("PRAGMA page_count"))
        await connection.execute(text(f"PRAGMA max_page_count = {used}"))
        await connection.execute(text("INSERT INTO notes VALUES (zeroblob(100000))"))


async def make_room_for_notes(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(text("CREATE TABLE notes (data BLOB)"))


def names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


async def test_blocks_that_wait_together_share_a_transaction_up_to_a_bound(
    database: Database,
    commits: list[object],
) -> None:
    count = 2 * MAX_BLOCKS + 1
    await asyncio.gather(*(add_pair(database, number) for number in range(count)))
    assert await halves(database) == dict.fromkeys(range(count), 2)
    assert len(commits) == 3


async def test_a_lone_block_waits_for_nobody(database: Database, commits: list[object]) -> None:
    for number in range(3):
        await add_pair(database, number)
        assert len(commits) == number + 1


async def test_blocks_take_their_turns_in_the_order_in_which_they_came(database: Database) -> None:
    order: list[int] = []

    async def note(number: int) -> None:
        async with database.write():
            order.append(number)

    await asyncio.gather(*(note(number) for number in range(100)))
    assert order == list(range(100))


async def test_a_block_has_not_ended_and_nobody_reads_it_before_its_group_is_committed(
    database: Database,
) -> None:
    first, second = Held(database, 1), Held(database, 2)
    await first.at_work.wait()
    first._may_end.set()
    await second.at_work.wait()
    assert not first.task.done()
    assert await halves(database) == {}
    await second.end()
    await first.task
    assert await halves(database) == {1: 2, 2: 2}


async def test_a_block_sees_what_the_blocks_before_it_in_its_group_wrote(database: Database) -> None:
    async def seen() -> list[int]:
        async with database.write() as connection:
            return list(await connection.scalars(select(pairs.c.number).distinct()))

    _, found = await asyncio.gather(add_pair(database, 7), seen())
    assert found == [7]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_block_that_fails_is_undone_alone(database: Database, place: int) -> None:
    blocks = [add_pair(database, number) for number in (1, 2)]
    blocks.insert(place, add_half(database, 3))
    results = await asyncio.gather(*blocks, return_exceptions=True)
    assert [type(result) for result in results].count(type(None)) == 2
    assert isinstance(results[place], ConflictError)
    assert await halves(database) == {1: 2, 2: 2}


async def test_a_statement_that_fails_is_the_fault_of_its_block_alone(database: Database) -> None:
    twice = add_pair(database, 1), add_pair(database, 1), add_pair(database, 2)
    results = await asyncio.gather(*twice, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), IntegrityError, type(None)]
    assert await halves(database) == {1: 2, 2: 2}


@pytest.mark.parametrize("place", [0, 1])
async def test_a_block_that_is_cancelled_is_undone_alone(
    database: Database,
    commits: list[object],
    place: int,
) -> None:
    held = [Held(database, number) for number in (1, 2, 3)]
    for block in held:
        await block.at_work.wait()
        if block is held[place]:
            block.task.cancel()
        else:
            block._may_end.set()
    results = await asyncio.gather(*(block.task for block in held), return_exceptions=True)
    assert isinstance(results.pop(place), asyncio.CancelledError)
    assert results == [None, None]
    assert await halves(database) == {number: 2 for number in (1, 2, 3) if number != place + 1}
    assert len(commits) == 1


async def test_a_block_that_is_cancelled_while_it_waits_never_runs(database: Database) -> None:
    held = Held(database, 1)
    await held.at_work.wait()
    waiting, other = (asyncio.create_task(add_pair(database, number)) for number in (2, 3))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(held.end(), other)
    assert waiting.cancelled()
    assert await halves(database) == {1: 2, 3: 2}


async def test_a_cancellation_after_the_end_of_a_block_waits_for_its_group(database: Database) -> None:
    first, second = Held(database, 1), Held(database, 2)
    await first.at_work.wait()
    first._may_end.set()
    await second.at_work.wait()
    first.task.cancel()
    await asyncio.sleep(0)
    assert not first.task.done()
    await second.end()
    await asyncio.wait([first.task])
    assert first.task.cancelled()
    assert await halves(database) == {1: 2, 2: 2}


async def test_a_cancellation_during_the_commit_waits_for_it(database: Database) -> None:
    engine = database._backend._writer._engine.sync_engine  # type: ignore[attr-defined]
    block = asyncio.create_task(add_pair(database, 1))
    event.listen(engine, "commit", lambda _: block.cancel())
    await asyncio.wait([block])
    assert block.cancelled()
    assert await halves(database) == {1: 2}


@pytest.mark.parametrize("seed", range(8))
async def test_of_any_mix_of_blocks_those_that_ended_are_kept_and_all_others_are_whole_or_not_there(
    database: Database,
    seed: int,
) -> None:
    rng = random.Random(seed)
    blocks = [
        asyncio.create_task(rng.choice([add_pair, add_pair, add_half])(database, number))
        for number in range(40)
    ]
    for block in rng.sample(blocks, 20):
        for _ in range(rng.randrange(40)):
            await asyncio.sleep(0)
        block.cancel()
    results = await asyncio.gather(*blocks, return_exceptions=True)
    counted = await halves(database)
    assert {type(result) for result in results} <= {type(None), ConflictError, asyncio.CancelledError}
    assert set(counted.values()) <= {2}
    for number, result in enumerate(results):
        assert number in counted or result is not None
        assert number not in counted or not isinstance(result, ConflictError)


async def test_when_sqlite_gives_up_the_transaction_nothing_of_its_group_is_kept_and_the_next_one_works(
    database: Database,
) -> None:
    await make_room_for_notes(database)
    *results, last = await asyncio.gather(
        add_pair(database, 1),
        add_half(database, 2),
        add_more_than_there_is_room_for(database),
        add_pair(database, 3),
        return_exceptions=True,
    )
    assert last is None
    for result in results:
        assert isinstance(result, UnavailableError)
        assert result.code == "STORAGE_UNAVAILABLE"
    assert len({id(result) for result in results}) == 3
    assert await halves(database) == {3: 2}


async def test_a_block_that_goes_on_after_sqlite_gave_up_its_transaction_changes_nothing(
    database: Database,
) -> None:
    await make_room_for_notes(database)

    async def go_on() -> None:
        async with database.write() as connection:
            used = await connection.scalar(text("PRAGMA page_count"))
            await connection.execute(text(f"PRAGMA max_page_count = {used}"))
            with pytest.raises(UnavailableError):
                await connection.execute(text("INSERT INTO notes VALUES (zeroblob(100000))"))
            await connection.execute(insert(pairs).values(number=1, half=0))

    with pytest.raises(UnavailableError):
        await go_on()
    assert await halves(database) == {}
    await add_pair(database, 2)
    assert await halves(database) == {2: 2}


@pytest.mark.parametrize("statement", ["ROLLBACK TO block", "RELEASE block"])
async def test_when_a_block_cannot_be_undone_alone_nothing_of_its_group_is_kept(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
) -> None:
    execute = DriverConnection.execute
    broken = iter([True])

    async def failing(connection: DriverConnection, said: str) -> None:
        if said == statement and halves_added == [2] and next(broken, False):
            # An error as SQLite raises them, with the name of its code.
            said = "SELECT abs(-9223372036854775808)"
        await execute(connection, said)

    halves_added: list[int] = []

    async def add_half_and_fail(number: int) -> None:
        async with database.write() as connection:
            await connection.execute(insert(pairs).values(number=number, half=0))
            halves_added.append(number)
            raise ConflictError("it changed its mind", code="STALE_TURN")

    monkeypatch.setattr(DriverConnection, "execute", failing)
    *results, last = await asyncio.gather(
        add_pair(database, 1),
        add_half_and_fail(2),
        add_pair(database, 3),
        add_pair(database, 4),
        return_exceptions=True,
    )
    outcomes = dict(zip((1, 2, 3, 4), [*results, last], strict=True))
    kept = {number for number, outcome in outcomes.items() if outcome is None}
    assert isinstance(outcomes[1], UnavailableError)
    assert isinstance(outcomes[2], UnavailableError)
    assert await halves(database) == dict.fromkeys(kept, 2)


async def test_a_connection_that_is_gone_when_a_block_is_cancelled_takes_its_group_with_it(
    database: Database,
) -> None:
    first, second = Held(database, 1), Held(database, 2)
    await first.at_work.wait()
    first._may_end.set()
    await second.at_work.wait()
    group = database._backend._writer._group  # type: ignore[attr-defined]
    raw = await group.begun.result().get_raw_connection()
    await raw.driver_connection.close()
    second.task.cancel()
    results = await asyncio.gather(first.task, second.task, return_exceptions=True)
    assert [type(result) for result in results] == [UnavailableError, UnavailableError]
    assert await halves(database) == {}
    await add_pair(database, 3)
    assert await halves(database) == {3: 2}


async def test_what_was_rolled_back_unnoticed_is_not_acknowledged(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execute = DriverConnection.execute

    async def execute_and_lose(connection: DriverConnection, said: str) -> None:
        await execute(connection, said)
        if said == "RELEASE block":
            await connection.rollback()

    with monkeypatch.context() as patched:
        patched.setattr(DriverConnection, "execute", execute_and_lose)
        with pytest.raises(UnavailableError):
            await add_pair(database, 1)
    await add_pair(database, 2)
    assert await halves(database) == {2: 2}


async def test_closing_waits_for_what_a_cancelled_block_leaves_to_do(tmp_path: Path) -> None:
    database = await Database.open(f"sqlite:///{tmp_path / 'test.db'}")
    held = Held(database, 1)
    await held.at_work.wait()
    held.task.cancel()
    await asyncio.wait([held.task])
    await database.close()
    assert names(tmp_path) == ["test.db"]


async def test_when_all_tasks_are_cancelled_at_once_as_at_the_end_of_a_loop_nobody_waits_for_ever(
    database: Database,
) -> None:
    first, second, third = (Held(database, number) for number in (1, 2, 3))
    await first.at_work.wait()
    first._may_end.set()
    await second.at_work.wait()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.wait(others)
    assert [block.task.cancelled() for block in (first, second, third)] == [True] * 3
    assert await halves(database) == {}
    await add_pair(database, 4)
    assert await halves(database) == {4: 2}

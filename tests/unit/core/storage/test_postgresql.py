"""PostgreSQL server: shared by processes, killed during work, and failing in every known way."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
from asyncpg import Connection
from sqlalchemy import insert, text

from peripety.core.storage import postgresql as module
from peripety.core.storage.database import Database
from peripety.errors import FailedPreconditionError, InvalidArgumentError, PeripetyError, UnavailableError
from support.servers.databases import PASSWORD, PostgresqlProcess
from support.servers.processes import add_next_pair, add_pair, halves, pairs, writing

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.postgresql


@pytest.fixture
def database_url(postgresql: PostgresqlProcess) -> Iterator[str]:
    with postgresql.database() as url:
        yield url


def _raising(state: str) -> str:
    return f"DO $$ BEGIN RAISE SQLSTATE '{state}'; END $$"


async def test_two_processes_add_what_comes_next_and_never_the_same(database_url: str) -> None:
    with writing(database_url) as one, writing(database_url) as other:
        for process in (one, other):
            assert process.stdout is not None
            for _ in range(40):
                process.stdout.readline()
            process.kill()
    database = await Database.open(database_url)
    counted = await halves(database)
    await database.close()
    assert counted == dict.fromkeys(range(len(counted)), 2)
    assert len(counted) >= 80


async def test_a_server_killed_while_it_writes_keeps_what_it_reported_and_no_half() -> None:
    with PostgresqlProcess() as server, server.database() as url:
        database = await Database.open(url)
        reported: list[int] = []
        enough = asyncio.Event()

        async def write_until_it_fails() -> UnavailableError:
            while True:
                try:
                    reported.append(await add_next_pair(database))
                except UnavailableError as error:
                    return error
                if len(reported) >= 30:
                    enough.set()

        writers = [asyncio.create_task(write_until_it_fails()) for _ in range(4)]
        await enough.wait()
        await asyncio.to_thread(server.kill)
        failures = await asyncio.gather(*writers)
        assert {failure.code for failure in failures} <= {"STORAGE_UNAVAILABLE", "STORAGE_UNCERTAIN"}
        with pytest.raises(UnavailableError):
            await halves(database)
        await asyncio.to_thread(server.start)
        counted = await halves(database)
        assert set(counted.values()) == {2}
        assert set(reported) <= set(counted)
        assert await add_next_pair(database) == len(counted)
        await database.close()


async def test_a_connection_that_broke_unseen_is_replaced(database: Database) -> None:
    async with database.write() as connection:
        # The server's own processes, such as a cleaner, may be in the database, too.
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user"
        here = " AND datname = current_database() AND pid <> pg_backend_pid()"
        await connection.execute(text(others + here))
    assert await halves(database) == {}


async def test_a_connection_that_is_given_up_while_it_is_made_is_closed(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: asyncio.Future[Connection[Any]] = asyncio.get_running_loop().create_future()

    async def prepare(connection: Connection[Any], *_: Any, **__: Any) -> None:
        made.set_result(connection)
        await asyncio.Event().wait()

    monkeypatch.setattr(Connection, "set_type_codec", prepare)
    opening = asyncio.ensure_future(Database.open(database_url))
    connection = await made
    opening.cancel()
    await asyncio.wait([opening])
    assert connection.is_closed()


async def test_a_cancelled_query_is_cancelled_and_not_a_fault(database: Database) -> None:
    async def wait() -> None:
        async with database.read() as connection:
            await connection.execute(text("SELECT pg_sleep(60)"))

    async def is_waiting() -> bool:
        async with database.read() as connection:
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            return bool(await connection.scalar(text(waiting)))

    query = asyncio.ensure_future(wait())
    while not await is_waiting():
        pass
    query.cancel()
    await asyncio.wait([query])
    assert query.cancelled()
    assert await halves(database) == {}


async def test_a_connection_that_breaks_inside_a_block_is_unavailable_and_leaves_nothing(
    database: Database,
) -> None:
    async def break_off() -> None:
        async with database.write() as connection:
            await connection.execute(insert(pairs).values(number=1, half=0))
            await connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(UnavailableError) as caught:
        await break_off()
    assert caught.value.code == "STORAGE_UNAVAILABLE"
    assert await halves(database) == {}


async def test_a_connection_that_breaks_during_the_commit_leaves_it_open_what_was_kept(
    database: Database,
) -> None:
    async with database.write() as connection:
        await connection.execute(
            text(
                "CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
            ),
        )
        await connection.execute(
            text(
                "CREATE CONSTRAINT TRIGGER break AFTER INSERT ON pairs DEFERRABLE INITIALLY DEFERRED"
                " FOR EACH ROW EXECUTE FUNCTION break()",
            ),
        )
    with pytest.raises(UnavailableError) as caught:
        await add_pair(database, 1)
    assert caught.value.code == "STORAGE_UNCERTAIN"


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("53100", "STORAGE_UNAVAILABLE"),  # disk full
        ("53300", "STORAGE_BUSY"),  # too many connections
        ("57P01", "STORAGE_UNAVAILABLE"),  # shut down
        ("58030", "STORAGE_UNAVAILABLE"),  # input or output failed
        ("XX001", "STORAGE_UNAVAILABLE"),  # data corrupted
        ("40P01", "STORAGE_BUSY"),  # deadlock
        ("25006", "STORAGE_UNAVAILABLE"),  # read only: follows another server now
    ],
)
async def test_what_the_server_did_is_unavailable(database: Database, state: str, code: str) -> None:
    with pytest.raises(UnavailableError) as caught:
        async with database.write() as connection:
            await connection.execute(text(_raising(state)))
    assert caught.value.code == code
    assert await halves(database) == {}


async def test_who_waits_too_long_for_a_turn_is_told_to_come_back(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(module._SETTINGS, "lock_timeout", "30ms")
    one, other = [await Database.open(database_url) for _ in range(2)]
    async with one.write():
        with pytest.raises(UnavailableError) as caught:
            await add_next_pair(other)
    assert caught.value.code == "STORAGE_BUSY"
    assert await add_next_pair(other) == 0
    await one.close()
    await other.close()


async def test_blocks_about_different_things_do_not_wait_for_each_other(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(module._SETTINGS, "lock_timeout", "30ms")
    database = await Database.open(database_url)
    async with database.write("a") as connection:
        await connection.execute(insert(pairs).values(number=1, half=0))
        async with database.write("b") as other:
            await other.execute(insert(pairs).values(number=2, half=0))
        for about in ("a", None):
            with pytest.raises(UnavailableError, match="busy"):
                async with database.write(about):
                    pass
    assert await halves(database) == {1: 1, 2: 1}
    await database.close()


async def test_a_server_that_does_not_answer_is_unavailable(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = await Database.open(database_url)
    monkeypatch.setattr(module, "_COMMAND_SECONDS", 0.2)
    with pytest.raises(UnavailableError) as caught:
        async with database.read() as connection:
            await connection.execute(text("SELECT pg_sleep(60)"))
    assert caught.value.details == {"fault": "TimeoutError"}
    assert await halves(database) == {}
    await database.close()


async def test_an_idle_connection_that_fell_silent_is_given_up(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = await Database.open(database_url)
    monkeypatch.setattr(module, "_COMMAND_SECONDS", 0.2)
    async with database.read() as connection:
        process = await connection.scalar(text("SELECT pg_backend_pid()"))
    assert isinstance(process, int)
    os.kill(process, signal.SIGSTOP)
    try:
        with pytest.raises(UnavailableError) as caught:
            await halves(database)
        assert caught.value.details == {"fault": "TimeoutError"}
        assert await halves(database) == {}
    finally:
        os.kill(process, signal.SIGCONT)
        await database.close()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("pass", "word"), "InvalidPasswordError"),
        (("/postgres", "/absent"), "InvalidCatalogNameError"),
        (("127.0.0.1:", "127.0.0.1:1"), None),
        (("127.0.0.1", "absent.invalid"), "gaierror"),
    ],
)
async def test_a_server_that_cannot_be_reached_is_unavailable_and_no_password_is_told(
    database_url: str,
    change: tuple[str, str],
    fault: str | None,
) -> None:
    wrong = database_url.replace(*change)
    with pytest.raises(PeripetyError) as caught:
        await Database.open(wrong)
    if fault is None:
        assert isinstance(caught.value, InvalidArgumentError)
    else:
        assert isinstance(caught.value, UnavailableError)
        assert caught.value.details == {"fault": fault}
        assert fault in caught.value.message
    assert PASSWORD not in str(caught.value)
    assert "w%40rd" not in str(caught.value)


async def test_the_way_to_a_missing_driver_is_named(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(FailedPreconditionError, match=r"pip install 'peripety\[postgresql\]'"):
        await Database.open(database_url)


async def test_nothing_that_shows_a_database_shows_its_password(database: Database) -> None:
    for engine in (database._backend._readers, database._backend._writers):  # type: ignore[attr-defined]
        assert "w%40rd" not in f"{engine!r} {engine.url!r}"

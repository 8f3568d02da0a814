"""Requests that are sent again: answered again, without any work."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from peripety.core.idempotency.store import IdempotencyStore, PendingResponse, RequestKey
from peripety.core.storage.database import Database
from peripety.errors import AlreadyExistsError, ConflictError, NotFoundError, UnavailableError
from support.engine.specs import chance, program
from support.scenario.batches import opened_registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.ext.asyncio import AsyncConnection


pytestmark = pytest.mark.postgresql


ID = "3f0c0f3e-0000-4000-8000-000000000000"


@pytest.fixture
def log(database: Database) -> IdempotencyStore:
    return IdempotencyStore(database)


async def as_it_is(response: bytes, _: AsyncConnection) -> bytes:
    return response


class Work:
    """Responses, and how often they were made."""

    def __init__(self, *responses: bytes, pause: asyncio.Event | None = None) -> None:
        self.begun = 0
        self._responses = responses
        self._pause = pause

    async def __call__(self) -> AsyncIterator[bytes | PendingResponse[bytes]]:
        self.begun += 1
        for index, response in enumerate(self._responses, start=1):
            if self._pause is not None and index > 1:
                await self._pause.wait()
            yield response if index < len(self._responses) else PendingResponse(partial(as_it_is, response))


async def answer(log: IdempotencyStore, work: Work, *, print_: str = "same", after: int = 0) -> list[bytes]:
    return [response async for response in log.run_once(ID, print_, work(), after=after)]


async def test_a_request_that_is_sent_again_gets_its_answer_again(log: IdempotencyStore) -> None:
    work = Work(b"a", b"b", b"c")
    assert await answer(log, work) == [b"a", b"b", b"c"]
    assert await answer(log, work) == [b"a", b"b", b"c"]
    assert await answer(log, work, after=2) == [b"c"]
    assert await answer(log, work, after=3) == []
    assert work.begun == 1


async def test_the_same_id_for_another_request_is_refused(log: IdempotencyStore) -> None:
    await answer(log, Work(b"a"))
    with pytest.raises(AlreadyExistsError) as caught:
        await answer(log, Work(b"a"), print_="other")
    assert caught.value.code == "REQUEST_ID_REUSED"


async def test_there_is_nothing_to_go_on_with_when_nothing_is_kept(log: IdempotencyStore) -> None:
    with pytest.raises(NotFoundError, match="after_sequence 0"):
        await answer(log, Work(b"a"), after=1)


async def test_work_that_is_broken_off_is_done_anew(log: IdempotencyStore) -> None:
    work = Work(b"a", b"b")
    responses = log.run_once(ID, "same", work())
    assert await anext(responses) == b"a"
    await responses.aclose()  # type: ignore[attr-defined]  # it is a generator
    assert await answer(log, work) == [b"a", b"b"]
    assert work.begun == 2


async def test_whoever_has_the_last_response_may_leave(log: IdempotencyStore) -> None:
    work = Work(b"a", b"b")
    responses = log.run_once(ID, "same", work())
    assert [await anext(responses), await anext(responses)] == [b"a", b"b"]
    await responses.aclose()  # type: ignore[attr-defined]  # it is a generator
    assert await answer(log, work) == [b"a", b"b"]
    assert work.begun == 1


async def test_two_at_once_share_one_piece_of_work(log: IdempotencyStore) -> None:
    pause = asyncio.Event()
    work = Work(b"a", b"b", pause=pause)
    both = asyncio.gather(answer(log, work), answer(log, work))
    await asyncio.sleep(0.05)
    pause.set()
    assert list(await both) == [[b"a", b"b"]] * 2
    assert work.begun == 1


async def test_answers_are_forgotten_after_a_day(
    log: IdempotencyStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = Work(b"a")
    await answer(log, work)
    later = time.time() + 24 * 60 * 60 + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert [r async for r in log.run_once("other", "same", Work(b"x")())] == [b"x"]
    await answer(log, work)
    assert work.begun == 2


async def test_records_of_the_version_before_are_replayed(log: IdempotencyStore, database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(
            text("INSERT INTO scenario_requests VALUES (:id, 'same', :now)"),
            {"id": ID, "now": time.time()},
        )
        await connection.execute(
            text("INSERT INTO scenario_responses VALUES (:id, 1, :response)"),
            {"id": ID, "response": b"stored"},
        )
    work = Work(b"a")
    assert await answer(log, work) == [b"stored"]
    assert work.begun == 0
    async with database.read() as connection:
        record = await log.find(connection, RequestKey(ID, "same"))
    assert record is not None
    assert abs(record.done - time.time_ns() // 1000) < 60_000_000


async def test_a_change_and_the_record_of_its_request_are_one(database_url: str) -> None:
    async with opened_registry(database_url) as registry:
        rules = program(chance(0.5))
        scenario = (await registry.save(rules, rules.dry_run(runs=64), (), ())).scenario
        database = registry._database
        log, delete = IdempotencyStore(database), partial(registry.delete, scenario.scenario_id)

        async def broken(connection: AsyncConnection) -> None:
            await delete(connection)
            raise UnavailableError("the disk is full")

        with pytest.raises(UnavailableError):
            await log.execute_once(ID, "same", broken)
        assert await registry.get_scenario(scenario.scenario_id) == scenario
        await log.execute_once(ID, "same", delete)
        await log.execute_once(ID, "same", delete)
        with pytest.raises(NotFoundError):
            await registry.get_scenario(scenario.scenario_id)


@pytest.mark.parametrize("fault", [UnavailableError("the disk is full"), asyncio.CancelledError()])
async def test_what_work_changes_at_its_end_is_not_changed_without_the_record_of_its_request(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    fault: BaseException,
) -> None:
    async def failing(*_: object) -> None:
        raise fault

    async with opened_registry(database_url) as registry:
        log, rules = IdempotencyStore(registry._database), program(chance(0.5))

        async def save(connection: AsyncConnection) -> bytes:
            record = await registry.save(rules, rules.dry_run(runs=64), (), (), connection=connection)
            return record.scenario.scenario_id.encode()

        async def work() -> AsyncIterator[bytes | PendingResponse[bytes]]:
            yield b"a"
            yield PendingResponse(save)

        with monkeypatch.context() as broken:
            broken.setattr("peripety.core.idempotency.store._store_responses", failing)
            with pytest.raises(type(fault)):
                await anext(one async for one in log.run_once(ID, "same", work()) if one != b"a")
        assert (await registry.list_scenarios()).items == ()
        first, last = [one async for one in log.run_once(ID, "same", work())]
        assert [one.scenario_id.encode() for one in (await registry.list_scenarios()).items] == [last]
        assert [one async for one in log.run_once(ID, "same", work())] == [first, last]


async def test_of_two_processes_with_the_same_request_the_slower_one_is_told_to_ask_again(
    database_url: str,
) -> None:
    databases = [await Database.open(database_url) for _ in range(2)]
    one, other = map(IdempotencyStore, databases)
    slow = other.run_once(ID, "same", Work(b"a", b"b")())
    assert await anext(slow) == b"a"
    assert await answer(one, Work(b"c")) == [b"c"]
    with pytest.raises(ConflictError) as caught:
        await anext(slow)
    assert caught.value.code == "ANSWERED_MEANWHILE"
    assert await answer(other, Work(b"a", b"b")) == [b"c"]
    for database in databases:
        await database.close()


async def test_processes_that_are_asked_for_the_same_change_make_it_once(database_url: str) -> None:
    changes = []

    async def change(_: AsyncConnection) -> None:
        changes.append(1)

    databases = [await Database.open(database_url) for _ in range(3)]
    logs = [IdempotencyStore(database) for database in databases]
    await asyncio.gather(*(log.execute_once(ID, "same", change) for log in logs for _ in range(3)))
    assert changes == [1]
    for database in databases:
        await database.close()


async def test_a_change_whose_record_cannot_be_kept_is_not_made(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def failing(*_: object) -> None:
        raise UnavailableError("the disk is full")

    monkeypatch.setattr("peripety.core.idempotency.store._store_responses", failing)
    async with opened_registry(database_url) as registry:
        rules = program(chance(0.5))
        scenario = (await registry.save(rules, rules.dry_run(runs=64), (), ())).scenario
        log = IdempotencyStore(registry._database)
        with pytest.raises(UnavailableError):
            await log.execute_once(ID, "same", partial(registry.delete, scenario.scenario_id))
        assert await registry.get_scenario(scenario.scenario_id) == scenario

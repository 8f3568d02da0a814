"""Scenario work on separate threads that block no other work."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.concurrency import (
    WorkCancelledError,
    WorkerPool,
    raise_if_cancelled,
    shield_until_done,
    wait_for_event,
)
from peripety.engine.schema_validation import validate_against_schema
from peripety.errors import UnavailableError
from peripety.scenario.types import ScenarioRegistered
from support.engine.specs import as_bytes, chance
from support.scenario.batches import compiling, opened_registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from peripety.errors import Finding


async def test_work_that_must_end_ends_however_often_its_caller_is_cancelled() -> None:
    may_end = asyncio.Event()
    done: list[str] = []

    async def work() -> None:
        await may_end.wait()
        done.append("work")

    caller = asyncio.create_task(shield_until_done(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        caller.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not caller.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert done == ["work"]


async def test_waiting_for_an_event_tells_whether_it_was_set_in_time() -> None:
    event = asyncio.Event()
    assert not await wait_for_event(event, 0.001)
    event.set()
    assert await wait_for_event(event, 60)


@pytest.fixture
def workers() -> Iterator[WorkerPool]:
    workers = WorkerPool()
    yield workers
    workers.close()


async def test_work_that_never_ends_holds_up_neither_the_loop_nor_other_threads(workers: WorkerPool) -> None:
    release = threading.Event()
    stuck = [asyncio.ensure_future(workers.run(release.wait)) for _ in range(64)]
    try:
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(lambda: "done") == "done"
        assert not any(work.done() for work in stuck)
    finally:
        release.set()
        await asyncio.gather(*stuck)


async def test_work_whose_caller_has_gone_ends_where_it_asks_whether_to_go_on(workers: WorkerPool) -> None:
    begun, gone, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        raise_if_cancelled()
        begun.set()
        gone.wait()
        try:
            raise_if_cancelled()
        except WorkCancelledError:
            ended.set()
            raise

    caller = asyncio.ensure_future(workers.run(work))
    await asyncio.to_thread(begun.wait)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    gone.set()
    assert await asyncio.to_thread(ended.wait, 10)
    await workers.run(raise_if_cancelled)


async def test_closing_waits_for_nothing(workers: WorkerPool) -> None:
    release = threading.Event()
    stuck = [asyncio.ensure_future(workers.run(release.wait)) for _ in range(2)]
    waiting = asyncio.ensure_future(workers.run(release.wait))
    await asyncio.sleep(0)
    workers.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    release.set()
    assert await asyncio.gather(*stuck) == [True, True]


async def test_a_document_is_validated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []

    def counting(schema: Any, instance: Any) -> list[Finding]:
        checked.append(instance)
        return validate_against_schema(schema, instance)

    monkeypatch.setattr("peripety.engine.documents.validate_against_schema", counting)
    async with opened_registry(f"sqlite:///{tmp_path / 'test.db'}") as registry:
        events = await compiling(registry, as_bytes(chance(0.5)))
    assert isinstance(events[-1], ScenarioRegistered)
    assert len(checked) == 1


async def test_values_are_made_beside_the_loop_and_none_for_who_has_left(workers: WorkerPool) -> None:
    made: list[str] = []

    def values() -> Iterator[int | None]:
        for value in (1, None, 3):
            made.append(threading.current_thread().name)
            yield value

    assert [value async for value in workers.iterate(values())] == [1, None, 3]
    assert threading.current_thread().name not in made
    made.clear()
    async with aclosing(workers.iterate(values())) as some:
        assert await anext(some) == 1
    assert len(made) == 1


async def test_an_error_among_values_reaches_who_follows_them(workers: WorkerPool) -> None:
    def values() -> Iterator[int]:
        yield 1
        raise UnavailableError("nothing more")

    some = workers.iterate(values())
    assert await anext(some) == 1
    with pytest.raises(UnavailableError):
        await anext(some)

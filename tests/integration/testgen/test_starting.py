"""Runs that are started while their process stops, and by requests that are no longer stored."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.idempotency.store import RequestKey
from peripety.core.runs.types import Lease
from peripety.core.storage.database import Database
from peripety.errors import AlreadyExistsError, UnavailableError
from peripety.testgen.generation_runs import GenerationRuns
from peripety.testgen.store import GenerationRunStore
from peripety.testgen.subject_source import SubjectResolver
from support.servers.apps import new_id
from support.testgen.fake_run import Inline, Paused, always, order, some

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from peripety.core.runs.types import StartResult
    from peripety.testgen.store import RunRecord


DAY = 24 * 3600 * 1_000_000


class Slow(GenerationRunStore):
    """A store that delays the confirmation of an added run until it is released.

    Attributes:
        reached: is set when that run is stored.
        may: is set to release the confirmation.
    """

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        super().__init__(database, now)
        self.reached = asyncio.Event()
        self.may = asyncio.Event()

    async def add(self, run: RunRecord, lease: Lease, request: RequestKey) -> StartResult[RunRecord]:
        started = await super().add(run, lease, request)
        self.reached.set()
        await self.may.wait()
        return started


class Clock:
    """The time, which may be set forward."""

    def __init__(self) -> None:
        self.later = 0

    def __call__(self) -> int:
        return time.time_ns() // 1000 + self.later


def nowhere() -> Any:
    raise AssertionError("nothing stored is asked for")


@asynccontextmanager
async def kept(path: Path, clock: Clock) -> AsyncIterator[tuple[Slow, GenerationRuns]]:
    database = await Database.open(f"sqlite:///{path / 'runs.db'}")
    store = Slow(database, clock)
    author = always(lambda question: [*some(question, 1), Paused(3600)])
    runs = GenerationRuns(
        store,
        author,
        SubjectResolver(nowhere, nowhere, Inline(), commands=False),
        Inline(),
        clock,
    )
    try:
        yield store, runs
    finally:
        await runs.aclose()
        await database.close()


@pytest.mark.parametrize("has_stopped", [False, True])
async def test_a_run_that_is_started_while_its_process_stops_is_left_to_others_at_once(
    tmp_path: Path,
    *,
    has_stopped: bool,
) -> None:
    clock = Clock()
    async with kept(tmp_path, clock) as (store, runs):
        starting = asyncio.create_task(runs.start(order("alpha"), None, RequestKey(new_id(), "start")))
        await store.reached.wait()
        stopping = asyncio.create_task(runs.aclose())
        await asyncio.wait([stopping], timeout=None if has_stopped else 0)
        store.may.set()
        started = await starting
        await stopping
        with pytest.raises(UnavailableError):
            await anext(runs.follow(started.run_id))
        assert await store.acquire_lease(started.run_id, Lease("another", clock() + 1)) is not None


async def test_a_request_of_long_ago_is_refused_while_its_run_is_there(tmp_path: Path) -> None:
    clock = Clock()
    async with kept(tmp_path, clock) as (store, runs):
        store.may.set()
        request = RequestKey(new_id(), "start")
        await runs.start(order("alpha"), None, request)
        clock.later = 2 * DAY
        await runs.start(order("beta"), None, RequestKey(new_id(), "another"))
        with pytest.raises(AlreadyExistsError, match="request_id"):
            await runs.start(order("alpha"), None, request)

"""Runs that are started while their process stops, and by requests that nobody remembers any more."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from peripety.durable.model import Lease
from peripety.durable.requests import Request
from peripety.errors import AlreadyExistsError, UnavailableError
from peripety.storage import Database
from peripety.testgen.runs import Runs
from peripety.testgen.sources import Sources
from peripety.testgen.store import RunStore
from support.api import new_id
from support.looping import Inline, Paused, always, order, some

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from peripety.durable.model import Started
    from peripety.testgen.stored import Run

DAY = 24 * 3600 * 1_000_000


class Slow(RunStore):
    """A store that says that a run was added when it is told to.

    Attributes:
        reached: is set when that run is there.
        may: is set when it may be said.
    """

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        super().__init__(database, now)
        self.reached = asyncio.Event()
        self.may = asyncio.Event()

    async def add(self, run: Run, lease: Lease, request: Request) -> Started[Run]:
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
async def kept(path: Path, clock: Clock) -> AsyncIterator[tuple[Slow, Runs]]:
    database = await Database.open(f"sqlite:///{path / 'runs.db'}")
    store = Slow(database, clock)
    author = always(lambda question: [*some(question, 1), Paused(3600)])
    runs = Runs(store, author, Sources(nowhere, nowhere, Inline(), commands=False), Inline(), clock)
    try:
        yield store, runs
    finally:
        await runs.aclose()
        await database.close()


@pytest.mark.parametrize("has_stopped", [False, True])
async def test_a_run_that_is_started_while_its_process_stops_is_left_to_others_at_once(
    tmp_path: Path, *, has_stopped: bool
) -> None:
    clock = Clock()
    async with kept(tmp_path, clock) as (store, runs):
        starting = asyncio.create_task(runs.start(order("alpha"), None, Request(new_id(), "start")))
        await store.reached.wait()
        stopping = asyncio.create_task(runs.aclose())
        await asyncio.wait([stopping], timeout=None if has_stopped else 0)
        store.may.set()
        started = await starting
        await stopping
        with pytest.raises(UnavailableError):
            await anext(runs.follow(started.run_id))
        assert await store.take(started.run_id, Lease("another", clock() + 1)) is not None


async def test_a_request_of_long_ago_is_refused_while_its_run_is_there(tmp_path: Path) -> None:
    clock = Clock()
    async with kept(tmp_path, clock) as (store, runs):
        store.may.set()
        request = Request(new_id(), "start")
        await runs.start(order("alpha"), None, request)
        clock.later = 2 * DAY
        await runs.start(order("beta"), None, Request(new_id(), "another"))
        with pytest.raises(AlreadyExistsError, match="request_id"):
            await runs.start(order("alpha"), None, request)

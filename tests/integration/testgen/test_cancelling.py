"""A cancelled run retains every finished test, including one that is just being stored."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from peripety.core.idempotency.store import RequestKey
from peripety.core.storage.database import Database
from peripety.testgen.events import GenerationCompleted, GenerationStop, TestAdded
from peripety.testgen.generation_runs import GenerationRuns
from peripety.testgen.store import GenerationRunStore
from peripety.testgen.subject_source import SubjectResolver
from support.servers.apps import new_id
from support.testgen.fake_run import Inline, Paused, always, order, some

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.core.runs.types import Lease, RecordedEvent, RunUpdate
    from peripety.testgen.events import GenerationEvent


class Slow(GenerationRunStore):
    """A store that delays the first test until it is released.

    Attributes:
        reached: is set when that test is about to be stored.
        may: is set to release it.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database, now)
        self.reached = asyncio.Event()
        self.may = asyncio.Event()

    async def append_events(
        self,
        run_id: str,
        lease: Lease,
        change: RunUpdate[GenerationEvent],
    ) -> list[RecordedEvent[GenerationEvent]]:
        if any(isinstance(event, TestAdded) for event in change.events):
            self.reached.set()
            await self.may.wait()
        return await super().append_events(run_id, lease, change)


def now() -> int:
    return time.time_ns() // 1000


def nowhere() -> Any:
    raise AssertionError("nothing stored is asked for")


async def test_a_test_that_is_being_written_down_is_kept(tmp_path: Path) -> None:
    database = await Database.open(f"sqlite:///{tmp_path / 'runs.db'}")
    store = Slow(database)
    author = always(lambda question: [*some(question, 1), Paused(3600)])
    runs = GenerationRuns(
        store,
        author,
        SubjectResolver(nowhere, nowhere, Inline(), commands=False),
        Inline(),
        now,
    )
    try:
        started = await runs.start(order("alpha"), None, RequestKey(new_id(), "start"))
        await store.reached.wait()
        stopping = asyncio.create_task(runs.cancel(started.run_id, RequestKey(new_id(), "stop")))
        await asyncio.sleep(0)
        store.may.set()
        run = await stopping
    finally:
        await runs.aclose()
        await database.close()
    assert len(run.run_state.tests) == 1
    assert isinstance(run.events[-1], GenerationCompleted)
    assert run.stats.stopped_by is GenerationStop.CANCELLED
    assert author.running == 0

"""A process with runs ends at any moment, and another one resumes them, over the real store."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.core.idempotency.store import RequestKey
from peripety.core.runs.types import LostLeaseError
from peripety.core.storage.database import Database
from peripety.testgen.generation_runs import GenerationRuns
from peripety.testgen.pb.requests import order_from_proto, subject_from_proto
from peripety.testgen.pb.responses import event_to_proto
from peripety.testgen.store import GenerationRunStore
from peripety.testgen.subject_source import SubjectResolver
from support.servers.apps import new_id
from support.testgen.fake_run import SUBJECT, VALUES, Inline, always, kinds, suite_of, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from peripety.core.runs.types import Lease, RecordedEvent, RunUpdate
    from peripety.testgen.events import GenerationEvent
    from support.testgen.fake_run import Author, Question

pytestmark = pytest.mark.slow(reason="ends a process at every write of a run")


MOST_TOKENS = 400_000


def _nowhere() -> Any:
    raise AssertionError("nothing stored is asked for")


SOURCES = SubjectResolver(_nowhere, _nowhere, Inline(), commands=False)
"""Of all processes here: what tests are run on takes long to compile."""


class Mortal(GenerationRunStore):
    """A store whose process ends before one of its records.

    Attributes:
        died: is set then.
    """

    def __init__(self, database: Database, now: Callable[[], int], records: int | None) -> None:
        super().__init__(database, now)
        self._left = records
        self.died = asyncio.Event()

    async def append_events(
        self,
        run_id: str,
        lease: Lease,
        change: RunUpdate[GenerationEvent],
    ) -> list[RecordedEvent[GenerationEvent]]:
        if self.died.is_set() or (change.values and self._left == 0):
            self.died.set()
            raise LostLeaseError
        if change.values and self._left is not None:
            self._left -= 1
        return await super().append_events(run_id, lease, change)

    async def release_lease(self, run_id: str, lease: Lease) -> None:
        if not self.died.is_set():
            await super().release_lease(run_id, lease)


def author() -> Author:
    """Writes two tests for each round, of which the second one may be wrong."""

    def tests(question: Question) -> list[dict[str, Any]]:
        category, number = question.place
        first = sum(map(ord, category or "")) + number
        bodies = [
            {
                "server_name": "s",
                "tool_name": "t",
                "arguments": {"a": VALUES[(first + step) % len(VALUES)]},
                "roles": [],
                "expected": "allow",
            }
            for step in range(2)
        ]
        return [written(f"{category} {number} {at}", body=body) for at, body in enumerate(bodies)]

    return always(tests)


def order() -> pb.GenerateTestsRequest:
    limits = pb.TestGenConfig(max_total_rounds=2, max_total_tokens=MOST_TOKENS, combinatorial_floor=False)
    return pb.GenerateTestsRequest(
        request_id=new_id(),
        task_description="what is allowed",
        subject=SUBJECT,
        config=limits,
    )


async def worked(
    url: str,
    request: pb.GenerateTestsRequest,
    hours: int = 0,
    records: int | None = None,
) -> list[pb.TestGenEvent]:
    """Work on a run until it ends, or its process does.

    Args:
        url: of the database.
        request: starts the run, or finds it.
        hours: offset of the clock.
        records: number of records until the process ends; None for all.

    Returns:
        All events that were sent until then.
    """

    def now() -> int:
        return time.time_ns() // 1000 + hours * 3_600_000_000

    database = await Database.open(url)
    store = Mortal(database, now, records)
    runs = GenerationRuns(store, author(), SOURCES, Inline(), now)
    told: list[pb.TestGenEvent] = []

    async def follow(run_id: str) -> None:
        async for recorded in runs.follow(run_id):
            told.append(event_to_proto(run_id, recorded))  # noqa: PERF401 - what was told until then is kept

    try:
        named = RequestKey(request.request_id, "the same")
        started = await runs.start(order_from_proto(request), subject_from_proto(request.subject), named)
        ends = [asyncio.create_task(follow(started.run_id)), asyncio.create_task(store.died.wait())]
        done, left = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        await asyncio.gather(*done)
        return told
    finally:
        await runs.aclose()
        await database.close()


async def test_the_suite_is_the_same_wherever_the_process_ended(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    undisturbed = await worked(url, order())
    assert kinds(undisturbed)[-1] == "complete"
    deaths = 0
    while True:
        request = order()
        before = await worked(url, request, records=deaths)
        if before and kinds(before)[-1] == "complete":
            break
        events = await worked(url, request, hours=1)
        assert events[: len(before)] == before
        assert [event.sequence for event in events] == [*range(1, len(events) + 1)]
        assert suite_of(events) == suite_of(undisturbed)
        stats, usual = events[-1].complete.stats, undisturbed[-1].complete.stats
        assert (stats.quality, stats.total_rounds) == (usual.quality, usual.total_rounds)
        assert stats.stopped_by == usual.stopped_by
        deaths += 1
    assert deaths > len(undisturbed) // 2


async def test_a_process_that_ends_again_and_again_loses_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    undisturbed, request = await worked(url, order()), order()
    events: list[pb.TestGenEvent] = []
    hours = 0
    while not events or kinds(events)[-1] != "complete":
        later = await worked(url, request, hours, records=3)
        assert later[: len(events)] == events
        events, hours = later, hours + 1
    assert hours > 3
    assert suite_of(events) == suite_of(undisturbed)
    assert events[-1].complete.stats.total_tokens_used <= MOST_TOKENS

"""Runs of calls over the real store: continued after any event, compared by content, deleted in time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from sqlalchemy import Column, Integer, Table, func, insert, select
from sqlalchemy.schema import DropTable

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.core import call_context
from peripety.core.concurrency import closing
from peripety.core.idempotency.store import IdempotencyStore, PendingResponse, RequestKey
from peripety.core.idempotency.stream import request_fingerprint
from peripety.core.runs.call_runs import CallMethod, CallRuns, CallRunState, CallRunStore
from peripety.core.runs.store import current_answers
from peripety.core.runs.types import LostLeaseError
from peripety.core.storage.database import METADATA, Database
from peripety.errors import AlreadyExistsError, ConflictError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.core.runs.types import Lease, RecordedEvent, RunUpdate

pytestmark = pytest.mark.postgresql

Response = pb.CompilePolicyResponse
DAY = 24 * 3600 * 1_000_000

results = Table("results_of_calls", METADATA, Column("number", Integer, primary_key=True))


@dataclass
class Work:
    """Work with questions that cost something, and a result that is stored with the last event.

    Attributes:
        paid: the questions that were paid for.
        gate: awaited before the second question, if it is set.
        failure: raised by the storage of the result.
        turned: True to yield the last two events before the result in the other order.
    """

    paid: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None
    failure: Exception | None = None
    turned: bool = False

    async def events(self, request: pb.CompilePolicyRequest) -> AsyncIterator[Any]:
        yield Response(progress=Response.Progress(message="begun", fraction=0.1))
        for number in (1, 2):
            if number == 2 and self.gate is not None:
                await self.gate.wait()
            answer = await self._ask(f"{request.constitution} {number}")
            yield Response(rules_written=Response.RulesWritten(document=answer.encode()))
            yield Response(progress=Response.Progress(message="on", fraction=number / 3))
        decided = [pb.AuditEntry(actor=actor) for actor in ("a", "b")]
        for entry in reversed(decided) if self.turned else decided:
            entry.time.GetCurrentTime()
            yield Response(decided=entry)
        yield PendingResponse(self._store)

    async def _ask(self, question: str) -> str:
        answers = current_answers.get()
        assert answers is not None
        number = answers.ask(question)
        stored = await answers.find(question, number)
        if stored is None:
            self.paid.append(question)
            stored = f"answer to {question}"
            await answers.add(question, number, stored)
        return stored

    async def _store(self, connection: Any) -> pb.CompilePolicyResponse:
        await connection.execute(insert(results).values(number=1))
        if self.failure is not None:
            raise self.failure
        return Response(compiled=Response.Compiled(from_cache=True))


def without_times(response: pb.CompilePolicyResponse) -> pb.CompilePolicyResponse:
    if not response.HasField("decided"):
        return response
    same = Response()
    same.CopyFrom(response)
    same.decided.ClearField("time")
    return same


class Mortal(CallRunStore):
    """A store whose process ends at one of its writes to a run."""

    def __init__(self, database: Database, now: Callable[[], int], writes: int | None) -> None:
        super().__init__(database, now)
        self._left = writes
        self.died = asyncio.Event()

    async def append_events(
        self,
        run_id: str,
        lease: Lease,
        change: RunUpdate[Any],
    ) -> list[RecordedEvent[Any]]:
        if self.died.is_set() or ((change.events or change.pending) and self._left == 0):
            self.died.set()
            raise LostLeaseError
        if self._left is not None and (change.events or change.pending):
            self._left -= 1
        return await super().append_events(run_id, lease, change)

    async def release_lease(self, run_id: str, lease: Lease) -> None:
        if not self.died.is_set():
            await super().release_lease(run_id, lease)


@dataclass
class Process:
    """A process with runs."""

    runs: CallRuns
    store: Mortal
    database: Database

    async def all_of(self, request: pb.CompilePolicyRequest) -> list[pb.CompilePolicyResponse]:
        return [response async for response in self.runs.stream(request)]

    async def rows(self, table: Table = results) -> int:
        async with self.database.read() as connection:
            count: int = await connection.scalar(select(func.count()).select_from(table)) or 0
        return count


@asynccontextmanager
async def process(
    url: str,
    work: Work,
    *,
    days: float = 0,
    writes: int | None = None,
    configured: str = "model",
) -> AsyncIterator[Process]:
    def now() -> int:
        return call_context.now_micros() + int(days * DAY)

    async def check(_request: Any) -> None:
        """Everything is accepted."""

    method = CallMethod(
        pb.CompilePolicyRequest,
        Response,
        check,
        work.events,
        lambda event: event,
        lambda request: request.constitution,
        {"failed": CallRunState.REJECTED},
        without_times,
    )
    database = await Database.open(url)
    store = Mortal(database, now, writes)
    runs = CallRuns(store, (method,), configured, now)
    try:
        yield Process(runs, store, database)
    finally:
        await runs.aclose()
        await database.close()


def order(text: str = "alpha") -> pb.CompilePolicyRequest:
    return pb.CompilePolicyRequest(request_id=str(uuid4()), constitution=text)


def contents(events: list[pb.CompilePolicyResponse]) -> list[bytes]:
    """The events without their numbers and times, and without progress."""
    told = []
    for event in events:
        same = Response()
        same.CopyFrom(without_times(event))
        same.ClearField("sequence")
        same.ClearField("run_id")
        if not same.HasField("progress"):
            told.append(same.SerializeToString(deterministic=True))
    return told


@pytest.mark.slow_after(1, reason="repeats a run for each of its writes")
async def test_wherever_the_process_ends_the_run_is_the_same_and_costs_the_same(database_url: str) -> None:
    undisturbed = Work()
    async with process(database_url, undisturbed) as one:
        whole = await one.all_of(order("alpha"))
    assert len(undisturbed.paid) == 2
    deaths = 0
    while True:
        work, request = Work(), order(f"death {deaths}")
        async with process(database_url, work, writes=deaths) as one:
            async with one.database.write() as connection:
                await connection.execute(results.delete())
            following = asyncio.create_task(one.all_of(request))
            died = asyncio.create_task(one.store.died.wait())
            await asyncio.wait((following, died), return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                died.cancel()
                break
            following.cancel()
        async with process(database_url, work, days=0.5) as two:
            # The lease has expired: another request for the same work continues the run.
            again = await two.all_of(order(f"death {deaths}"))
            assert [event.sequence for event in again] == [*range(1, len(again) + 1)]
            assert len(contents(again)) == len(contents(whole))
            assert again == await two.all_of(request)
            assert await two.rows() == 1
        assert len(work.paid) == 2
        deaths += 1
    assert deaths >= 2


async def test_concurrent_work_may_come_in_another_order(database_url: str) -> None:
    gate, work = asyncio.Event(), Work()
    work.gate = gate
    async with process(database_url, work) as one, closing(one.runs.stream(order())) as stream:
        first = await anext(stream)
    gate.set()
    work.turned = True
    async with process(database_url, work) as two:
        events = [event async for event in two.runs.resume_stream(first.run_id, 0)]
        assert [event.decided.actor for event in events if event.HasField("decided")] == ["b", "a"]
        assert len(contents(events)) == 5


async def test_a_result_that_cannot_be_stored_leaves_nothing_and_loses_no_event(database_url: str) -> None:
    work = Work(failure=ConflictError("too late"))
    async with process(database_url, work) as one:
        request = order()
        with pytest.raises(ConflictError, match="too late"):
            await one.all_of(request)
        assert await one.rows() == 0
        work.failure = None
        events = await one.all_of(request)
        assert events[-1].HasField("compiled")
        assert (len(contents(events)), len(work.paid), await one.rows()) == (5, 2, 1)


async def test_equal_work_under_another_configuration_is_another_run(database_url: str) -> None:
    work = Work(gate=asyncio.Event())
    async with process(database_url, work) as one, process(database_url, work, configured="other") as two:
        ids = []
        for runs in (one.runs, one.runs, two.runs):
            async with closing(runs.stream(order())) as stream:
                ids.append((await anext(stream)).run_id)
        assert ids[0] == ids[1] != ids[2]


async def test_an_id_of_a_run_names_no_other_request_of_any_call(database_url: str) -> None:
    async with process(database_url, Work()) as one:
        request = order()
        await one.all_of(request)
        other = order("beta")
        other.request_id = request.request_id
        with pytest.raises(AlreadyExistsError):
            await one.all_of(other)
        key = RequestKey(request.request_id, request_fingerprint(other))
        async with one.database.read() as connection:
            with pytest.raises(AlreadyExistsError):
                await IdempotencyStore(one.database).find(connection, key)


async def test_a_run_is_deleted_a_week_after_its_last_event_with_all_that_belongs_to_it(
    database_url: str,
) -> None:
    async with process(database_url, Work()) as one:
        run_id = (await one.all_of(order()))[0].run_id
    async with process(database_url, Work(), days=6.9) as two:
        await clear(two)
        await two.all_of(order("beta"))
        assert (await two.runs.get(run_id)).state is CallRunState.COMPLETED
    async with process(database_url, Work(), days=7.1) as three:
        await clear(three)
        await three.all_of(order("gamma"))
        with pytest.raises(NotFoundError):
            await three.runs.get(run_id)
        for name in ("call_events", "call_answers"):
            table = METADATA.tables[name]
            async with three.database.read() as connection:
                left = select(func.count()).select_from(table).where(table.c.run_id == run_id)
                assert await connection.scalar(left) == 0


async def clear(of: Process) -> None:
    async with of.database.write() as connection:
        await connection.execute(results.delete())


async def test_an_abandoned_run_is_deleted_too_and_what_is_worked_on_is_not(database_url: str) -> None:
    async with process(database_url, Work(gate=asyncio.Event())) as one:
        async with closing(one.runs.stream(order())) as stream:
            run_id = (await anext(stream)).run_id
        async with process(database_url, Work()) as two:
            await two.all_of(order("beta"))
            assert (await two.runs.get(run_id)).state is CallRunState.RUNNING
    async with process(database_url, Work(), days=8) as three:
        await clear(three)
        await three.all_of(order("gamma"))
        with pytest.raises(NotFoundError):
            await three.runs.get(run_id)


async def test_a_database_of_an_earlier_program_gets_the_tables(database_url: str) -> None:
    names = ("call_answers", "call_events", "call_requests", "call_runs")
    earlier = await Database.open(database_url)
    async with earlier.write() as connection:
        for name in names:
            await connection.execute(DropTable(METADATA.tables[name]))
    await earlier.close()
    async with process(database_url, Work()) as one:
        assert (await one.all_of(order()))[-1].HasField("compiled")

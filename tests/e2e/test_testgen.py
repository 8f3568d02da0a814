"""Runs of tests whose server is killed again and again, and that come to the same suite."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.errors import UnavailableError
from peripety.llmsim.capture import AnsweredOutcome
from peripety.llmsim.script.types import Pace
from peripety.llmsim.server.runner import serve_in_thread
from support.llmsim.simulator import Answering
from support.servers.apps import new_id
from support.servers.databases import PostgresqlProcess
from support.servers.processes import ServerProcess
from support.testgen.fake_run import SUBJECT, Script, TestRuns, kinds, suite_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


MOST_TOKENS = 150_000
# In the tests from the schema, during an answer, while tests run, and during their review.
KILLED_AFTER = (1, 9, 16, 31)


def order() -> pb.GenerateTestsRequest:
    """A run that ends before it meets a limit, also when it is broken off as often as here."""
    config = pb.TestGenConfig(max_total_rounds=6, max_total_tokens=MOST_TOKENS)
    config.max_total_time.FromSeconds(600)
    return pb.GenerateTestsRequest(
        request_id=new_id(),
        task_description="what is allowed",
        subject=SUBJECT,
        config=config,
    )


@contextmanager
def asked() -> Iterator[tuple[Answering, dict[str, str]]]:
    """Run a slow model, and yield it with the settings of a server that uses it."""
    model = Answering(Script(Pace(tokens_per_second=600)))
    with serve_in_thread(model) as upstream:
        yield (
            model,
            {
                "MODEL_PROVIDER": "openai",
                "OPENAI_API_BASE": f"{upstream.url}/v1",
                "OPENAI_API_KEY": "k",
                "MODEL_NAME": "gpt-5",
                # Without caches, an earlier answer costs another request.
                "PERIPETY_RESPONSE_CACHE_MEMORY_BYTES": "0",
                "PERIPETY_RESPONSE_CACHE_DISK_BYTES": "0",
            },
        )
    model.close()


async def followed(
    call: Any,
    server: ServerProcess,
    kill_after: int,
    events: list[pb.TestGenEvent],
) -> None:
    """Take events in, and kill the server once there are so many."""
    with suppress(UnavailableError):
        async for response in call:
            events.append(response.event)
            if len(events) == kill_after:
                await asyncio.to_thread(server.kill)
    assert server.process.poll() is not None
    assert kinds(events)[-1] != "complete"


def billed(model: Answering) -> int:
    """Return the tokens of all answers, including those without a client."""
    answers = [call.outcome for call in model.captured if isinstance(call.outcome, AnsweredOutcome)]
    return sum(answer.usage.input + answer.usage.output for answer in answers)


def check(events: list[pb.TestGenEvent], undisturbed: list[pb.TestGenEvent]) -> None:
    """Check that no event was lost or sent twice, and that no limit was exceeded."""
    assert [event.sequence for event in events] == [*range(1, len(events) + 1)]
    assert (kinds(events)[0], kinds(events)[-1]) == ("start", "complete")
    assert suite_of(events) == suite_of(undisturbed)
    stats, before = events[-1].complete.stats, undisturbed[-1].complete.stats
    assert stats.quality == before.quality
    assert stats.total_rounds == before.total_rounds
    assert stats.stopped_by == before.stopped_by
    assert stats.total_tokens_used <= MOST_TOKENS


@pytest.mark.timeout(300)
@pytest.mark.slow(reason="starts a server for each kill")
async def test_a_run_whose_server_is_killed_again_and_again_comes_to_the_same_suite(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with asked() as (model, settings):
        request = order()
        events: list[pb.TestGenEvent] = []
        for kill_after in KILLED_AFTER:
            with ServerProcess(home, "all", settings) as server:
                async with TestRuns.connected(server.address) as client:
                    if events:
                        again = pb.ResumeTestsRequest(run_id=events[0].run_id, after_sequence=len(events))
                        await followed(client.stub.ResumeTests(again), server, kill_after, events)
                    else:
                        await followed(client.stub.GenerateTests(request), server, kill_after, events)
            assert len(events) >= kill_after
        with ServerProcess(home, "all", settings) as server:
            async with TestRuns.connected(server.address) as client:
                events += await client.resume(events[0].run_id, len(events))
                assert await client.resume(events[0].run_id) == events
                assert events[-1].complete.stats.total_tokens_used <= billed(model) <= MOST_TOKENS
                undisturbed = [response.event async for response in client.stub.GenerateTests(order())]
            assert server.stop() == 0
    check(events, undisturbed)
    assert "Traceback" not in server.log


@pytest.mark.timeout(300)
@pytest.mark.slow(reason="waits until a lease ends")
async def test_a_replica_takes_a_run_up_when_the_one_that_worked_on_it_was_killed(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        database = stack.enter_context(PostgresqlProcess())
        _, settings = stack.enter_context(asked())
        shared = {**settings, "PERIPETY_DATABASE_URL": stack.enter_context(database.database())}
        one, two = (
            stack.enter_context(ServerProcess(tmp_path / name, "all", shared)) for name in ("one", "two")
        )
        here = await stack.enter_async_context(TestRuns.connected(one.address))
        there = await stack.enter_async_context(TestRuns.connected(two.address))
        undisturbed = [response.event async for response in there.stub.GenerateTests(order())]
        events: list[pb.TestGenEvent] = []
        await followed(here.stub.GenerateTests(order()), one, 14, events)
        run_id = events[0].run_id
        told = await asyncio.gather(there.resume(run_id), there.resume(run_id))
        assert told[0] == told[1]
        assert told[0][: len(events)] == events
        check(told[0], undisturbed)
        assert two.stop() == 0

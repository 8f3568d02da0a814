"""Runs of tests whose server is killed again and again, and that come to the same suite."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
from collections import Counter
from contextlib import AsyncExitStack, contextmanager, suppress
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.errors import UnavailableError
from peripety.llmsim.capture import AnsweredOutcome
from peripety.llmsim.script.types import Pace
from peripety.llmsim.server.runner import serve_in_thread
from support.llmsim.simulator import Answering
from support.repo.repository import ROOT
from support.servers.apps import new_id
from support.servers.databases import PostgresqlProcess
from support.servers.processes import ServerProcess, descendants
from support.testgen.fake_run import SUBJECT, Script, TestRuns, kinds, suite_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


MOST_TOKENS = 150_000
# In the tests from the schema, during an answer, while tests run, and during their review.
KILLED_AFTER = (1, 9, 16, 31)
KILLS = int(os.environ.get("PERIPETY_TESTGEN_KILLS", "8"))
KILL_PAUSES = (0.0, 2.0)
MOST_SECONDS = 120
_log = logging.getLogger(__name__)


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


class Killer:
    """Kills the server, or a process of the program that it runs, at random moments.

    Attributes:
        killed: the number of kills of each.
    """

    def __init__(self) -> None:
        self.killed = Counter[str]()
        self._random = Random(0)

    async def kill(self, server: ServerProcess) -> None:
        """Kill processes of the program, and then the server."""
        is_server = False
        while not is_server:
            await asyncio.sleep(self._random.uniform(*KILL_PAUSES))
            is_server = self._random.random() < 0.3
            processes = [*descendants(server.process.pid)]
            if is_server:
                self.killed["server"] += 1
                await asyncio.to_thread(server.kill)
            elif processes:
                with suppress(ProcessLookupError):
                    os.kill(self._random.choice(processes), signal.SIGKILL)
                    self.killed["program"] += 1


@pytest.mark.timeout(max(600, 60 * KILLS))
@pytest.mark.slow(reason="kills a server and the processes of its program at many points")
async def test_no_kill_of_a_server_or_of_its_program_loses_a_test(tmp_path: Path) -> None:
    killer, place = Killer(), tmp_path / "ranges"
    shutil.copytree(ROOT / "examples" / "testgen" / "ranges", place)
    command = pb.CommandSubject(argv=["python3", "ranges.py"], working_directory=str(place))
    while killer.killed.total() < KILLS:
        config = pb.TestGenConfig(max_total_rounds=2, max_total_tokens=MOST_TOKENS)
        config.max_total_time.FromSeconds(MOST_SECONDS)
        request = pb.GenerateTestsRequest(
            request_id=new_id(),
            task_description="Write ranges.py.",
            subject=pb.Subject(command=command),
            config=config,
        )
        with asked() as (model, used):
            settings = {**used, "PERIPETY_TESTGEN_COMMANDS": "true"}
            events = await generated(tmp_path / "home", settings, request, killer)
            assert [event.sequence for event in events] == [*range(1, len(events) + 1)]
            assert (kinds(events)[0], kinds(events)[-1]) == ("start", "complete"), (
                f"{events[-1]}{(tmp_path / 'home' / 'server.log').read_text(encoding='utf-8')[-4_000:]}"
            )
            stats = events[-1].complete.stats
            assert stats.total_tokens_used <= billed(model) <= MOST_TOKENS
            assert stats.duration.ToTimedelta().total_seconds() <= MOST_SECONDS
            with ServerProcess(tmp_path / "home", "all", settings) as server:
                async with TestRuns.connected(server.address) as client:
                    await check_stored(client, events)
                assert "Traceback" not in server.log
    _log.info("killed: %s", dict(killer.killed))


async def generated(
    home: Path,
    settings: dict[str, str],
    request: pb.GenerateTestsRequest,
    killer: Killer,
) -> list[pb.TestGenEvent]:
    """Return the events of a run whose server and program are killed until enough kills are done."""
    events: list[pb.TestGenEvent] = []
    while not events or kinds(events)[-1] not in {"complete", "error"}:
        with ServerProcess(home, "all", settings) as server:
            async with TestRuns.connected(server.address) as client:
                if events:
                    again = pb.ResumeTestsRequest(run_id=events[0].run_id, after_sequence=len(events))
                    call: Any = client.stub.ResumeTests(again)
                else:
                    call = client.stub.GenerateTests(request)
                killing = None
                if killer.killed.total() < KILLS:
                    killing = asyncio.create_task(killer.kill(server))
                with suppress(UnavailableError):
                    async for response in call:
                        events.append(response.event)  # noqa: PERF401 - what came until then is kept
                if killing is not None:
                    killing.cancel()
    return events


async def check_stored(client: TestRuns, events: list[pb.TestGenEvent]) -> None:
    """Check that each test of a run is stored, and that those that pass do so without any kill."""
    run_id = events[0].run_id
    assert await client.resume(run_id) == events
    stored = (await client.get(run_id)).tests
    dropped = {event.duplicate.test.test_id for event in events if event.HasField("duplicate")}
    told = [event.test.test_id for event in events if event.HasField("test")]
    assert [test.test_id for test in stored] == [one for one in told if one not in dropped]
    passed = {
        event.test_ran.test_id
        for event in events
        if event.HasField("test_ran") and event.test_ran.verdict.status == pb.TEST_STATUS_PASSED
    }
    assert passed
    again = [one.test_ran for one in await client.run(run_id=run_id) if one.HasField("test_ran")]
    failed = {one.test_id for one in again if one.verdict.status != pb.TEST_STATUS_PASSED}
    assert not passed & failed

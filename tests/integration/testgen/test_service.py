"""Runs of tests over the real protocol, from the request to the last event."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.policy.v1 import policy_pb2 as policy
from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError
from peripety.testgen import service
from peripety.testgen.export.suite import RenderedSuite, render
from support.engine.policies import policy_document, rule
from support.engine.specs import playable
from support.servers.apps import config_for, new_id
from support.testgen.fake_run import (
    Author,
    Paused,
    Question,
    TestRuns,
    always,
    kinds,
    serving_runs,
    some,
    written,
)

if TYPE_CHECKING:
    from pathlib import Path


PROGRAM = "import sys\nprint(int(sys.argv[1]) + 1 if len(sys.argv) > 1 else 0)\n"
SCENARIO = pb.Subject(spec=playable())
POLICY = pb.Subject(policy=policy.PolicySource(document=policy_document(rules=[rule()])))
EXPECT = {"==": [{"var": "state.b"}, 9]}
PLAY = {
    "seed": None,
    "steps": [{"actions": [{"action_id": "raise", "params": {}}], "accepted": True, "expect": EXPECT}],
}
ASK = {"server_name": "s", "tool_name": "t", "arguments": {"a": "x"}, "roles": [], "expected": "allow"}
FEED = {"arguments": ["3"], "stdin": "", "exit_code": 0}


def writing(body: dict[str, Any] | None, expected: str | None = None) -> Author:
    """An author of one test for each round, which is run like this."""

    def tests(question: Question) -> list[dict[str, Any]]:
        return [written(f"{question.place}", expected, body=body)]

    return always(tests)


def command(tmp_path: Path, **fields: Any) -> pb.Subject:
    """A small program as a subject."""
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "add.py").write_text(PROGRAM)
    named = pb.CommandSubject(
        argv=[sys.executable, "add.py"],
        working_directory=str(tmp_path / "work"),
        **fields,
    )
    return pb.Subject(command=named)


async def test_a_run_without_a_subject_tells_everything_and_is_stored(tmp_path: Path) -> None:
    async with serving_runs(config_for(tmp_path), always()) as client:
        environment = pb.EnvironmentInfo(platform="linux/x86_64")
        events = await client.generate(task_id="alpha", environment=environment)
        run = await client.get(events[0].run_id)
    assert [event.sequence for event in events] == [*range(1, len(events) + 1)]
    assert {event.run_id for event in events} == {run.run_id}
    assert (kinds(events)[0], kinds(events)[-1]) == ("start", "complete")
    assert events[0].start.environment.platform == "linux/x86_64"
    assert [one.name for one in events[0].start.categories] == ["existence", "correctness", "boundary"]
    told = [event.test for event in events if event.HasField("test")]
    assert [*run.tests] == told
    assert run.stats == events[-1].complete.stats
    assert (run.task_id, run.phase, run.last_sequence) == ("alpha", pb.TEST_GEN_PHASE_COMPLETE, len(events))
    assert run.config.max_total_rounds == 17
    assert run.stats.total_tests == len(told) > 8
    assert run.stats.total_tokens_used == run.stats.usage.tokens.input_tokens + (
        run.stats.usage.tokens.output_tokens
    )


@pytest.mark.slow_after(1, reason="starts a server and runs a whole generation")
@pytest.mark.parametrize("kind", ["scenario", "policy", "command"])
async def test_tests_are_run_on_a_subject_of_each_kind(tmp_path: Path, kind: str) -> None:
    cases: dict[str, tuple[pb.Subject, dict[str, Any], str | None]] = {
        "scenario": (SCENARIO, PLAY, None),
        "policy": (POLICY, ASK, None),
        "command": (command(tmp_path), FEED, "4"),
    }
    subject, body, expected = cases[kind]
    config = config_for(tmp_path, testgen_commands=True)
    limits = pb.TestGenConfig(max_total_rounds=1, combinatorial_floor=False)
    async with serving_runs(config, writing(body, expected)) as client:
        events = await client.generate(subject=subject, config=limits)
        run = await client.get(events[0].run_id)
    assert kinds(events)[-1] == "complete", events[-1]
    (test,) = run.tests
    assert test.WhichOneof("body") == kind
    assert (test.verdict.status, test.verdict.runs) == (pb.TEST_STATUS_PASSED, 5), test.verdict
    assert run.stats.quality.mutation.killed > 0
    assert run.stats.quality.coverage
    assert run.stats.stopped_by == pb.STOPPED_BY_MAX_TOTAL_ROUNDS


JUNK: tuple[Any, ...] = (
    {},
    {"steps": 3, "tool_name": 3, "arguments": 3},
    {"steps": [{}, 1, {"actions": [{"action_id": 1, "params": [1]}], "expect": {"no": []}}]},
    {**PLAY, "seed": -1.5},
    {**PLAY, "steps": [{"actions": [{"action_id": "raise", "params": {"x": [1]}}], "expect": "{"}]},
    {**ASK, "arguments": {"a": [None]}, "expected": 3},
    {**ASK, "server_name": None, "roles": "x"},
    {**FEED, "arguments": [1, None], "stdin": 3, "exit_code": "x"},
    {**FEED, "exit_code": 2**40, "stdin": "\0"},
)


@pytest.mark.slow_after(1, reason="starts a server and runs a whole generation")
@pytest.mark.parametrize("kind", ["scenario", "policy", "command"])
async def test_whatever_a_model_writes_is_kept_and_can_be_read(tmp_path: Path, kind: str) -> None:
    subject = {"scenario": SCENARIO, "policy": POLICY, "command": command(tmp_path)}[kind]
    limits = pb.TestGenConfig(max_total_rounds=1, combinatorial_floor=False)
    author = always([written(f"number {at}", body=body) for at, body in enumerate(JUNK)])
    async with serving_runs(config_for(tmp_path, testgen_commands=True), author) as client:
        events = await client.generate(subject=subject, config=limits)
        assert kinds(events)[-1] == "complete", events[-1]
        run = await client.get(events[0].run_id)
        told = await client.run(run_id=run.run_id, repetitions=1)
        for to in (pb.TEST_FORMAT_PYTEST, pb.TEST_FORMAT_JSON, pb.TEST_FORMAT_JUNIT):
            assert await client.export(run.run_id, to)
    dropped = [event for event in events if event.HasField("duplicate")]
    assert len(run.tests) + len(dropped) == len(JUNK)
    assert all(test.verdict.status != pb.TEST_STATUS_UNSPECIFIED for test in run.tests)
    assert told[-1].HasField("measured")


@pytest.mark.slow(reason="starts a server and runs a whole generation")
async def test_files_are_written_beside_the_event_loop_which_others_wait_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = []

    def rendered(*args: Any, **kwargs: Any) -> RenderedSuite:
        threads.append(threading.current_thread())
        return render(*args, **kwargs)

    monkeypatch.setattr(service, "render", rendered)
    async with serving_runs(config_for(tmp_path), always([written("the one")])) as client:
        run_id = (await client.generate())[0].run_id
        assert await client.export(run_id, pb.TEST_FORMAT_JSON)
    assert threads
    assert threading.current_thread() not in threads


@pytest.mark.slow(reason="starts a server and runs a whole generation")
async def test_tests_are_exported_as_files_in_parts_that_fit_a_message(tmp_path: Path) -> None:
    files = [pb.FilePreview(path=f"f{number}", preview="x" * 16_000) for number in range(100)]
    limits = pb.TestGenConfig(max_total_rounds=1, combinatorial_floor=False)
    one = written("the one", body={**ASK, "arguments": {"a": "1"}})
    other = written("the other", body={**ASK, "arguments": {"a": "2"}, "expected": "deny"})
    author = always([one, other])
    async with serving_runs(config_for(tmp_path), author) as client:
        environment = pb.EnvironmentInfo(files=files)
        events = await client.generate(subject=POLICY, config=limits, environment=environment)
        run_id = events[0].run_id
        whole = await client.export(run_id, pb.TEST_FORMAT_JSON)
        counting = await client.export(run_id, pb.TEST_FORMAT_PYTEST, counting_only=True)
        report = await client.export(run_id, pb.TEST_FORMAT_JUNIT)
        again = await client.export(run_id, pb.TEST_FORMAT_PYTEST, append_to=b"".join(counting))
    assert kinds(events)[-1] == "complete"
    assert len(whole) > 1
    assert all(0 < len(part) <= 1024 * 1024 for part in whole)
    document = json.loads(b"".join(whole))
    assert [test["input"] for test in document["tests"]] == ["the one", "the other"]
    assert b"".join(counting).count(b"def test_") == 1
    appended = iter(b"".join(again).splitlines(keepends=True))  # with an import, and a test at the end
    assert all(line in appended for line in b"".join(counting).splitlines(keepends=True))
    assert b"".join(again).count(b"def test_") == 2
    assert b'tests="2" failures="1"' in b"".join(report)


def pausing() -> Author:
    """Return an author that writes a test and then blocks until it is cancelled."""
    return always(lambda question: [*some(question, 1), Paused(3600)])


async def until_first_test(client: TestRuns, **fields: Any) -> list[pb.TestGenEvent]:
    """Start a run, and leave it when its first test is there."""
    events = []
    request = pb.GenerateTestsRequest(**{"request_id": new_id(), "task_description": "make it so", **fields})
    call = client.stub.GenerateTests(request)
    async for response in call:
        events.append(response.event)
        if response.event.HasField("test"):
            call.cancel()
            break
    return events


@pytest.mark.slow(reason="starts a server and runs a whole generation")
async def test_a_client_that_leaves_goes_on_without_loss_or_repetition(tmp_path: Path) -> None:
    async with serving_runs(config_for(tmp_path), always()) as client:
        before = await until_first_test(client)
        run_id = before[0].run_id
        after = await client.resume(run_id, before[-1].sequence)
        everything = await client.resume(run_id)
    assert before + after == everything
    assert [event.sequence for event in everything] == [*range(1, len(everything) + 1)]
    assert kinds(everything)[-1] == "complete"


@pytest.mark.slow(reason="starts a server and runs a whole generation")
async def test_a_run_whose_server_stops_goes_on_in_the_next_one(tmp_path: Path) -> None:
    config, author = config_for(tmp_path), pausing()
    async with serving_runs(config, author) as client:
        before = await until_first_test(client)
    assert author.running == 0
    async with serving_runs(config, always(lambda question: some(question, 4))) as client:
        after = await client.resume(before[0].run_id, before[-1].sequence)
        run = await client.get(before[0].run_id)
    events = [*before, *after]
    assert [event.sequence for event in events] == [*range(1, len(events) + 1)]
    assert kinds(events)[-1] == "complete"
    told = [event.test.test_id for event in events if event.HasField("test")]
    assert [test.test_id for test in run.tests] == told
    assert len(told) == len(set(told))


@pytest.mark.slow(reason="starts a server and runs a whole generation")
async def test_a_run_that_cannot_go_on_says_why_and_ends(tmp_path: Path) -> None:
    limits = pb.TestGenConfig(combinatorial_floor=False)
    async with serving_runs(config_for(tmp_path, testgen_commands=True), pausing()) as client:
        run_id = (await until_first_test(client, subject=command(tmp_path), config=limits))[0].run_id
    async with serving_runs(config_for(tmp_path), always()) as client:
        events = await client.resume(run_id)
        run = await client.get(run_id)
    assert kinds(events)[-1] == "error"
    assert events[-1].error.reason == run.error.reason == "COMMANDS_NOT_ALLOWED"
    assert "PERIPETY_TESTGEN_COMMANDS" in run.error.message
    assert len(run.tests) == 1
    assert run.stats.stopped_by == pb.STOPPED_BY_ERROR


@pytest.mark.slow(reason="starts a server and runs a whole generation")
async def test_the_same_request_follows_the_same_run(tmp_path: Path) -> None:
    author, request_id = always(), new_id()
    async with serving_runs(config_for(tmp_path), author) as client:
        one, other = await asyncio.gather(
            client.generate(request_id=request_id),
            client.generate(request_id=request_id),
        )
        asked = len(author.questions)
        assert await client.generate(request_id=request_id) == one
        with pytest.raises(AlreadyExistsError, match="request_id"):
            await client.generate(request_id=request_id, task_description="something else")
        assert len((await client.page()).runs) == 1
    assert one == other
    assert len(author.questions) == asked


async def test_a_cancelled_run_keeps_its_tests_and_says_why_it_ended(tmp_path: Path) -> None:
    request_id = new_id()
    async with serving_runs(config_for(tmp_path), pausing()) as client:
        run_id = (await until_first_test(client))[0].run_id
        run = await client.cancel(run_id, request_id)
        assert await client.cancel(run_id, request_id) == run
        events = await client.resume(run_id)
        with pytest.raises(FailedPreconditionError, match="already ended"):
            await client.cancel(run_id)
        (listed,) = (await client.page()).runs
    assert len(run.tests) == 1
    assert kinds(events)[-1] == "complete"
    assert events[-1].complete.stats.stopped_by == pb.STOPPED_BY_CANCELLED
    assert run.stats.stopped_by == listed.stopped_by == pb.STOPPED_BY_CANCELLED
    assert (run.phase, listed.total_tests) == (pb.TEST_GEN_PHASE_COMPLETE, 1)


async def test_a_deleted_run_is_gone_also_while_it_is_worked_on(tmp_path: Path) -> None:
    author, request_id = pausing(), new_id()
    async with serving_runs(config_for(tmp_path), author) as client:
        run_id = (await until_first_test(client))[0].run_id
        assert author.running == 1
        await client.delete(run_id, request_id)
        await client.delete(run_id, request_id)
        assert author.running == 0
        for gone in (client.get(run_id), client.resume(run_id), client.cancel(run_id), client.delete(run_id)):
            with pytest.raises(NotFoundError, match="run_id"):
                await gone
        assert not (await client.page()).runs


@pytest.mark.slow(reason="starts a server and runs a whole generation")
async def test_runs_are_listed_in_pages_newest_first_and_by_task(tmp_path: Path) -> None:
    limits = pb.TestGenConfig(max_total_rounds=1)
    async with serving_runs(config_for(tmp_path), always()) as client:
        made = [
            (await client.generate(task_id=task_id, config=limits))[0].run_id
            for task_id in ("one", "two", "one", "two", "one")
        ]
        told, token = [], ""
        for size in (2, 2, 1):
            page = await client.page(page_size=2, page_token=token)
            assert len(page.runs) == size
            told += [run.run_id for run in page.runs]
            token = page.next_page_token
        mine = [run.run_id for run in (await client.page(task_id="one")).runs]
    assert (told, token) == (made[::-1], "")
    assert mine == made[::-2]


async def test_tests_are_run_again_with_and_without_their_run(tmp_path: Path) -> None:
    limits = pb.TestGenConfig(max_total_rounds=2, combinatorial_floor=False)
    async with serving_runs(config_for(tmp_path), writing(ASK)) as client:
        run_id = (await client.generate(subject=POLICY, config=limits))[0].run_id
        before, request_id = await client.get(run_id), new_id()
        told = await client.run(request_id=request_id, run_id=run_id, repetitions=2, mutation=True)
        again = await client.run(request_id=request_id, run_id=run_id, repetitions=2, mutation=True)
        rest = await client.run(
            request_id=request_id,
            run_id=run_id,
            repetitions=2,
            mutation=True,
            after_sequence=1,
        )
        after = await client.get(run_id)
        apart = await client.run(tests=before.tests, subject=POLICY)
        await client.run(run_id=run_id)
        without_mutants = await client.get(run_id)
    assert told == again
    assert told[1:] == rest
    assert [response.sequence for response in told] == [*range(1, len(told) + 1)]
    assert [response.WhichOneof("event") for response in told][-2:] == ["test_ran", "measured"]
    assert told[-1].measured.mutation.killed > 0
    assert [test.verdict.runs for test in before.tests] == [5] * len(before.tests)
    assert [test.verdict.runs for test in after.tests] == [2] * len(before.tests)
    assert after.stats.quality == told[-1].measured
    assert after.last_sequence == before.last_sequence
    assert without_mutants.stats.quality == after.stats.quality
    assert [test.verdict.new_kills for test in without_mutants.tests] == [
        test.verdict.new_kills for test in after.tests
    ]
    assert [response.WhichOneof("event") for response in apart] == ["test_ran"] * len(before.tests) + [
        "measured",
    ]
    assert apart[0].test_ran.verdict.runs == 5
    assert not apart[-1].measured.HasField("mutation")
    assert apart[-1].measured.coverage == told[-1].measured.coverage

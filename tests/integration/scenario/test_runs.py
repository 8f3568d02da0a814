"""Runs of generation: they survive their clients and servers, and never pay twice for an answer."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.core.runs import call_runs
from peripety.engine.patterns.syntax import Pattern
from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    ResourceExhaustedError,
)
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.types import Fault, Script, ScriptRule
from peripety.llmsim.server.runner import serve_in_thread
from peripety.rpc.channel import CALLER_KEY
from support.gateway.providers import config_of
from support.llmsim.simulator import Gate
from support.scenario.generation import (
    GRADES,
    ORIGINAL_PROVIDERS,
    GatedModel,
    good_specs,
    patient,
    saying,
    scenario_service,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub


ABOUT = "alpha wanes"
ANSWERS = 2
"""The model needs a repair: its first answer has findings."""


@dataclass
class Author:
    """A scripted LLM, and the servers that use it one after the other, on one database."""

    home: Path
    model: GatedModel
    url: str

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ScenarioServiceAsyncStub]:
        database = f"sqlite:///{self.home / 'test.db'}"
        config = config_of(ORIGINAL_PROVIDERS[0], self.url, database_url=database, listen="127.0.0.1:0")
        async with scenario_service(config) as stub:
            yield stub


@asynccontextmanager
async def authoring(home: Path, *, closed_at: int = 0, script: Script | None = None) -> AsyncIterator[Author]:
    usual = patient(GRADES["wrong field names"], good_specs()[0])
    model = GatedModel(script or usual, Gate(closed_at))
    with serve_in_thread(model) as upstream:
        try:
            yield Author(home, model, upstream.url)
        finally:
            model.gate.opened.set()
    model.close()


def order(**fields: Any) -> pb.GenerateScenarioRequest:
    usual = {"request_id": str(uuid4()), "description": ABOUT, "level": pb.VALIDATION_LEVEL_STATIC, "seed": 7}
    return pb.GenerateScenarioRequest(**{**usual, **fields})


async def all_of(responses: Any) -> list[Any]:
    return [response async for response in responses]


async def resumed(
    stub: ScenarioServiceAsyncStub,
    run_id: str,
    after: int = 0,
    **options: Any,
) -> list[pb.GenerateScenarioResponse]:
    request = pb.ResumeScenarioRunRequest(run_id=run_id, after_sequence=after)
    responses = await all_of(stub.ResumeScenarioRun(request, **options))
    assert [one.sequence for one in responses] == [one.generation.sequence for one in responses]
    return [response.generation for response in responses]


async def state_of(stub: ScenarioServiceAsyncStub, run_id: str) -> common.CallRunState.ValueType:
    return (await stub.GetScenarioRun(pb.GetScenarioRunRequest(run_id=run_id))).run.state


def as_caller(*names: str) -> dict[str, Any]:
    """Return the options of a call by a caller whom a proxy names, after names that the client gave."""
    return {"metadata": tuple((CALLER_KEY, name) for name in names)}


def kinds(events: list[pb.GenerateScenarioResponse]) -> list[str]:
    told = [event.WhichOneof("event") or "" for event in events]
    return [kind for kind in told if kind != "progress"]


WHOLE = ["draft", "findings", "repaired", "completed"]


async def started_until_the_gate(
    author: Author,
    stub: ScenarioServiceAsyncStub,
    request: pb.GenerateScenarioRequest,
) -> str:
    """Start a run, wait until the model has the closed request, leave, and return the id of the run."""
    call = stub.GenerateScenario(request)
    first = await anext(aiter(call))
    assert await asyncio.to_thread(author.model.gate.reached.wait, 60)
    call.cancel()
    return str(first.run_id)


async def test_a_run_survives_its_client_and_keeps_each_draft_with_its_findings(tmp_path: Path) -> None:
    async with authoring(tmp_path, closed_at=2) as author, author.serving() as stub:
        run_id = await started_until_the_gate(author, stub, order())
        before = (await stub.GetScenarioRun(pb.GetScenarioRunRequest(run_id=run_id))).run
        assert (before.state, before.method) == (common.CALL_RUN_STATE_RUNNING, "GenerateScenario")
        assert before.title == ABOUT
        author.model.gate.opened.set()
        events = await resumed(stub, run_id)
        assert [event.sequence for event in events] == [*range(1, len(events) + 1)]
        assert kinds(events) == WHOLE
        assert len(author.model.requests) == ANSWERS
        assert await state_of(stub, run_id) == common.CALL_RUN_STATE_COMPLETED


async def test_two_followers_get_the_same_events_from_wherever_they_begin(tmp_path: Path) -> None:
    async with authoring(tmp_path, closed_at=2) as author, author.serving() as stub:
        run_id = await started_until_the_gate(author, stub, order())
        await resumed_so_far(stub, run_id)
        followers = [asyncio.create_task(resumed(stub, run_id, after)) for after in (0, 0, 2)]
        author.model.gate.opened.set()
        one, two, rest = await asyncio.gather(*followers)
        assert one == two
        assert one[2:] == rest
        assert await resumed(stub, run_id, len(one)) == []
        with pytest.raises(InvalidArgumentError, match=f"from 0 to {len(one)}"):
            await resumed(stub, run_id, len(one) + 1)


async def test_an_equal_request_joins_the_run_and_the_same_one_finds_it_finished(tmp_path: Path) -> None:
    async with authoring(tmp_path, closed_at=2) as author, author.serving() as stub:
        request = order()
        run_id = await started_until_the_gate(author, stub, request)
        joined = asyncio.create_task(all_of(stub.GenerateScenario(order())))
        other = stub.GenerateScenario(order(description="beta waits"))
        assert (await anext(aiter(other))).run_id != run_id
        author.model.gate.opened.set()
        events = await joined
        assert {event.run_id for event in events} == {run_id}
        assert kinds(events) == WHOLE
        assert await all_of(stub.GenerateScenario(request)) == events
        request.after_sequence = 3
        assert await all_of(stub.GenerateScenario(request)) == events[3:]
        other.cancel()


async def test_a_server_that_stopped_is_continued_by_the_next_one_and_no_answer_is_paid_twice(
    tmp_path: Path,
) -> None:
    async with authoring(tmp_path, closed_at=2) as author:
        async with author.serving() as stub:
            run_id = await started_until_the_gate(author, stub, order())
            before = await resumed_so_far(stub, run_id)
        author.model.gate.opened.set()
        async with author.serving() as stub:
            again = await all_of(stub.GenerateScenario(order()))
            assert again[: len(before)] == before
            assert (kinds(again), {event.run_id for event in again}) == (WHOLE, {run_id})
            assert await resumed(stub, run_id) == again
    turns = [len(request.messages) for request in author.model.requests]
    # The request of the repair that the stopped server gave up is sent again, the first one is not.
    assert turns.count(1) == 1
    assert len(turns) <= ANSWERS + 1


async def resumed_so_far(stub: ScenarioServiceAsyncStub, run_id: str) -> list[pb.GenerateScenarioResponse]:
    """The events that are recorded when the run waits at the gate, after its first draft."""
    events: list[pb.GenerateScenarioResponse] = []
    async for response in stub.ResumeScenarioRun(pb.ResumeScenarioRunRequest(run_id=run_id)):
        events.append(response.generation)
        if response.generation.WhichOneof("event") == "findings":
            break
    return events


async def test_a_run_that_failed_is_taken_up_by_the_same_request_and_by_an_equal_one(tmp_path: Path) -> None:
    usual = patient(GRADES["wrong field names"], good_specs()[0])
    repair, first = usual.responses
    failing = ScriptRule(
        repair.pattern, failure=Fault("auth_error", KINDS["auth_error"].default_settings), max_matches=2
    )
    script = Script((failing, repair, first))
    async with authoring(tmp_path, script=script) as author, author.serving() as stub:
        request = order()
        with pytest.raises(PeripetyError) as caught:
            await all_of(stub.GenerateScenario(request))
        (run,) = (await stub.ListScenarioRuns(pb.ListScenarioRunsRequest())).runs
        assert (run.state, run.error.reason) == (common.CALL_RUN_STATE_FAILED, caught.value.code)
        with pytest.raises(PeripetyError):
            await resumed(stub, run.run_id)
        with pytest.raises(PeripetyError):
            await all_of(stub.GenerateScenario(request))
        events = await all_of(stub.GenerateScenario(order()))
        assert (kinds(events), events[0].run_id) == (WHOLE, run.run_id)
        # One draft, two failures, one repair.
        assert len(author.model.requests) == 4


async def test_a_cancelled_run_stops_its_model_call_and_tells_its_followers(tmp_path: Path) -> None:
    async with authoring(tmp_path, closed_at=2) as author, author.serving() as stub:
        request = order()
        run_id = await started_until_the_gate(author, stub, request)
        follower = asyncio.create_task(resumed(stub, run_id))
        cancellation = pb.CancelScenarioRunRequest(request_id=str(uuid4()), run_id=run_id)
        for _ in range(2):
            run = (await stub.CancelScenarioRun(cancellation)).run
            assert run.state == common.CALL_RUN_STATE_CANCELLED
        for following in (follower, all_of(stub.GenerateScenario(request))):
            with pytest.raises(FailedPreconditionError, match="cancelled"):
                await following
        cancellation.request_id = str(uuid4())
        with pytest.raises(FailedPreconditionError) as caught:
            await stub.CancelScenarioRun(cancellation)
        assert caught.value.code == "RUN_ENDED"
        events = await resumed_so_far(stub, run_id)
        assert kinds(events) == ["draft", "findings"]


async def test_a_deleted_run_is_gone(tmp_path: Path) -> None:
    async with authoring(tmp_path) as author, author.serving() as stub:
        run_id = (await all_of(stub.GenerateScenario(order())))[0].run_id
        deletion = pb.DeleteScenarioRunRequest(request_id=str(uuid4()), run_id=run_id)
        for _ in range(2):
            await stub.DeleteScenarioRun(deletion)
        for call in (
            stub.GetScenarioRun(pb.GetScenarioRunRequest(run_id=run_id)),
            stub.DeleteScenarioRun(pb.DeleteScenarioRunRequest(request_id=str(uuid4()), run_id=run_id)),
        ):
            with pytest.raises(NotFoundError):
                await call


async def test_a_caller_cannot_see_the_run_of_another(tmp_path: Path) -> None:
    one, two, both = as_caller("one"), as_caller("two"), as_caller("two", "one")
    async with authoring(tmp_path, closed_at=2) as author, author.serving() as stub:
        call = stub.GenerateScenario(order(), **one)
        run_id = (await anext(aiter(call))).run_id
        assert await asyncio.to_thread(author.model.gate.reached.wait, 60)
        unknown = str(uuid4())

        def calls(run_id: str) -> list[Any]:
            named = {"request_id": str(uuid4()), "run_id": run_id}
            return [
                stub.GetScenarioRun(pb.GetScenarioRunRequest(run_id=run_id), **two),
                stub.CancelScenarioRun(pb.CancelScenarioRunRequest(**named), **two),
                stub.DeleteScenarioRun(pb.DeleteScenarioRunRequest(**named), **two),
                resumed(stub, run_id, **two),
            ]

        for foreign, missing in zip(calls(run_id), calls(unknown), strict=True):
            messages = []
            for wanted in (foreign, missing):
                with pytest.raises(NotFoundError) as caught:
                    await wanted
                messages.append(caught.value.message)
            assert messages[0].replace(run_id, unknown) == messages[1]
        assert not (await stub.ListScenarioRuns(pb.ListScenarioRunsRequest(), **two)).runs
        assert not (await stub.ListScenarioRuns(pb.ListScenarioRunsRequest())).runs
        assert [
            run.run_id for run in (await stub.ListScenarioRuns(pb.ListScenarioRunsRequest(), **one)).runs
        ] == [run_id]
        # Equal work of another caller is a run of its own.
        other = stub.GenerateScenario(order(), **two)
        author.model.gate.opened.set()
        assert (await anext(aiter(other))).run_id != run_id
        # A name that a client adds to that of the proxy belongs to no caller.
        assert not (await stub.ListScenarioRuns(pb.ListScenarioRunsRequest(), **both)).runs


async def test_runs_are_listed_newest_first_by_pages_and_by_state(tmp_path: Path) -> None:
    async with authoring(tmp_path) as author, author.serving() as stub:
        ids = [(await all_of(stub.GenerateScenario(order(seed=seed))))[0].run_id for seed in (1, 2)]
        page = await stub.ListScenarioRuns(pb.ListScenarioRunsRequest(page_size=1))
        rest = await stub.ListScenarioRuns(pb.ListScenarioRunsRequest(page_token=page.next_page_token))
        assert [run.run_id for run in (*page.runs, *rest.runs)] == ids[::-1]
        failed = pb.ListScenarioRunsRequest(state=common.CALL_RUN_STATE_FAILED)
        assert not (await stub.ListScenarioRuns(failed)).runs
        with pytest.raises(InvalidArgumentError, match="state"):
            await stub.ListScenarioRuns(pb.ListScenarioRunsRequest(state=99))  # type: ignore[arg-type]


async def test_when_the_answers_run_out_every_draft_is_kept_and_a_repeated_command_tries_anew(
    tmp_path: Path,
) -> None:
    wrong = Script((ScriptRule(Pattern(), GRADES["wrong field names"].write(good_specs()[0]).response),))
    async with authoring(tmp_path, script=wrong) as author, author.serving() as stub:
        events = await all_of(stub.GenerateScenario(order(max_attempts=3)))
        assert kinds(events)[-1] == "rejected"
        run_id = events[0].run_id
        assert await state_of(stub, run_id) == common.CALL_RUN_STATE_REJECTED
        assert await resumed(stub, run_id) == events
        assert kinds(events).count("findings") == len(author.model.requests) == 3
        assert (await all_of(stub.GenerateScenario(order(max_attempts=3))))[0].run_id != run_id


async def test_a_run_has_a_limit_on_its_size_and_a_server_on_its_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with authoring(tmp_path) as author, author.serving() as stub:
        monkeypatch.setattr(call_runs, "_MAX_BYTES", 100)
        with pytest.raises(ResourceExhaustedError, match="exceed"):
            await all_of(stub.GenerateScenario(order()))
        monkeypatch.setattr(call_runs, "_MAX_ACTIVE_RUNS", 0)
        with pytest.raises(ResourceExhaustedError) as caught:
            await all_of(stub.GenerateScenario(order(seed=1)))
        assert (caught.value.code, caught.value.retry_after) == ("TOO_MANY_CALLS", 1.0)


async def test_drafts_are_read_without_taking_up_the_run(tmp_path: Path) -> None:
    async with authoring(tmp_path, closed_at=2) as author:
        async with author.serving() as stub:
            run_id = await started_until_the_gate(author, stub, order())
            before = await resumed_so_far(stub, run_id)
        author.model.gate.opened.set()
        async with author.serving() as stub:
            request = pb.ResumeScenarioRunRequest(run_id=run_id, recorded_only=True)
            events = [response.generation async for response in stub.ResumeScenarioRun(request)]
            assert events[: len(before)] == before
            assert kinds(events) == ["draft", "findings"]
            request.after_sequence = len(events)
            assert await all_of(stub.ResumeScenarioRun(request)) == []
            assert await state_of(stub, run_id) == common.CALL_RUN_STATE_RUNNING
            assert [len(asked.messages) for asked in author.model.requests].count(1) == 1


async def test_an_amendment_is_a_run_too_and_its_change_is_made_once(tmp_path: Path) -> None:
    good = good_specs()[0]
    heavy = {"random_events": [{**good["random_events"][0], "weight": 7}]}
    mild = {"random_events": [{**good["random_events"][0], "weight": 0.05}]}
    async with authoring(tmp_path, closed_at=2, script=saying(heavy, mild)) as author:
        async with author.serving() as stub:
            compiled = pb.CompileScenarioRequest(request_id=str(uuid4()), spec=json.dumps(good).encode())
            scenario_id = (await all_of(stub.CompileScenario(compiled)))[-1].compiled.scenario_id
            amendment = pb.AmendScenarioRequest(
                request_id=str(uuid4()),
                scenario_id=scenario_id,
                instruction="less of the first event",
            )
            call = stub.AmendScenario(amendment)
            run_id = (await anext(aiter(call))).run_id
            assert await asyncio.to_thread(author.model.gate.reached.wait, 60)
            call.cancel()
        author.model.gate.opened.set()
        async with author.serving() as stub:
            events = await all_of(stub.AmendScenario(amendment))
            assert {event.run_id for event in events} == {run_id}
            told = [event.WhichOneof("event") for event in events if not event.HasField("progress")]
            assert told == ["proposed", "findings", "proposed", "amended"]
            resume = pb.ResumeScenarioRunRequest(run_id=run_id)
            again = [response.amendment async for response in stub.ResumeScenarioRun(resume)]
            assert again == events == await all_of(stub.AmendScenario(amendment))
            listed = pb.ListScenarioVersionsRequest(scenario_id=scenario_id)
            assert len((await stub.ListScenarioVersions(listed)).versions) == 2
    assert [len(asked.messages) for asked in author.model.requests].count(1) == 1

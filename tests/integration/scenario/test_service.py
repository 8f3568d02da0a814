"""The scenario service over a real loopback connection."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from peripety import engine as engine_api
from peripety.api.common.v1 import common_pb2 as common
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    UnsupportedError,
)
from peripety.rpc.channel import open_channel
from peripety.scenario.remote import RemoteScenarioSource
from peripety.server.app import serve
from support.engine.specs import as_bytes, chance, siege
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import grpc

    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub


@pytest.fixture
async def channel(tmp_path: Path) -> AsyncIterator[grpc.aio.Channel]:
    async with (
        serve(config_for(tmp_path), services={"gateway", "scenarios"}) as app,
        open_channel(app.address) as opened,
    ):
        yield opened


@pytest.fixture
def stub(channel: grpc.aio.Channel) -> ScenarioServiceAsyncStub:
    return ScenarioServiceStub(channel)


def new_id() -> str:
    return str(uuid4())


async def all_of(responses: Any) -> list[Any]:
    return [response async for response in responses]


def generation(**fields: Any) -> pb.GenerateScenarioRequest:
    usual: dict[str, Any] = {"request_id": new_id(), "level": pb.VALIDATION_LEVEL_STATIC}
    return pb.GenerateScenarioRequest(**(usual | fields))


def compilation(**fields: Any) -> pb.CompileScenarioRequest:
    return pb.CompileScenarioRequest(**{"request_id": new_id(), **fields})


async def compiled(stub: ScenarioServiceAsyncStub, value: dict[str, Any]) -> pb.CompiledScenario:
    last = (await all_of(stub.CompileScenario(compilation(spec=as_bytes(value)))))[-1]
    assert last.WhichOneof("event") == "compiled", last
    scenario: pb.CompiledScenario = last.compiled
    return scenario


async def test_a_description_becomes_a_specification_that_compiles(stub: ScenarioServiceAsyncStub) -> None:
    events = await all_of(stub.GenerateScenario(generation(description="alpha wanes, beta waits", seed=7)))
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    completed = events[-1].completed
    assert completed.authored_without_model
    assert (completed.attempts, completed.usage.calls, completed.model) == (1, 1, "offline/offline")
    assert json.loads(completed.spec)["seed"] == 7
    assert {event.WhichOneof("event") for event in events} == {"progress", "draft", "completed"}
    scenario = await compiled(stub, json.loads(completed.spec))
    assert scenario.spec == completed.spec
    assert scenario.dry_run.fail_rate >= 0.25


async def test_a_repair_is_told_with_each_number_and_the_runs_that_called_for_it(
    stub: ScenarioServiceAsyncStub,
) -> None:
    request = compilation(spec=as_bytes(siege(min_fail_rate=0.6)))
    events = await all_of(stub.CompileScenario(request))
    (repaired,) = [event.repaired for event in events if event.HasField("repaired")]
    scenario = events[-1].compiled
    assert list(scenario.edits) == list(repaired.edits)
    assert all(edit.before < edit.after for edit in repaired.edits)
    assert repaired.before.fail_rate < 0.6 <= scenario.dry_run.fail_rate
    assert repaired.before.wilson_low < repaired.before.fail_rate < repaired.before.wilson_high
    assert scenario.dry_run.persona == engine.PERSONA_RANDOM
    assert [loss.id for loss in scenario.dry_run.losses] == ["a_gone", "b_full"]


async def test_findings_travel_in_the_body(stub: ScenarioServiceAsyncStub) -> None:
    wrong = {**chance(0.5), "actions": [{"oops": index} for index in range(60)]}
    (*_, last) = await all_of(stub.CompileScenario(compilation(spec=as_bytes(wrong))))
    findings = last.rejected.findings
    assert len(findings.findings) == 50
    assert findings.total >= 50
    assert findings.findings[0].severity == common.SEVERITY_ERROR
    assert not last.rejected.HasField("dry_run")


async def test_a_declined_repair_leaves_the_runs_to_look_at(stub: ScenarioServiceAsyncStub) -> None:
    request = compilation(spec=as_bytes(siege(min_fail_rate=0.6)), auto_repair=False)
    (*_, last) = await all_of(stub.CompileScenario(request))
    assert [finding.code for finding in last.rejected.findings.findings] == ["TOO_EASY"]
    assert last.rejected.dry_run.runs > 0


async def test_options_of_the_dry_run_are_obeyed(stub: ScenarioServiceAsyncStub) -> None:
    options = pb.DryRunOptions(persona=engine.PERSONA_IDLE, seed=5, max_runs=100, horizon=2)
    request = compilation(spec=as_bytes(chance(0.5, min_fail_rate=0.5)), dry_run=options, auto_repair=False)
    (*_, last) = await all_of(stub.CompileScenario(request))
    report = last.compiled.dry_run if last.HasField("compiled") else last.rejected.dry_run
    assert (report.persona, report.seed, report.horizon) == (engine.PERSONA_IDLE, 5, 2)
    assert report.runs <= 100


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "source"),
        ({"spec": b""}, "spec"),
        ({"spec": b" " * (1024 * 1024 + 1)}, "spec"),
        ({"scenario_id": ""}, "scenario_id"),
        ({"scenario_id": "scn_0", "version_of": "scn_1"}, "version_of"),
        ({"spec": b"{}", "request_id": "me"}, "request_id"),
        ({"spec": b"{}", "request_id": ""}, "request_id"),
        ({"spec": b"{}", "after_sequence": -1}, "after_sequence"),
        ({"spec": b"{}", "dry_run": pb.DryRunOptions(persona=99)}, "dry_run.persona"),  # type: ignore[arg-type]  # no persona
        ({"spec": b"{}", "dry_run": pb.DryRunOptions(seed=-1)}, "dry_run.seed"),
        ({"spec": b"{}", "dry_run": pb.DryRunOptions(max_runs=-1)}, "dry_run.max_runs"),
        ({"spec": b"{}", "dry_run": pb.DryRunOptions(horizon=-1)}, "dry_run.horizon"),
    ],
)
async def test_wrong_requests_to_compile_name_the_field(
    stub: ScenarioServiceAsyncStub,
    fields: dict[str, Any],
    field: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await all_of(stub.CompileScenario(compilation(**fields)))
    assert [violation.field for violation in caught.value.violations] == [field]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"request_id": "me"}, "request_id"),
        ({"description": "x" * 102_401}, "description"),
        ({"seed": -1}, "seed"),
        ({"max_attempts": -1}, "max_attempts"),
        ({"max_attempts": 101}, "max_attempts"),
        ({"budget": common.Budget(max_tokens=-1)}, "budget.max_tokens"),
        ({"budget": common.Budget(max_cost=common.Money(pico_units=1))}, "budget.max_cost.currency_code"),
        ({"level": 99}, "level"),
    ],
)
async def test_wrong_requests_to_generate_name_the_field(
    stub: ScenarioServiceAsyncStub,
    fields: dict[str, Any],
    field: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await all_of(stub.GenerateScenario(generation(**fields)))
    assert [violation.field for violation in caught.value.violations] == [field]


async def test_what_this_server_lacks_is_refused_and_not_ignored(stub: ScenarioServiceAsyncStub) -> None:
    request = compilation(spec=b"{}", dry_run=pb.DryRunOptions(persona=engine.PERSONA_PLANNER))
    with pytest.raises(UnsupportedError) as caught:
        await all_of(stub.CompileScenario(request))
    assert caught.value.code == "FIELD_UNSUPPORTED"


async def test_a_request_that_is_sent_again_repeats_its_answer(stub: ScenarioServiceAsyncStub) -> None:
    request = compilation(spec=as_bytes(siege(min_fail_rate=0.6)))
    first = await all_of(stub.CompileScenario(request))
    assert await all_of(stub.CompileScenario(request)) == first
    request.after_sequence = first[-2].sequence
    assert await all_of(stub.CompileScenario(request)) == first[-1:]


async def test_the_answer_survives_the_process(tmp_path: Path) -> None:
    request = generation(description="alpha")
    answers = []
    for _ in range(2):
        async with (
            serve(config_for(tmp_path), services={"gateway", "scenarios"}) as app,
            open_channel(app.address) as channel,
        ):
            answers.append(await all_of(ScenarioServiceStub(channel).GenerateScenario(request)))
    assert answers[0] == answers[1]


async def test_an_id_names_one_request(stub: ScenarioServiceAsyncStub) -> None:
    first = compilation(spec=as_bytes(chance(0.5)))
    await all_of(stub.CompileScenario(first))
    others = [
        stub.CompileScenario(compilation(request_id=first.request_id, spec=as_bytes(chance(0.6)))),
        stub.GenerateScenario(generation(request_id=first.request_id)),
    ]
    for responses in others:
        with pytest.raises(AlreadyExistsError):
            await all_of(responses)


async def test_work_without_a_record_cannot_be_gone_on_with(stub: ScenarioServiceAsyncStub) -> None:
    with pytest.raises(NotFoundError):
        await all_of(stub.GenerateScenario(generation(after_sequence=2)))


async def test_a_caller_who_leaves_leaves_no_record(stub: ScenarioServiceAsyncStub) -> None:
    request = compilation(spec=as_bytes(siege(min_fail_rate=0.6)))
    async for _ in stub.CompileScenario(request):
        break
    events = await all_of(stub.CompileScenario(request))
    assert events[0].sequence == 1
    assert events[-1].HasField("compiled")


async def test_a_stored_scenario_is_read_listed_versioned_and_deleted(
    stub: ScenarioServiceAsyncStub,
) -> None:
    one, two = await compiled(stub, chance(0.5)), await compiled(stub, chance(0.6))
    version = compilation(spec=as_bytes(chance(0.7)), version_of=one.scenario_id)
    newest = (await all_of(stub.CompileScenario(version)))[-1].compiled

    read = await stub.GetScenario(pb.GetScenarioRequest(scenario_id=one.scenario_id))
    assert read.scenario == newest
    by_hash = pb.GetScenarioRequest(scenario_id=one.scenario_id, spec_hash=one.spec_hash)
    assert (await stub.GetScenario(by_hash)).scenario == one

    page = await stub.ListScenarios(pb.ListScenariosRequest(page_size=1))
    rest = await stub.ListScenarios(pb.ListScenariosRequest(page_token=page.next_page_token))
    assert [s.spec_hash for s in (*page.scenarios, *rest.scenarios)] == [newest.spec_hash, two.spec_hash]
    assert rest.next_page_token == ""
    listed = pb.ListScenarioVersionsRequest(scenario_id=one.scenario_id)
    versions = (await stub.ListScenarioVersions(listed)).versions
    assert [v.spec_hash for v in versions] == [newest.spec_hash, one.spec_hash]
    assert versions[0].create_time == newest.create_time

    deletion = pb.DeleteScenarioRequest(request_id=new_id(), scenario_id=one.scenario_id)
    for _ in range(2):
        await stub.DeleteScenario(deletion)
    with pytest.raises(NotFoundError):
        await stub.GetScenario(by_hash)
    with pytest.raises(NotFoundError):
        await stub.DeleteScenario(pb.DeleteScenarioRequest(request_id=new_id(), scenario_id=one.scenario_id))


async def test_a_retained_scenario_is_not_deleted(stub: ScenarioServiceAsyncStub) -> None:
    scenario_id = (await compiled(stub, chance(0.5))).scenario_id
    held = await stub.RetainScenario(
        pb.RetainScenarioRequest(request_id=new_id(), scenario_id=scenario_id, holder="lobby")
    )
    assert held.holders == ["lobby"]
    deletion = pb.DeleteScenarioRequest(request_id=new_id(), scenario_id=scenario_id)
    with pytest.raises(FailedPreconditionError, match="lobby"):
        await stub.DeleteScenario(deletion)
    rest = await stub.ReleaseScenario(
        pb.ReleaseScenarioRequest(request_id=new_id(), scenario_id=scenario_id, holder="lobby")
    )
    assert not rest.holders
    await stub.DeleteScenario(deletion)


@pytest.mark.parametrize("holder", ["", "a b", "a" * 65])
async def test_a_holder_needs_a_name(stub: ScenarioServiceAsyncStub, holder: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await stub.RetainScenario(
            pb.RetainScenarioRequest(request_id=new_id(), scenario_id="scn_1", holder=holder)
        )
    assert caught.value.violations[0].field == "holder"


async def test_a_stored_scenario_is_compiled_again_by_its_id(stub: ScenarioServiceAsyncStub) -> None:
    scenario = await compiled(stub, chance(0.5))
    again = (await all_of(stub.CompileScenario(compilation(scenario_id=scenario.scenario_id))))[-1].compiled
    assert (again.scenario_id, again.spec_hash) == (scenario.scenario_id, scenario.spec_hash)


async def test_many_specifications_are_judged_one_by_one(stub: ScenarioServiceAsyncStub) -> None:
    good, easy = as_bytes(chance(0.5)), as_bytes(chance(0.2, min_fail_rate=0.9))

    async def messages() -> AsyncIterator[pb.ValidateScenariosRequest]:
        options = pb.ValidationOptions(level=pb.VALIDATION_LEVEL_DRY_RUN)
        items = [
            pb.SpecItem(item_id="good", spec=good),
            pb.SpecItem(item_id="easy", spec=easy),
            pb.SpecItem(item_id="", spec=good),
        ]
        yield pb.ValidateScenariosRequest(options=options, items=items)
        yield pb.ValidateScenariosRequest(items=[pb.SpecItem(item_id="bytes", spec=b"\xff")])

    responses = await all_of(stub.ValidateScenarios(messages()))
    assert [response.sequence for response in responses] == list(range(1, len(responses) + 1))
    by_id = {verdict.item_id: verdict for response in responses for verdict in response.verdicts}
    passed, missed, nameless, bytes_ = (by_id[item_id] for item_id in ("good", "easy", "", "bytes"))
    assert (passed.accepted, passed.spec_hash) == (True, engine_api.compile(good).spec_hash)
    assert passed.dry_run.runs > 0
    assert (missed.accepted, missed.findings.findings[0].code) == (False, "TOO_EASY")
    assert (nameless.accepted, nameless.error.code, nameless.error.reason) == (False, 3, "INVALID_ARGUMENT")
    assert nameless.error.violations[0].field == "item_id"
    assert (bytes_.accepted, bytes_.spec_hash) == (False, "")
    assert bytes_.findings.findings[0].code == "INVALID_UTF8"


@pytest.mark.parametrize(
    ("level", "accepted", "runs"),
    [
        (pb.VALIDATION_LEVEL_SCHEMA, True, False),
        (pb.VALIDATION_LEVEL_STATIC, False, False),
        (pb.VALIDATION_LEVEL_UNSPECIFIED, False, False),
    ],
)
async def test_the_level_says_how_much_is_checked(
    stub: ScenarioServiceAsyncStub,
    level: pb.ValidationLevel.ValueType,
    accepted: bool,
    runs: bool,
) -> None:
    lost = chance(0.5)
    lost["loss_conditions"][0]["when"] = {"<": [{"var": "state.nowhere"}, 0]}

    async def messages() -> AsyncIterator[pb.ValidateScenariosRequest]:
        options = pb.ValidationOptions(level=level)
        yield pb.ValidateScenariosRequest(
            options=options,
            items=[pb.SpecItem(item_id="one", spec=as_bytes(lost))],
        )

    ((verdict,),) = [response.verdicts for response in await all_of(stub.ValidateScenarios(messages()))]
    assert (verdict.accepted, verdict.HasField("dry_run")) == (accepted, runs)


async def test_too_many_items_in_a_message_are_a_wrong_request(stub: ScenarioServiceAsyncStub) -> None:
    async def messages() -> AsyncIterator[pb.ValidateScenariosRequest]:
        yield pb.ValidateScenariosRequest(items=[pb.SpecItem(item_id="one")] * 1001)

    with pytest.raises(InvalidArgumentError, match="items"):
        await all_of(stub.ValidateScenarios(messages()))


async def test_sessions_elsewhere_read_scenarios_over_the_same_service(
    channel: grpc.aio.Channel,
    stub: ScenarioServiceAsyncStub,
) -> None:
    scenario = await compiled(stub, chance(0.5))
    source = RemoteScenarioSource(channel)
    found = await source.get_scenario(scenario.scenario_id)
    assert (found.document, found.spec_hash) == (scenario.spec, scenario.spec_hash)
    assert found == await source.get_scenario(scenario.scenario_id, scenario.spec_hash)
    assert found.create_time.tzinfo is not None
    with pytest.raises(NotFoundError):
        await source.get_scenario("scn_0")


async def test_the_gateway_may_run_in_another_process(tmp_path: Path) -> None:
    async with serve(config_for(tmp_path), services={"gateway"}) as gateway:
        config = config_for(tmp_path, gateway_address=gateway.address)
        async with serve(config, services={"scenarios"}) as app, open_channel(app.address) as channel:
            events = await all_of(
                ScenarioServiceStub(channel).GenerateScenario(generation(description="a b")),
            )
    assert events[-1].completed.authored_without_model


async def test_without_a_gateway_anywhere_the_service_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(PeripetyError, match="PERIPETY_GATEWAY_ADDRESS"):
        async with serve(config_for(tmp_path), services={"scenarios"}):
            pass


async def test_small_calls_are_answered_while_a_scenario_is_played(stub: ScenarioServiceAsyncStub) -> None:
    options = pb.DryRunOptions(max_runs=20_000)
    compiling = asyncio.ensure_future(
        all_of(stub.CompileScenario(compilation(spec=as_bytes(chance(0.25)), dry_run=options))),
    )
    answered = 0
    while not compiling.done() and answered < 20:
        await stub.ListScenarios(pb.ListScenariosRequest())
        answered += 1
    assert (await compiling)[-1].WhichOneof("event") in {"compiled", "rejected"}
    assert answered > 0

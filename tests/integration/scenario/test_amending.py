"""Changes of a stored scenario, over a real loopback connection."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.core.runs.call_runs import CallRunStore
from peripety.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from peripety.server.app import serve
from support.engine.specs import as_bytes, siege
from support.servers.apps import Api, config_for, new_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with (
        serve(config_for(tmp_path), services={"gateway", "scenarios"}) as app,
        Api.connected(app.address) as connected,
    ):
        yield connected


async def stored(api: Api) -> pb.CompiledScenario:
    return (await api.compile(as_bytes(siege())))[-1].compiled


def change(scenario: pb.CompiledScenario, instruction: str, **fields: Any) -> pb.AmendScenarioRequest:
    fields = {"request_id": new_id(), "scenario_id": scenario.scenario_id} | fields
    return pb.AmendScenarioRequest(instruction=instruction, **fields)


async def amended(api: Api, request: pb.AmendScenarioRequest) -> list[pb.AmendScenarioResponse]:
    return [response async for response in api.scenarios.AmendScenario(request)]


async def test_a_change_is_proposed_judged_and_stored(api: Api) -> None:
    scenario = await stored(api)
    events = await amended(api, change(scenario, "make it longer", expected_spec_hash=scenario.spec_hash))
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    kinds = [event.WhichOneof("event") for event in events]
    assert (kinds.count("proposed"), kinds[-1]) == (1, "amended")
    (edit,) = events[-1].amended.edits
    assert (edit.path, edit.summary) == ("/horizon", "horizon 15 → 22")
    assert (edit.before, edit.after) == (b"15", b"22")
    now = events[-1].amended.scenario
    assert (now.scenario_id, json.loads(now.spec)["horizon"]) == (scenario.scenario_id, 22)
    read = await api.scenarios.GetScenario(pb.GetScenarioRequest(scenario_id=scenario.scenario_id))
    assert read.scenario == now


async def test_a_request_that_is_sent_again_changes_nothing_twice(api: Api) -> None:
    scenario = await stored(api)
    request = change(scenario, "make it longer")
    events = await amended(api, request)
    assert await amended(api, request) == events
    request.after_sequence = 2
    assert await amended(api, request) == events[2:]
    versions = pb.ListScenarioVersionsRequest(scenario_id=scenario.scenario_id)
    assert len((await api.scenarios.ListScenarioVersions(versions)).versions) == 2
    with pytest.raises(AlreadyExistsError):
        await amended(api, change(scenario, "make it shorter", request_id=request.request_id))


async def test_a_request_that_broke_off_at_its_very_end_makes_its_change_once_when_it_is_sent_again(
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    applied = CallRunStore._apply

    async def failing(store: Any, connection: Any, row: Any, change: Any, lease: Any) -> None:
        if change.pending is not None:
            raise UnavailableError("the disk is full")
        await applied(store, connection, row, change, lease)

    scenario = await stored(api)
    request = change(scenario, "make it longer")
    versions = pb.ListScenarioVersionsRequest(scenario_id=scenario.scenario_id)
    with monkeypatch.context() as broken:
        broken.setattr(CallRunStore, "_apply", failing)
        with pytest.raises(UnavailableError):
            await amended(api, request)
    assert len((await api.scenarios.ListScenarioVersions(versions)).versions) == 1
    events = await amended(api, request)
    assert events[-1].amended.edits[0].summary == "horizon 15 → 22"
    assert len((await api.scenarios.ListScenarioVersions(versions)).versions) == 2


async def test_rules_do_not_answer_for_a_model_that_nobody_has(api: Api) -> None:
    scenario = await stored(api)
    with pytest.raises(InvalidArgumentError, match=r"model .*offline, openai") as caught:
        await amended(api, change(scenario, "make it longer", model="nobody/x"))
    assert [violation.field for violation in caught.value.violations] == ["model"]
    written = pb.GenerateScenarioRequest(request_id=new_id(), description="a siege", model="nobody/x")
    with pytest.raises(InvalidArgumentError, match=r"model .*offline, openai"):
        _ = [response async for response in api.scenarios.GenerateScenario(written)]
    for model in ("openai/x", "gpt-x"):
        with pytest.raises(FailedPreconditionError, match="OPENAI_API_KEY"):
            await amended(api, change(scenario, "make it longer", model=model))
        again = pb.GenerateScenarioRequest(request_id=new_id(), description="a siege", model=model)
        with pytest.raises(FailedPreconditionError, match="OPENAI_API_KEY"):
            _ = [response async for response in api.scenarios.GenerateScenario(again)]


async def test_a_refusal_says_why_and_what_to_do(api: Api) -> None:
    scenario = await stored(api)
    (*_, last) = await amended(api, change(scenario, "add a third gauge"))
    (finding,) = last.rejected.findings.findings
    assert finding.code == "AMENDMENT_NOT_UNDERSTOOD"
    assert "longer, more" in finding.remedy


async def test_a_change_that_was_thought_up_for_another_version_is_aborted(api: Api) -> None:
    scenario = await stored(api)
    await amended(api, change(scenario, "make it longer"))
    with pytest.raises(ConflictError):
        await amended(api, change(scenario, "make it longer", expected_spec_hash=scenario.spec_hash))


async def test_what_is_wrong_with_a_request_is_named(api: Api) -> None:
    scenario = await stored(api)
    for request, field in (
        (change(scenario, ""), "instruction"),
        (change(scenario, "longer", scenario_id=""), "scenario_id"),
        (change(scenario, "longer", max_attempts=-1), "max_attempts"),
        (change(scenario, "longer", request_id="no id"), "request_id"),
    ):
        with pytest.raises(InvalidArgumentError, match=field):
            await amended(api, request)
    with pytest.raises(NotFoundError):
        await amended(api, change(scenario, "longer", scenario_id="scn_0"))

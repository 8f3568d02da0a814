"""Runs of tests in a process of their own, with what they need in other ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from peripety.api.policy.v1 import policy_pb2 as policy
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.api.scenario.v1 import scenario_pb2 as scenario
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.api.testgen.v1 import testgen_pb2_grpc
from peripety.errors import NotFoundError, PeripetyError
from peripety.rpc.channel import open_channel
from peripety.server.app import serve
from support.engine.specs import playable
from support.servers.apps import Api, config_for, new_id
from support.testgen.fake_run import TestRuns, kinds

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow(reason="starts a process for each service")


NOBODY = {"model": "nobody/nothing"}
"""A model that cannot be called: the tests that need no model are still generated."""


async def stored_policy(address: str) -> str:
    request = policy.CompilePolicyRequest(
        request_id=new_id(),
        constitution="Never remove anything.",
        tools=[policy.ToolAnnotation(server_name="alpha", tool_name="remove", destructive=True)],
    )
    async with open_channel(address) as channel:
        events = [event async for event in PolicyServiceStub(channel).CompilePolicy(request)]
    return events[-1].compiled.policy.policy_id


async def stored_scenario(address: str) -> str:
    async with Api.connected(address) as api:
        return (await api.compile(playable()))[-1].compiled.scenario_id


async def check_stored_subjects(at: str, scenario_id: str, policy_id: str) -> None:
    """Check that tests follow from the schemas of stored subjects, which a run retains."""
    async with TestRuns.connected(at) as client:
        for subject in (
            pb.Subject(scenario_id=scenario_id),
            pb.Subject(policy=policy.PolicySource(policy_id=policy_id)),
        ):
            events = await client.generate(subject=subject, **NOBODY)
            tests = [event.test for event in events if event.HasField("test")]
            assert tests
            assert all(test.combinatorial for test in tests)
            kind = str(subject.WhichOneof("subject")).removesuffix("_id")
            assert {test.WhichOneof("body") for test in tests} == {kind}
            run = await client.get(events[0].run_id)
            assert {test.verdict.status for test in run.tests} == {pb.TEST_STATUS_PASSED}
        for missing in (
            pb.Subject(scenario_id="scn_missing"),
            pb.Subject(policy=policy.PolicySource(policy_id="pol_missing")),
        ):
            with pytest.raises(NotFoundError):
                await client.generate(subject=missing)


async def test_all_that_a_run_needs_may_be_in_the_same_process(tmp_path: Path) -> None:
    async with serve(config_for(tmp_path)) as app:
        assert "peripety.api.testgen.v1.TestGenService" in app.services
        ids = await stored_scenario(app.address), await stored_policy(app.address)
        await check_stored_subjects(app.address, *ids)


async def test_without_a_model_a_run_on_each_kind_of_subject_comes_to_its_end(tmp_path: Path) -> None:
    async with (
        serve(config_for(tmp_path, testgen_commands=True)) as app,
        open_channel(app.address) as channel,
    ):
        scenario_id, policy_id = await stored_scenario(app.address), await stored_policy(app.address)
        for subject in (
            pb.Subject(scenario_id=scenario_id),
            pb.Subject(policy=policy.PolicySource(policy_id=policy_id)),
            pb.Subject(command=pb.CommandSubject(argv=["cat"])),
        ):
            request = pb.GenerateTestsRequest(
                request_id=new_id(),
                task_description="Whatever it does.",
                subject=subject,
            )
            events = [
                response.event
                async for response in testgen_pb2_grpc.TestGenServiceStub(channel).GenerateTests(request)
            ]
            assert kinds(events)[-1] == "complete", events[-1]
            assert any(event.HasField("test") for event in events)
            assert events[-1].complete.stats.HasField("quality")


async def test_stored_documents_are_fetched_from_the_processes_that_have_them(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    async with serve(config_for(tmp_path), services={"gateway", "scenarios", "policies"}) as others:
        ids = await stored_scenario(others.address), await stored_policy(others.address)
        peers = dict.fromkeys(("gateway_address", "scenarios_address", "policies_address"), others.address)
        async with serve(config_for(tmp_path / "own", **peers), services={"testgen"}) as app:
            assert app.services == ("peripety.api.testgen.v1.TestGenService",)
            await check_stored_subjects(app.address, *ids)


async def test_a_run_goes_on_with_the_document_that_it_began_with(tmp_path: Path) -> None:
    async with serve(config_for(tmp_path)) as app, TestRuns.connected(app.address) as client:
        scenario_id = await stored_scenario(app.address)
        events = await client.generate(subject=pb.Subject(scenario_id=scenario_id), **NOBODY)
        async with open_channel(app.address) as channel:
            request = scenario.DeleteScenarioRequest(request_id=new_id(), scenario_id=scenario_id)
            await ScenarioServiceStub(channel).DeleteScenario(request)
        run_id = events[0].run_id
        told = await client.run(run_id=run_id, repetitions=1)
        (whole,) = await client.export(run_id, pb.TEST_FORMAT_JSON)
    assert told[-1].HasField("measured")
    assert json.loads(whole)["tested"]["document"]["id"] == json.loads(playable())["id"]


async def test_without_a_gateway_anywhere_the_service_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(PeripetyError, match="PERIPETY_GATEWAY_ADDRESS"):
        async with serve(config_for(tmp_path), services={"testgen"}):
            pass

"""The main job, end to end: a server process, a client, real gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from peripety import engine
from peripety.errors import AlreadyExistsError, ConflictError, NotFoundError
from support.engine.specs import playable
from support.servers.apps import Api, new_id, turn_request
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from pathlib import Path


SERVICES = {
    "peripety.api.gateway.v1.GatewayService",
    "peripety.api.scenario.v1.ScenarioService",
    "peripety.api.session.v1.SessionService",
    "peripety.api.policy.v1.PolicyService",
    "peripety.api.testgen.v1.TestGenService",
}


async def test_a_description_becomes_a_scenario_that_is_played(api: Api) -> None:
    written = (await api.generate("Any words will do, these for example."))[-1]
    assert written.HasField("completed")
    assert not engine.validate(written.completed.spec)
    session = await api.session_of(written.completed.spec)
    for number in range(1, 4):
        events = [event async for event in api.turn(turn_request(session))]
        assert (events[-1].turn, events[-1].WhichOneof("event")) == (number, "committed")
        session = await api.session(session.session_id)
        assert (session.turn, session.state_hash) == (number, events[-1].committed.state_hash)


async def test_mechanics_come_before_prose_and_the_commit_comes_last(api: Api) -> None:
    session = await api.session_of(playable())
    events = [event async for event in api.turn(turn_request(session))]
    kinds = [event.WhichOneof("event") for event in events]
    prose = [index for index, kind in enumerate(kinds) if kind == "narrative_chunk"]
    assert kinds[:3] == ["accepted", "action_resolved", "world_resolved"]
    assert prose
    assert kinds[-1] == "committed"
    assert prose[-1] < len(kinds) - 1
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    told = "".join(events[index].narrative_chunk.text for index in prose)
    assert told == events[-1].committed.narrative


async def test_the_same_request_gives_the_recorded_turn_again(api: Api) -> None:
    session = await api.session_of(playable())
    request = turn_request(session)
    first = [event async for event in api.turn(request)]
    again = [event async for event in api.turn(request)]
    assert again == first
    assert (await api.session(session.session_id)).turn == 1


async def test_the_same_id_for_another_request_is_refused(api: Api) -> None:
    session = await api.session_of(playable())
    request = turn_request(session)
    assert [event async for event in api.turn(request)]
    request.input = "something else"
    with pytest.raises(AlreadyExistsError):
        assert [event async for event in api.turn(request)]


async def test_two_sessions_with_one_seed_take_the_same_course(api: Api) -> None:
    ends = []
    for _ in range(2):
        session = await api.session_of(playable())
        events = [event async for event in api.turn(turn_request(session))]
        ends.append((events[-1].committed.state_hash, events[-1].committed.chain_hash))
    assert ends[0] == ends[1]


async def test_a_stale_turn_is_refused_and_changes_nothing(api: Api) -> None:
    session = await api.session_of(playable())
    request = turn_request(session)
    assert [event async for event in api.turn(request)]
    request.request_id = new_id()
    with pytest.raises(ConflictError):
        assert [event async for event in api.turn(request)]
    assert (await api.session(session.session_id)).turn == 1


async def test_what_is_not_there_is_not_found(api: Api) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        await api.session("nowhere")


async def test_reflection_and_health_name_the_services(server: ServerProcess) -> None:
    with grpc.insecure_channel(server.address) as channel:
        assert set(ProtoReflectionDescriptorDatabase(channel).get_services()) > SERVICES
        health: Any = health_pb2_grpc.HealthStub(channel)
        for service in ("", *SERVICES):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=30)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.slow(reason="starts a process for each service")
async def test_each_service_can_run_alone(tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("gateway", "scenarios", "sessions")]
    peers: dict[str, str] = {}
    with ServerProcess(homes[0], "gateway") as gateway:
        peers["PERIPETY_GATEWAY_ADDRESS"] = gateway.address
        with ServerProcess(homes[1], "scenarios", peers) as scenarios:
            peers["PERIPETY_SCENARIOS_ADDRESS"] = scenarios.address
            with ServerProcess(homes[2], "sessions", peers) as sessions:
                await play_one_turn(scenarios.address, sessions.address)


async def play_one_turn(scenarios: str, sessions: str) -> None:
    async with Api.connected(scenarios, sessions) as api:
        written = (await api.generate("Three processes."))[-1]
        session = await api.session_of(written.completed.spec)
        events = [event async for event in api.turn(turn_request(session))]
    assert events[-1].HasField("committed")


@pytest.mark.slow(reason="starts all services as processes")
def test_a_server_that_is_told_to_stop_does_so_cleanly(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        assert server.stop() == 0


@pytest.mark.slow(reason="starts services as processes")
def test_a_service_that_lacks_its_peer_says_which_variable_to_set(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="PERIPETY_GATEWAY_ADDRESS"),
        ServerProcess(tmp_path, "scenarios"),
    ):
        pass

"""Whatever is sent: a status or findings that name the place, no traceback, nothing changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from peripety.api.common.v1 import engine_pb2
from peripety.api.scenario.v1 import scenario_pb2
from peripety.api.session.v1 import session_pb2
from peripety.errors import InvalidArgumentError, NotFoundError, PeripetyError, ResourceExhaustedError
from support.engine.specs import action, playable, spec
from support.servers.apps import Api, new_id, turn_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.servers.processes import ServerProcess


MIB = 1024 * 1024
COMPILE = "/peripety.api.scenario.v1.ScenarioService/CompileScenario"


def with_effect(**effect: Any) -> bytes:
    return json.dumps(spec(actions=[action("act", [effect])])).encode()


def with_condition(condition: Any) -> bytes:
    return json.dumps(spec(actions=[action("act", preconditions=condition)])).encode()


WRONG_DOCUMENTS = {
    "not JSON": (b"{", ""),
    "empty": (b"", ""),
    "not UTF-8": (b'{"a":"\xff"}', ""),
    "duplicate key": (playable()[:-1] + b',"id":"again"}', ""),
    "unknown key": (json.dumps(spec(extra=1)).encode(), "/extra"),
    "wrong type": (json.dumps(spec(seed="seven")).encode(), "/seed"),
    "NaN": (playable().replace(b'"seed": 7', b'"seed": NaN'), ""),
    "infinity": (playable().replace(b'"seed": 7', b'"seed": 1e999'), ""),
    "large integer": (playable().replace(b'"seed": 7', b'"seed": 9007199254740993'), ""),
    "depth 10,000": (b"[" * 10_000 + b"]" * 10_000, ""),
    "more than a document may be": (b"[" + b" " * MIB + b"]", ""),
    "path outside the state": (with_effect(op="inc", path="turn", value=1), "/actions/0/effects/0"),
    "path to nothing": (with_effect(op="inc", path="state.zzz", value=1), "/actions/0/effects/0"),
    "unknown operator": (with_condition({"shell": ["a"]}), "/actions/0/preconditions"),
    "code in a value": (
        with_effect(op="set", path="state.note", value={"+": [1, 2]}),
        "/actions/0/effects/0/value",
    ),
}


@pytest.fixture(autouse=True)
async def nothing_changes(api: Api, server: ServerProcess) -> AsyncIterator[None]:
    """No request of this file stores a scenario or leaves a traceback in the log."""
    await api.session_of(playable())
    before = await stored(api)
    yield
    assert await stored(api) == before
    assert "Traceback" not in server.log


async def stored(api: Api) -> set[str]:
    listing = await api.scenarios.ListScenarios(scenario_pb2.ListScenariosRequest())
    return {scenario.spec_hash for scenario in listing.scenarios}


async def refusal(api: Api, document: bytes) -> list[tuple[str, str]]:
    """Return path and reason of each rejection: the findings, or the violations of a status."""
    try:
        last = (await api.compile(document))[-1]
    except InvalidArgumentError as error:
        return [(violation.field, violation.reason) for violation in error.violations]
    assert last.HasField("rejected")
    return [
        (finding.path, f"{finding.code} {finding.message}") for finding in last.rejected.findings.findings
    ]


@pytest.mark.slow_after(6, reason="starts a process for each case")
@pytest.mark.parametrize("name", WRONG_DOCUMENTS)
async def test_a_wrong_specification_is_refused_and_the_place_is_named(api: Api, name: str) -> None:
    document, path = WRONG_DOCUMENTS[name]
    reasons = await refusal(api, document)
    assert reasons
    assert all(reason for _, reason in reasons)
    assert any(place.startswith(path) for place, _ in reasons)


async def status_of(address: str, message: bytes) -> grpc.StatusCode:
    """The status of a call with these bytes, sent by a client that knows no limit."""
    async with grpc.aio.insecure_channel(address, options=[("grpc.max_send_message_length", -1)]) as channel:
        call: Any = channel.unary_unary(COMPILE)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call(message)
    return raised.value.code()


@pytest.mark.parametrize("size", [5 * MIB, 50 * MIB])
async def test_a_message_over_the_limit_is_refused(server: ServerProcess, size: int) -> None:
    assert await status_of(server.address, b"x" * size) is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_bytes_that_are_no_message_are_an_invalid_argument(server: ServerProcess) -> None:
    assert await status_of(server.address, b"\xff\xff\xff") is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_missing_field_is_named(api: Api) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        await api.sessions.CreateSession(session_pb2.CreateSessionRequest(request_id=new_id()))
    assert [violation.field for violation in raised.value.violations] == ["scenario_id"]


async def test_a_request_id_that_is_none_is_named(api: Api) -> None:
    request = session_pb2.CreateSessionRequest(request_id="one", scenario_id="any")
    with pytest.raises(InvalidArgumentError) as raised:
        await api.sessions.CreateSession(request)
    assert "request_id" in [violation.field for violation in raised.value.violations]


async def test_a_scenario_that_is_not_there_is_not_found(api: Api) -> None:
    request = session_pb2.CreateSessionRequest(request_id=new_id(), scenario_id="nowhere")
    with pytest.raises(NotFoundError, match="nowhere"):
        await api.sessions.CreateSession(request)


async def test_an_action_that_is_not_there_changes_nothing(api: Api) -> None:
    session = await api.session_of(playable())
    request = turn_request(session)
    request.actions[0].action_id = "unheard_of"
    with pytest.raises(PeripetyError, match="unheard_of"):
        assert [event async for event in api.turn(request)]
    assert (await api.session(session.session_id)).state_hash == session.state_hash


async def test_a_parameter_that_the_action_lacks_changes_nothing(api: Api) -> None:
    session = await api.session_of(playable())
    request = turn_request(session)
    request.actions[0].params["extra"].CopyFrom(engine_pb2.ParamValue(number=1))
    events = [event async for event in api.turn(request)]
    resolved = events[1].action_resolved
    assert not resolved.accepted
    assert not resolved.changes
    assert "extra" in resolved.reasons[0].message


async def test_a_description_over_the_limit_is_refused_by_its_field(api: Api) -> None:
    with pytest.raises((InvalidArgumentError, ResourceExhaustedError)) as raised:
        await api.generate("x" * (100 * 1024 + 1))
    assert "description" in [violation.field for violation in raised.value.violations]

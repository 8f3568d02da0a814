"""Bundles over a real channel, from a real server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub
from peripety.errors import AlreadyExistsError, InvalidArgumentError
from peripety.gateway.setup import register_service as bind_gateway
from peripety.rpc.channel import open_channel
from peripety.scenario.types import ScenarioSource
from peripety.server.app import serve_registered
from peripety.session.setup import register_service as bind_sessions
from support.engine.specs import action, document
from support.servers.apps import config_for
from support.session.bundles import verdict_on
from support.session.sessions import OneScenario, new_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub
    from peripety.rpc.container import ServiceContainer


# Turns that take some room, so that a bundle of a few has more than one piece.
SCENARIO = document(
    state={"a": 1, "text": "x"},
    actions=[action("act", [{"op": "set", "path": "state.text", "value": "y" * 30_000}])],
)


async def bind_scenario(wiring: ServiceContainer) -> None:
    wiring.register(ScenarioSource, OneScenario(SCENARIO))


@asynccontextmanager
async def serving(tmp_path: Path) -> AsyncIterator[SessionServiceAsyncStub]:
    binds = [bind_gateway, bind_scenario, bind_sessions]
    async with (
        serve_registered(config_for(tmp_path), binds) as app,
        open_channel(app.address) as channel,
    ):
        yield SessionServiceStub(channel)


async def played(stub: SessionServiceAsyncStub, turns: int) -> pb.Session:
    new = pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario")
    session = (await stub.CreateSession(new)).session
    for turn in range(1, turns + 1):
        calls = [engine.ActionCall(action_id="act")]
        request = pb.TakeTurnRequest(
            session_id=session.session_id,
            request_id=new_id(),
            expected_turn=turn,
            actions=calls,
        )
        assert [response.event async for response in stub.TakeTurn(request)][-1].HasField("committed")
    return (await stub.GetSession(pb.GetSessionRequest(session_id=session.session_id))).session


async def exported(stub: SessionServiceAsyncStub, session_id: str) -> list[pb.ExportSessionResponse]:
    return [part async for part in stub.ExportSession(pb.ExportSessionRequest(session_id=session_id))]


async def requests(
    bundle: bytes,
    request_id: str,
    size: int = 1 << 20,
) -> AsyncIterator[pb.ImportSessionRequest]:
    yield pb.ImportSessionRequest(request_id=request_id, chunk=bundle[:size])
    for start in range(size, len(bundle), size):
        yield pb.ImportSessionRequest(chunk=bundle[start : start + size])


async def test_a_session_leaves_in_pieces_and_comes_back_as_another(tmp_path: Path) -> None:
    async with serving(tmp_path) as stub:
        before = await played(stub, 6)
        parts = await exported(stub, before.session_id)
        assert [part.sequence for part in parts] == [*range(1, len(parts) + 1)]
        assert len(parts) > 1
        assert all(0 < len(part.chunk) <= 1 << 20 for part in parts)
        bundle = b"".join(part.chunk for part in parts)
        assert verdict_on(bundle).is_valid
        request_id = new_id()
        after = (await stub.ImportSession(requests(bundle, request_id))).session
        assert after.session_id != before.session_id
        assert (after.turn, after.chain_hash, after.state) == (6, before.chain_hash, before.state)
        assert (await stub.ImportSession(requests(bundle, request_id, 1000))).session == after
        with pytest.raises(AlreadyExistsError):
            await stub.ImportSession(requests(bundle + b"\n", request_id))
        turns = await stub.ListTurns(pb.ListTurnsRequest(session_id=after.session_id))
        assert [turn.turn for turn in turns.turns] == [1, 2, 3, 4, 5, 6]
        assert turns.turns[0].first_sequence == 1


async def test_a_replay_streams_each_turn_and_says_what_came_of_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as stub:
        session = await played(stub, 3)
        request = pb.ReplaySessionRequest(session_id=session.session_id, first_turn=2)
        *turns, end = [response async for response in stub.ReplaySession(request)]
    assert [(turn.sequence, turn.turn_replayed.turn) for turn in turns] == [(1, 2), (2, 3)]
    last = turns[-1].turn_replayed
    assert last.matches
    assert last.recorded_chain_hash == last.computed_chain_hash == session.chain_hash
    assert last.recorded_state_hash == last.computed_state_hash == session.state_hash
    assert (end.sequence, end.completed.turns, end.completed.mismatches) == (3, 2, 0)
    assert end.completed.core in {"native", "python"}


async def test_a_bundle_that_is_not_right_is_refused_with_its_line(tmp_path: Path) -> None:
    async with serving(tmp_path) as stub:
        session = await played(stub, 1)
        (part,) = await exported(stub, session.session_id)
        with pytest.raises(InvalidArgumentError) as caught:
            await stub.ImportSession(requests(part.chunk.replace(b'"seed":7', b'"seed":8'), new_id()))
        assert caught.value.code == "BUNDLE_INVALID"
        (violation,) = caught.value.violations
        assert violation.field == "line 2"
        assert violation.reason.startswith("OTHER_DOCUMENT: ")
        for wrong in ("", "mine"):
            with pytest.raises(InvalidArgumentError, match=r"^request_id"):
                await stub.ImportSession(requests(part.chunk, wrong))
        with pytest.raises(InvalidArgumentError, match=r"^chunk has"):
            await stub.ImportSession(requests(b"a" * (2 << 20), new_id(), size=2 << 20))
        listed = await stub.ListSessions(pb.ListSessionsRequest())
        assert [one.session_id for one in listed.sessions] == [session.session_id]

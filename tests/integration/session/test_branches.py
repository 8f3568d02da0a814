"""Forks, rewinds and comparisons over a real channel, from real servers."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub
from peripety.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from peripety.gateway.types.response import ModelGateway
from peripety.rpc.channel import open_channel
from peripety.scenario.types import ScenarioSource
from peripety.server.app import serve_registered
from peripety.session.setup import register_service as bind_sessions
from support.gateway.fake_gateway import FakeGateway
from support.servers.apps import config_for
from support.session.sessions import FATEFUL, OneScenario, new_id, outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from peripety.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub
    from peripety.core.config import Config
    from peripety.rpc.container import ServiceContainer
    from support.servers.databases import PostgresqlProcess


async def bind_others(wiring: ServiceContainer) -> None:
    wiring.register(ScenarioSource, OneScenario(FATEFUL))
    wiring.register(ModelGateway, FakeGateway(outcome()))


@asynccontextmanager
async def serving(config: Config) -> AsyncIterator[SessionServiceAsyncStub]:
    async with (
        serve_registered(config, [bind_others, bind_sessions]) as app,
        open_channel(app.address) as channel,
    ):
        yield SessionServiceStub(channel)


async def created(stub: SessionServiceAsyncStub) -> pb.Session:
    request = pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario")
    return (await stub.CreateSession(request)).session


async def now(stub: SessionServiceAsyncStub, session_id: str) -> pb.Session:
    return (await stub.GetSession(pb.GetSessionRequest(session_id=session_id))).session


def turn_request(session: pb.Session, *actions: str) -> pb.TakeTurnRequest:
    return pb.TakeTurnRequest(
        session_id=session.session_id,
        request_id=new_id(),
        expected_turn=session.turn + 1,
        actions=[engine.ActionCall(action_id=name) for name in actions],
    )


async def take(stub: SessionServiceAsyncStub, request: pb.TakeTurnRequest) -> pb.TurnEvent:
    """Play a turn; its last event."""
    return [response.event async for response in stub.TakeTurn(request)][-1]


async def play(stub: SessionServiceAsyncStub, session_id: str, *actions: str, turns: int = 1) -> pb.Session:
    for _ in range(turns):
        await take(stub, turn_request(await now(stub, session_id), *actions))
    return await now(stub, session_id)


def fork_of(session: pb.Session, **more: Any) -> pb.ForkSessionRequest:
    return pb.ForkSessionRequest(request_id=new_id(), session_id=session.session_id, **more)


def rewind_of(session: pb.Session, turn: int, **more: Any) -> pb.RewindSessionRequest:
    whole = {"request_id": new_id(), "session_id": session.session_id, "expected_turn": session.turn, **more}
    return pb.RewindSessionRequest(turn=turn, **whole)


async def test_a_fork_goes_its_own_way_and_says_where_it_comes_from(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path)) as stub:
        session = await play(stub, (await created(stub)).session_id, "act", turns=3)
        fork = (await stub.ForkSession(fork_of(session, turn=2, seed=9, pov_entity_id="p"))).session
        assert (fork.turn, fork.seed, fork.pov_entity_id) == (2, 9, "p")
        assert (fork.parent_session_id, fork.parent_turn) == (session.session_id, 2)
        assert json.loads(fork.state)["private"] == {"p": {"x": 1}}
        assert [action.action_id for action in fork.legal_actions] == ["act", "other"]
        await play(stub, fork.session_id, "other")
        assert await now(stub, session.session_id) == session
        summaries = (await stub.ListSessions(pb.ListSessionsRequest())).sessions
        assert [one.parent_session_id for one in summaries] == [session.session_id, ""]


async def test_turn_zero_is_the_start_and_no_turn_is_the_present(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path)) as stub:
        start = await created(stub)
        session = await play(stub, start.session_id, "act", turns=2)
        first = (await stub.ForkSession(fork_of(session, turn=0))).session
        last = (await stub.ForkSession(fork_of(session))).session
    assert (first.turn, first.chain_hash, first.state) == (0, start.chain_hash, start.state)
    assert (last.turn, last.chain_hash, last.state) == (2, session.chain_hash, session.state)
    assert (last.parent_turn, last.usage.calls) == (2, 0)


async def test_a_rewound_session_goes_on_from_there(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path)) as stub:
        then = await play(stub, (await created(stub)).session_id, "act")
        lost = turn_request(then, "act")
        await take(stub, lost)
        session = await now(stub, then.session_id)
        request = rewind_of(session, 1)
        back = (await stub.RewindSession(request)).session
        assert (back.turn, back.state, back.chain_hash) == (1, then.state, then.chain_hash)
        assert back.last_sequence == session.last_sequence + 1
        assert (await stub.RewindSession(request)).session == back
        with pytest.raises(FailedPreconditionError) as caught:
            await take(stub, lost)
        assert caught.value.code == "TURN_REWOUND"
        event = await take(stub, turn_request(back, "other"))
        assert (event.turn, event.WhichOneof("event")) == (2, "committed")
        assert event.sequence > back.last_sequence


async def test_two_branches_are_compared_page_by_page(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path)) as stub:
        session = await play(stub, (await created(stub)).session_id, "act", turns=3)
        fork = (await stub.ForkSession(fork_of(session, turn=1))).session
        await play(stub, fork.session_id, "other")
        request = pb.CompareBranchesRequest(
            session_id=session.session_id,
            other_session_id=fork.session_id,
            page_size=1,
        )
        first = await stub.CompareBranches(request)
        request.page_token = first.next_page_token
        second = await stub.CompareBranches(request)
    assert (first.common_turn, second.common_turn) == (1, 1)
    told = {one.path: (json.loads(one.here), json.loads(one.there)) for one in first.differences}
    assert told["state.a"] == (4, 2)
    assert not second.differences
    ((one,), (other,)) = first.turns, second.turns
    assert (one.turn, one.here.actions[0].action_id, one.there.actions[0].action_id) == (2, "act", "other")
    assert (other.turn, other.HasField("here"), other.HasField("there")) == (3, True, False)
    assert not second.next_page_token


async def test_forks_outlive_the_session_that_they_come_from(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path)) as stub:
        session = await play(stub, (await created(stub)).session_id, "act", turns=2)
        fork = (await stub.ForkSession(fork_of(session))).session
        gone = pb.DeleteSessionRequest(request_id=new_id(), session_id=session.session_id)
        await stub.DeleteSession(gone)
        turns = (await stub.ListTurns(pb.ListTurnsRequest(session_id=fork.session_id))).turns
        assert [turn.turn for turn in turns] == [1, 2]
        assert (await play(stub, fork.session_id, "act")).turn == 3
        with pytest.raises(NotFoundError):
            await stub.ForkSession(fork_of(session))


async def test_errors_name_the_field_and_have_a_reason(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path)) as stub:
        session = await play(stub, (await created(stub)).session_id, "act")
        request = fork_of(session)
        await stub.ForkSession(request)
        request.seed = 5
        with pytest.raises(AlreadyExistsError) as reused:
            await stub.ForkSession(request)
        with pytest.raises(NotFoundError) as ahead:
            await stub.ForkSession(fork_of(session, turn=9))
        with pytest.raises(InvalidArgumentError) as negative:
            await stub.ForkSession(fork_of(session, turn=-1))
        with pytest.raises(ConflictError) as stale:
            await stub.RewindSession(rewind_of(session, 0, expected_turn=5))
        with pytest.raises(InvalidArgumentError) as nothing:
            await stub.RewindSession(rewind_of(session, 1))
    assert reused.value.code == "REQUEST_ID_REUSED"
    assert ahead.value.code == "UNKNOWN_TURN"
    assert [violation.field for violation in negative.value.violations] == ["turn"]
    assert stale.value.code == "STALE_TURN"
    assert [violation.field for violation in nothing.value.violations] == ["turn"]


@pytest.fixture
def shared(postgresql: PostgresqlProcess, tmp_path: Path) -> Iterator[Config]:
    """A configuration for servers that share a database."""
    with postgresql.database() as url:
        yield config_for(tmp_path, database_url=url)


async def test_replicas_see_each_other_s_forks_and_rewinds(shared: Config) -> None:
    async with serving(shared) as one, serving(shared) as other:
        session = await play(one, (await created(one)).session_id, "act", turns=3)
        fork = (await other.ForkSession(fork_of(session, turn=2))).session
        back = (await other.RewindSession(rewind_of(session, 1))).session
        with pytest.raises(ConflictError):
            await take(one, turn_request(session, "act"))
        on = await play(one, session.session_id, "other")
        assert (on.turn, on.last_sequence > back.last_sequence) == (2, True)
        assert (await now(one, fork.session_id)).chain_hash == fork.chain_hash
        assert (await play(one, fork.session_id, "act")).chain_hash == session.chain_hash

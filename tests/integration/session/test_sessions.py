"""Sessions over a real channel, from a real server."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
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
    PeripetyError,
    ResourceExhaustedError,
)
from peripety.gateway.setup import register_service as bind_gateway
from peripety.gateway.types.response import ModelGateway
from peripety.rpc.channel import open_channel
from peripety.scenario.types import ScenarioSource
from peripety.server.app import serve_registered
from peripety.session.setup import register_service as bind_sessions
from support.engine.specs import action, at_most, document, event, never
from support.gateway.fake_gateway import SILENCE, FakeGateway
from support.servers.apps import config_for, plain_channel
from support.session.sessions import OneScenario, new_id, outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub
    from peripety.core.config import Config
    from peripety.rpc.container import ServiceContainer
    from peripety.server.app import RegisterService


RAISE = [{"op": "inc", "path": "state.a", "value": 1}]
SECRET = [{"op": "inc", "path": "state.private.p.x", "value": 1}]
SCENARIO = document(
    entities=[{"id": "p", "playable": True}, {"id": "q", "playable": True}, {"id": "r"}],
    state={"a": 1, "b": 5, "private": {"p": {"x": 1}}},
    actions=[
        action("act", RAISE),
        action("end", [{"op": "set", "path": "state.b", "value": 0}]),
    ],
    random_events=[event(f"e{n}", SECRET) for n in range(4)],
    loss_conditions=[at_most("first", "state.b", 0), never("second")],
)


def bind_one_scenario(document: bytes) -> RegisterService:
    async def bind(wiring: ServiceContainer) -> None:
        wiring.register(ScenarioSource, OneScenario(document))

    return bind


def bind_model(gateway: ModelGateway) -> RegisterService:
    async def bind(wiring: ServiceContainer) -> None:
        wiring.register(ModelGateway, gateway)

    return bind


class Game:
    """A client of one session."""

    def __init__(self, stub: SessionServiceAsyncStub, session: pb.Session) -> None:
        self.stub = stub
        self.session_id = session.session_id

    def request(self, turn: int, *actions: str, **more: Any) -> pb.TakeTurnRequest:
        calls = [engine.ActionCall(action_id=name) for name in actions]
        given = {"session_id": self.session_id, "request_id": new_id(), **more}
        return pb.TakeTurnRequest(expected_turn=turn, actions=calls, **given)

    async def take(self, request: pb.TakeTurnRequest, **options: Any) -> list[pb.TurnEvent]:
        return [response.event async for response in self.stub.TakeTurn(request, **options)]

    async def play(self, turn: int, *actions: str, **more: Any) -> list[pb.TurnEvent]:
        return await self.take(self.request(turn, *actions, **more))

    async def now(self, pov: str = "") -> pb.Session:
        request = pb.GetSessionRequest(session_id=self.session_id, pov_entity_id=pov)
        return (await self.stub.GetSession(request)).session


@asynccontextmanager
async def serving(
    config: Config,
    gateway: ModelGateway | None = None,
) -> AsyncIterator[SessionServiceAsyncStub]:
    """A server of sessions: with the gateway of the configuration, or a given one."""
    model = bind_gateway if gateway is None else bind_model(gateway)
    binds = [model, bind_one_scenario(SCENARIO), bind_sessions]
    async with serve_registered(config, binds) as app, open_channel(app.address) as channel:
        yield SessionServiceStub(channel)


@asynccontextmanager
async def a_game(tmp_path: Path, gateway: ModelGateway | None = None) -> AsyncIterator[Game]:
    async with serving(config_for(tmp_path), gateway) as stub:
        request = pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario")
        yield Game(stub, (await stub.CreateSession(request)).session)


def kinds(events: list[pb.TurnEvent]) -> list[str | None]:
    return [event.WhichOneof("event") for event in events]


async def test_a_turn_is_decided_told_and_stored_without_a_model(tmp_path: Path) -> None:
    async with a_game(tmp_path) as game:
        events = await game.play(1, "act")
        session = await game.now()
    assert kinds(events)[:3] == ["accepted", "action_resolved", "world_resolved"]
    assert set(kinds(events)[3:-1]) == {"narrative_chunk"}
    assert kinds(events)[-1] == "committed"
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    committed = events[-1].committed
    assert "".join(event.narrative_chunk.text for event in events) == committed.narrative
    assert "offline" in committed.narrative
    assert (committed.resolution, committed.model) == (pb.RESOLUTION_NARRATED, "offline/offline")
    assert (session.turn, session.chain_hash) == (1, committed.chain_hash)
    assert json.loads(session.state)["a"] == 2


async def test_a_session_is_played_to_its_end(tmp_path: Path) -> None:
    async with a_game(tmp_path) as game:
        await game.play(1, "act")
        ended = (await game.play(2, "end"))[-1].committed
        assert ended.status.kind == engine.RUN_STATUS_KIND_LOST
        assert ended.status.condition == "first"
        assert not ended.legal_actions
        with pytest.raises(FailedPreconditionError) as caught:
            await game.play(3, "act")
        assert caught.value.code == "RUN_ENDED"


async def test_each_point_of_view_gets_its_own_cut(tmp_path: Path) -> None:
    async with a_game(tmp_path) as game:
        mine = await game.play(1, pov_entity_id="p")
        theirs = await game.play(2, pov_entity_id="q")
        assert mine[1].world_resolved.changes
        assert not theirs[1].world_resolved.changes
        assert "private" in json.loads((await game.now("p")).state)
        assert "private" not in json.loads((await game.now("q")).state)


async def test_the_same_request_in_parallel_has_one_effect_and_equal_answers(tmp_path: Path) -> None:
    async with a_game(tmp_path) as game:
        request = game.request(1, "act")
        answers = await asyncio.gather(*(game.take(request) for _ in range(5)))
        wire = [[event.SerializeToString(deterministic=True) for event in answer] for answer in answers]
        assert all(answer == wire[0] for answer in wire)
        assert json.loads((await game.now()).state)["a"] == 2


async def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    config = config_for(tmp_path)
    async with a_game(tmp_path) as game:
        request = game.request(1, "act", input="words")
        events = await game.take(request)
        before = await game.now()
    async with serving(config) as stub:
        again = Game(stub, before)
        assert await again.now() == before
        assert await again.take(request) == events
        assert kinds(await again.play(2, "act"))[-1] == "committed"


async def test_a_reader_who_lost_the_connection_hears_the_rest(tmp_path: Path) -> None:
    async with a_game(tmp_path) as game:
        request = game.request(1, "act")
        events = await game.take(request)
        resumed = pb.ResumeTurnRequest(
            session_id=game.session_id,
            request_id=request.request_id,
            after_sequence=2,
            attempt_id=events[0].accepted.attempt_id,
        )
        rest = [response.event async for response in game.stub.ResumeTurn(resumed)]
        assert events[:2] + rest == events


async def test_a_caller_who_leaves_during_the_narration_leaves_no_turn_and_no_call_behind(
    tmp_path: Path,
) -> None:
    gateway = FakeGateway(['{"narrative": "Half', SILENCE], outcome("Whole."))
    async with a_game(tmp_path, gateway) as game:
        before = await game.now()
        request = game.request(1, "act")
        call = game.stub.TakeTurn(request)
        first: list[Any] = [await call.read() for _ in range(4)]
        assert first[-1].event.narrative_chunk.text == "Half"
        await gateway.silent.wait()
        call.cancel()
        again = await game.take(request)
        assert gateway.cancelled == 1
        assert again[-1].committed.narrative == "Whole."
        assert again[0].sequence == first[0].event.sequence
        assert (await game.now()).turn == before.turn + 1


@pytest.mark.slow(reason="waits for a deadline")
async def test_a_narrator_that_outlasts_the_caller_s_time_is_replaced_in_time(tmp_path: Path) -> None:
    async with a_game(tmp_path, FakeGateway([SILENCE])) as game:
        events = await game.take(game.request(1, "act"), timeout=4.0)
        assert kinds(events)[-3:] == ["degraded", "narrative_chunk", "committed"]
        assert events[-3].degraded.reason == "NARRATOR_TIMEOUT"


async def test_sessions_find_a_gateway_in_another_process(tmp_path: Path) -> None:
    async with serve_registered(config_for(tmp_path), [bind_gateway]) as gateway:
        config = config_for(tmp_path, gateway_address=gateway.address)
        async with (
            serve_registered(config, [bind_one_scenario(SCENARIO), bind_sessions]) as app,
            open_channel(app.address) as channel,
        ):
            stub: SessionServiceAsyncStub = SessionServiceStub(channel)
            made = await stub.CreateSession(
                pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario"),
            )
            events = await Game(stub, made.session).play(1, "act")
        assert events[-1].committed.model == "offline/offline"


async def test_a_gateway_that_is_away_does_not_stop_the_game(tmp_path: Path) -> None:
    config = config_for(tmp_path, gateway_address="127.0.0.1:1")
    async with (
        serve_registered(config, [bind_one_scenario(SCENARIO), bind_sessions]) as app,
        open_channel(app.address) as channel,
    ):
        stub: SessionServiceAsyncStub = SessionServiceStub(channel)
        made = await stub.CreateSession(pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario"))
        events = await Game(stub, made.session).play(1, "act")
    assert events[-3].degraded.reason == "MODEL_UNAVAILABLE"
    assert events[-1].committed.resolution == pb.RESOLUTION_SERVER_RESOLVED


@pytest.mark.parametrize(
    ("change", "error", "code"),
    [
        ({"session_id": new_id()}, NotFoundError, "UNKNOWN_SESSION"),
        ({"session_id": ""}, InvalidArgumentError, "INVALID_ARGUMENT"),
        ({"request_id": "x"}, InvalidArgumentError, "INVALID_ARGUMENT"),
        ({"turn": 0}, InvalidArgumentError, "INVALID_ARGUMENT"),
        ({"turn": 2}, ConflictError, "STALE_TURN"),
        ({"turn": 2**62}, ConflictError, "STALE_TURN"),
        ({"actions": ["unknown"]}, InvalidArgumentError, "INVALID_ARGUMENT"),
        ({"input": "x" * 20_000}, InvalidArgumentError, "INVALID_ARGUMENT"),
        ({"input": "x" * 5_000_000}, ResourceExhaustedError, None),
        ({"pov_entity_id": "nobody"}, NotFoundError, "UNKNOWN_ENTITY"),
        ({"pov_entity_id": "r"}, InvalidArgumentError, "NOT_PLAYABLE"),
        ({"seat_id": "seat"}, InvalidArgumentError, "INVALID_ARGUMENT"),
    ],
)
async def test_a_bad_request_gets_a_clear_status_and_changes_nothing(
    tmp_path: Path,
    change: dict[str, Any],
    error: type[PeripetyError],
    code: str | None,
) -> None:
    async with a_game(tmp_path) as game:
        before = await game.now()
        wanted: dict[str, Any] = {"turn": 1, "actions": ["act"], **change}
        turn, actions = wanted.pop("turn"), wanted.pop("actions")
        with pytest.raises(error) as caught:
            await game.play(turn, *actions, **wanted)
        if code is not None:
            assert caught.value.code == code
        if code == "INVALID_ARGUMENT":
            assert caught.value.violations
        assert await game.now() == before


async def test_the_statuses_are_those_of_the_contract(tmp_path: Path) -> None:
    config = config_for(tmp_path)
    binds = [bind_gateway, bind_one_scenario(SCENARIO), bind_sessions]
    async with serve_registered(config, binds) as app, plain_channel(app.address) as channel:
        stub: SessionServiceAsyncStub = SessionServiceStub(channel)
        made = await stub.CreateSession(pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario"))
        game = Game(stub, made.session)
        taken = game.request(1, "act")
        await game.take(taken)
        taken.input = "another body"
        for request, status in (
            (game.request(1, "act"), grpc.StatusCode.ABORTED),
            (game.request(2, "act", session_id=new_id()), grpc.StatusCode.NOT_FOUND),
            (game.request(2, "unknown"), grpc.StatusCode.INVALID_ARGUMENT),
            (taken, grpc.StatusCode.ALREADY_EXISTS),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await game.take(request)
            assert caught.value.code() is status


async def test_a_request_id_cannot_make_two_different_sessions(tmp_path: Path) -> None:
    async with a_game(tmp_path) as game:
        request = pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario")
        first, second = await asyncio.gather(*(game.stub.CreateSession(request) for _ in range(2)))
        assert first == second
        request.seed = 3
        with pytest.raises(AlreadyExistsError):
            await game.stub.CreateSession(request)

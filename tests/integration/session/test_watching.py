"""Sessions that are followed over a real channel."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub
from peripety.errors import InvalidArgumentError, NotFoundError, PeripetyError, ResourceExhaustedError
from peripety.gateway.types.response import ModelGateway
from peripety.rpc.channel import open_channel
from peripety.scenario.types import ScenarioSource
from peripety.server.app import serve_registered
from peripety.session.pb import responses
from peripety.session.setup import register_service as bind_sessions
from support.gateway.fake_gateway import SILENCE, FakeGateway
from support.servers.apps import config_for, plain_channel
from support.session.sessions import SCENARIO, OneScenario, new_id, outcome
from support.session.watch import noticing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from peripety.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub
    from peripety.rpc.container import ServiceContainer
    from peripety.server.app import ServerApp
    from peripety.session.visibility import TurnEventView


@asynccontextmanager
async def a_server(
    tmp_path: Path,
    gateway: ModelGateway | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[ServerApp, SessionServiceAsyncStub]]:
    async def bind_others(wiring: ServiceContainer) -> None:
        wiring.register(ModelGateway, gateway or FakeGateway(outcome()))
        wiring.register(ScenarioSource, OneScenario(SCENARIO))

    config = config_for(tmp_path, **settings)
    async with (
        serve_registered(config, [bind_others, bind_sessions]) as app,
        open_channel(app.address) as channel,
    ):
        yield app, SessionServiceStub(channel)


async def a_session(stub: SessionServiceAsyncStub, **more: Any) -> str:
    request = pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario", **more)
    return (await stub.CreateSession(request)).session.session_id


async def play(
    stub: SessionServiceAsyncStub,
    session_id: str,
    turn: int,
    *actions: str,
    **more: Any,
) -> list[pb.TurnEvent]:
    calls = [engine.ActionCall(action_id=name) for name in actions]
    request = pb.TakeTurnRequest(
        session_id=session_id,
        request_id=new_id(),
        expected_turn=turn,
        actions=calls,
        **more,
    )
    return [response.event async for response in stub.TakeTurn(request)]


async def watch(
    stub: SessionServiceAsyncStub,
    session_id: str,
    until: Callable[[pb.WatchSessionResponse], bool],
    **more: Any,
) -> list[pb.WatchSessionResponse]:
    """Follow a session until an event, or to the end."""
    told = []
    async for event in stub.WatchSession(pb.WatchSessionRequest(session_id=session_id, **more)):
        told.append(event)
        if until(event):
            break
    return told


def commits(turn: int) -> Callable[[pb.WatchSessionResponse], bool]:
    return lambda told: told.turn_event.turn == turn and told.turn_event.HasField("committed")


def closed(_: pb.WatchSessionResponse) -> bool:
    return False


def events_of(told: list[pb.WatchSessionResponse]) -> list[pb.TurnEvent]:
    return [one.turn_event for one in told if one.HasField("turn_event")]


async def test_a_follower_hears_what_the_player_hears(tmp_path: Path) -> None:
    async with a_server(tmp_path) as (_, stub):
        session_id = await a_session(stub)
        played = await play(stub, session_id, 1, "act")
        watching = asyncio.create_task(watch(stub, session_id, commits(2)))
        played += await play(stub, session_id, 2, "act")
        assert events_of(await watching) == played


async def test_a_connection_may_break_after_every_event(tmp_path: Path) -> None:
    async with a_server(tmp_path) as (_, stub):
        session_id = await a_session(stub)
        played = [*await play(stub, session_id, 1, "act"), *await play(stub, session_id, 2, "hide")]
        attempt = ""
        for index, event in enumerate(played[:-1]):
            attempt = event.accepted.attempt_id or attempt
            asked = {"after_sequence": event.sequence, "attempt_id": attempt}
            told = await watch(stub, session_id, commits(2), **asked)
            assert events_of(told) == played[index + 1 :]


async def test_no_view_sees_what_is_another_ones(tmp_path: Path) -> None:
    async with a_server(tmp_path) as (_, stub):
        session_id = await a_session(stub)
        watching = [
            asyncio.create_task(watch(stub, session_id, commits(1), pov_entity_id=pov))
            for pov in ("p", "q", "")
        ]
        await play(stub, session_id, 1, "hide", pov_entity_id="p", input="A secret plan.")
        told = [str(await one) for one in watching]
    assert ["state.private.p.x" in text for text in told] == [True, False, False]
    assert ["A secret plan." in text for text in told] == [True, False, False]


@pytest.mark.slow(reason="opens a hundred connections")
async def test_a_hundred_followers_of_one_view_cost_one_encoding(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[TurnEventView] = []

    encode = responses._encode_turn_event

    def counting(seen: TurnEventView) -> bytes:
        encoded.append(seen)
        return encode(seen)

    monkeypatch.setattr(responses, "_encode_turn_event", counting)
    gateway = FakeGateway([outcome("Told.")[:-6], SILENCE])
    async with a_server(tmp_path, gateway) as (_, stub):
        session_id = await a_session(stub)
        turn = asyncio.create_task(play(stub, session_id, 1, "act"))
        await gateway.silent.wait()
        following = [
            asyncio.create_task(watch(stub, session_id, commits(2), pov_entity_id=pov))
            for pov in ["p"] * 50 + ["q"] * 50
        ]
        await asyncio.gather(*(watch(stub, session_id, narrated, pov_entity_id=pov) for pov in ("p", "q")))
        turn.cancel()
        await asyncio.wait([turn])
        gateway.answers = [outcome("Told.")]
        encoded.clear()
        played = [*await play(stub, session_id, 1, "act"), *await play(stub, session_id, 2, "act")]
        told = await asyncio.gather(*following)
        assert len(encoded) == 2 * len(played)
    assert len({tuple(one.SerializeToString() for one in events) for events in told}) == 1
    assert events_of(told[0])[-len(played) :] == played


def narrated(told: pb.WatchSessionResponse) -> bool:
    return told.turn_event.HasField("narrative_chunk")


async def test_turns_that_were_taken_back_are_told(tmp_path: Path) -> None:
    async with a_server(tmp_path) as (_, stub):
        session_id = await a_session(stub)
        first = await play(stub, session_id, 1, "act")
        watching = asyncio.create_task(watch(stub, session_id, commits(3)))
        last = (await play(stub, session_id, 2, "act"))[-1].sequence
        await stub.RewindSession(
            pb.RewindSessionRequest(request_id=new_id(), session_id=session_id, turn=1, expected_turn=2),
        )
        again = [*await play(stub, session_id, 2, "double"), *await play(stub, session_id, 3, "act")]
        told = await watching
        assert events_of(told)[: len(first)] == first
        assert events_of(told)[-len(again) :] == again
        assert [one.rewound.sequence for one in told if one.HasField("rewound")] == [last + 1]
        # A watcher that was disconnected receives the rewind too; a new watcher receives no rewound turn.
        assert (await watch(stub, session_id, commits(3), after_sequence=last))[0].rewound.turn == 1
        assert events_of(await watch(stub, session_id, commits(3))) == first + again


async def test_a_spectator_stays_behind_and_sees_the_end(tmp_path: Path) -> None:
    async with a_server(tmp_path) as (_, stub):
        session_id = await a_session(stub)
        for turn in range(1, 4):
            await play(stub, session_id, turn, "act")
        watching = asyncio.create_task(watch(stub, session_id, commits(2), delay_turns=2))
        await watch(stub, session_id, commits(1), delay_turns=2)
        assert not watching.done()
        await play(stub, session_id, 4, "act")
        assert events_of(await watching)[-1].turn == 2
        await play(stub, session_id, 5, "end")
        told = await watch(stub, session_id, closed, delay_turns=2)
        assert [event.turn for event in events_of(told) if event.HasField("committed")] == [1, 2, 3, 4, 5]
        assert told[-1].closed.reason == "RUN_ENDED"
        assert told[-1].closed.last_sequence == events_of(told)[-1].sequence


async def test_a_session_that_is_deleted_ends_its_streams(tmp_path: Path) -> None:
    async with a_server(tmp_path) as (_, stub):
        session_id = await a_session(stub)
        await play(stub, session_id, 1, "act")
        there = asyncio.Event()
        watching = asyncio.create_task(watch(stub, session_id, noticing(there, closed)))
        await there.wait()
        await stub.DeleteSession(pb.DeleteSessionRequest(request_id=new_id(), session_id=session_id))
        assert (await watching)[-1].closed.reason == "SESSION_DELETED"
        with pytest.raises(NotFoundError):
            await watch(stub, session_id, closed)


async def test_a_server_that_stops_lets_followers_go(tmp_path: Path) -> None:
    async with a_server(tmp_path) as (app, stub):
        session_id = await a_session(stub)
        played = await play(stub, session_id, 1, "act")
        there = asyncio.Event()
        watching = asyncio.create_task(watch(stub, session_id, noticing(there, closed)))
        await there.wait()
        await app.drain(5.0)
        end = (await watching)[-1].closed
        assert (end.reason, end.last_sequence) == ("SERVER_SHUTTING_DOWN", played[-1].sequence)


async def test_two_servers_tell_the_followers_of_one_session_the_same(
    tmp_path: Path,
    postgresql: Any,
) -> None:
    with postgresql.database() as url:
        async with (
            a_server(tmp_path, database_url=url) as (_, one),
            a_server(tmp_path, database_url=url) as (_, two),
        ):
            session_id = await a_session(one)
            watching = [asyncio.create_task(watch(stub, session_id, commits(4))) for stub in (one, two)]
            played = []
            for turn, stub in enumerate((one, two, two, one), 1):
                played += await play(stub, session_id, turn, "act")
            assert [events_of(await told) for told in watching] == [played, played]


@pytest.mark.slow(reason="starts two servers")
async def test_seats_act_together_through_two_servers(tmp_path: Path, postgresql: Any) -> None:
    seats = [pb.Seat(seat_id="one", entity_id="p"), pb.Seat(seat_id="two", entity_id="q")]
    players = pb.SeatConfig(seats=seats, order=pb.SEAT_ORDER_SIMULTANEOUS)
    with postgresql.database() as url:
        async with (
            a_server(tmp_path, database_url=url) as (_, one),
            a_server(tmp_path, database_url=url) as (_, two),
        ):
            session_id = await a_session(one, seat_config=players)
            watching = [asyncio.create_task(watch(stub, session_id, commits(1))) for stub in (one, two)]
            submitted = [
                await stub.SubmitActions(
                    pb.SubmitActionsRequest(
                        session_id=session_id,
                        request_id=new_id(),
                        expected_turn=1,
                        seat_id=seat,
                        actions=[engine.ActionCall(action_id="act")],
                    ),
                )
                for stub, seat in ((one, "one"), (two, "two"))
            ]
            told = [await one for one in watching]
    assert [list(one.waiting_seat_ids) for one in submitted] == [["two"], []]
    assert events_of(told[0]) == events_of(told[1])
    acted = [
        event.action_resolved.entity_id for event in events_of(told[0]) if event.HasField("action_resolved")
    ]
    assert acted == ["p", "q"]


async def test_followers_leave_places_for_turns(tmp_path: Path) -> None:
    async with a_server(tmp_path, max_concurrent_calls=4) as (_, stub):
        session_id = await a_session(stub)
        await play(stub, session_id, 1, "act")
        there = [asyncio.Event() for _ in range(2)]
        following = [asyncio.create_task(watch(stub, session_id, noticing(one, commits(2)))) for one in there]
        await asyncio.gather(*(one.wait() for one in there))
        with pytest.raises(ResourceExhaustedError) as caught:
            await watch(stub, session_id, closed)
        assert caught.value.code == "TOO_MANY_WATCHERS"
        await play(stub, session_id, 2, "act")
        await asyncio.gather(*following)
        # They are gone, and others can follow.
        await watch(stub, session_id, commits(2))


async def test_a_follower_without_a_deadline_is_given_none(tmp_path: Path) -> None:
    async with a_server(tmp_path, default_deadline_seconds=0.3) as (app, stub):
        session_id = await a_session(stub)
        async with plain_channel(app.address) as channel:
            call = SessionServiceStub(channel).WatchSession(pb.WatchSessionRequest(session_id=session_id))
            await asyncio.sleep(0.6)
            await play(stub, session_id, 1, "act")
            async for told in call:
                if commits(1)(told):
                    break


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"session_id": ""}, InvalidArgumentError),
        ({"session_id": "unknown"}, NotFoundError),
        ({"after_sequence": -1}, InvalidArgumentError),
        ({"delay_turns": -1}, InvalidArgumentError),
        ({"attempt_id": "x"}, InvalidArgumentError),
        ({"pov_entity_id": "r"}, InvalidArgumentError),
        ({"pov_entity_id": "nobody"}, NotFoundError),
    ],
)
async def test_what_cannot_be_followed_is_refused(
    tmp_path: Path,
    asked: dict[str, Any],
    error: type[PeripetyError],
) -> None:
    async with a_server(tmp_path) as (_, stub):
        given = {"session_id": await a_session(stub), **asked}
        with pytest.raises(error):
            await watch(stub, given.pop("session_id"), closed, **given)

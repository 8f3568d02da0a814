"""A client on a bad connection ends with the same turn as on a good one, or with the same typed error."""

from __future__ import annotations

import asyncio
import logging
import os
import random
from typing import TYPE_CHECKING

import pytest

from peripety.api.scenario.v1.scenario_pb2 import CompileScenarioRequest
from peripety.api.session.v1 import session_pb2 as pb
from peripety.client import AsyncClient, Client, streams
from peripety.client.errors import DeadlineExceeded, FailedPrecondition, InvalidArgument, Unavailable
from support.repo.repository import ROOT
from support.servers.misbehaving_proxy import MisbehavingProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.servers.processes import ServerProcess

pytestmark = pytest.mark.slow(reason="starts a server, and breaks connections at many points")

SAMPLES = ROOT / "clients" / "samples"
WORDS = "I listen."
WORKERS = 4
STEP = 1 if "PERIPETY_ALL_CLIENTS" in os.environ else 16
"""`make test-clients` cuts a turn at every byte, other runs at every sixteenth."""
_log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def server(scripted_server: ServerProcess) -> ServerProcess:
    return scripted_server


@pytest.fixture(scope="module")
def scenario_id(server: ServerProcess) -> str:
    request = CompileScenarioRequest(spec=(SAMPLES / "scenario.json").read_bytes())
    with Client(server.address) as client:
        *_, last = client.follow(client.scenarios.CompileScenario, request)
    return str(last.compiled.scenario_id)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_FIRST_PAUSE", 0.001)


@pytest.fixture
async def direct(server: ServerProcess) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(server.address) as client:
        yield client


@pytest.fixture
async def proxy(server: ServerProcess) -> AsyncIterator[MisbehavingProxy]:
    async with MisbehavingProxy(server.address).listening() as proxy:
        yield proxy


@pytest.fixture
async def client(proxy: MisbehavingProxy) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(proxy.address) as client:
        yield client


async def new_session(direct: AsyncClient, scenario_id: str) -> pb.Session:
    return (
        await direct.sessions.CreateSession(pb.CreateSessionRequest(scenario_id=scenario_id, seed=7))
    ).session


async def play(client: AsyncClient, session: pb.Session) -> list[bytes]:
    return told([event async for event in client.play(session, "tend", text=WORDS, timeout=60)])


def told(events: list[pb.TurnEvent]) -> list[bytes]:
    """The events of the attempt that counts, without what differs from session to session."""
    starts = [index for index, event in enumerate(events) if event.HasField("accepted")]
    counted = events[starts[-1] :]
    for event in counted:
        event.ClearField("session_id")
        if event.HasField("accepted"):
            event.accepted.ClearField("attempt_id")
            event.accepted.ClearField("request_id")
        if event.HasField("committed"):
            event.committed.ClearField("commit_time")
            event.committed.ClearField("usage")  # the prompt of a later session is cached
    return [event.SerializeToString(deterministic=True) for event in counted]


async def cut_everywhere(
    server: ServerProcess, scenario_id: str, fault: str, offsets: list[int], expected: list[bytes]
) -> int:
    """Play a turn for each offset until one is behind the turn; return the number of broken connections."""
    broken = 0
    async with (
        AsyncClient(server.address) as direct,
        MisbehavingProxy(server.address).listening() as proxy,
        AsyncClient(proxy.address) as client,
    ):
        for offset in offsets:
            session = await new_session(direct, scenario_id)
            proxy.arm(fault, offset)
            assert await play(client, session) == expected, (fault, offset)
            assert session.turn == 1
            if proxy.is_armed:
                break
            broken += 1
    return broken


@pytest.mark.parametrize("fault", ["cut", "cut_request"])
async def test_a_turn_survives_a_cut(
    server: ServerProcess, direct: AsyncClient, scenario_id: str, fault: str
) -> None:
    expected = await play(direct, await new_session(direct, scenario_id))
    assert await cut_everywhere(server, scenario_id, fault, [0, 1, 200, 400], expected) >= 2


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", ["cut", "cut_request"])
async def test_a_turn_survives_a_cut_at_every_byte(
    server: ServerProcess, direct: AsyncClient, scenario_id: str, fault: str
) -> None:
    expected = await play(direct, await new_session(direct, scenario_id))
    parts = [list(range(first * STEP, 100_000, WORKERS * STEP)) for first in range(WORKERS)]
    broken = await asyncio.gather(
        *(cut_everywhere(server, scenario_id, fault, part, expected) for part in parts)
    )
    _log.info("%s: %d broken connections", fault, sum(broken))
    assert sum(broken) * STEP > sum(map(len, expected)) / (1 if fault == "cut" else 20)


@pytest.mark.parametrize(
    ("fault", "amount"),
    [
        ("goaway", 3),
        ("goaway", 6),
        ("refuse", 0),
        ("refuse", 3),
        ("duplicate", 0),
        ("delay", 0.01),
        ("trickle", 0),
    ],
)
async def test_a_turn_survives_what_proxies_do(
    proxy: MisbehavingProxy,
    client: AsyncClient,
    direct: AsyncClient,
    scenario_id: str,
    fault: str,
    amount: float,
) -> None:
    expected = await play(direct, await new_session(direct, scenario_id))
    await client.channel.channel_ready()  # gRPC does not notice a GOAWAY while it is connecting
    for _ in range(2):  # the second turn uses what the first has left of the connection
        session = await new_session(direct, scenario_id)
        proxy.arm(fault, amount)
        assert await play(client, session) == expected
        proxy.arm("")


async def test_a_frozen_connection_ends_with_the_deadline(
    proxy: MisbehavingProxy, client: AsyncClient, direct: AsyncClient, scenario_id: str
) -> None:
    session = await new_session(direct, scenario_id)
    proxy.arm("freeze", 60)
    with pytest.raises(DeadlineExceeded):
        async for _ in client.play(session, "tend", timeout=1):
            pass
    assert session.turn == 0


async def test_a_frozen_connection_is_noticed_and_the_turn_continues(
    proxy: MisbehavingProxy, client: AsyncClient, direct: AsyncClient, scenario_id: str
) -> None:
    expected = await play(direct, await new_session(direct, scenario_id))
    proxy.arm("freeze", 60)
    assert await play(client, await new_session(direct, scenario_id)) == expected


async def test_a_slow_reader_gets_every_event(
    client: AsyncClient, direct: AsyncClient, scenario_id: str
) -> None:
    expected = await play(direct, await new_session(direct, scenario_id))
    events = []
    async for event in client.play(await new_session(direct, scenario_id), "tend", text=WORDS):
        await asyncio.sleep(0.02)
        events.append(event)
    assert told(events) == expected


async def test_a_lost_server_is_a_typed_error(unused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_TRIES", 2)
    async with AsyncClient(unused) as client:
        with pytest.raises(Unavailable):
            await play(client, pb.Session(session_id="s"))


@pytest.fixture
async def unused(server: ServerProcess) -> str:
    async with MisbehavingProxy(server.address).listening() as gone:
        return gone.address


@pytest.mark.parametrize("fault", ["", "cut", "cut_request", "goaway", "refuse", "duplicate", "trickle"])
async def test_a_refused_turn_is_the_same_error_on_any_connection(
    proxy: MisbehavingProxy, client: AsyncClient, direct: AsyncClient, scenario_id: str, fault: str
) -> None:
    session = await new_session(direct, scenario_id)
    proxy.arm(fault, 20)
    with pytest.raises(InvalidArgument) as caught:
        async for _ in client.play(session, "unknown"):
            pass
    assert [violation.field for violation in caught.value.violations] == ["actions[0].action_id"]


@pytest.mark.parametrize("api", ["sync", "async"])
async def test_both_apis_survive_seeded_cuts(
    server: ServerProcess, proxy: MisbehavingProxy, direct: AsyncClient, scenario_id: str, api: str
) -> None:
    expected = await play(direct, await new_session(direct, scenario_id))
    offsets = random.Random(7).sample(range(sum(map(len, expected))), 3)
    for offset in offsets:
        session = await new_session(direct, scenario_id)
        proxy.arm("cut", offset)
        if api == "async":
            async with AsyncClient(proxy.address) as client:
                events = [event async for event in client.play(session, "tend", text=WORDS)]
        else:
            events = await asyncio.to_thread(play_in_a_thread, proxy.address, session)
        assert told(events) == expected
        assert not proxy.is_armed


def play_in_a_thread(address: str, session: pb.Session) -> list[pb.TurnEvent]:
    with Client(address) as client:
        return list(client.play(session, "tend", text=WORDS))


async def test_a_watch_continues_over_cuts_without_gaps(
    proxy: MisbehavingProxy, client: AsyncClient, direct: AsyncClient, scenario_id: str
) -> None:
    session = await new_session(direct, scenario_id)
    for _ in range(3):
        await play(direct, session)
    seen: list[int] = []
    proxy.arm("cut", 300)
    async for response in client.watch(pb.WatchSessionRequest(session_id=session.session_id)):
        if response.HasField("turn_event"):
            seen.append(response.turn_event.sequence)
            if len(seen) % 5 == 0:
                proxy.arm("cut", 100)
            if response.turn_event.sequence == session.last_sequence:
                break
    assert sorted(set(seen)) == list(range(1, session.last_sequence + 1))


async def test_a_quiet_stream_opens_before_its_first_event(
    client: AsyncClient, direct: AsyncClient, scenario_id: str
) -> None:
    session = await new_session(direct, scenario_id)
    call = client.sessions.WatchSession(pb.WatchSessionRequest(session_id=session.session_id))
    first = asyncio.ensure_future(call.read())
    await call.initial_metadata()
    assert not first.done()
    call.cancel()
    await asyncio.gather(first, return_exceptions=True)


async def test_a_turn_of_an_ended_session_is_refused_over_any_connection(
    client: AsyncClient, direct: AsyncClient, scenario_id: str
) -> None:
    session = await new_session(direct, scenario_id)
    while session.legal_actions:
        async for _ in direct.play(session, "wait" if session.turn % 2 else "tend"):
            pass
    with pytest.raises(FailedPrecondition) as caught:
        await play(client, session)
    assert caught.value.reason == "RUN_ENDED"

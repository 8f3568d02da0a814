"""A server is killed between any two events of a turn: the turn has happened, or it has not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from support.api import Api, turn_request
from support.fake_model import FakeModel, serving_fake_model
from support.playable import playable
from support.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from peripety.api.session.v1 import session_pb2

WORDS = ("one ", "two ", "three.")
PIECES = ('{"narrative":"', *WORDS, '"}')


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with serving_fake_model(*PIECES) as model:
        yield model


def server_with(model: FakeModel, home: Path) -> ServerProcess:
    home.mkdir(exist_ok=True)
    settings = {"MODEL_PROVIDER": "generic", "OPENAI_API_BASE": model.url, "MODEL_NAME": "fake"}
    return ServerProcess(home, settings=settings)


async def whole_turn(
    api: Api, request: session_pb2.TakeTurnRequest, model: FakeModel
) -> list[session_pb2.TurnEvent]:
    model.permit(len(PIECES))
    return [event async for event in api.turn(request)]


async def test_prose_reaches_the_client_while_the_model_still_writes(
    model: FakeModel, tmp_path: Path
) -> None:
    with server_with(model, tmp_path) as server:
        async with Api.connected(server.address) as api:
            events = api.turn(turn_request(await api.session_of(playable())))
            model.permit(2)
            async for event in events:
                if event.HasField("narrative_chunk"):
                    break
            assert event.narrative_chunk.text.strip() == WORDS[0].strip()
            model.permit(len(PIECES))
            assert [event async for event in events][-1].HasField("committed")


async def test_mechanics_reach_the_client_before_the_model_has_written_a_word(
    model: FakeModel, tmp_path: Path
) -> None:
    with server_with(model, tmp_path) as server:
        async with Api.connected(server.address) as api:
            events = api.turn(turn_request(await api.session_of(playable())))
            kinds = [(await anext(events)).WhichOneof("event") for _ in range(3)]
            assert kinds == ["accepted", "action_resolved", "world_resolved"]


async def test_a_kill_between_any_two_events_leaves_the_turn_before_or_after(
    model: FakeModel, tmp_path: Path
) -> None:
    reference = await uninterrupted(model, tmp_path / "reference")
    found = [
        await found_after_kill(Killing(after_events=count), model, tmp_path / str(count), reference)
        for count in range(1, len(reference) + 1)
    ]
    assert found == [0] * (len(reference) - 1) + [1]


async def test_a_kill_around_the_commit_leaves_the_turn_before_or_after(
    model: FakeModel, tmp_path: Path
) -> None:
    reference = await uninterrupted(model, tmp_path / "reference")
    last_chunk = len(reference) - 1
    for delay in (0.0, 0.002, 0.004, 0.008, 0.016):
        killing = Killing(after_events=last_chunk, finish_writing=True, seconds_later=delay)
        await found_after_kill(killing, model, tmp_path / str(delay), reference)


@dataclass(frozen=True)
class Killing:
    """When to kill: after so many events; perhaps with the model let go first, and a little later."""

    after_events: int
    finish_writing: bool = False
    seconds_later: float = 0.0


async def uninterrupted(model: FakeModel, home: Path) -> list[session_pb2.TurnEvent]:
    with server_with(model, home) as server:
        async with Api.connected(server.address) as api:
            return await whole_turn(api, turn_request(await api.session_of(playable())), model)


async def found_after_kill(
    killing: Killing, model: FakeModel, home: Path, reference: list[session_pb2.TurnEvent]
) -> int:
    """Kill a server during a turn; check what the next server finds, and return its turn."""
    with server_with(model, home) as server:
        async with Api.connected(server.address) as api:
            before = await api.session_of(playable())
            request = turn_request(before)
            await play_until_killed(api, request, killing, model, server)
    committed = reference[-1].committed
    with server_with(model, home) as server:
        async with Api.connected(server.address) as api:
            after = await api.session(before.session_id)
            assert after.state_hash == {0: before.state_hash, 1: committed.state_hash}[after.turn]
            assert (after.last_sequence > 0) == (after.turn == 1)
            again = await whole_turn(api, request, model)
            assert again[-1].committed.state_hash == committed.state_hash
            assert again[-1].committed.chain_hash == committed.chain_hash
            assert (await api.session(before.session_id)).turn == 1
    return after.turn


async def play_until_killed(
    api: Api, request: session_pb2.TakeTurnRequest, killing: Killing, model: FakeModel, server: ServerProcess
) -> None:
    """Take the turn with the model never further than what was read."""
    read = 0
    async for event in api.turn(request):
        read += 1
        if read == killing.after_events:
            break
        if event.HasField("world_resolved"):
            model.permit(2)
        elif event.HasField("narrative_chunk"):
            model.permit()
    if killing.finish_writing:
        model.permit()
        await asyncio.sleep(killing.seconds_later)
    server.kill()

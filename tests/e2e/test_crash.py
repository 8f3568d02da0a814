"""A server is killed between any two events of a turn: the turn has happened, or it has not."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from support.engine.specs import playable
from support.gateway.fake_server import WritesWithPermit, upstream
from support.servers.apps import Api, turn_request
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from peripety.api.session.v1 import session_pb2

pytestmark = pytest.mark.slow(reason="kills processes at many points")

WORDS = ("one ", "two ", "three.")
PIECES = ('{"narrative":"', *WORDS, '"}')
FEWEST_KILLS, MOST_KILLS = 4, 12
PERMITS = {"world_resolved": 2, "narrative_chunk": 1}


@dataclass(frozen=True)
class Play:
    """A server with a model that writes only when it is let, and a client."""

    model: WritesWithPermit
    server: ServerProcess
    api: Api

    async def turn(self, request: session_pb2.TakeTurnRequest) -> AsyncGenerator[session_pb2.TurnEvent]:
        """Take a turn with the model never further than what was read."""
        async with aclosing(self.api.turn(request)) as events:
            async for event in events:
                yield event
                self.model.permit(PERMITS.get(event.WhichOneof("event") or "", 0))


@asynccontextmanager
async def playing(home: Path) -> AsyncIterator[Play]:
    """A new process on what an earlier one left in `home`."""
    model = WritesWithPermit(*PIECES)
    async with upstream(model) as provider:
        settings = {"MODEL_PROVIDER": "generic", "OPENAI_API_BASE": provider.base_url, "MODEL_NAME": "fake"}
        with ServerProcess(home, settings=settings) as server:
            async with Api.connected(server.address) as api:
                yield Play(model, server, api)


async def test_mechanics_reach_the_client_before_the_model_has_written_a_word(tmp_path: Path) -> None:
    async with playing(tmp_path) as play:
        request = turn_request(await play.api.session_of(playable()))
        async with aclosing(play.api.turn(request)) as events:
            kinds = [(await anext(events)).WhichOneof("event") for _ in range(3)]
    assert kinds == ["accepted", "action_resolved", "world_resolved"]


async def test_prose_reaches_the_client_while_the_model_still_writes(tmp_path: Path) -> None:
    async with playing(tmp_path) as play:
        request = turn_request(await play.api.session_of(playable()))
        play.model.permit(2)
        async with aclosing(play.api.turn(request)) as events:
            async for event in events:
                if event.HasField("narrative_chunk"):
                    break
            assert event.narrative_chunk.text.strip() == WORDS[0].strip()
            play.model.permit(len(PIECES))
            assert [event async for event in events][-1].HasField("committed")


async def test_a_kill_between_any_two_events_leaves_the_turn_before_or_after(tmp_path: Path) -> None:
    reference = await uninterrupted(tmp_path / "reference")
    found = [
        await found_after_kill(Killing(after_events=count), tmp_path / str(count), reference)
        for count in range(1, len(reference) + 1)
    ]
    assert found == [0] * (len(reference) - 1) + [1]


async def test_a_kill_around_the_commit_leaves_the_turn_before_or_after(tmp_path: Path) -> None:
    reference = await uninterrupted(tmp_path / "reference")
    last_chunk = len(reference) - 1
    delay, found = 0.01, list[int]()
    while len(found) < FEWEST_KILLS or (len(set(found)) == 1 and len(found) < MOST_KILLS):
        killing = Killing(after_events=last_chunk, finish_writing=True, seconds_later=delay)
        found.append(await found_after_kill(killing, tmp_path / str(len(found)), reference))
        delay = delay / 2 if found[-1] else delay * 2
    assert set(found) == {0, 1}, "the kills came all before the commit, or all after it"


@dataclass(frozen=True)
class Killing:
    """When to kill: after so many events; perhaps with the model let go first, and a little later."""

    after_events: int
    finish_writing: bool = False
    seconds_later: float = 0.0


async def uninterrupted(home: Path) -> list[session_pb2.TurnEvent]:
    async with playing(home) as play:
        request = turn_request(await play.api.session_of(playable()))
        return [event async for event in play.turn(request)]


async def found_after_kill(killing: Killing, home: Path, reference: list[session_pb2.TurnEvent]) -> int:
    """Kill a server during a turn; check what the next server finds, and return its turn."""
    async with playing(home) as play:
        before = await play.api.session_of(playable())
        request = turn_request(before)
        await play_until_killed(play, request, killing)
    committed = reference[-1].committed
    async with playing(home) as play:
        after = await play.api.session(before.session_id)
        assert after.state_hash == {0: before.state_hash, 1: committed.state_hash}[after.turn]
        assert (after.last_sequence > 0) == (after.turn == 1)
        again = [event async for event in play.turn(request)]
        assert again[-1].committed.state_hash == committed.state_hash
        assert again[-1].committed.chain_hash == committed.chain_hash
        assert (await play.api.session(before.session_id)).turn == 1
    return after.turn


async def play_until_killed(play: Play, request: session_pb2.TakeTurnRequest, killing: Killing) -> None:
    async with aclosing(play.turn(request)) as events:
        for _ in range(killing.after_events):
            await anext(events)
        if killing.finish_writing:
            play.model.permit()
            await asyncio.sleep(killing.seconds_later)
        play.server.kill()

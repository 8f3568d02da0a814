"""Clients who leave in the middle of turns: the parts they heard make up the whole, and nothing stays."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from peripety.api.common.v1 import engine_pb2
from peripety.api.session.v1 import session_pb2
from peripety.errors import NotFoundError
from peripety.server.app import serve
from support.engine.specs import playable
from support.gateway.fake_server import FakeServer, WritesWithPermit, upstream
from support.servers.apps import Api, config_for, turn_request
from support.session.crash import PacedModel, account_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from support.gateway.fake_server import FakeServer


pytestmark = pytest.mark.slow(reason="breaks off many turns")


BREAKS = int(os.environ.get("PERIPETY_BREAKS", "100"))
CLIENTS = 8
ROUNDS = 5
PIECES = ('{"narrative":"', *("word " for _ in range(8)), '."}')
ESTABLISHED = "01"


@asynccontextmanager
async def playing(home: Path, model: FakeServer) -> AsyncIterator[Api]:
    config = config_for(home, model_provider="generic", openai_api_base=model.base_url, model_name="fake")
    async with serve(config) as app, Api.connected(app.address) as api:
        yield api


async def test_the_parts_that_a_client_heard_make_up_the_whole(tmp_path: Path) -> None:
    async with upstream(PacedModel(*PIECES)) as model, playing(tmp_path, model) as api:
        left = iter(range(BREAKS))
        await asyncio.gather(*(_play_and_leave(api, left) for _ in range(CLIENTS)))


async def _play_and_leave(api: Api, left: Iterator[int]) -> None:
    session = await api.session_of(playable())
    for _ in left:
        if session.status.kind != engine_pb2.RUN_STATUS_KIND_ONGOING:
            session = await api.session_of(playable())
        request = turn_request(session)
        heard = await _until_left(api, request, events=random.randint(1, 14))
        heard = await _with_the_rest(api, request, heard)
        assert heard == [event async for event in api.turn(request)]
        session = await api.session(session.session_id)
        assert session.turn == request.expected_turn


async def _until_left(
    api: Api,
    request: session_pb2.TakeTurnRequest,
    events: int,
) -> list[session_pb2.TurnEvent]:
    heard: list[session_pb2.TurnEvent] = []
    async with aclosing(api.turn(request)) as turn:
        async for event in turn:
            heard.append(event)
            if len(heard) >= events:
                break
    return heard


async def _with_the_rest(
    api: Api,
    request: session_pb2.TakeTurnRequest,
    heard: list[session_pb2.TurnEvent],
) -> list[session_pb2.TurnEvent]:
    resume = session_pb2.ResumeTurnRequest(
        session_id=request.session_id,
        request_id=request.request_id,
        after_sequence=heard[-1].sequence,
        attempt_id=heard[0].accepted.attempt_id,
    )
    try:
        rest = [response.event async for response in api.sessions.ResumeTurn(resume)]
    except NotFoundError:
        # It was not committed, so it is played anew.
        rest = [event async for event in api.turn(request)]
    return account_of([*heard, *rest])


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="this system does not show its connections")
async def test_nothing_stays_behind_of_turns_that_clients_left(tmp_path: Path) -> None:
    async with upstream(WritesWithPermit(*PIECES)) as model, playing(tmp_path, model) as api:
        sessions = [await api.session_of(playable()) for _ in range(CLIENTS)]
        # The first round opens the permanent connections and files, so that they do not count below.
        await _left_by_everybody(api, model, sessions)
        before = _kept()
        for _ in range(ROUNDS):
            await _left_by_everybody(api, model, sessions)
        # Pools may still grow a little; whatever a turn leaves behind would be there for each of them.
        grown = [now - then for now, then in zip(_kept(), before, strict=True)]
        assert max(grown) < CLIENTS, grown
        assert [(await api.session(session.session_id)).turn for session in sessions] == [0] * CLIENTS


async def _left_by_everybody(api: Api, model: FakeServer, sessions: list[session_pb2.Session]) -> None:
    """Leave a turn of each session while the model holds its answer, until all its connections are closed."""
    turns = [api.turn(turn_request(session)) for session in sessions]
    asked = len(model.requests) + len(turns)
    await asyncio.gather(*(_mechanics(turn) for turn in turns))
    port = int(model.base_url.removesuffix("/v1").rpartition(":")[2])
    await _until(lambda: len(model.requests) == asked)
    assert _connections_to(port) >= len(turns)
    for turn in turns:
        await turn.aclose()
    await _until(lambda: not _connections_to(port))


async def _until(happened: Callable[[], bool]) -> None:
    while True:
        if happened():
            return
        await asyncio.sleep(0.01)


async def _mechanics(turn: AsyncIterator[session_pb2.TurnEvent]) -> None:
    async for event in turn:
        if event.HasField("world_resolved"):
            return


def _connections_to(port: int) -> int:
    """Return the number of connections to a local port that are open at the client's end."""
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    fields = [line.split() for line in lines]
    return sum(state == ESTABLISHED and remote.endswith(f":{port:04X}") for _, _, remote, state, *_ in fields)


def _kept() -> tuple[int, int, int]:
    """Tasks, threads and open files, without the model's: a thread and a file for each answer it holds."""
    held = sum("process_request" in thread.name for thread in threading.enumerate())
    files = len(list(Path("/proc/self/fd").iterdir()))
    return len(asyncio.all_tasks()), threading.active_count() - held, files - held

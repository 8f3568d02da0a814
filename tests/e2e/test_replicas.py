"""Two processes on one PostgreSQL database, which is killed and started again under them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from peripety.errors import UnavailableError
from support.engine.specs import playable
from support.servers.apps import Api, turn_request
from support.servers.databases import PASSWORD, PostgresqlProcess
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.api.session.v1 import session_pb2

pytestmark = pytest.mark.slow(reason="kills processes at many points")


async def _taken(api: Api, request: session_pb2.TakeTurnRequest) -> list[session_pb2.TurnEvent]:
    return [event async for event in api.turn(request)]


async def test_replicas_play_one_session_and_outlive_a_crash_of_their_database(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        database = stack.enter_context(PostgresqlProcess())
        settings = {"PERIPETY_DATABASE_URL": stack.enter_context(database.database())}
        servers = [
            stack.enter_context(ServerProcess(tmp_path / name, settings=settings)) for name in ("one", "two")
        ]
        one, two = [await stack.enter_async_context(Api.connected(server.address)) for server in servers]

        session = await one.session_of(playable())
        played = await _taken(one, turn_request(session))
        seen = await two.session(session.session_id)
        assert (seen.turn, seen.state_hash) == (1, played[-1].committed.state_hash)

        request = turn_request(seen)
        told = await asyncio.gather(_taken(one, request), _taken(two, request))
        assert told[0][-1].committed == told[1][-1].committed

        third = turn_request(await one.session(session.session_id))
        await asyncio.to_thread(database.kill)
        for api in (one, two):
            with pytest.raises(UnavailableError) as caught:
                await _taken(api, third)
            assert caught.value.code == "STORAGE_UNAVAILABLE"
        await asyncio.to_thread(database.start)

        ends = [(await _taken(api, third))[-1].committed for api in (one, two)]
        assert ends[0] == ends[1]
        assert (await two.session(session.session_id)).turn == 3
        assert [server.stop() for server in servers] == [0, 0]
    logged = "".join(server.log for server in servers)
    assert "Traceback" not in logged
    assert not [secret for secret in (PASSWORD, "w%40rd") if secret in logged]

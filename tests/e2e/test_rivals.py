"""Replicas on one database receive the same turns at once: each turn happens once, with the same events."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING

import pytest

from peripety.api.session.v1 import session_pb2
from peripety.errors import ConflictError
from support.engine.specs import playable
from support.gateway.fake_server import WritesWithPermit, upstream
from support.servers.apps import turn_request
from support.servers.databases import PostgresqlProcess
from support.session.crash import Contest, PacedModel, Replica, account_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers.apps import Api


CLIENTS = 6
TROUBLES = int(os.environ.get("PERIPETY_REPLICA_TROUBLES", "8"))
PIECES = ('{"narrative":"', *("word " for _ in range(8)), '."}')
_log = logging.getLogger(__name__)

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow(reason="kills processes at many points")]


@pytest.fixture
def database() -> Iterator[PostgresqlProcess]:
    with PostgresqlProcess() as process:
        yield process


async def test_rivals_on_two_replicas_leave_one_history_whatever_dies(
    tmp_path: Path,
    database: PostgresqlProcess,
) -> None:
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(upstream(PacedModel(*PIECES)))
        url = stack.enter_context(database.database())
        settings = {"PERIPETY_DATABASE_URL": url, **_narrated_by(provider.base_url)}
        replicas = [await _started(stack, tmp_path / name, settings) for name in ("one", "two")]
        scenario_id = (await replicas[0].api.compile(playable()))[-1].compiled.scenario_id
        contest = Contest(replicas, scenario_id)
        async with asyncio.TaskGroup() as group:
            players = [group.create_task(contest.play()) for _ in range(CLIENTS)]
            for number in range(TROUBLES):
                await asyncio.sleep(random.uniform(0.3, 1.5))
                await _trouble(number, replicas, database)
            contest.end()
            await asyncio.gather(*players)
        assert sum(map(len, contest.turns.values())) >= TROUBLES
        assert {"told", "STALE_TURN"} <= contest.accounts.outcomes.keys()
        for session_id, won in contest.turns.items():
            for replica in replicas:
                await _check_history(replica.api, session_id, won, contest)
    _log.info("%d turns of %s", sum(map(len, contest.turns.values())), dict(contest.accounts.outcomes))


@pytest.mark.parametrize("same_request", [True, False])
async def test_a_replica_frozen_in_a_turn_writes_nothing_when_it_thaws(
    tmp_path: Path,
    database: PostgresqlProcess,
    *,
    same_request: bool,
) -> None:
    async with AsyncExitStack() as stack:
        model = WritesWithPermit(*PIECES)
        provider = await stack.enter_async_context(upstream(model))
        url = stack.enter_context(database.database())
        settings = {"PERIPETY_DATABASE_URL": url, **_narrated_by(provider.base_url)}
        one, two = [await _started(stack, tmp_path / name, settings) for name in ("one", "two")]
        session = await one.api.session_of(playable())
        request = turn_request(session)
        model.permit(4)
        async with aclosing(one.api.turn(request)) as events:
            told = []
            async for event in events:
                told.append(event)
                if event.HasField("narrative_chunk"):
                    break
            one.server.process.send_signal(signal.SIGSTOP)
            model.permit(10 * len(PIECES))
            rival = request if same_request else turn_request(session)
            account = account_of([event async for event in two.api.turn(rival)])
            decided = await two.api.session(session.session_id)
            one.server.process.send_signal(signal.SIGCONT)
            if same_request:
                told += [event async for event in events]
                assert account_of(told) == account
            else:
                with pytest.raises(ConflictError) as caught:
                    told += [event async for event in events]
                assert caught.value.code == "STALE_TURN"
        assert await one.api.session(session.session_id) == decided
        assert decided.turn == 1
        assert [event async for event in one.api.turn(rival)] == account


def _narrated_by(url: str) -> dict[str, str]:
    return {"MODEL_PROVIDER": "generic", "OPENAI_API_BASE": url, "MODEL_NAME": "fake"}


async def _started(stack: AsyncExitStack, home: Path, settings: dict[str, str]) -> Replica:
    replica = Replica(home, settings)
    await replica.start()
    stack.push_async_callback(replica.leave)
    return replica


async def _trouble(number: int, replicas: list[Replica], database: PostgresqlProcess) -> None:
    """Kill a replica or their database, and start it again."""
    if number % 4 == 3:
        await asyncio.to_thread(database.kill)
        await asyncio.sleep(random.uniform(0, 0.3))
        await asyncio.to_thread(database.start)
    else:
        replica = replicas[number % 2]
        await replica.kill()
        await replica.start()


async def _check_history(
    api: Api,
    session_id: str,
    won: list[session_pb2.TakeTurnRequest],
    contest: Contest,
) -> None:
    """Check that each replica has the same complete list, equal to the sent events and to a replay."""
    session = await api.session(session_id)
    assert session.turn == len(won)
    sequence = 0
    for number, request in enumerate(won, start=1):
        events = [event async for event in api.turn(request)]
        assert events == contest.accounts.by_request[request.request_id]
        assert {event.turn for event in events} == {number}
        assert [event.sequence for event in events] == list(range(sequence + 1, sequence + 1 + len(events)))
        sequence += len(events)
    assert session.last_sequence == sequence
    replayed = [
        event
        async for event in api.sessions.ReplaySession(session_pb2.ReplaySessionRequest(session_id=session_id))
    ]
    assert replayed[-1].completed.mismatches == 0

"""Python side of `make bench-clients`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING

from peripety.api.session.v1.session_pb2 import CreateSessionRequest, Session, WatchSessionRequest
from peripety.client import AsyncClient

if TYPE_CHECKING:
    from collections.abc import Awaitable


async def main(address: str, scenario_id: str, documents: str, counts: list[int]) -> None:
    """Print the figures of the best rounds as JSON."""
    sessions, turns, rounds = counts
    with open(documents, "rb") as file:  # noqa: ASYNC230, PTH123 - before anything is measured
        lines = file.read().splitlines()
    best = dict.fromkeys(("openings", "turns", "events", "specifications"), 0.0)

    async def measure(name: str, *works: Awaitable[int]) -> None:
        started = time.perf_counter()
        done = sum(await asyncio.gather(*works))
        best[name] = max(best[name], done / (time.perf_counter() - started))

    async with AsyncClient(address) as client:
        for _ in range(rounds):
            request = CreateSessionRequest(scenario_id=scenario_id)
            opened = [(await client.sessions.CreateSession(request)).session for _ in range(sessions)]
            await measure("openings", _open_quietly(client, opened))
            await measure("turns", *(_play(client, session, turns) for session in opened))
            await measure("events", *(_watch(client, session) for session in opened))
            await measure("specifications", _validate(client, lines))
    sys.stdout.write(json.dumps(best) + "\n")


async def _open_quietly(client: AsyncClient, sessions: list[Session]) -> int:
    for session in sessions:
        call = client.sessions.WatchSession(WatchSessionRequest(session_id=session.session_id))
        await call.initial_metadata()
        call.cancel()
    return len(sessions)


async def _play(client: AsyncClient, session: Session, turns: int) -> int:
    for _ in range(turns):
        async for _event in client.play(session, "hold"):
            pass
    return turns


async def _watch(client: AsyncClient, session: Session) -> int:
    events = 0
    async for response in client.watch(WatchSessionRequest(session_id=session.session_id)):
        events += 1
        event = response.turn_event
        if event.HasField("committed") and event.turn == session.turn:
            break
    return events


async def _validate(client: AsyncClient, lines: list[bytes]) -> int:
    pairs = ((str(number), line) for number, line in enumerate(lines))
    return sum([verdict.accepted async for verdict in client.validate(pairs)])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], list(map(int, sys.argv[4:]))))

"""Many followers of one session: each event once for each, and no memory that grows with the turns."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from support.servers.edge import EdgeClient

if TYPE_CHECKING:
    from support.servers.edge import SseEvent

pytestmark = [
    pytest.mark.asyncio(loop_scope="package"),
    pytest.mark.slow(reason="200 connections"),
]

SPEC: dict[str, Any] = json.loads(Path("examples/scenario.json").read_text(encoding="utf-8"))
TURN = {"actions": [{"action_id": "gather"}, {"action_id": "mend"}]}
WATCHERS = 200
WARM_UP, TURNS = 2, 6
MAX_GROWTH = 16 * 2**20
"""Bytes of memory that 200 watchers may add in six turns: far less than a log for each of them."""


async def test_two_hundred_watchers_see_each_event_once(edge: EdgeClient) -> None:
    session_id = await edge.start_session(SPEC)
    seen: list[list[str]] = [[] for _ in range(WATCHERS)]
    turns = [0] * WATCHERS
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        client = EdgeClient(edge.url, http)

        arrived = asyncio.Semaphore(0)

        async def watch(number: int) -> None:
            async for event in client.events(f"/sessions/{session_id}/events", method="GET"):
                seen[number].append(event.event_id)
                if event.name == "diff":
                    turns[number] += 1
                    arrived.release()
                if turns[number] == WARM_UP + TURNS:
                    return

        watchers = [asyncio.ensure_future(watch(number)) for number in range(WATCHERS)]
        played: list[SseEvent] = []
        before = 0
        for turn in range(1, WARM_UP + TURNS + 1):
            played += [event async for event in edge.events(f"/sessions/{session_id}/turns", TURN)]
            for _ in range(WATCHERS):
                await arrived.acquire()
            before = _resident_bytes() if turn == WARM_UP else before
        await asyncio.gather(*watchers)
    expected = [event.event_id for event in played]
    assert all(ids == expected for ids in seen)
    assert _resident_bytes() - before < MAX_GROWTH


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_streams_leave_room_for_other_calls(edge: EdgeClient) -> None:
    session_id = await edge.start_session(SPEC)
    turns = f"/sessions/{session_id}/turns"
    played = [event async for event in edge.events(turns, TURN)]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        client = EdgeClient(edge.url, http)
        # Followers with a delay share no stream of the service.
        path = f"/sessions/{session_id}/events?delay_turns=1"
        streams = [client.events(path, method="GET") for _ in range(WATCHERS)]
        first = [asyncio.ensure_future(anext(stream)) for stream in streams]
        async for _ in edge.events(turns, TURN):
            pass
        events = await asyncio.gather(*first)
        assert {event.event_id for event in events} <= {"", played[0].event_id}
        status, session = await edge.get(f"/sessions/{session_id}")
        assert (status, session["turn"]) == (200, 2)
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]  # an asynchronous generator

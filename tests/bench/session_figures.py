"""Figures of sessions that are not compared: long ones, forks, odds, and watchers."""

from __future__ import annotations

import asyncio
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import grpc

from bench.load import cpu_seconds
from bench.reference import numeric_spec
from bench.scripted_narrator import moments_in
from bench.session_clients import GrpcPlayer, Watcher
from bench.session_sides import compiled
from peripety.api.scenario.v1 import scenario_pb2_grpc
from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1 import session_pb2_grpc
from support.servers.apps import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bench.session_clients import Player
    from bench.session_sides import Side


EARLY, LATE = 20, 500
FORKS = 100
FUTURES = 10_000
WATCHED, WATCHERS, WATCHED_TURNS = 10, 20, 20


def report_growth(side: Side, moments: Path) -> GrpcPlayer | None:
    """Play one long session, and print the growth of its prompts; return the player of gRPC, if any."""
    player = side.player(0)
    asyncio.run(_play([player], LATE))
    tokens = _tokens_noted(moments)
    early, late = tokens[EARLY - 1], tokens[LATE - 1]
    sys.stdout.write(
        f"  {side.name}: {early:,} tokens of prompt in turn {EARLY}, {late:,} in turn {LATE}"
        f" ({late / early:.2f}x), {sum(tokens) / len(tokens):,.0f} a turn\n",
    )
    return player if isinstance(player, GrpcPlayer) else None


def _tokens_noted(moments: Path) -> list[int]:
    """The size of each prompt; an answer is noted when it has left, and its reader may have it before."""
    for _ in range(500):
        tokens = [each.input_tokens for each in moments_in(moments)]
        if len(tokens) >= LATE:
            return tokens
        time.sleep(0.01)
    raise RuntimeError(f"{len(tokens)} answers for {LATE} turns")


def report_forks(side: Side, player: GrpcPlayer) -> None:
    """Fork a session of many turns, again and again."""
    times: list[float] = []
    with grpc.insecure_channel(side.address) as channel:
        sessions = session_pb2_grpc.SessionServiceStub(channel)
        before = cpu_seconds(side.pid)
        for _ in range(FORKS):
            request = pb.ForkSessionRequest(request_id=new_id(), session_id=player.session_id)
            times.append(_seconds(partial(sessions.ForkSession, request)))
        spent = (cpu_seconds(side.pid) - before) / FORKS
    sys.stdout.write(
        f"  fork at turn {LATE}, call and commit: {_median(times) * 1e3:.2f} ms, of which"
        f" {spent * 1e3:.2f} ms of CPU time in the server (target: 1 ms)\n",
    )


def report_odds(side: Side) -> None:
    """Request the odds of a reference scenario."""
    with grpc.insecure_channel(side.address) as channel:
        sessions = session_pb2_grpc.SessionServiceStub(channel)
        scenario_id = compiled(scenario_pb2_grpc.ScenarioServiceStub(channel), numeric_spec())
        request = pb.CreateSessionRequest(request_id=new_id(), scenario_id=scenario_id)
        session_id = sessions.CreateSession(request).session.session_id
        asked = pb.ForecastOutcomesRequest(session_id=session_id, runs=FUTURES)
        times = [_seconds(lambda: list(sessions.ForecastOutcomes(asked))) for _ in range(5)]
    sys.stdout.write(f"  odds over {FUTURES:,} futures: {_median(times) * 1e3:.0f} ms (target: 300 ms)\n")


def report_watching(side: Side) -> None:
    """Play some sessions while many watch them."""
    players = [side.player(number) for number in range(WATCHED)]
    port = int(side.address.rpartition(":")[2])
    watchers = [
        Watcher(port, player.session_id)
        for player in players
        if isinstance(player, GrpcPlayer)
        for _ in range(WATCHERS)
    ]
    spent, seconds = asyncio.run(_watched(side, players, watchers))
    events = sum(watcher.events for watcher in watchers)
    sys.stdout.write(
        f"  {WATCHED} sessions, {WATCHERS} watchers each: {events / seconds:,.0f} events a second,"
        f" {events / spent:,.0f} for each second of CPU time\n",
    )


async def _watched(side: Side, players: Sequence[Player], watchers: Sequence[Watcher]) -> tuple[float, float]:
    """CPU time and time that the turns took."""
    for watcher in watchers:
        await watcher.open()
    before, began = cpu_seconds(side.pid), time.perf_counter()
    await _play(players, WATCHED_TURNS)
    spent, seconds = cpu_seconds(side.pid) - before, time.perf_counter() - began
    for watcher in watchers:
        watcher.close()
    return spent, seconds


async def _play(players: Sequence[Player], turns: int) -> None:
    async def play(player: Player) -> None:
        await player.open()
        for _ in range(turns):
            await player.take()
        player.close()

    await asyncio.gather(*map(play, players))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _median(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // 2]

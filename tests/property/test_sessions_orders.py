"""Requests come twice, late, at once, to two processes that fail: each turn is played once, by one."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peripety.errors import ConflictError, UnavailableError
from peripety.session.events import Accepted, Committed
from support.engine.specs import document
from support.examples import example_count
from support.servers.databases import CrashError, Faults, process
from support.session.sessions import assert_whole, new_id, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.session.events import Event
    from peripety.session.session_manager import SessionManager
    from peripety.session.types import TurnRequest
    from peripety.session.visibility import TurnEventView
    from support.session.sessions import Table


EXAMPLES = example_count(150)
REQUESTS = 4
PROCESSES = 2


@dataclass(frozen=True)
class Call:
    """A request on its way: which one, to whom, when it comes, and when its caller leaves."""

    request: int
    process: int
    after: int
    leaves_after: int | None


calls = st.builds(
    Call,
    st.integers(0, REQUESTS - 1),
    st.integers(0, PROCESSES - 1),
    st.integers(0, 60),
    st.none() | st.integers(0, 80),
)
faults = st.builds(Faults, at=st.integers(0, 40), kind=st.sampled_from(["error", "crash"]), count=st.just(0))


@pytest.mark.slow(reason="plays many sessions")
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(calls, min_size=2, max_size=10),
    st.lists(st.integers(1, 3), min_size=REQUESTS, max_size=REQUESTS),
    st.tuples(faults, faults),
)
def test_of_all_who_want_a_turn_one_plays_it_once(
    plan: list[Call],
    wanted: list[int],
    failing: tuple[Faults, Faults],
) -> None:
    asyncio.run(_played(plan, wanted, failing))


async def _played(plan: Sequence[Call], wanted: Sequence[int], failing: Sequence[Faults]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with table(f"sqlite:///{directory}/test.db", document()) as game:
            requests = [game.request(turn, "act", request_id=new_id()) for turn in wanted]
            processes = [process(game, fault) for fault in failing]
            ended = await asyncio.gather(
                *(_made(processes[call.process], requests[call.request], call) for call in plan),
            )
            told: dict[int, list[list[TurnEventView]]] = {}
            for call, events in zip(plan, ended, strict=True):
                if events is not None:
                    told.setdefault(call.request, []).append(events)
            await _check(game, requests, told)


async def _made(sessions: SessionManager, request: TurnRequest, call: Call) -> list[TurnEventView] | None:
    """Return the events of a turn that was completed; None if it was not."""
    for _ in range(call.after):
        await asyncio.sleep(0)
    turn = asyncio.ensure_future(_take(sessions, request))
    if call.leaves_after is not None:
        for _ in range(call.leaves_after):
            await asyncio.sleep(0)
        turn.cancel()
    await asyncio.wait([turn])
    if turn.cancelled():
        return None
    error = turn.exception()
    if error is not None:
        assert isinstance(error, CrashError | UnavailableError | ConflictError), error
        return None
    return turn.result()


async def _take(sessions: SessionManager, request: TurnRequest) -> list[TurnEventView]:
    return [event async for event in sessions.turn_runner.run(request)]


async def _check(
    game: Table,
    requests: Sequence[TurnRequest],
    told: dict[int, list[list[TurnEventView]]],
) -> None:
    turns = {turn.request_id: turn for turn in await game.store.list_turns(game.session_id, 0, 100)}
    assert await assert_whole(game) == len(turns)
    for index, endings in told.items():
        for events in endings:
            # All clients that received a commit received this one.
            kept = turns[requests[index].request_id]
            assert _in_the_end(events) == list(kept.events)
    for request in requests:
        again: Any = await asyncio.gather(_take(game.sessions, request), return_exceptions=True)
        if request.request_id in turns:
            assert _in_the_end(again[0]) == list(turns[request.request_id].events)
        elif isinstance(again[0], list):
            assert isinstance(again[0][-1].event, Committed)
        else:
            assert isinstance(again[0], ConflictError)
    await assert_whole(game)


def _in_the_end(events: Sequence[TurnEventView]) -> list[Event | None]:
    """Return the valid events: everything since the turn last began."""
    told = [seen.event for seen in events]
    began = max(index for index, event in enumerate(told) if isinstance(event, Accepted))
    return told[began:]

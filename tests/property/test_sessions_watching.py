"""Whatever happens in a session, and however often followers are cut off: nothing is missed or doubled."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peripety.core.concurrency import closing
from peripety.session.branch_types import RewindRequest
from peripety.session.watch.topic import CachedEventView, SeatActed, WatchClosed, WatchHeartbeat, WatchRequest
from support.examples import example_count
from support.gateway.fake_gateway import SILENCE, FakeGateway
from support.session.sessions import SCENARIO, new_id, outcome, table
from support.session.watch import Held

if TYPE_CHECKING:
    from support.session.sessions import Table


EXAMPLES = max(10, example_count(150, times=1 / 5))
STUCK = [outcome("Told so far.")[:-6], SILENCE]
VIEWS = (None, "p", "q")

# Steps: a turn, a turn that fails during narration, a turn that is rejected, or a rewind.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("play"), st.sampled_from(["act", "hide"]), st.sampled_from(VIEWS)),
        st.tuples(st.just("fail"), st.sampled_from(["act", "hide"]), st.sampled_from(VIEWS)),
        st.tuples(st.just("reject")),
        st.tuples(st.just("rewind"), st.integers(0, 8)),
    ),
    min_size=1,
    max_size=10,
)
# After how many events the connection of each follower breaks, again and again.
patience = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=3, max_size=3)


@dataclass
class Follower:
    """A client that loses its connection after some events, and resumes after its last one."""

    game: Table
    view: str | None
    patience: list[int]
    held: Held = field(default_factory=Held)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self) -> None:
        for number in range(10_000):
            await self._until_it_breaks(self.patience[number % len(self.patience)])

    async def _until_it_breaks(self, events: int) -> None:
        request = WatchRequest(self.game.session_id, self.view, self.held.last_sequence, self.held.attempt_id)
        async with closing(self.game.sessions.watch_streams.open(request)) as stream:
            async for event in stream:
                assert not isinstance(event, WatchClosed | WatchHeartbeat | SeatActed)
                self.held.hear([event])
                self.done.set()
                events -= isinstance(event, CachedEventView)
                if events <= 0:
                    return

    async def has_heard(self, sequence: int) -> None:
        while self.held.last_sequence < sequence:
            self.done.clear()
            await self.done.wait()


async def take(game: Table, gateway: FakeGateway, step: tuple[object, ...]) -> None:
    now = (await game.now()).session
    match step:
        case ("play", str(action), str() | None as pov):
            gateway.answers = [outcome("Told.")]
            await game.play(now.turn + 1, action, pov=pov, input="Said.")
        case ("fail", str(action), str() | None as pov):
            gateway.answers = [STUCK]
            gateway.silent.clear()
            turn = asyncio.create_task(game.play(now.turn + 1, action, pov=pov))
            await gateway.silent.wait()
            turn.cancel()
            with suppress(asyncio.CancelledError):
                await turn
        case ("reject",):
            await game.play(now.turn + 1, "never")
        case ("rewind", int(turn)) if turn < now.turn:
            await game.sessions.rewind(RewindRequest(new_id(), game.session_id, turn, now.turn))


@pytest.mark.slow(reason="plays many sessions")
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(steps, patience, st.booleans())
def test_the_parts_that_a_follower_hears_are_the_whole(
    steps: list[tuple[object, ...]],
    patience: list[list[int]],
    at_once: bool,
) -> None:
    async def scene() -> None:
        gateway = FakeGateway(outcome())
        with tempfile.TemporaryDirectory() as directory:
            async with table(f"sqlite:///{directory}/test.db", SCENARIO, gateway) as game:
                followers = [Follower(game, *one) for one in zip(VIEWS, patience, strict=True)]
                tasks = [asyncio.create_task(follower.follow()) for follower in followers] if at_once else []
                for step in steps:
                    await take(game, gateway, step)
                gateway.answers = [outcome("The end.")]
                await game.play((await game.now()).session.turn + 1, "act")
                tasks = tasks or [asyncio.create_task(follower.follow()) for follower in followers]
                end = (await game.now()).session
                for follower in followers:
                    async with asyncio.timeout(20):
                        await follower.has_heard(end.last_sequence)
                    recorded = [
                        seen
                        for turn in range(1, end.turn + 1)
                        for seen in await game.sessions.resume(game.session_id, turn, pov=follower.view)
                    ]
                    assert follower.held.events == recorded
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
                assert all(isinstance(one, asyncio.CancelledError) for one in ended), ended

    asyncio.run(scene())

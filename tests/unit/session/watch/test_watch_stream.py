from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from peripety.core.concurrency import closing
from peripety.session.events import NarrativeChunk
from peripety.session.types import TurnOrder
from peripety.session.watch.broadcaster import SessionBroadcaster
from peripety.session.watch.topic import MAX_LAG_TURNS, SeatActed, WatchClosed, WatchHeartbeat, WatchRequest
from peripety.session.watch.watch_stream import WatchStreams
from support.engine.specs import action, at_most, document, never
from support.gateway.fake_gateway import SILENCE, FakeGateway
from support.session.sessions import at_a_table, kinds, outcome, rulesets, submission, table
from support.session.watch import Held, commits, noticing, seen_of, watch

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import pytest

SCENARIO = document(
    entities=[{"id": "p", "playable": True}, {"id": "q", "playable": True}],
    state={"a": 1, "b": 5, "private": {"p": {"x": 1}}},
    actions=[
        action("act", [{"op": "inc", "path": "state.a", "value": 1}]),
        action("hide", [{"op": "inc", "path": "state.private.p.x", "value": 1}]),
        action("end", [{"op": "set", "path": "state.b", "value": 0}]),
    ],
    loss_conditions=[at_most("lost", "state.b", 0), never("other")],
)
STUCK = [outcome("Told so far.")[:-6], SILENCE]


async def test_what_is_recorded_comes_first_and_what_happens_then_follows(database_url: str) -> None:
    async with table(database_url, SCENARIO) as game:
        played = [*await game.play(1, "act"), *await game.play(2, "act")]
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch(game.sessions, game.session_id, commits(3)))
            await asyncio.sleep(0)
            played += await game.play(3, "act")
    assert seen_of(watching.result()) == played


async def test_a_turn_is_heard_while_it_is_told(database_url: str) -> None:
    gateway = FakeGateway(STUCK)
    async with table(database_url, SCENARIO, gateway) as game:
        turn = asyncio.create_task(game.play(1, "act"))
        await gateway.silent.wait()
        heard = await watch(
            game.sessions,
            game.session_id,
            lambda e: isinstance(seen_of([e])[0].event, NarrativeChunk),
        )
        turn.cancel()
        await asyncio.wait([turn])
    assert kinds(seen_of(heard)) == ["Accepted", "ActionResolved", "WorldResolved", "NarrativeChunk"]


async def test_an_attempt_that_failed_is_void_when_the_next_one_begins(database_url: str) -> None:
    gateway = FakeGateway(STUCK, outcome("Told."))
    async with table(database_url, SCENARIO, gateway) as game:
        held, there = Held(), asyncio.Event()
        watching = asyncio.create_task(watch(game.sessions, game.session_id, noticing(there, commits(1))))
        turn = asyncio.create_task(game.play(1, "act"))
        await gateway.silent.wait()
        await there.wait()
        turn.cancel()
        await asyncio.wait([turn])
        played = await game.play(1, "act")
        events = await watching
        held.hear(events)
    assert kinds(seen_of(events)).count("Accepted") == 2
    assert held.events == played


async def test_a_follower_who_falls_far_behind_is_let_go_and_can_go_on(database_url: str) -> None:
    async with table(database_url, SCENARIO) as game:
        await game.play(1, "act")
        held = Held()
        async with closing(game.sessions.watch_streams.open(WatchRequest(game.session_id))) as events:
            while held.last_sequence < (await game.now()).session.last_sequence:
                held.hear([await anext(events)])
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            turn = await game.play(2, "act")
            held.hear([await waiting])
            # The client stops reading, and the server does not wait for it.
            for number in range(3, MAX_LAG_TURNS + 5):
                turn = await game.play(number, "act")
            rest = [event async for event in events]
        held.hear(rest)
        assert rest[-1] == WatchClosed("TOO_SLOW", held.last_sequence)
        held.hear(
            await watch(
                game.sessions,
                game.session_id,
                commits(turn[-1].turn),
                after=held.last_sequence,
                attempt_id=held.attempt_id,
            ),
        )
        assert held.events[-len(turn) :] == turn
        assert [seen.sequence for seen in held.events] == list(range(1, held.last_sequence + 1))


async def test_followers_that_leave_leave_nothing_behind(database_url: str) -> None:
    async with table(database_url, SCENARIO) as game:
        await game.play(1, "act")
        hub = SessionBroadcaster(game.store)
        watching = WatchStreams(game.store, rulesets(game.store), hub)
        before = asyncio.all_tasks()
        for _ in range(20):
            async with closing(watching.open(WatchRequest(game.session_id))) as events:
                await anext(events)
        while tasks := asyncio.all_tasks() - before:
            await asyncio.wait(tasks)
        # All places are free again.
        one = SessionBroadcaster(game.store, max_watchers=1)
        alone = WatchStreams(game.store, rulesets(game.store), one)
        for _ in range(3):
            async with closing(alone.open(WatchRequest(game.session_id))) as events:
                await anext(events)
        await one.aclose()


async def test_seats_are_all_reported_when_news_come_while_one_is_sent(database_url: str) -> None:
    async with at_a_table(database_url, order=TurnOrder.SIMULTANEOUS) as game:
        for seat in ("two", "one"):
            await game.store.seats.submit(submission(game, 1, seat, "act"), lambda _: None, 2**53)
        hub = SessionBroadcaster(game.store)
        watching = WatchStreams(game.store, rulesets(game.store), hub)
        async with closing(watching.open(WatchRequest(game.session_id))) as told:
            reported = [await anext(told)]
            hub.publish_seats((await game.now()).session, ())
            reported.append(await anext(told))
        await hub.aclose()
    assert reported == [SeatActed(1, "two", ("one",)), SeatActed(1, "one", ())]


async def test_a_seat_that_acts_during_a_poll_is_reported_once(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with at_a_table(database_url, order=TurnOrder.SIMULTANEOUS) as game:
        seats, session = game.store.seats, (await game.now()).session
        hub = SessionBroadcaster(game.store, poll_seconds=0.01)
        list_acted = seats.list_acted

        async def act(seat: str) -> None:
            await seats.submit(submission(game, 1, seat, "act"), lambda _: None, 2**53)

        async def read_then_act(session_ids: Collection[str]) -> dict[tuple[str, int], tuple[str, ...]]:
            monkeypatch.setattr(seats, "list_acted", list_acted)
            found = await list_acted(session_ids)
            await act("two")
            hub.publish_seats(session, ("two",))
            await asyncio.sleep(0.05)
            return found

        monkeypatch.setattr(seats, "list_acted", read_then_act)
        watching = WatchStreams(game.store, rulesets(game.store), hub)
        async with closing(watching.open(WatchRequest(game.session_id))) as told:
            assert await anext(told) == SeatActed(1, "two", ("one",))
            following = asyncio.ensure_future(anext(told))
            await asyncio.sleep(0.1)
            await act("one")
            assert await following == SeatActed(1, "one", ())
        await hub.aclose()


async def test_polling_continues_after_a_defect(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with table(database_url, SCENARIO) as game:
        hub = SessionBroadcaster(game.store, poll_seconds=0.01)
        last_sequences = game.store.last_sequences

        async def fail_once(session_ids: Sequence[str]) -> dict[str, int]:
            monkeypatch.setattr(game.store, "last_sequences", last_sequences)
            raise RuntimeError("a defect")

        monkeypatch.setattr(game.store, "last_sequences", fail_once)
        watching = WatchStreams(game.store, rulesets(game.store), hub)
        async with closing(watching.open(WatchRequest(game.session_id))) as events:
            following = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0.05)
            played = await game.play(1, "act")
            assert seen_of([await asyncio.wait_for(following, 30)]) == played[:1]
        await hub.aclose()


async def test_a_follower_is_told_that_the_stream_lives(database_url: str) -> None:
    async with table(database_url, SCENARIO) as game:
        played = await game.play(1, "act")
        hub = SessionBroadcaster(game.store)
        watching = WatchStreams(game.store, rulesets(game.store), hub, heartbeat_seconds=0.01)
        async with closing(watching.open(WatchRequest(game.session_id, after=played[-1].sequence))) as told:
            assert await anext(told) == WatchHeartbeat(played[-1].sequence)
        await hub.aclose()

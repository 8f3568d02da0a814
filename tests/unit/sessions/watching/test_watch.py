from __future__ import annotations

import asyncio

from peripety.sessions.events import NarrativeChunk
from support.sessions import SILENCE, ScriptedGateway, kinds, outcome, table
from support.specs import action, at_most, document, never
from support.watching import Held, commits, seen_of, watch

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
    gateway = ScriptedGateway([STUCK])
    async with table(database_url, SCENARIO, gateway) as game:
        turn = asyncio.create_task(game.play(1, "act"))
        await gateway.silent.wait()
        heard = await watch(
            game.sessions, game.session_id, lambda e: isinstance(seen_of([e])[0].event, NarrativeChunk)
        )
        turn.cancel()
        await asyncio.wait([turn])
    assert kinds(seen_of(heard)) == ["Accepted", "ActionResolved", "WorldResolved", "NarrativeChunk"]


async def test_an_attempt_that_failed_is_void_when_the_next_one_begins(database_url: str) -> None:
    gateway = ScriptedGateway([STUCK, outcome("Told.")])
    async with table(database_url, SCENARIO, gateway) as game:
        held = Held()
        watching = asyncio.create_task(watch(game.sessions, game.session_id, commits(1)))
        turn = asyncio.create_task(game.play(1, "act"))
        await gateway.silent.wait()
        turn.cancel()
        await asyncio.wait([turn])
        played = await game.play(1, "act")
        events = await watching
        held.hear(events)
    assert kinds(seen_of(events)).count("Accepted") == 2
    assert held.events == played

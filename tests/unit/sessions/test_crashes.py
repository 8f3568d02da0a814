"""Every operation on the database goes wrong in turn; the session is then at the turn before or after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.engine.specs import document
from support.servers.databases import Faults, attempted, process
from support.session.sessions import assert_whole, kinds, table

if TYPE_CHECKING:
    from support.session.sessions import Table


async def attempt(game: Table, faults: Faults, request: Any) -> None:
    """Take a turn in a process that may not survive it."""
    sessions = process(game, faults)

    async def take() -> None:
        async for _ in sessions.play_turn(request):
            pass

    await attempted(take(), faults)


async def operations(database_url: str) -> int:
    """How many points a whole turn passes that has others before it."""
    faults = Faults()
    async with table(database_url, document()) as game:
        await game.play(1, "act")
        await attempt(game, faults, game.request(2, "act"))
        assert (await game.now()).session.turn == 2
    return faults.count


@pytest.mark.parametrize("kind", ["crash", "error", "hang"])
async def test_wherever_a_turn_ends_it_has_happened_once_or_not_at_all(database_url: str, kind: str) -> None:
    points = await operations(database_url)
    assert points >= 12
    async with table(database_url, document()) as game:
        outcomes = set()
        for turn, point in enumerate(range(1, points + 1), 1):
            request = game.request(turn, "act")
            await attempt(game, Faults(point, kind), request)
            reached = await assert_whole(game)
            outcomes.add(reached - turn)
            assert reached in {turn - 1, turn}
            again = await game.take(request)
            assert kinds(again)[-1] == "Committed"
            assert await assert_whole(game) == turn
            assert await game.take(request) == again
    assert outcomes == {-1, 0}

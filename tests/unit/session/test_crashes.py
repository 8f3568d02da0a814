"""Every operation on the database goes wrong in turn; a fork or a rewind has then happened, or has not.

Every operation on the database goes wrong in turn; the session is then at the turn before or after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.session.branch_types import ForkRequest, RewindRequest
from peripety.session.types import SessionListing
from support.engine.specs import document
from support.servers.databases import Faults, attempted, process
from support.session.sessions import (
    FATEFUL,
    assert_whole,
    forked,
    kinds,
    new_id,
    standing_rows,
    table,
    turn_for,
    verified,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from peripety.session.session_manager import SessionManager
    from peripety.session.session_view import SessionView
    from support.session.sessions import Table


TURNS = 4


async def play(game: Table, session_id: str, turns: int) -> None:
    for _ in range(turns):
        await game.take(turn_for(await game.store.get_session(session_id), "act"))


async def points_of(game: Table, ask: Callable[[SessionManager], Awaitable[SessionView]]) -> int:
    """Return the number of fault points that an operation passes without a fault."""
    faults = Faults()
    await ask(process(game, faults))
    assert faults.count >= 8
    return faults.count


@pytest.mark.slow_after(1, reason="injects a crash at each write")
@pytest.mark.parametrize("kind", ["crash", "error", "hang"])
async def test_a_fork_is_there_once_or_not_at_all(database_url: str, kind: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, game.session_id, TURNS)
        kept = await verified(game.store, game.session_id)
        points = await points_of(
            game, lambda one: one.branches.fork(ForkRequest(new_id(), game.session_id, 2))
        )
        made = 2
        outcomes = set()
        for point in range(1, points + 1):
            request = ForkRequest(new_id(), game.session_id, 2)
            faults = Faults(point, kind)
            await attempted(process(game, faults).branches.fork(request), faults)
            there = len((await game.sessions.list_sessions(SessionListing(), 0, "")).items) - made
            assert there in {0, 1}
            outcomes.add(there)
            fork = (await game.sessions.branches.fork(request)).session
            made += 1
            assert len((await game.sessions.list_sessions(SessionListing(), 0, "")).items) == made
            assert await verified(game.store, fork.session_id) == kept[:2]
            assert (await standing_rows(game.database))["session_lines"] == made
        assert outcomes == {0, 1}
        assert await verified(game.store, game.session_id) == kept


@pytest.mark.slow_after(1, reason="injects a crash at each write")
@pytest.mark.parametrize(("kind", "needed"), [("crash", True), ("error", False), ("hang", True)])
async def test_a_rewind_has_happened_once_or_not_at_all(database_url: str, kind: str, needed: bool) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, game.session_id, TURNS)
        fork = (await forked(game.sessions, game.session_id)).session.session_id

        async def session_to_rewind() -> str:
            session_id = (await forked(game.sessions, fork)).session.session_id
            await play(game, session_id, 2)
            if needed:
                await forked(game.sessions, session_id)
            return session_id

        async def rewinding() -> RewindRequest:
            return RewindRequest(new_id(), await session_to_rewind(), TURNS + 1, TURNS + 2)

        request = await rewinding()
        points = await points_of(game, lambda one: one.rewind(request))
        outcomes = set()
        for point in range(1, points + 1):
            request = await rewinding()
            before = await game.store.get_session(request.session_id)
            faults = Faults(point, kind)
            await attempted(process(game, faults).rewind(request), faults)
            reached = await game.store.get_session(request.session_id)
            assert reached == before or reached.turn == request.turn
            outcomes.add(reached.turn)
            await verified(game.store, request.session_id)
            again = (await game.sessions.rewind(request)).session
            assert (again.turn, again.last_sequence) == (request.turn, before.last_sequence + 1)
            await verified(game.store, request.session_id)
        assert outcomes == {TURNS + 1, TURNS + 2}


async def attempt(game: Table, faults: Faults, request: Any) -> None:
    """Take a turn in a process that may not survive it."""
    sessions = process(game, faults)

    async def take() -> None:
        async for _ in sessions.turn_runner.run(request):
            pass

    await attempted(take(), faults)


async def operations(database_url: str) -> int:
    """Return the number of fault points in a whole turn that follows others."""
    faults = Faults()
    async with table(database_url, document()) as game:
        await game.play(1, "act")
        await attempt(game, faults, game.request(2, "act"))
        assert (await game.now()).session.turn == 2
    return faults.count


@pytest.mark.slow_after(1, reason="ends a process at each of its writes")
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

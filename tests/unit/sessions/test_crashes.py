"""Every operation on the database goes wrong in turn; the session is then at the turn before or after."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from peripety import sim
from peripety.errors import UnavailableError
from peripety.sessions.store import SessionStore
from support.sessions import OneScenario, ScriptedGateway, kinds, sessions_over, table
from support.specs import document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.sessions.sessions import Sessions
    from peripety.storage import Database
    from support.sessions import Table


class CrashError(BaseException):
    """The end of a process: nobody handles it."""


@dataclass
class Faults:
    """Counts operations, and does something bad at one of them."""

    at: int = 0
    kind: str = ""
    count: int = 0
    hangs: asyncio.Event = field(default_factory=asyncio.Event)

    async def point(self) -> None:
        self.count += 1
        if self.count != self.at:
            return
        if self.kind == "crash":
            raise CrashError
        if self.kind == "error":
            raise UnavailableError("the disk is gone")
        self.hangs.set()
        await asyncio.Event().wait()


class FaultyConnection:
    """A connection with a point before and after everything that it does."""

    def __init__(self, connection: Any, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        async def run(*arguments: Any) -> Any:
            await self._faults.point()
            result = await getattr(self._connection, name)(*arguments)
            await self._faults.point()
            return result

        return run


class FaultyDatabase:
    """A database with points before a transaction, inside it, before its commit and after it."""

    def __init__(self, database: Database, faults: Faults) -> None:
        self._database = database
        self._faults = faults

    @asynccontextmanager
    async def read(self) -> AsyncIterator[FaultyConnection]:
        await self._faults.point()
        async with self._database.read() as connection:
            yield FaultyConnection(connection, self._faults)

    @asynccontextmanager
    async def write(self, about: str | None = None) -> AsyncIterator[FaultyConnection]:
        await self._faults.point()
        async with self._database.write(about) as connection:
            yield FaultyConnection(connection, self._faults)
            await self._faults.point()
        await self._faults.point()


def process(game: Table, faults: Faults) -> Sessions:
    """A process of its own over the same database."""
    database = cast("Database", FaultyDatabase(game.database, faults))
    return sessions_over(SessionStore(database), OneScenario(document()), ScriptedGateway())


async def attempt(game: Table, faults: Faults, request: Any) -> None:
    """Take a turn in a process that may not survive it."""
    sessions = process(game, faults)

    async def take() -> None:
        async for _ in sessions.take_turn(request):
            pass

    turn = asyncio.ensure_future(take())
    hangs = asyncio.ensure_future(faults.hangs.wait())
    await asyncio.wait([turn, hangs], return_when=asyncio.FIRST_COMPLETED)
    turn.cancel()
    hangs.cancel()
    await asyncio.wait([turn, hangs])
    if not turn.cancelled():
        turn.exception()


async def assert_whole(game: Table) -> int:
    """The session is at the end of some turn in every respect; which one."""
    session = (await game.now()).session
    turns = await game.store.turns(session.session_id, 0, 100)
    chain, sequence = sim.chain_start(session.seed, session.spec_hash), 0
    for number, turn in enumerate(turns, 1):
        chain = sim.chain(chain, turn.record)
        assert (turn.turn, turn.first_sequence) == (number, sequence + 1)
        sequence = turn.last_sequence
    assert (session.turn, session.chain_hash, session.last_sequence) == (len(turns), chain, sequence)
    assert json.loads(session.snapshot)["turn"] == session.turn
    assert json.loads((await game.now()).state)["a"] == 10 + session.turn
    return session.turn


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

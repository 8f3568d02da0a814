"""A database that fails where a test wants it to, in front of one that works."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from peripety.errors import UnavailableError
from peripety.session.store.session_store import SessionStore
from support.sessions import OneScenario, ScriptedGateway, sessions_over
from support.specs import document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from peripety.core.storage.database import Database
    from peripety.session.session_manager import SessionManager
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


def process(game: Table, faults: Faults) -> SessionManager:
    """A process of its own over the same database."""
    database = cast("Database", FaultyDatabase(game.database, faults))
    return sessions_over(SessionStore(database), OneScenario(document()), ScriptedGateway())


async def attempted(work: Coroutine[Any, Any, Any], faults: Faults) -> None:
    """Do something in a process that may not survive it; one that hangs is cancelled."""
    doing = asyncio.ensure_future(work)
    hangs = asyncio.ensure_future(faults.hangs.wait())
    await asyncio.wait([doing, hangs], return_when=asyncio.FIRST_COMPLETED)
    doing.cancel()
    hangs.cancel()
    await asyncio.wait([doing, hangs])
    if not doing.cancelled():
        doing.exception()

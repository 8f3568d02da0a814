"""Clients who go on playing while their server is killed or its disk fails, and a book of what they heard."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from peripety.api.common.v1 import engine_pb2
from peripety.api.session.v1 import session_pb2
from peripety.errors import UnavailableError
from support.api import Api, new_id, turn_request
from support.fake_model import FakeModel
from support.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from peripety.api.session.v1.session_pb2 import TakeTurnRequest, TurnEvent

__all__ = ["Arena", "Book", "PacedModel"]

_NOTHING_YET = "nothing"
_T = TypeVar("_T")


class PacedModel(FakeModel):
    """A model that writes each piece after a short while, so that turns are anywhere when a server dies."""

    def wait_for_permit(self) -> bool:
        """Wait up to six milliseconds."""
        time.sleep(random.uniform(0, 0.006))
        return not self._stopped


@dataclass
class Book:
    """What the clients were told for good.

    Attributes:
        told: the events of each turn that was acknowledged, by its request.
        requests: the requests of each session, in the order of their turns.
        points: how many turns were broken off, by the last event that their client had.
        refusals: how often which code refused a turn.
        ready: seconds from the start of each server to its first answer.
    """

    told: dict[str, list[TurnEvent]] = field(default_factory=dict)
    requests: dict[str, list[TakeTurnRequest]] = field(default_factory=dict)
    points: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    ready: list[float] = field(default_factory=list)

    async def check(self, api: Api) -> None:
        """Hold a server to all that was acknowledged: there once, as it was told, and the engine agrees."""
        for session_id, requests in self.requests.items():
            session = await api.session(session_id)
            assert session.turn == len(requests)
            replay = session_pb2.ReplaySessionRequest(session_id=session_id)
            replayed = [event async for event in api.sessions.ReplaySession(replay)]
            assert replayed[-1].completed.mismatches == 0
            for request in requests:
                # Sent again, each is told again as it was told: what was acknowledged is what is kept.
                assert [event async for event in api.turn(request)] == self.told[request.request_id]
            assert (await api.session(session_id)).chain_hash == session.chain_hash


class Arena:
    """A server that is killed and started again on the same data, and the clients who play on it.

    Args:
        home: where the data is.
        settings: environment variables of the server.
        spec: what is played.
    """

    def __init__(self, home: Path, settings: dict[str, str], spec: bytes) -> None:
        self._home = home
        self._settings = settings
        self._spec = spec
        self._scenario_id = ""
        self._up = asyncio.Event()
        self._api: Api | None = None
        self._over = False
        self._asking = 0
        self.book = Book()

    async def survive(self, clients: int, points: int, seconds: tuple[float, float]) -> None:
        """Let clients play, and kill the server until so many of their turns were broken off.

        The last server lives: the turns that are under way then are played to their end.

        Args:
            clients: how many play at the same time, each a session of its own.
            points: how many turns have to be broken off at least.
            seconds: how long a server lives, at least and at most.
        """
        async with asyncio.TaskGroup() as group:
            players = [group.create_task(self._play_on()) for _ in range(clients)]
            while self.book.points.total() < points:
                async with self.serving() as (server, _):
                    await asyncio.sleep(random.uniform(*seconds))
                    self._up.clear()
                    await asyncio.to_thread(server.kill)
                    await self._noticed()
            self._over = True
            async with self.serving():
                await asyncio.wait(players)

    async def endure(
        self,
        clients: int,
        faults: int,
        failing: Callable[[ServerProcess], AbstractContextManager[None]],
        seconds: tuple[float, float],
    ) -> None:
        """Let clients play on one server, on a disk that fails now and then.

        Args:
            clients: how many play at the same time, each a session of its own.
            faults: how often the disk fails.
            failing: lets the disk under a server fail until the block ends.
            seconds: how long it works, and how long it does not, at least and at most.
        """
        async with self.serving() as (server, _), asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(self._play_on())
            for _ in range(faults):
                await asyncio.sleep(random.uniform(*seconds))
                with failing(server):
                    await asyncio.sleep(random.uniform(*seconds))
            await asyncio.sleep(seconds[1])
            self._over = True

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[tuple[ServerProcess, Api]]:
        """Start a server on what the last one left."""
        async with AsyncExitStack() as stack:
            began = time.monotonic()
            server = ServerProcess(self._home, settings=self._settings)
            await asyncio.to_thread(server.__enter__)
            stack.callback(server.__exit__, None, None, None)
            api = await stack.enter_async_context(Api.connected(server.address))
            if not self._scenario_id:
                self._scenario_id = (await api.compile(self._spec))[-1].compiled.scenario_id
            await api.sessions.ListSessions(session_pb2.ListSessionsRequest(page_size=1))
            self.book.ready.append(time.monotonic() - began)
            self._api = api
            self._up.set()
            try:
                yield server, api
            finally:
                self._up.clear()

    async def _play_on(self) -> None:
        """Play session after session; a turn that was begun is asked for until it is acknowledged."""
        while not self._over:
            session = await self._until_answered(partial(self._created, new_id()))
            while not self._over and session.status.kind == engine_pb2.RUN_STATUS_KIND_ONGOING:
                request = turn_request(session)
                events = await self._until_answered(partial(self._taken, request))
                self.book.told[request.request_id] = events
                self.book.requests.setdefault(session.session_id, []).append(request)
                committed = events[-1].committed
                session.status.CopyFrom(committed.status)
                session.turn = events[-1].turn
                del session.legal_actions[:]
                session.legal_actions.extend(committed.legal_actions)

    async def _until_answered(self, ask: Callable[[Api], Awaitable[_T]]) -> _T:
        while True:
            await self._up.wait()
            assert self._api is not None
            self._asking += 1
            try:
                return await ask(self._api)
            except UnavailableError:
                # The server is gone, or about to be; its successor is told of by `_up`.
                await asyncio.sleep(0.02)
            finally:
                self._asking -= 1

    async def _noticed(self) -> None:
        """Wait until every call has heard that its server is gone: a channel cancels those that are left."""
        while self._asking:  # noqa: ASYNC110 - every call counts, not the first one
            await asyncio.sleep(0.01)

    async def _created(self, request_id: str, api: Api) -> session_pb2.Session:
        request = session_pb2.CreateSessionRequest(request_id=request_id, scenario_id=self._scenario_id)
        return (await api.sessions.CreateSession(request)).session

    async def _taken(self, request: TakeTurnRequest, api: Api) -> list[TurnEvent]:
        events: list[TurnEvent] = []
        try:
            async with aclosing(api.turn(request)) as told:
                async for event in told:
                    events.append(event)  # noqa: PERF401 - what came before the end is needed then
        except UnavailableError as error:
            self.book.refusals[error.code] += 1
            self.book.points[(events[-1].WhichOneof("event") or "") if events else _NOTHING_YET] += 1
            raise
        if not events[-1].HasField("committed"):
            raise AssertionError(f"a turn ended with {events[-1]}")
        return events

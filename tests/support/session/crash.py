"""Clients that continue to play while servers die, and competing writers.

The processes are forked from one process that has loaded everything: Python takes longer to start than they
live.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from peripety.api.common.v1 import engine_pb2
from peripety.api.session.v1 import session_pb2
from peripety.core.storage.database import Database
from peripety.errors import ConflictError, FailedPreconditionError, UnavailableError
from support.gateway.fake_server import WritesWithPermit
from support.servers.apps import Api, new_id, turn_request
from support.servers.processes import ServerProcess, add_half, add_next_pair

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from peripety.api.session.v1.session_pb2 import Session, TakeTurnRequest, TurnEvent


WRITERS = 8
"""So many tasks of a process write at once."""


@contextmanager
def killing() -> Iterator[Callable[[str, int, float], list[int]]]:
    """A function that starts a process and kills it.

    It takes the URL of the database, how many pairs the process is to report before it is killed, and how
    many seconds after that; it returns the number of each pair that was reported.
    """
    tests = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    command = [sys.executable, "-m", "support.session.crash"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def kill(url: str, after: int, seconds: float) -> list[int]:
            requests.write(json.dumps([url, after, seconds]) + "\n")
            requests.flush()
            reported: list[int] = json.loads(answers.readline())
            return reported

        yield kill
        requests.close()


def _kill(url: str, after: int, seconds: float) -> list[int]:
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            asyncio.run(_write(url, writing))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, encoding="ascii") as reports:
        reported = [reports.readline() for _ in range(after)]
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return [int(number) for number in [*reported, *reports]]


async def _write(url: str, reports: int) -> None:
    database = await Database.open(url)

    async def write_for_ever() -> None:
        while True:
            os.write(reports, b"%d\n" % await add_next_pair(database))

    async def fail_for_ever() -> None:
        while True:
            with suppress(ConflictError):
                await add_half(database, -1)

    await asyncio.gather(fail_for_ever(), *(write_for_ever() for _ in range(WRITERS)))


_BEFORE_ASKING_AGAIN = 0.05
_MOST_COPIES = 5
_UNAVAILABLE = "unavailable"


def account_of(events: Iterable[TurnEvent]) -> list[TurnEvent]:
    """The events that hold: a turn that begins anew makes those before void."""
    account: list[TurnEvent] = []
    for event in events:
        if event.HasField("accepted"):
            account.clear()
        account.append(event)
    return account


class Replica:
    """A process on a shared database, which may be killed and started again.

    Args:
        home: the folder of its own data.
        settings: environment variables.
    """

    def __init__(self, home: Path, settings: dict[str, str]) -> None:
        self.server = ServerProcess(home, settings=settings)
        self._api: Api | None = None
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Start it, and wait until it listens."""
        await asyncio.to_thread(self.server.__enter__)
        self._api = await self._stack.enter_async_context(Api.connected(self.server.address))

    async def kill(self) -> None:
        """End it as a power cut would."""
        self._api = None
        await asyncio.to_thread(self.server.__exit__, None, None, None)

    async def leave(self) -> None:
        """End it for good. Closing a channel cancels who calls on it, so none is closed before."""
        await self.kill()
        await self._stack.aclose()

    @property
    def api(self) -> Api:
        """Its calls.

        Raises:
            UnavailableError: it does not run now.
        """
        if self._api is None:
            raise UnavailableError("the replica is down")
        return self._api


@dataclass
class Accounts:
    """The events of every turn, from whichever replica.

    Attributes:
        by_request: the events of each request's turn.
        outcomes: how often sent requests had each outcome.
    """

    by_request: dict[str, list[TurnEvent]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)

    def note(self, request: TakeTurnRequest, events: list[TurnEvent]) -> None:
        """Hold an account to those before it."""
        if not events[-1].HasField("committed"):
            raise AssertionError(f"a turn ended with {events[-1]}")
        account = account_of(events)
        known = self.by_request.setdefault(request.request_id, account)
        if known != account:
            raise AssertionError(f"told otherwise before: {known} and {account}")


class Contest:
    """Clients who play sessions of one scenario on several replicas.

    Args:
        replicas: the processes.
        scenario_id: what is played.
    """

    def __init__(self, replicas: list[Replica], scenario_id: str) -> None:
        self._replicas = replicas
        self._scenario_id = scenario_id
        self._over = False
        self.accounts = Accounts()
        self.turns: dict[str, list[TakeTurnRequest]] = {}
        """The requests that won the turns of each session, in order."""

    def end(self) -> None:
        """Let all clients finish their current turns."""
        self._over = True

    async def play(self) -> None:
        """Play session after session: of the requests for each turn exactly one may win."""
        while not self._over:
            session = await self._created(new_id())
            won = self.turns.setdefault(session.session_id, [])
            while not self._over and session.status.kind == engine_pb2.RUN_STATUS_KIND_ONGOING:
                won.append(await self._turn(session, won))
                later = await self._read(session.session_id)
                if later.turn != len(won):
                    raise AssertionError(f"turn {later.turn} is read where {len(won)} were acknowledged")
                session = later

    async def _turn(self, session: Session, won: list[TakeTurnRequest]) -> TakeTurnRequest:
        rivals = [turn_request(session), turn_request(session)]
        rivals[1].input = "words"
        sent = [rival for rival in rivals for _ in range(random.randint(1, _MOST_COPIES))]
        # Too early, too late, and long since played.
        sent.extend(_moved(turn_request(session), by) for by in ((-1, 2) if won else (2,)))
        sent.extend(random.sample(won, min(1, len(won))))
        random.shuffle(sent)
        await asyncio.gather(*map(self._send, sent))
        # Requests without an answer are answered now: there is a winner, and the other client learns that it
        # lost.
        await asyncio.gather(*map(self._until_answered, rivals))
        winners = [rival for rival in rivals if rival.request_id in self.accounts.by_request]
        if len(winners) != 1:
            raise AssertionError(f"{len(winners)} requests played turn {session.turn + 1}")
        return winners[0]

    async def _send(self, request: TakeTurnRequest) -> str:
        await asyncio.sleep(random.uniform(0, 0.02))
        outcome = await self._outcome(request)
        self.accounts.outcomes[outcome] += 1
        return outcome

    async def _until_answered(self, request: TakeTurnRequest) -> None:
        while True:
            if await self._send(request) != _UNAVAILABLE:
                return
            await asyncio.sleep(_BEFORE_ASKING_AGAIN)

    async def _outcome(self, request: TakeTurnRequest) -> str:
        try:
            events = [event async for event in random.choice(self._replicas).api.turn(request)]
        except UnavailableError:
            return _UNAVAILABLE
        except (ConflictError, FailedPreconditionError) as error:
            if error.code not in {"STALE_TURN", "RUN_ENDED"}:
                raise
            return error.code
        self.accounts.note(request, events)
        return "told"

    async def _created(self, request_id: str) -> Session:
        request = session_pb2.CreateSessionRequest(request_id=request_id, scenario_id=self._scenario_id)
        while True:
            with suppress(UnavailableError):
                return (await random.choice(self._replicas).api.sessions.CreateSession(request)).session
            await asyncio.sleep(_BEFORE_ASKING_AGAIN)

    async def _read(self, session_id: str) -> Session:
        while True:
            with suppress(UnavailableError):
                return await random.choice(self._replicas).api.session(session_id)
            await asyncio.sleep(_BEFORE_ASKING_AGAIN)


def _moved(request: TakeTurnRequest, by: int) -> TakeTurnRequest:
    request.expected_turn += by
    return request


_NOTHING_YET = "nothing"
_T = TypeVar("_T")


class PacedModel(WritesWithPermit):
    """A model that writes each piece after a short while, so that turns are anywhere when a server dies."""

    async def wait_for_permit(self) -> None:
        """Wait up to six milliseconds."""
        await asyncio.sleep(random.uniform(0, 0.006))


@dataclass
class Book:
    """Record of everything that was acknowledged to the clients.

    Attributes:
        events: the events of each acknowledged turn, by its request.
        requests: the requests of each session, in the order of their turns.
        points: number of interrupted turns, by the last event that their client received.
        refusals: number of refused turns, by code.
        ready: seconds from the start of each server to its first answer.
    """

    events: dict[str, list[TurnEvent]] = field(default_factory=dict)
    requests: dict[str, list[TakeTurnRequest]] = field(default_factory=dict)
    points: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    ready: list[float] = field(default_factory=list)

    async def check(self, api: Api) -> None:
        """Check a server against all that was acknowledged: stored once, unchanged, and confirmed by the
        engine.
        """
        for session_id, requests in self.requests.items():
            session = await api.session(session_id)
            assert session.turn == len(requests)
            replay = session_pb2.ReplaySessionRequest(session_id=session_id)
            replayed = [event async for event in api.sessions.ReplaySession(replay)]
            assert replayed[-1].completed.mismatches == 0
            for request in requests:
                # A request that is sent again returns the same events: what was acknowledged is stored.
                assert [event async for event in api.turn(request)] == self.events[request.request_id]
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

    async def survive(
        self,
        clients: int,
        points: int,
        seconds: tuple[float, float],
        moments: frozenset[str],
    ) -> None:
        """Let clients play, and kill the server until enough of their turns were broken off, at all moments.

        The last server lives: the turns that are under way then are played to their end.

        Args:
            clients: how many play at the same time, each a session of its own.
            points: how many turns have to be broken off at least.
            seconds: how long a server lives, at least and at most.
            moments: the last events of turns that have to be broken off. While one is missing, servers may
                live longer, because turns get less far on a slow machine.
        """
        least, most = seconds
        async with asyncio.TaskGroup() as group:
            players = [group.create_task(self._play_on()) for _ in range(clients)]
            while (missing := moments - self.book.points.keys()) or self.book.points.total() < points:
                most *= 1.1 if missing else 1.0
                async with self.serving() as (server, _):
                    await asyncio.sleep(random.uniform(least, most))
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
        """Play session after session; retry a turn that was begun until it is acknowledged."""
        while not self._over:
            session = await self._until_answered(partial(self._created, new_id()))
            while not self._over and session.status.kind == engine_pb2.RUN_STATUS_KIND_ONGOING:
                request = turn_request(session)
                events = await self._until_answered(partial(self._taken, request))
                self.book.events[request.request_id] = events
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
                # The server is gone, or about to be; `_up` reports its successor.
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


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_kill(*json.loads(line))) + "\n")
        sys.stdout.flush()

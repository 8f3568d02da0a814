"""Clients who ask two replicas for the same turns at once, while these and their database die."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.api.common.v1 import engine_pb2
from peripety.api.session.v1 import session_pb2
from peripety.errors import ConflictError, FailedPreconditionError, UnavailableError
from support.api import Api, new_id, turn_request
from support.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from peripety.api.session.v1.session_pb2 import Session, TakeTurnRequest, TurnEvent

__all__ = ["Accounts", "Contest", "Replica", "account_of"]

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
    """A process on a database that others share, which may be killed and started again.

    Args:
        home: where it keeps what is its own.
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
    """What was told of every turn, by whichever replica.

    Attributes:
        by_request: the events of each request's turn.
        outcomes: how often which came of a request that was sent.
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
        """Let everybody finish the turn they are at."""
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
        # Whoever was not answered is now: there is a winner, and the other one learns that it lost.
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

"""Sessions for tests: a real store and a real engine, with narrators that do what a test tells them."""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety import sim
from peripety.errors import NotFoundError
from peripety.gateway.calling.budgets import within
from peripety.gateway.model import (
    ChatMessage,
    ChatRole,
    Completed,
    Completion,
    Spent,
    StopReason,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from peripety.gateway.model.replay import completion_of
from peripety.gateway.objects.structured import ask_until_valid
from peripety.gateway.streams import following
from peripety.scenarios.model import CompiledScenario
from peripety.scenarios.programs import Programs
from peripety.sessions.model import ActionCall, NewSession, TurnRequest
from peripety.sessions.narrating.narrator import Narrator
from peripety.sessions.odds import OddsTeller
from peripety.sessions.rulesets import Rulesets
from peripety.sessions.service import SessionServicer, room
from peripety.sessions.sessions import Sessions
from peripety.sessions.store import SessionStore
from peripety.storage import Database
from peripety.workers import Workers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator

    from peripety.gateway.model import GatewayEvent, GenerateRequest, ModelGateway
    from peripety.scenarios.model import ScenarioSource
    from peripety.sessions.looks import SeenSession
    from peripety.sessions.seen import Seen

SILENCE = "(silence)"
MESSAGE_BYTES = 4 * 1024 * 1024
ROOM = room(MESSAGE_BYTES)
_WORKERS = Workers()
TOKENS = Usage(input_tokens=7, output_tokens=3)
SPENT = Spent(1, TOKENS, cost=50, cache_savings=20)


def outcome(narrative: str = "It is told.", **more: Any) -> str:
    """A narrator's valid answer."""
    return json.dumps({"narrative": narrative, **more}, ensure_ascii=False)


@dataclass(frozen=True)
class Calls:
    """An answer that calls tools, with some text before; arguments that are text go out as they are."""

    calls: tuple[tuple[str, Any], ...]
    text: str = ""

    def events(self, number: int) -> Iterator[GatewayEvent]:
        calls = [
            ToolCall(f"c{number}.{place}", name, given if isinstance(given, str) else json.dumps(given))
            for place, (name, given) in enumerate(self.calls)
        ]
        said = [Text(self.text)] if self.text else []
        yield from (TextDelta(part.text) for part in said)
        yield from (ToolCallDelta(call.call_id, call.arguments, call.name) for call in calls)
        message = ChatMessage(ChatRole.ASSISTANT, (*said, *calls))
        completion = Completion(message, None, SPENT.usage, StopReason.TOOL_USE, "scripted", "fake")
        yield Completed(replace(completion, cost=SPENT.cost, cache_savings=SPENT.cache_savings))


def calling(*calls: tuple[str, Any], text: str = "") -> Calls:
    """An answer that calls tools."""
    return Calls(calls, text)


Answer: TypeAlias = str | list[str] | Calls | Exception


@dataclass
class ScriptedGateway:
    """Gives the scripted answers one after the other, the last one for ever; repair and time are real.

    An answer is a text, the pieces of one, calls of tools, an exception to raise, or `SILENCE`.
    """

    answers: list[Answer] = field(default_factory=lambda: [outcome()])
    requests: list[GenerateRequest] = field(default_factory=list)
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: int = 0

    async def stream(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        if request.schema is None:
            raise AssertionError("a narrator asks for an Outcome")
        answer = ask_until_valid(self._ask, request, request.schema)
        seconds = None if request.budget is None else request.budget.max_seconds
        async with following(answer if seconds is None else within(seconds, answer)) as events:
            async for event in events:
                yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        return await completion_of(self.stream(request))

    async def _ask(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
        self.requests.append(request)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Calls):
            for event in answer.events(len(self.requests)):
                yield event
            return
        pieces = [answer] if isinstance(answer, str) else answer
        for piece in pieces:
            if piece == SILENCE:
                await self._keep_silent()
            yield TextDelta(piece)
            await asyncio.sleep(0)
        yield Completed(
            Completion(
                ChatMessage.assistant("".join(pieces)),
                None,
                SPENT.usage,
                StopReason.END,
                "scripted",
                "fake",
                cost=SPENT.cost,
                cache_savings=SPENT.cache_savings,
            )
        )

    async def _keep_silent(self) -> None:
        self.silent.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


class OneScenario:
    """A source of one scenario."""

    def __init__(self, document: bytes, certificate: bytes | None = None) -> None:
        self.certificate = certificate
        program = sim.compile(document)
        self.scenario = CompiledScenario(
            "scenario", program.spec["name"], program.spec_hash, program.document, datetime.now(UTC)
        )

    async def compiled(self, scenario_id: str, spec_hash: str | None = None) -> CompiledScenario:
        known = self.scenario
        if scenario_id != known.scenario_id or spec_hash not in {None, known.spec_hash}:
            raise NotFoundError(f".scenario_id: there is no scenario '{scenario_id}'")
        return known

    async def certificate_of(self, scenario_id: str, spec_hash: str) -> bytes | None:
        named = (scenario_id, spec_hash) == (self.scenario.scenario_id, self.scenario.spec_hash)
        return self.certificate if named else None


@dataclass
class Table:
    """A session that is being played."""

    sessions: Sessions
    store: SessionStore
    database: Database
    session_id: str

    async def take(self, request: TurnRequest) -> list[Seen]:
        """Play a turn to its end."""
        async with following(self.sessions.take_turn(request)) as events:
            return [event async for event in events]

    def request(
        self, turn: int, *actions: str | ActionCall, request_id: str | None = None, **more: Any
    ) -> TurnRequest:
        """A turn to ask for."""
        calls = tuple(ActionCall(a, {}) if isinstance(a, str) else a for a in actions)
        return TurnRequest(self.session_id, request_id or new_id(), turn, calls, **more)

    async def play(self, turn: int, *actions: str | ActionCall, **more: Any) -> list[Seen]:
        """Ask for a turn and play it to its end."""
        return await self.take(self.request(turn, *actions, **more))

    async def now(self, pov: str | None = None) -> SeenSession:
        """The session as it is."""
        return await self.sessions.get(self.session_id, pov)


@asynccontextmanager
async def table(
    database_url: str,
    document: bytes,
    gateway: ModelGateway | None = None,
    *,
    seconds: float = 5.0,
    message_bytes: int = MESSAGE_BYTES,
    store: type[SessionStore] = SessionStore,
) -> AsyncIterator[Table]:
    """A session of a scenario in an empty database."""
    database = await Database.open(database_url)
    try:
        kept = store(database)
        narrator = Narrator(gateway or ScriptedGateway(), seconds=seconds)
        sessions = Sessions(kept, OneScenario(document), rulesets(kept), narrator, room(message_bytes))
        made = await sessions.create(NewSession(new_id(), "scenario"))
        yield Table(sessions, kept, database, made.session.session_id)
    finally:
        await database.close()


def sessions_over(store: SessionStore, scenarios: ScenarioSource, gateway: ModelGateway) -> Sessions:
    """The sessions of a store, as a process of its own has them."""
    return Sessions(store, scenarios, rulesets(store), Narrator(gateway), ROOM)


def rulesets(store: SessionStore, programs: Programs | None = None) -> Rulesets:
    """The scenarios that the sessions of a store play."""
    return Rulesets(store.document, programs or Programs())


def servicer(game: Table) -> SessionServicer:
    """The service of a session's process."""
    return SessionServicer(game.sessions, OddsTeller(game.store, rulesets(game.store), _WORKERS))


async def assert_whole(game: Table) -> int:
    """Hold a session whose action adds one to `a` against its log; the turn at whose end it is."""
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


def new_id() -> str:
    """A request id."""
    return str(uuid.uuid4())


def kinds(events: Iterable[Seen]) -> list[str]:
    """The events by their names."""
    return [type(seen.event).__name__ for seen in events]


def only(events: Iterable[Seen], kind: type) -> list[Any]:
    """The events of one kind."""
    return [seen.event for seen in events if isinstance(seen.event, kind)]

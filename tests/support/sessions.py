"""Sessions for tests: a real store and a real engine, with narrators that do what a test tells them."""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety import engine
from peripety.core.concurrency import WorkerPool, closing
from peripety.core.storage.database import Database
from peripety.errors import NotFoundError
from peripety.gateway.budgets.order_budget import with_time_limit
from peripety.gateway.structured_output.validator import generate_valid
from peripety.gateway.types.message import ChatMessage, ChatRole, Text, ToolCall
from peripety.gateway.types.response import (
    Completed,
    Completion,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageTotal,
    collect_completion,
)
from peripety.scenario.registry import ProgramCache
from peripety.scenario.types import Scenario
from peripety.session.forecast import OutcomeForecaster
from peripety.session.narration.narrator import Narrator
from peripety.session.service import SessionServicer, message_limit
from peripety.session.session_manager import SessionManager
from peripety.session.session_view import RulesetCache
from peripety.session.store.session_store import SessionStore
from peripety.session.types import NewSession, PlayerAction, TurnRequest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator

    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent, ModelGateway
    from peripety.scenario.types import ScenarioSource
    from peripety.session.session_view import SessionView
    from peripety.session.visibility import TurnEventView


SILENCE = "(silence)"
MESSAGE_BYTES = 4 * 1024 * 1024
ROOM = message_limit(MESSAGE_BYTES)
_WORKERS = WorkerPool()
TOKENS = Usage(input_tokens=7, output_tokens=3)
SPENT = UsageTotal(1, TOKENS, cost=50, cache_savings=20)


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
        answer = generate_valid(self._ask, request, request.schema)
        seconds = None if request.budget is None else request.budget.max_seconds
        async with closing(answer if seconds is None else with_time_limit(seconds, answer)) as events:
            async for event in events:
                yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        return await collect_completion(self.stream(request))

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
            ),
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
        program = engine.compile(document)
        self.scenario = Scenario(
            "scenario",
            program.spec["name"],
            program.spec_hash,
            program.document,
            datetime.now(UTC),
        )

    async def get_scenario(self, scenario_id: str, spec_hash: str | None = None) -> Scenario:
        known = self.scenario
        if scenario_id != known.scenario_id or spec_hash not in {None, known.spec_hash}:
            raise NotFoundError(f".scenario_id: there is no scenario '{scenario_id}'")
        return known

    async def get_certificate_document(self, scenario_id: str, spec_hash: str) -> bytes | None:
        named = (scenario_id, spec_hash) == (self.scenario.scenario_id, self.scenario.spec_hash)
        return self.certificate if named else None


@dataclass
class Table:
    """A session that is being played."""

    sessions: SessionManager
    store: SessionStore
    database: Database
    session_id: str

    async def take(self, request: TurnRequest) -> list[TurnEventView]:
        """Play a turn to its end."""
        async with closing(self.sessions.play_turn(request)) as events:
            return [event async for event in events]

    def request(
        self,
        turn: int,
        *actions: str | PlayerAction,
        request_id: str | None = None,
        **more: Any,
    ) -> TurnRequest:
        """A turn to ask for."""
        calls = tuple(PlayerAction(a, {}) if isinstance(a, str) else a for a in actions)
        return TurnRequest(self.session_id, request_id or new_id(), turn, calls, **more)

    async def play(self, turn: int, *actions: str | PlayerAction, **more: Any) -> list[TurnEventView]:
        """Ask for a turn and play it to its end."""
        return await self.take(self.request(turn, *actions, **more))

    async def now(self, pov: str | None = None) -> SessionView:
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
        sessions = SessionManager(
            kept,
            OneScenario(document),
            rulesets(kept),
            narrator,
            message_limit(message_bytes),
        )
        made = await sessions.create(NewSession(new_id(), "scenario"))
        yield Table(sessions, kept, database, made.session.session_id)
    finally:
        await database.close()


def sessions_over(store: SessionStore, scenarios: ScenarioSource, gateway: ModelGateway) -> SessionManager:
    """The sessions of a store, as a process of its own has them."""
    return SessionManager(store, scenarios, rulesets(store), Narrator(gateway), ROOM)


def rulesets(store: SessionStore, programs: ProgramCache | None = None) -> RulesetCache:
    """The scenarios that the sessions of a store play."""
    return RulesetCache(store.get_document, programs or ProgramCache())


def servicer(game: Table) -> SessionServicer:
    """The service of a session's process."""
    return SessionServicer(game.sessions, OutcomeForecaster(game.store, rulesets(game.store), _WORKERS))


async def assert_whole(game: Table) -> int:
    """Hold a session whose action adds one to `a` against its log; the turn at whose end it is."""
    session = (await game.now()).session
    turns = await game.store.list_turns(session.session_id, 0, 100)
    chain, sequence = engine.start_hash_chain(session.seed, session.spec_hash), 0
    for number, turn in enumerate(turns, 1):
        chain = engine.extend_hash_chain(chain, turn.record)
        assert (turn.turn, turn.first_sequence) == (number, sequence + 1)
        sequence = turn.last_sequence
    assert (session.turn, session.chain_hash, session.last_sequence) == (len(turns), chain, sequence)
    assert json.loads(session.snapshot)["turn"] == session.turn
    assert json.loads((await game.now()).state)["a"] == 10 + session.turn
    return session.turn


def new_id() -> str:
    """A request id."""
    return str(uuid.uuid4())


def kinds(events: Iterable[TurnEventView]) -> list[str]:
    """The events by their names."""
    return [type(seen.event).__name__ for seen in events]


def only(events: Iterable[TurnEventView], kind: type) -> list[Any]:
    """The events of one kind."""
    return [seen.event for seen in events if isinstance(seen.event, kind)]

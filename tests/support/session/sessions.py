"""Sessions with a real store and engine: seats, forks, scenes."""

from __future__ import annotations

import json
import uuid
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from peripety import engine
from peripety.core.concurrency import WorkerPool, closing
from peripety.core.storage.database import Database
from peripety.errors import NotFoundError
from peripety.gateway.types.message import ToolResult
from peripety.gateway.types.response import (
    UsageTotal,
)
from peripety.scenario.registry import ProgramCache
from peripety.scenario.types import Scenario
from peripety.session.branch_types import ForkRequest, RewindRequest
from peripety.session.events import Accepted, Committed, DialogueSpoken
from peripety.session.forecast import OutcomeForecaster
from peripety.session.memory import diff_memories
from peripety.session.narration.narrator import Narrator
from peripety.session.narration.prompt_room import PromptRoom
from peripety.session.narration.turn_context import RECENT_TURNS, NarrationContext, turn_names
from peripety.session.narration.turn_history import TurnText, first_turn_of_history, render_turn
from peripety.session.narration.turn_narration import NarrationResult
from peripety.session.seats.turn_order import SubmitActionsRequest
from peripety.session.service import SessionServicer, message_limit
from peripety.session.session_manager import SessionManager, create_session
from peripety.session.session_view import RulesetCache
from peripety.session.speculation import begin_turn
from peripety.session.store.session_store import SessionStore
from peripety.session.turn_transaction import TurnTransaction, replay_turn
from peripety.session.types import (
    CommittedTurn,
    NarratorMemory,
    NewSession,
    PlayerAction,
    Resolution,
    Seat,
    Session,
    TurnOrder,
    TurnRequest,
)
from peripety.session.types import SeatConfig as Players
from peripety.session.visibility import Projector
from support.engine.seeded_specs import random_params
from support.engine.specs import action, at_most, document, event, never
from support.gateway.fake_gateway import FakeGateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import ModelGateway
    from peripety.scenario.types import ScenarioSource
    from peripety.session.session_view import SessionView
    from peripety.session.visibility import TurnEventView


def session_of(program: engine.Program, **more: Any) -> Session:
    """Return a session of a scenario before its first turn; `more` replaces fields."""
    session = create_session(program, NewSession("request", "scenario"))
    fixed: dict[str, Any] = {"session_id": "s", "line_id": "l", "created": 0, "updated": 0}
    return replace(session, **fixed | more)


FULL_ROOM = PromptRoom.for_window(128_000)


def scene_of(
    document: bytes,
    actions: Sequence[PlayerAction] = (PlayerAction("act", {}),),
    *,
    viewer: str | None = None,
    spoken: str = "",
    past: tuple[CommittedTurn, ...] = (),
    room: PromptRoom = FULL_ROOM,
    **session: Any,
) -> NarrationContext:
    """The next turn of a session, after what the player chose."""
    program = engine.compile(document)
    playing = session_of(program, **session)
    stage, _ = begin_turn(TurnTransaction(program, playing.snapshot), actions, abandon_if_all_rejected=False)
    if stage is None:
        raise AssertionError("the turn outgrew a limit")
    view = Projector(program.spec).for_viewer(viewer)
    scene = NarrationContext(program.spec, view, playing.turn + 1, spoken, playing, stage, past, room=room)
    return replace(scene, history=tuple(text_of(turn, scene) for turn in past))


def text_of(turn: CommittedTurn, scene: NarrationContext) -> TurnText:
    """Return an earlier turn as the prompt of a scene contains it."""
    return render_turn(turn, scene.view, turn_names(scene.rules), scene.room)


def turn_of(
    scene: NarrationContext,
    narrative: str,
    *,
    pov: str | None = None,
    spoken: str = "",
    memories: Sequence[NarratorMemory] = (),
    dialogue: Sequence[DialogueSpoken] = (),
) -> CommittedTurn:
    """Return the turn of a scene as it is recorded after its narration."""
    played = scene.speculation.preview()
    accepted = Accepted("attempt", "request", (), spoken)
    committed = Committed(
        state_hash=played.state_hash,
        chain_hash="",
        status=played.world.status,
        legal_actions=played.legal_actions,
        usage=UsageTotal(),
        changes=played.changes,
        narrative=narrative,
        resolution=Resolution.NARRATED,
        model="",
        commit_time=0,
    )
    events = (accepted, *played.events, *dialogue, committed)
    changed = diff_memories(scene.session.memories, [*scene.session.memories, *memories])
    return CommittedTurn(scene.turn, "request", "", pov, played.record, 1, events, changed)


MESSAGE_BYTES = 4 * 1024 * 1024
ROOM = message_limit(MESSAGE_BYTES)
_WORKERS = WorkerPool()


def outcome(narrative: str = "It is told.", **more: Any) -> str:
    """A narrator's valid answer."""
    return json.dumps({"narrative": narrative, **more}, ensure_ascii=False)


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
        async with closing(self.sessions.turn_runner.run(request)) as events:
            return [event async for event in events]

    def request(
        self,
        turn: int,
        *actions: str | PlayerAction,
        request_id: str | None = None,
        **more: Any,
    ) -> TurnRequest:
        """Return a request for a turn."""
        calls = tuple(PlayerAction(a, {}) if isinstance(a, str) else a for a in actions)
        return TurnRequest(self.session_id, request_id or new_id(), turn, calls, **more)

    async def play(self, turn: int, *actions: str | PlayerAction, **more: Any) -> list[TurnEventView]:
        """Request a turn and play it to its end."""
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
    room: PromptRoom = FULL_ROOM,
) -> AsyncIterator[Table]:
    """A session of a scenario in an empty database."""
    database = await Database.open(database_url)
    try:
        kept = store(database)
        narrator = Narrator(gateway or FakeGateway(outcome()), seconds=seconds, choose_room=lambda _: room)
        sessions = SessionManager(
            kept,
            OneScenario(document),
            rulesets(kept),
            narrator,
            message_limit(message_bytes),
        )
        made = await sessions.create(NewSession(new_id(), "scenario"))
        try:
            yield Table(sessions, kept, database, made.session.session_id)
        finally:
            # Before the database: polling for watchers would open a connection that is never closed.
            await sessions.aclose()
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


RAISE = [{"op": "inc", "path": "state.a", "value": 1}]
ENTITIES = [{"id": "p", "playable": True}, {"id": "q"}]
AMOUNT = {"type": "integer", "minimum": 1, "maximum": 5}
ACTIONS = [
    action("raise", RAISE),
    action("never", [], preconditions={"<": [1, 0]}),
    action("give", [], params={"n": AMOUNT}),
    action("end", [{"op": "set", "path": "state.b", "value": 0}]),
]


def scene(spoken: str = "words", *, viewer: str | None = None, **more: Any) -> NarrationContext:
    parts: dict[str, Any] = {
        "entities": ENTITIES,
        "actions": ACTIONS,
        "state": {"a": 1, "b": 2, "c": {"x": [1, 2]}, "private": {"p": {"x": 1}, "q": {"x": 77}}},
        "loss_conditions": [at_most("first", "state.b", 0) | {"message": "All is over"}, never("second")],
    }
    session = {key: more.pop(key) for key in ("narrator", "usage", "memories") if key in more}
    chosen = more.pop("chosen", ())
    return scene_of(document(**parts | more), chosen, viewer=viewer, spoken=spoken, **session)


async def told(gateway: FakeGateway, about: NarrationContext | None = None, **options: Any) -> list[Any]:
    narrator = Narrator(gateway, seconds=5.0, **options)
    async with aclosing(narrator.narrate(about or scene())) as telling:
        return [happened async for happened in telling]


async def played(
    *answers: Any,
    about: NarrationContext | None = None,
) -> tuple[list[Any], FakeGateway]:
    gateway = FakeGateway(*answers)
    return await told(gateway, about), gateway


def results(gateway: FakeGateway, request: int = 1) -> list[tuple[Any, bool]]:
    """Return the last tool results of a request: their contents, and whether they are errors."""
    parts = gateway.requests[request].messages[-1].parts
    return [(json.loads(part.text), part.is_error) for part in parts if isinstance(part, ToolResult)]


def names(happened: Sequence[Any]) -> list[str]:
    return [type(one).__name__ for one in happened]


def causes(about: NarrationContext) -> list[str]:
    assert about.speculation.result is not None
    return [change.cause for change in about.speculation.result.changes]


FATEFUL = document(
    entities=[{"id": "p", "playable": True}],
    state={"a": 1, "b": 1, "luck": 0, "private": {"p": {"x": 1}}},
    actions=[
        action("act", [{"op": "inc", "path": "state.a", "value": 1}]),
        action("other", [{"op": "inc", "path": "state.b", "value": 1}]),
    ],
    random_events=[
        event(f"e{n}", [{"op": "inc", "path": "state.luck", "value": n}], weight=0.2) for n in range(1, 5)
    ],
)
"""A scenario whose turns differ from seed to seed."""

ENDING = document(
    state={"a": 1},
    actions=[action("end", [{"op": "set", "path": "state.a", "value": 0}])],
    loss_conditions=[at_most("first", "state.a", 0), never("second")],
)
"""A scenario that can be lost in a turn."""

DEALT_ENDING = document(
    spec_version="1.1",
    state={"a": 1, "hidden": {"x": "one"}},
    deal=[{"id": "x", "path": "state.hidden.x", "values": ["one", "two"]}],
    loss_conditions=[
        {"id": "late", "when": {">": [{"var": "turn"}, 1]}},
        {"id": "out", "when": {"<": [{"var": "state.a"}, 0]}},
    ],
    epilogues={"late": {"deal": "x", "texts": {"one": "text one", "two": "text two"}}},
)
"""A scenario that is lost in its second turn, with an epilogue that depends on what was dealt."""


async def forked(
    sessions: SessionManager,
    session_id: str,
    turn: int | None = None,
    **more: Any,
) -> SessionView:
    """Fork a session."""
    return await sessions.branches.fork(ForkRequest(new_id(), session_id, turn, **more))


async def rewound(sessions: SessionManager, session_id: str, turn: int, **more: Any) -> SessionView:
    """Rewind a session from wherever it is."""
    now = (await sessions.get(session_id, None)).session.turn
    return await sessions.rewind(
        RewindRequest(
            **{"request_id": new_id(), "session_id": session_id, "turn": turn, "expected_turn": now, **more},
        ),
    )


def turn_for(session: Session, *actions: str) -> TurnRequest:
    """The next turn of a session."""
    calls = tuple(PlayerAction(name, {}) for name in actions)
    return TurnRequest(session.session_id, new_id(), session.turn + 1, calls)


async def turns_of(store: SessionStore, session_id: str) -> list[CommittedTurn]:
    """All turns of a session."""
    return await store.list_turns(session_id, 0, 1_000_000)


async def verified(store: SessionStore, session_id: str) -> list[CommittedTurn]:
    """The turns of a session, which come to its state and its chain when they are played from the start."""
    session = await store.get_session(session_id)
    program = engine.compile_trusted(await store.get_document(session.spec_hash))
    snapshot = program.new_state(session.first_seed).to_json()
    chain = engine.start_hash_chain(session.first_seed, session.spec_hash)
    turns = await turns_of(store, session_id)
    assert [turn.turn for turn in turns] == list(range(1, session.turn + 1))
    for turn in turns:
        played = replay_turn(program, snapshot, json.loads(turn.record))
        assert played.record == turn.record
        snapshot, chain = played.snapshot, engine.extend_hash_chain(chain, turn.record)
    assert chain == session.chain_hash
    if not session.reseeded:
        assert snapshot == session.snapshot
    sequences = [number for turn in turns for number in (turn.first_sequence, turn.last_sequence)]
    assert sequences == sorted(sequences)
    assert session.last_sequence >= max(sequences, default=0)
    return turns


async def standing_rows(database: Database) -> dict[str, int]:
    """Return the number of rows in the tables of history segments."""
    tables = ("session_lines", "session_turns", "session_snapshots")
    async with database.read() as connection:
        return {name: await connection.scalar(text(f"SELECT count(*) FROM {name}")) for name in tables}  # noqa: S608


async def is_gone(sessions: SessionManager, session_id: str) -> bool:
    """Return True if the session does not exist."""
    try:
        await sessions.get(session_id, None)
    except NotFoundError:
        return True
    return False


_LAST_TURN = 100_000


def endless(document: bytes) -> bytes:
    """The scenario, with ends that no session reaches."""
    spec = json.loads(document)
    late = {">": [{"var": "turn"}, _LAST_TURN]}
    for end in (*spec["loss_conditions"], *spec.get("win_conditions", ())):
        end["when"] = {"and": [late, end["when"]]}
    return json.dumps(spec).encode()


async def prompts(
    document: bytes,
    turns: int,
    viewer: str | None = None,
    room: PromptRoom = FULL_ROOM,
) -> AsyncIterator[GenerateRequest]:
    """Yield the narrator's requests in a session, turn by turn; its texts are long, and its memory is
    full.
    """
    program, random = engine.compile(document), Random(7)
    actions = {action["id"]: action for action in program.spec["actions"]}
    cast = [entity["id"] for entity in program.spec.get("entities", ())]
    session = session_of(program)
    view = Projector(program.spec).for_viewer(viewer)
    past: tuple[CommittedTurn, ...] = ()
    history: tuple[TurnText, ...] = ()
    for turn in range(1, turns + 1):
        board = TurnTransaction(program, session.snapshot)
        legal = board.legal_actions
        chosen = [actions[random.choice(legal)]] if legal and turn % 3 else []
        calls = [PlayerAction(action["id"], random_params(random, action)) for action in chosen]
        spoken = "" if turn % 2 else " ".join(_words(random, 12))
        stage, _ = begin_turn(board, calls, abandon_if_all_rejected=False)
        if stage is None:
            raise AssertionError("the turn outgrew a limit")
        history = tuple(text for text in history if text.turn >= first_turn_of_history(turn))
        scene = NarrationContext(program.spec, view, turn, spoken, session, stage, past, history, room)
        gateway = FakeGateway(_answer(random, cast))
        async with closing(Narrator(gateway).narrate(scene)) as telling:
            *_, told = [happened async for happened in telling]
        if not isinstance(told, NarrationResult) or stage.result is None:
            raise AssertionError("the turn was not told")
        yield gateway.requests[0]
        new = [memory for memory in told.memories if memory.turn == turn]
        played = turn_of(scene, told.narrative, pov=viewer, spoken=spoken, memories=new)
        session = replace(session, turn=turn, snapshot=stage.result.snapshot, memories=told.memories)
        past = (*past, played)[-RECENT_TURNS:]
        history = (*history, text_of(played, scene))


def prompt_bytes(request: GenerateRequest) -> bytes:
    """A prompt in the order in which providers read it: tools, system text, messages."""
    tools = [[tool.name, tool.description, tool.input_schema] for tool in request.tools]
    said = "".join(message.text for message in request.messages)
    return "\n".join((json.dumps(tools), request.system or "", said)).encode()


def _answer(random: Random, cast: list[str]) -> str:
    """Return a narration, and notes for the memory."""
    told = f"{' '.join(_words(random, 90)).capitalize()}."
    if not cast:
        return outcome(told)
    memory = {
        "scope": "turn",
        "target_id": random.choice(cast),
        "content": " ".join(_words(random, 15)),
        "visibility": random.choice(["public", "private", "hidden"]),
    }
    return outcome(told, hidden_memory_updates=[memory])


def _words(random: Random, count: int) -> list[str]:
    syllables = ("ba", "dor", "ki", "lem", "nu", "sa", "tor", "vi")
    return ["".join(random.choices(syllables, k=random.randint(1, 3))) for _ in range(count)]


SCENARIO = document(
    entities=[{"id": "p", "playable": True}, {"id": "q", "playable": True}, {"id": "r"}],
    state={"a": 1, "b": 5, "private": {"p": {"x": 1}, "q": {"x": 1}}},
    actions=[
        action("act", [{"op": "inc", "path": "state.a", "value": 1}]),
        action("double", [{"op": "mul", "path": "state.a", "value": 2}]),
        action("hide", [{"op": "inc", "path": "state.private.p.x", "value": 1}]),
        action(
            "never",
            [{"op": "inc", "path": "state.a", "value": 1}],
            preconditions={"<": [{"var": "state.a"}, 0]},
        ),
        action("end", [{"op": "set", "path": "state.b", "value": 0}]),
    ],
    loss_conditions=[at_most("lost", "state.b", 0), never("other")],
)
ROTATING = Players((Seat("one", "p"), Seat("two", "q")))
TOGETHER = replace(ROTATING, order=TurnOrder.SIMULTANEOUS)


@asynccontextmanager
async def at_a_table(
    database_url: str,
    gateway: ModelGateway | None = None,
    *,
    order: TurnOrder = TurnOrder.ROTATING,
    seconds: float | None = None,
    document: bytes = SCENARIO,
) -> AsyncIterator[Table]:
    """A session with the seats `one`, who plays `p`, and `two`, who plays `q`."""
    async with table(database_url, document, gateway) as game:
        players = replace(ROTATING, order=order, seconds=seconds)
        made = await game.sessions.create(NewSession(new_id(), "scenario", table=players))
        yield replace(game, session_id=made.session.session_id)
        await game.sessions.aclose()


def submission(game: Table, turn: int, seat_id: str, *actions: str, **more: Any) -> SubmitActionsRequest:
    """Return the submission of a seat."""
    calls = tuple(PlayerAction(name, {}) for name in actions)
    return SubmitActionsRequest(
        game.session_id,
        more.pop("request_id", new_id()),
        turn,
        seat_id,
        calls,
        **more,
    )

"""Output for each viewer in random sessions, counted: it never contains another viewer's secrets.

`PERIPETY_LEAK_CHECKS` sets the number of pieces to check.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.core.concurrency import closing
from peripety.gateway.types.message import ToolCall
from peripety.session.events import DialogueSpoken, NarrativeChunk, encode_value
from peripety.session.narration.fallback import fallback_narration
from peripety.session.narration.narrator import Narrator
from peripety.session.narration.prompt_room import PromptRoom
from peripety.session.narration.tool_executor import NarratorToolExecutor
from peripety.session.narration.turn_context import RECENT_TURNS, NarrationContext
from peripety.session.narration.turn_narration import NarrationResult
from peripety.session.narration.turn_prompt import build_messages, render_system_text
from peripety.session.pb.responses import turn_event_to_proto
from peripety.session.speculation import SpeculativeTurn, begin_turn
from peripety.session.turn_transaction import TurnTransaction
from peripety.session.types import CommittedTurn, NarratorMemory, PlayerAction
from peripety.session.visibility import Projector, TurnEventView
from support.engine.seeded_specs import random_params
from support.gateway.fake_gateway import FakeGateway
from support.session.leak_probes import OWNERS, PLAYERS, VIEWERS, WAYS, assert_clean, canary, secretive_spec
from support.session.sessions import FULL_ROOM, outcome, session_of, text_of, turn_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.session.events import Event
    from peripety.session.turn_transaction import TurnResult

pytestmark = pytest.mark.slow(reason="checks thousands of messages for secrets")


CHECKS = int(os.environ.get("PERIPETY_LEAK_CHECKS", "12000"))
TURNS = 8
LEAKS = 2
HOLDERS = ["state", "state.private", "state.ranks", "state.ranks[1]", "state.missing", "no path"]
PATHS = [*OWNERS, *(f"{path}.{name}" for path in OWNERS for name in ("x", "n", "list")), *HOLDERS]


class Eyes:
    """Looks at what viewers get, and counts it."""

    def __init__(self) -> None:
        self.looked: Counter[str] = Counter()

    def look(self, kind: str, viewer: str | None, *parts: Any) -> None:
        for part in parts:
            assert_clean(viewer, part)
        self.looked[kind] += 1


async def session(random: Random, eyes: Eyes) -> None:
    """Play a session, and check all output for every viewer."""
    program = engine.compile(json.dumps(secretive_spec(random)).encode())
    viewers = Projector(program.spec)
    playing = session_of(program, memories=tuple(memories()))
    past: tuple[CommittedTurn, ...] = ()
    for turn in range(1, TURNS + 1):
        audience = random.choice(VIEWERS)
        board = TurnTransaction(program, playing.snapshot)
        calls = [choice(random, program.spec["actions"]) for _ in range(random.randint(0, 2))]
        stage, opening = begin_turn(board, calls, abandon_if_all_rejected=False)
        if stage is None:
            events(eyes, viewers, program.spec, opening, audience)
            return
        scene = NarrationContext(
            program.spec,
            viewers.for_viewer(audience),
            turn,
            "words",
            playing,
            stage,
            past,
            room=random.choice([FULL_ROOM, PromptRoom.for_window(4_096)]),
        )
        for viewer in VIEWERS:
            read(eyes, with_history(replace(scene, view=viewers.for_viewer(viewer))), random)
        told = await narrations(eyes, with_history(scene), random)
        new = [memory for memory in told.memories if memory.turn == turn]
        recorded = turn_of(scene, told.narrative, pov=audience, spoken="words", memories=new)
        events(eyes, viewers, program.spec, recorded.events, audience)
        played = stage.preview()
        playing = replace(playing, turn=turn, snapshot=played.snapshot, status=played.world.status)
        past = (*past, recorded)[-RECENT_TURNS:]
        if playing.status.kind != "ongoing":
            return


def with_history(scene: NarrationContext) -> NarrationContext:
    """Return the scene with the history that its viewer may know."""
    return replace(scene, history=tuple(text_of(turn, scene) for turn in scene.recent_turns))


def prompt_text(scene: NarrationContext, played: TurnResult | None) -> str:
    """Return all messages of a prompt."""
    return "\n".join(message.text for message in build_messages(scene, played))


def memories() -> Iterator[NarratorMemory]:
    """Yield memories by narrators that knew all secrets of one player, for every target."""
    for knows in PLAYERS:
        for target in ("p", "q", "r"):
            for visibility in ("public", "private", "hidden"):
                yield NarratorMemory(0, "told", target, f"It was {canary(knows, 0)}.", visibility, knows)
    yield NarratorMemory(0, "sealed", "r", f"It was {canary('nobody', 2)}.", "hidden")


def choice(random: Random, actions: Sequence[Any]) -> PlayerAction:
    action = random.choice(actions)
    given = random_params(random, action)
    # The contract allows only scalars.
    scalars = {name: value for name, value in given.items() if isinstance(value, str | int | float)}
    return PlayerAction(action["id"], scalars)


def events(
    eyes: Eyes,
    viewers: Projector,
    spec: Any,
    happened: Sequence[Event],
    audience: str | None,
) -> None:
    """Check events, as each viewer receives them."""
    for viewer in VIEWERS:
        view = viewers.for_viewer(viewer)
        for number, event in enumerate(happened):
            seen = TurnEventView("s", 1, number, view.project_event(event, audience), spec)
            eyes.look("event", viewer, turn_event_to_proto(seen).SerializeToString())


def read(eyes: Eyes, scene: NarrationContext, random: Random) -> None:
    """Check everything that a viewer, or a narrator for that viewer, can read of a turn."""
    viewer, view, played = scene.view.viewer, scene.view, scene.speculation.preview()
    eyes.look("context", viewer, render_system_text(scene), prompt_text(scene, None))
    eyes.look("context", viewer, render_system_text(scene), prompt_text(scene, played))
    eyes.look("server's telling", viewer, fallback_narration(scene, played))
    eyes.look("state", viewer, engine.canonicalize(view.project_state(played.tree)))
    for change in played.changes:
        eyes.look("diff", viewer, json.dumps([encode_value(seen) for seen in view.project_changes([change])]))
    hands = NarratorToolExecutor(
        replace(scene, speculation=SpeculativeTurn(scene.speculation.transaction.fork())),
        None,
    )
    act = choice(random, scene.spec["actions"])
    tries: list[tuple[str, Any]] = [("query", {"path": path}) for path in PATHS]
    tries += [(f"action:{act.action_id}", act.params), ("roll", {"kind": "k", "difficulty": 9}), ("no", {})]
    calls = [ToolCall(f"c{n}", name, json.dumps(given)) for n, (name, given) in enumerate(tries)]
    for batch in (calls[:16], calls[16:]):
        for result in hands.execute(batch)[0]:
            eyes.look("tool answer", viewer, result.text)


async def narrations(eyes: Eyes, scene: NarrationContext, random: Random) -> NarrationResult:
    """Narrate a turn with narrators that leak unseen secrets; check the output."""
    for way in random.sample(sorted(WAYS), LEAKS):
        secret = random.choice(unseen(scene))
        board = scene.speculation.transaction.fork()
        gateway = FakeGateway(leak(random, f"{WAYS[way](secret)}"), outcome("It is quiet."))
        told = await tell(eyes, replace(scene, speculation=SpeculativeTurn(board), input=""), gateway)
        assert told.stats.withheld_secrets == 1, (way, secret)
    return told


def leak(random: Random, secret: str) -> list[str]:
    """An answer with a secret in it, in small pieces."""
    said = f"Now hear: {secret} is it."
    how = random.randrange(3)
    if how == 0:
        answer = outcome(said)
    elif how == 1:
        answer = outcome("Somebody speaks.", visible_dialogue=[{"entity_id": "p", "utterance": said[:300]}])
    else:
        half = len(said) // 2
        spoken = [{"entity_id": "q", "utterance": said[half:][:300]}]
        answer = outcome(said[:half], visible_dialogue=spoken)
    return [answer[start : start + 5] for start in range(0, len(answer), 5)]


async def tell(eyes: Eyes, scene: NarrationContext, gateway: FakeGateway) -> NarrationResult:
    viewer = scene.view.viewer
    async with closing(Narrator(gateway).narrate(scene)) as telling:
        happened: list[Any] = [event async for event in telling]
    prose = [event.text for event in happened if isinstance(event, NarrativeChunk)]
    spoken = [event.utterance for event in happened if isinstance(event, DialogueSpoken)]
    told = happened[-1]
    assert isinstance(told, NarrationResult)
    eyes.look("stream", viewer, "".join(prose), " ".join(spoken), told.narrative)
    for request in gateway.requests:
        # Rejected output is quoted to its own author only.
        written = "".join(message.text for message in request.messages if message.role.value == "user")
        tools = json.dumps([[tool.description, tool.input_schema] for tool in request.tools])
        eyes.look("prompt", viewer, request.system, tools, written)
    return told


def unseen(scene: NarrationContext) -> list[str]:
    """The texts in the state that the audience does not see."""
    tree = scene.speculation.preview().tree
    return sorted(
        {text for text in texts(tree) if "canary-" in text} - set(texts(scene.view.project_state(tree))),
    )


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


@pytest.mark.timeout(max(120, CHECKS / 100))
def test_nothing_that_is_made_for_anybody_holds_what_others_own() -> None:
    eyes, seed = Eyes(), 0

    async def play() -> None:
        nonlocal seed
        while eyes.looked.total() < CHECKS:
            await session(Random(seed), eyes)
            seed += 1

    asyncio.run(play())
    sys.stdout.write(f"{eyes.looked.total()} pieces of {seed} sessions: {dict(eyes.looked)}\n")
    kinds = {"context", "state", "diff", "event", "tool answer", "server's telling", "stream", "prompt"}
    assert set(eyes.looked) == kinds

"""Sessions of many turns without a store: the prompts of their narrator, one turn after the other."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from peripety import engine
from peripety.core.concurrency import closing
from peripety.session.narration.narrator import Narrator
from peripety.session.narration.turn_context import HISTORY_TURNS, NarrationContext
from peripety.session.narration.turn_narration import NarrationResult
from peripety.session.speculation import begin_turn
from peripety.session.turn_engine import TurnTransaction
from peripety.session.types import CommittedTurn, PlayerAction
from peripety.session.visibility import Projector
from support.random_specs import random_params
from support.scenes import session_of, turn_of
from support.sessions import ScriptedGateway, outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.types.request import GenerateRequest


_LAST_TURN = 100_000


def endless(document: bytes) -> bytes:
    """The scenario, with ends that no session reaches."""
    spec = json.loads(document)
    late = {">": [{"var": "turn"}, _LAST_TURN]}
    for end in (*spec["loss_conditions"], *spec.get("win_conditions", ())):
        end["when"] = {"and": [late, end["when"]]}
    return json.dumps(spec).encode()


async def prompts(document: bytes, turns: int, viewer: str | None = None) -> AsyncIterator[GenerateRequest]:
    """What the narrator of a session is asked, turn by turn: it writes much, and has much remembered."""
    program, random = engine.compile(document), Random(7)
    actions = {action["id"]: action for action in program.spec["actions"]}
    cast = [entity["id"] for entity in program.spec.get("entities", ())]
    session = session_of(program)
    view = Projector(program.spec).for_viewer(viewer)
    past: tuple[CommittedTurn, ...] = ()
    for turn in range(1, turns + 1):
        board = TurnTransaction(program, session.snapshot)
        legal = board.legal_actions
        chosen = [actions[random.choice(legal)]] if legal and turn % 3 else []
        calls = [PlayerAction(action["id"], random_params(random, action)) for action in chosen]
        spoken = "" if turn % 2 else " ".join(_words(random, 12))
        stage, _ = begin_turn(board, calls, abandon_if_all_rejected=False)
        if stage is None:
            raise AssertionError("the turn outgrew a limit")
        scene = NarrationContext(program.spec, view, turn, spoken, session, stage, past)
        gateway = ScriptedGateway([_answer(random, cast)])
        async with closing(Narrator(gateway).narrate(scene)) as telling:
            *_, told = [happened async for happened in telling]
        if not isinstance(told, NarrationResult) or stage.result is None:
            raise AssertionError("the turn was not told")
        yield gateway.requests[0]
        session = replace(session, turn=turn, snapshot=stage.result.snapshot, memories=told.memories)
        past = (*past, turn_of(scene, told.narrative, pov=viewer, spoken=spoken))[-HISTORY_TURNS:]


def prompt_bytes(request: GenerateRequest) -> bytes:
    """A prompt in the order in which providers read it: tools, system text, messages."""
    tools = [[tool.name, tool.description, tool.input_schema] for tool in request.tools]
    said = "".join(message.text for message in request.messages)
    return "\n".join((json.dumps(tools), request.system or "", said)).encode()


def _answer(random: Random, cast: list[str]) -> str:
    """A telling, and what is to be remembered of it."""
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

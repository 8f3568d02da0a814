"""Recall of details: a narrator that answers the player's questions from its prompt alone."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.response import Completed, Completion, StopReason, TextDelta, collect_completion
from support.engine.specs import action, document, never
from support.session.sessions import SPENT, outcome, table

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent
    from peripety.session.narration.prompt_room import PromptRoom

DETAILS = 10
RECALLED_TURNS = (8, 16, 32)
_NAMES = ("Abri", "Belno", "Cuvo", "Dasim", "Elora", "Fintu", "Galve", "Hurim", "Istva", "Jonle")
_MENTION = "I look at the {}. From now on I call the {} by the name of {}."
_QUESTION = "What did I call the {}?"
_THINGS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_LONG = "The light moves over the floor and a distant sound comes nearer while nothing else changes. " * 8
UNKNOWN = "It is not known."


@dataclass
class RecallNarrator:
    """A gateway whose model knows only its prompt.

    It narrates at length. A question about a name is answered with the name that the prompt contains.
    """

    requests: list[GenerateRequest] = field(default_factory=list)

    async def stream(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        self.requests.append(request)
        asked = json.loads(request.messages[-1].text)["facts"].get("input", "")
        narrative = outcome(self._answer(asked, request) if asked.endswith("?") else _LONG)
        yield TextDelta(narrative)
        yield Completed(
            Completion(
                ChatMessage.assistant(narrative),
                json.loads(narrative),
                SPENT.usage,
                StopReason.END,
                "scripted",
                "fake",
            ),
        )

    async def generate(self, request: GenerateRequest) -> Completion:
        return await collect_completion(self.stream(request))

    def _answer(self, question: str, request: GenerateRequest) -> str:
        thing = question.removesuffix("?").rsplit(" ", 1)[-1]
        known = "\n".join(message.text for message in request.messages)
        found = re.search(rf"I call the {thing} by the name of (\w+)", known)
        return f"You called it {found[1]}." if found else UNKNOWN


async def recall_rate(turn: int, room: PromptRoom) -> float:
    """Return the share of details of turn 2 that a narrator with this room still knows in a later turn."""
    spec = document(actions=[action("act")], loss_conditions=[never("first"), never("second")])
    known = 0
    for thing, name in zip(_THINGS, _NAMES, strict=True):
        narrator = RecallNarrator()
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder) / 'recall.db'}"
            async with table(url, spec, narrator, room=room) as game:
                await game.play(1, "act")
                await game.play(2, "act", input=_MENTION.format(thing, thing, name))
                for number in range(3, turn):
                    await game.play(number, "act")
                events = await game.play(turn, "act", input=_QUESTION.format(thing))
        known += f"You called it {name}." in str(events[-1].event)
    return known / DETAILS

"""Recall of details: a narrator that answers the player's questions from its prompt alone."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from support.engine.specs import action, document, never
from support.gateway.fake_gateway import FakeGateway
from support.session.sessions import outcome, table

if TYPE_CHECKING:
    from peripety.gateway.types.request import GenerateRequest
    from peripety.session.narration.prompt_room import PromptRoom

DETAILS = 10
RECALLED_TURNS = (8, 16, 32)
_NAMES = ("Abri", "Belno", "Cuvo", "Dasim", "Elora", "Fintu", "Galve", "Hurim", "Istva", "Jonle")
_MENTION = "I look at the {}. From now on I call the {} by the name of {}."
_QUESTION = "What did I call the {}?"
_THINGS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_LONG = "The light moves over the floor and a distant sound comes nearer while nothing else changes. " * 8
UNKNOWN = "It is not known."


def narrate_from_prompt(request: GenerateRequest) -> str:
    """Return the answer of a model that knows only its prompt.

    It narrates at length. A question about a name is answered with the name that the prompt contains.
    """
    asked = json.loads(request.messages[-1].text)["facts"].get("input", "")
    if not asked.endswith("?"):
        return outcome(_LONG)
    thing = asked.removesuffix("?").rsplit(" ", 1)[-1]
    known = "\n".join(message.text for message in request.messages)
    found = re.search(rf"I call the {thing} by the name of (\w+)", known)
    return outcome(f"You called it {found[1]}." if found else UNKNOWN)


async def recall_rate(turn: int, room: PromptRoom) -> float:
    """Return the share of details of turn 2 that a narrator with this room still knows in a later turn."""
    spec = document(actions=[action("act")], loss_conditions=[never("first"), never("second")])
    known = 0
    for thing, name in zip(_THINGS, _NAMES, strict=True):
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder) / 'recall.db'}"
            async with table(url, spec, FakeGateway(narrate_from_prompt), room=room) as game:
                await game.play(1, "act")
                await game.play(2, "act", input=_MENTION.format(thing, thing, name))
                for number in range(3, turn):
                    await game.play(number, "act")
                events = await game.play(turn, "act", input=_QUESTION.format(thing))
        known += f"You called it {name}." in str(events[-1].event)
    return known / DETAILS

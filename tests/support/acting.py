"""Narrators that are scripted, in front of a scene with actions, secrets and an end."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from peripety.gateway.types.message import ToolResult
from peripety.session.narration.narrator import Narrator
from support.scenes import scene_of
from support.sessions import ScriptedGateway
from support.specs import action, at_most, document, never

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.session.narration.turn_context import NarrationContext
    from support.sessions import Answer


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


async def told(gateway: ScriptedGateway, about: NarrationContext | None = None, **options: Any) -> list[Any]:
    narrator = Narrator(gateway, seconds=5.0, **options)
    async with aclosing(narrator.narrate(about or scene())) as telling:
        return [happened async for happened in telling]


async def played(
    *answers: Answer,
    about: NarrationContext | None = None,
) -> tuple[list[Any], ScriptedGateway]:
    gateway = ScriptedGateway(list(answers))
    return await told(gateway, about), gateway


def results(gateway: ScriptedGateway, request: int = 1) -> list[tuple[Any, bool]]:
    """The last results that a question holds: what they say, and whether they are errors."""
    parts = gateway.requests[request].messages[-1].parts
    return [(json.loads(part.text), part.is_error) for part in parts if isinstance(part, ToolResult)]


def names(happened: Sequence[Any]) -> list[str]:
    return [type(one).__name__ for one in happened]


def causes(about: NarrationContext) -> list[str]:
    assert about.speculation.result is not None
    return [change.cause for change in about.speculation.result.changes]

"""Whatever a narrator writes, the turn is told, and nothing but prose gets out."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import aclosing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.errors import UnavailableError
from peripety.sessions.events import Degraded, NarrativeChunk, NarrativeRetracted
from peripety.sessions.model import Resolution
from peripety.sessions.narrating.narrator import Narrator, Told
from support.scenes import scene_of
from support.sessions import SILENCE, ScriptedGateway
from support.specs import document

if TYPE_CHECKING:
    from peripety.sessions.narrating.scene import Scene

EXAMPLES = int(os.environ.get("PERIPETY_EXAMPLES", "150")) * 2
thorough = settings(max_examples=EXAMPLES, deadline=None)

INNER = "inner-matter"
"""Stands in every part of an answer that is no prose."""

prose = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["Plain.", "{", '{"narrative": "x"}', "```", "\x1b[2J", "“é😀”", "\\", '"', "x" * 3_000, " "]
    ),
)
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.just(INNER), st.just(1e308)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.just(INNER) | st.just("op"), inner, max_size=2)
    ),
    max_leaves=6,
)
fields = st.sampled_from(
    [
        "state_changes",
        "roll_requests",
        "hidden_memory_updates",
        "visible_dialogue",
        "extra",
        "thoughts",
        "Narrative",
    ]
)
objects = st.builds(
    lambda before, text, after: json.dumps({**before, "narrative": text, **after}, ensure_ascii=False),
    st.dictionaries(fields, junk, max_size=2),
    st.one_of(prose, prose, prose, junk),
    st.dictionaries(fields, junk, max_size=2),
)


@st.composite
def answers(draw: st.DrawFn) -> str | list[str] | Exception:
    """An answer that is whole or damaged, in pieces, with something around it, or none at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([UnavailableError("gone"), RuntimeError("defect"), ValueError("defect")]))
    text = draw(st.one_of(objects, objects, objects, st.text(max_size=30), junk.map(json.dumps)))
    if draw(st.integers(0, 2)) == 0:
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, len(text)))
        text = draw(
            st.sampled_from(
                [text[:start], text[:start] + text[end:], text + text, f"Sure:\n```\n{text}\n```"]
            )
        )
    cuts = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=4))})
    pieces = [text[a:b] for a, b in pairwise(cuts)]
    return [*pieces, SILENCE] if draw(st.integers(0, 19)) == 0 else pieces


def scene() -> Scene:
    return scene_of(document(entities=[{"id": "p", "playable": True}]), ())


async def told(answers: list[str | list[str] | Exception]) -> list[Any]:
    async with aclosing(Narrator(ScriptedGateway(answers), seconds=0.05).tell(scene())) as telling:
        return [event async for event in telling]


@thorough
@given(st.lists(answers(), min_size=1, max_size=2))
def test_every_turn_is_told(script: list[str | list[str] | Exception]) -> None:
    *events, end = asyncio.run(told(script))
    assert isinstance(end, Told)
    assert any(map(str.isalnum, end.narrative))
    shown = ""
    for event in events:
        if isinstance(event, NarrativeRetracted):
            assert shown
            shown = ""
        elif isinstance(event, NarrativeChunk):
            shown += event.text
        assert INNER not in repr(event)
        assert not any(ord(char) < 32 and char not in "\n\t" for char in getattr(event, "text", ""))
    assert shown == end.narrative
    degraded = any(isinstance(event, Degraded) for event in events)
    assert degraded == (end.resolution is Resolution.SERVER_RESOLVED)

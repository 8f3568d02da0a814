"""People who speak by a call of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from peripety.errors import InvalidArgumentError, UnavailableError
from peripety.gateway.types.request import ReasoningEffort
from peripety.session.events import DialogueSpoken
from peripety.session.narration.prompt_room import PromptRoom
from peripety.session.types import NarratorMemory, NarratorOptions, NewSession
from support.engine.specs import at_most, document, never
from support.gateway.fake_gateway import SPENT, FakeGateway, calling
from support.session.sessions import (
    ACTIONS,
    FULL_ROOM,
    new_id,
    outcome,
    played,
    prompt_bytes,
    results,
    scene_of,
    table,
)

OWN, OTHER, UNSEEN = "Velvet Compass", "Hollow Meridian", "Amber Junction"
PEOPLE = [
    {"id": "p", "name": "P", "playable": True, "secret": OTHER},
    {"id": "q", "name": "Q", "voice": "Short words.", "wants": "peace", "secret": OWN},
]
DOCUMENT = document(
    spec_version="1.1",
    entities=PEOPLE,
    state={"a": 1, "b": 2, "private": {"p": {"x": OTHER}, "q": {"x": OWN}}, "hidden": {"x": UNSEEN}},
    actions=ACTIONS,
    loss_conditions=[at_most("first", "state.b", 0), never("second")],
)
CUE = ("voice", {"entity_id": "q", "about": "The player asks for the way."})


def scene(viewer: str | None = "p", *, actors: bool = True, room: PromptRoom = FULL_ROOM, **more: Any) -> Any:
    options = NarratorOptions(actors=actors)
    about = scene_of(DOCUMENT, (), viewer=viewer, spoken="Which way?", narrator=options, **more)
    return replace(about, room=room)


def said(utterance: str) -> str:
    return json.dumps({"utterance": utterance})


def dialogue(happened: list[Any]) -> list[str]:
    return [one.utterance for one in happened if isinstance(one, DialogueSpoken)]


async def test_a_person_speaks_from_its_own_point_of_view() -> None:
    happened, gateway = await played(calling(CUE), said("Go left."), outcome("“Go left.”"), about=scene())
    voice = gateway.requests[1]
    text = prompt_bytes(voice).decode()
    assert OWN in text
    assert "Short words." in text
    assert "The player asks for the way." in text
    assert OTHER not in text
    assert UNSEEN not in text
    assert (voice.reasoning_effort, voice.tools) == (ReasoningEffort.LOW, ())
    assert dialogue(happened) == ["Go left."]
    assert results(gateway, 2) == [({"utterance": "Go left."}, False)]
    assert happened[-1].usage == SPENT + SPENT + SPENT


async def test_the_narrator_never_reads_what_a_person_hides() -> None:
    _, gateway = await played(calling(CUE), said("Go left."), outcome("Told."), about=scene())
    for request in (gateway.requests[0], gateway.requests[2]):
        assert OWN not in prompt_bytes(request).decode()


async def test_words_that_the_player_may_not_know_are_dropped() -> None:
    leaking = said(f"I hide the {OWN}.")
    happened, gateway = await played(calling(CUE), leaking, outcome("Silence."), about=scene())
    assert dialogue(happened) == []
    assert results(gateway, 2) == [({"silent": True}, False)]
    assert OWN not in prompt_bytes(gateway.requests[2]).decode()


@pytest.mark.parametrize("answer", [said(" "), UnavailableError("down", code="PROVIDER_UNREACHABLE")])
async def test_a_person_that_says_nothing_is_silent(answer: Any) -> None:
    happened, gateway = await played(calling(CUE), answer, outcome("Silence."), about=scene())
    assert dialogue(happened) == []
    assert results(gateway, 2)[0][0] == {"silent": True}


async def test_a_person_remembers_what_it_said_and_what_it_knows() -> None:
    notes = [
        NarratorMemory(1, "turn", "q", "Q has seen the seal.", "private", "p"),
        NarratorMemory(1, "turn", "p", "P has another plan.", "private", "p"),
        NarratorMemory(1, "turn", "q", "Q wears a mask.", "private", "other"),
    ]
    about = scene(memories=tuple(notes))
    _, gateway = await played(calling(CUE), said("Go left."), outcome("Told."), about=about)
    text = gateway.requests[1].messages[0].text
    assert [note.content in text for note in notes] == [True, False, False]
    assert notes[0].content not in prompt_bytes(gateway.requests[0]).decode()


async def test_only_those_who_are_let_speak_are_heard() -> None:
    about = scene()
    answer = outcome("Told.", visible_dialogue=[{"entity_id": "q", "utterance": "Invented."}])
    happened, _ = await played(calling(CUE), said("Go left."), answer, outcome("Told."), about=about)
    assert dialogue(happened) == ["Go left."]


async def test_at_most_four_utterances_fit_into_a_turn() -> None:
    answers = [calling(*[CUE] * 5), *[said(f"Word {n}.") for n in range(4)], outcome("Told.")]
    happened, gateway = await played(*answers, about=scene())
    assert len(dialogue(happened)) == 4
    assert [failed for _, failed in results(gateway, 5)] == [False] * 4 + [True]


async def test_the_point_of_view_is_not_voiced() -> None:
    itself = ("voice", {"entity_id": "p", "about": "x"})
    _, gateway = await played(calling(itself), outcome("Told."), about=scene())
    assert results(gateway)[0][1]


@pytest.mark.parametrize(
    "about",
    [scene(actors=False), scene(room=PromptRoom.for_window(4_096))],
    ids=["off", "small"],
)
async def test_without_actors_there_is_no_voice(about: Any) -> None:
    _, gateway = await played(outcome("Told."), about=about)
    assert "voice" not in [tool.name for tool in gateway.requests[0].tools]
    schema = gateway.requests[0].schema
    assert schema is not None
    assert schema.document["properties"]["visible_dialogue"]["maxItems"] > 0


async def test_a_small_model_refuses_actors_when_the_session_is_created(database_url: str) -> None:
    async with table(
        database_url, DOCUMENT, FakeGateway(outcome()), room=PromptRoom.for_window(4_096)
    ) as game:
        with pytest.raises(InvalidArgumentError) as caught:
            await game.sessions.create(
                NewSession(new_id(), "scenario", narrator=NarratorOptions(actors=True)),
            )
    assert caught.value.code == "ACTORS_UNSUPPORTED"
    assert [violation.field for violation in caught.value.violations] == ["narrator.actors"]

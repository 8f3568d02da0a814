"""Dialogue has its place where the narrative quotes it, else after the narrative."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.session.events import DialogueSpoken, NarrativeChunk, NarrativeRetracted
from support.session.sessions import played, scene

if TYPE_CHECKING:
    from support.gateway.fake_gateway import Answer

HIDDEN = "Quicksilver Harbour"


def answer(narrative: str, *lines: tuple[str, str], last: bool = False) -> str:
    spoken = [{"entity_id": who, "utterance": words} for who, words in lines]
    parts: dict[str, Any] = {"visible_dialogue": spoken, "narrative": narrative}
    return json.dumps(dict(reversed(parts.items())) if last else parts, ensure_ascii=False)


def pieces(text: str, size: int = 7) -> Answer:
    return [text[place : place + size] for place in range(0, len(text), size)]


async def prose(*answers: Answer, **more: Any) -> list[str]:
    """The prose and dialogue as they are read, with a mark at each change."""
    happened, _ = await played(*answers, about=scene(**more))
    read: list[str] = []
    for event in happened:
        match event:
            case NarrativeChunk(text) if read and not read[-1].startswith(("p:", "q:")):
                read[-1] += text
            case NarrativeChunk(text):
                read.append(text)
            case DialogueSpoken(who, words):
                read.append(f"{who}: {words}")
            case NarrativeRetracted():
                read.clear()
    return read


@pytest.mark.parametrize("streamed", [False, True], ids=["at once", "streamed"])
@pytest.mark.parametrize("last", [False, True], ids=["before the prose", "after the prose"])
async def test_a_line_follows_its_quote(streamed: bool, last: bool) -> None:
    told = answer("Q nods. “Go now.” Then it is dark.", ("q", "Go now."), last=last)
    read = await prose(pieces(told) if streamed else told)
    if streamed and last:
        assert read == ["Q nods. “Go now.” Then it is dark.", "q: Go now."]
    else:
        assert read == ["Q nods. “Go now.”", "q: Go now.", " Then it is dark."]


@pytest.mark.parametrize(
    ("narrative", "utterance"),
    [
        ('"Go now," says Q.', "Go now."),
        ("«Go now!» says Q.", "Go now"),
        ("\u2018Go now.\u2019 It is dark.", "Go now."),
        ("「Go now」 It is dark.", "Go now"),
    ],
)
async def test_a_quote_may_end_with_another_mark(narrative: str, utterance: str) -> None:
    read = await prose(answer(narrative, ("q", utterance)))
    assert read[1] == f"q: {utterance}"
    assert "".join(read[::2]) == narrative


@pytest.mark.parametrize("narrative", ["Nothing is said about the way.", "It is over. No one speaks."])
async def test_a_line_without_a_quote_follows_the_narrative(narrative: str) -> None:
    assert await prose(answer(narrative, ("q", "No"))) == [narrative, "q: No"]


async def test_several_lines_follow_in_the_order_of_their_quotes() -> None:
    told = answer("“One,” says P. “Two,” says Q. It is dark.", ("q", "Two."), ("p", "One."), ("q", "Three."))
    assert await prose(pieces(told)) == [
        "“One,”",
        "p: One.",
        " says P. “Two,”",
        "q: Two.",
        " says Q. It is dark.",
        "q: Three.",
    ]


async def test_a_repaired_answer_has_its_own_dialogue() -> None:
    first = '{"visible_dialogue": [{"entity_id": "q", "utterance": "Old."}], "narrative": "“Old.” It is'
    broken = [first, ' told.", "hidden_memory_updates": 5}']
    assert await prose(broken, answer("“New.” It is told.", ("q", "New."))) == [
        "“New.”",
        "q: New.",
        " It is told.",
    ]


async def test_an_utterance_that_tells_a_secret_is_never_sent() -> None:
    state = {"a": 1, "b": 2, "hidden": {"x": HIDDEN}}
    leaking = pieces(answer(f"“The {HIDDEN}.” It is dark.", ("q", f"The {HIDDEN}.")))
    happened, _ = await played(leaking, answer("It is dark."), about=scene(state=state))
    assert HIDDEN not in "".join(str(event) for event in happened)


async def test_the_chunks_together_are_the_narrative() -> None:
    narrative = "Q nods. “Go now.” Then “Stay,” says P."
    told = answer(narrative, ("q", "Go now."), ("p", "Stay."))
    happened, _ = await played(pieces(told, 3))
    assert "".join(one.text for one in happened if isinstance(one, NarrativeChunk)) == narrative
    assert happened[-1].narrative == narrative

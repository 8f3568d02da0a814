"""Questions about a session are answered from its record, with the turns and without hidden state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.errors import InvalidArgumentError
from peripety.session.narration.prompt_room import PromptRoom
from peripety.session.questions.answers import CANNOT_SAY, answer_question
from peripety.session.questions.session_record import find_mentions
from support.engine.specs import action, document
from support.gateway.fake_gateway import FakeGateway, calling
from support.session.questions import CANARIES, Asked, Game, play, questions
from support.session.sessions import outcome, results, table

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.session.questions.answers import Answer

RIGHT = 0.99
HIDDEN_NUMBERS = ("41523947", "77310264")


@pytest.fixture(scope="module")
def game() -> Game:
    return play(60, seed=1)


def is_right(asked: Asked, answer: Answer) -> bool:
    if asked.expected is None:
        return not answer.is_found and answer.text == CANNOT_SAY
    has_turns = asked.turns is None or answer.turns == asked.turns
    return answer.is_found and has_turns and all(text in answer.text for text in asked.expected)


def wrong_answers(game: Game, count: int, seed: int) -> list[tuple[Asked, Answer]]:
    answers = [
        (asked, answer_question(game.record, asked.question)) for asked in questions(game, count, seed)
    ]
    assert not any(secret in answer.text for _, answer in answers for secret in (*CANARIES, *HIDDEN_NUMBERS))
    return [(asked, answer) for asked, answer in answers if not is_right(asked, answer)]


def test_generated_questions_are_answered_rightly(game: Game) -> None:
    assert wrong_answers(game, 200, seed=2) == []


@pytest.mark.slow(reason="200 turns and 1,000 questions")
def test_a_thousand_questions_about_two_hundred_turns() -> None:
    assert len(wrong_answers(play(200, seed=3), 1_000, seed=4)) <= 1_000 * (1 - RIGHT)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Please tell me: how many supplies are left?", "Supply: "),
        ("WHERE IS BETA", "In the "),
        ("What can I do?", "Gather the supply; "),
        ("Which turn is it?", "60 turns are over."),
        ("Is the game over?", "No, the run continues."),
        ("What has happened since turn 58?", "Turn 59: "),
        ("When did the storm happen?", "In turns "),
        ("Have I ever gathered the supply?", "Yes, in turns "),
        ("Did I leave gamma behind before turn 1?", "No."),
    ],
)
def test_forms_of_questions(game: Game, question: str, text: str) -> None:
    answer = answer_question(game.record, question)
    assert (answer.is_found, answer.text[: len(text)]) == (True, text)


@pytest.mark.parametrize(
    "question", ["Why?", "Tell me a story.", "42", "How many?", "Where is", "Wer ist hier?"]
)
def test_other_questions_are_not_answered(game: Game, question: str) -> None:
    assert answer_question(game.record, question).text == CANNOT_SAY


COUNTED = document(
    entities=[{"id": "p", "playable": True}, {"id": "q", "name": "Quo"}],
    state={"supply": 9, "hidden": {"depth": 1}},
    actions=[action("spend", [{"op": "dec", "path": "state.supply", "value": 2}])],
)


async def test_a_question_costs_no_turn_and_shows_only_the_point_of_view(tmp_path: Path) -> None:
    said = outcome(visible_dialogue=[{"entity_id": "q", "utterance": "Count again."}])
    async with table(f"sqlite:///{tmp_path}/a.db", COUNTED, FakeGateway(said)) as game:
        await game.play(1, "spend", pov="p")
        before = await game.now()
        answer = await game.sessions.ask(game.session_id, "How many supplies are left?", "p")
        assert (answer.text, answer.turns) == ("Supply: 7.", (1,))
        assert (await game.sessions.ask(game.session_id, "What did Quo say?", "p")).is_found
        heard = await game.sessions.ask(game.session_id, "What did Quo say?", None)
        assert heard.text == "Nothing."
        hidden = await game.sessions.ask(game.session_id, "How much depth is there?", "p")
        assert not hidden.is_found
        assert await game.now() == before


@pytest.mark.parametrize("question", ["", "  ", "x" * 1_001])
async def test_a_question_must_be_a_text_of_limited_size(tmp_path: Path, question: str) -> None:
    async with table(f"sqlite:///{tmp_path}/a.db", COUNTED) as game:
        with pytest.raises(InvalidArgumentError):
            await game.sessions.ask(game.session_id, question, None)


async def test_the_narrator_asks_the_record_of_all_turns(tmp_path: Path) -> None:
    said = outcome("It is told.", visible_dialogue=[{"entity_id": "q", "utterance": "Count again."}])
    asking = calling(("ask_record", {"question": "What did Quo say in turn 1?"}))
    hidden = calling(("ask_record", {"question": "How much depth is there?"}))
    told = outcome("It is told.")
    gateway = FakeGateway(said, *[told] * 9, asking, told, hidden, told)
    async with table(f"sqlite:///{tmp_path}/a.db", COUNTED, gateway) as game:
        for turn in range(1, 11):
            await game.play(turn)
        before = len(gateway.requests)
        await game.play(11)
        await game.play(12)
    answers = [results(gateway, before + place)[0] for place in (1, 3)]
    assert answers[0] == ({"answer": "\u201cCount again.\u201d (turn 1)", "found": True, "turns": [1]}, False)
    assert answers[1][0] == {"answer": CANNOT_SAY, "found": False, "turns": []}


async def test_the_narrator_finds_its_own_notes_and_prose(tmp_path: Path) -> None:
    note = {"target_id": "q", "scope": "fact", "content": "Quo keeps a lamp.", "visibility": "public"}
    said = outcome("Quo lights a lamp. It is late.", hidden_memory_updates=[note])
    asking = calling(("ask_record", {"question": "Who keeps the lamp?"}))
    gateway = FakeGateway(said, asking, outcome("It is told."))
    async with table(f"sqlite:///{tmp_path}/a.db", COUNTED, gateway) as game:
        await game.play(1)
        await game.play(2)
    (answer, _) = results(gateway, 2)[0]
    assert answer["noted"] == [{"turn": 1, "text": "Quo keeps a lamp."}]
    assert answer["narrated"] == [{"turn": 1, "text": "Quo lights a lamp."}]
    assert not answer["found"]


async def test_a_small_room_has_no_tool_for_the_record(tmp_path: Path) -> None:
    small, full = FakeGateway(outcome()), FakeGateway(outcome())
    for gateway, room in ((small, PromptRoom.for_window(4_096)), (full, PromptRoom.for_window(128_000))):
        async with table(f"sqlite:///{tmp_path}/{id(gateway)}.db", COUNTED, gateway, room=room) as game:
            await game.play(1)
    offered = [{tool.name for tool in gateway.requests[0].tools} for gateway in (small, full)]
    assert offered[1] - offered[0] == {"ask_record"}


def test_mentions_share_words_with_a_question() -> None:
    texts = [(1, "The model is the Halo."), (2, "She reads the log."), (3, "Models of the Halo are sold.")]
    assert find_mentions(texts, "What is the model called?", 4) == [texts[2], texts[0]]
    assert find_mentions(texts, "What did she read in the log?", 1) == [texts[1]]
    assert find_mentions(texts, "Where is it?", 4) == []

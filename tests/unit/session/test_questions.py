"""Questions about a session are answered from its record, with the turns and without hidden state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from peripety.engine import Status
from peripety.errors import InvalidArgumentError
from peripety.session.narration.prompt_room import PromptRoom
from peripety.session.questions.answers import CANNOT_SAY, answer_question
from peripety.session.questions.question_words import list_question_languages, load_words
from peripety.session.questions.session_record import SessionRecord, find_mentions
from support.engine.specs import action, document, event
from support.gateway.fake_gateway import FakeGateway, calling
from support.session.questions import CANARIES, Asked, Game, Move, play, play_moves, questions
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
    assert answers[0] == ({"answer": "\u201cCount again.\u201d", "found": True, "turns": [1]}, False)
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


LANGUAGES = {
    "es": (
        "Reserva",
        "Confianza",
        "Llenar la reserva",
        "Esperar la noche",
        "Llega la tormenta",
        "Eres quien decide. Todo depende de la reserva.",
        "Hay que contar.",
    ),
    "de": (
        "Vorrat",
        "Vertrauen",
        "Den Vorrat auff\u00fcllen",
        "Die Nacht abwarten",
        "Der Sturm kommt",
        "Du entscheidest hier. Alles h\u00e4ngt von dem Vorrat ab.",
        "Wir m\u00fcssen z\u00e4hlen.",
    ),
    "zh": (
        "\u50a8\u5907",
        "\u4fe1\u4efb",
        "\u8865\u5145\u50a8\u5907",
        "\u7b49\u5230\u5929\u4eae",
        "\u98ce\u66b4\u6765\u4e86",
        "\u8fd9\u91cc\u7531\u4f60\u51b3\u5b9a\uff0c\u4e00\u5207\u90fd\u770b\u50a8\u5907\u3002",
        "\u5f97\u6570\u4e00\u6570\u3002",
    ),
    "fr": (
        "R\u00e9serve",
        "Confiance",
        "Remplir la r\u00e9serve",
        "Attendre la nuit",
        "La temp\u00eate arrive",
        "Vous d\u00e9cidez ici de tout. Tout d\u00e9pend de la r\u00e9serve qui vous reste.",
        "Il faut compter.",
    ),
}


def game_in(language: str) -> Game:
    supply, trust, fill, wait, storm, opening, said = LANGUAGES[language]
    document_ = document(
        spec_version="1.1",
        opening=opening,
        entities=[
            {"id": "alpha", "name": "Alpha", "playable": True},
            {"id": "beta", "name": "Beta"},
        ],
        labels={"state.supply": {"name": supply}, "state.trust": {"name": trust}},
        state={
            "supply": 20,
            "trust": 4,
            "people": {"alpha": {"place": "x_room"}, "beta": {"place": "x_room", "alive": True}},
            "items": {"seal": {"holder": "beta"}},
        },
        actions=[
            action("fill", [{"op": "inc", "path": "state.supply", "value": 3}]) | {"name": fill},
            action("wait", [{"op": "dec", "path": "state.trust", "value": 1}]) | {"name": wait},
        ],
        random_events=[
            event("storm", [{"op": "dec", "path": "state.supply", "value": 1}], weight=0.3) | {"name": storm}
        ],
    )
    moves = [Move("fill"), Move("wait", reply=said), Move("fill", spoken="42")]
    return play_moves(document_, "alpha", moves)


GAMES = {language: game_in(language) for language in LANGUAGES}


@pytest.mark.parametrize(
    ("language", "question", "text"),
    [
        ("es", "¿Cuánta reserva queda?", "Reserva: 24."),
        ("es", "cuanta reserva habia antes del turno 2", "Reserva: 22."),
        ("es", "¿Cómo cambió la confianza?", "Confianza: de 4 a 3."),
        ("es", "¿Cuándo bajó la confianza?", "En el turno 2."),
        ("es", "¿Qué pasó en el turno 2?", "Esperar la noche; Llega la tormenta; Reserva: de 22 a 21; "),
        ("es", "¿Qué puedo hacer?", "Llenar la reserva; "),
        ("es", "¿En qué turno estamos?", "Han pasado 3 turnos."),
        ("es", "¿Ha terminado el juego?", "No, la partida sigue."),
        ("es", "¿Cuántas veces he llenado la reserva?", "2 veces."),
        ("es", "¿Cuándo esperé la noche?", "En el turno 2."),
        ("es", "¿Qué dijo Beta?", "\u201cHay que contar.\u201d"),
        ("es", "¿Quién está aquí?", "Beta."),
        ("es", "¿Está viva Beta?", "Sí."),
        ("es", "¿Quién tiene el seal?", "Lo tiene Beta: seal."),
        ("es", "¿Cuándo ocurrió la tormenta?", "En los turnos 1, 2."),
        ("es", "How much reserva is left?", "Reserva: 24."),
        ("de", "Wie viel Vorrat habe ich noch?", "Vorrat: 24."),
        ("de", "Wie hoch war der Vorrat vor Zug 2?", "Vorrat: 22."),
        ("de", "Ist das Vertrauen gesunken?", "Ja: von 4 auf 3."),
        ("de", "Wann ist das Vertrauen gesunken?", "In Zug 2."),
        ("de", "Was ist seit Zug 1 passiert?", "Zug 2: Die Nacht abwarten; Der Sturm kommt; "),
        ("de", "Was kann ich tun?", "Den Vorrat auffüllen; "),
        ("de", "Welcher Zug ist es?", "3 Züge sind vorbei."),
        ("de", "Ist das Spiel vorbei?", "Nein, das Spiel geht weiter."),
        ("de", "Wie oft habe ich den Vorrat aufgefuellt?", "2-mal."),
        ("de", "Habe ich schon die Nacht abgewartet?", "Ja, in Zug 2."),
        ("de", "Was hat Beta gesagt?", "\u201eWir müssen zählen.\u201c"),
        ("de", "Wo bin ich?", "Ort: x room."),
        ("de", "Wer hat das seal?", "Beta hat es: seal."),
        ("de", "Wann ist der Sturm gekommen?", "In den Zügen 1, 2."),
        ("zh", "\u8fd8\u5269\u591a\u5c11\u50a8\u5907\uff1f", "\u50a8\u5907\uff1a24\u3002"),
        (
            "zh",
            "\u7b2c2\u56de\u5408\u4e4b\u524d\u50a8\u5907\u662f\u591a\u5c11\uff1f",
            "\u50a8\u5907\uff1a22\u3002",
        ),
        ("zh", "\u4fe1\u4efb\u600e\u4e48\u53d8\u7684\uff1f", "\u4fe1\u4efb\uff1a4\u53d8\u4e3a3\u3002"),
        ("zh", "\u4fe1\u4efb\u4e0b\u964d\u4e86\u5417\uff1f", "\u662f\uff1a4\u53d8\u4e3a3\u3002"),
        (
            "zh",
            "\u7b2c2\u56de\u5408\u53d1\u751f\u4e86\u4ec0\u4e48\uff1f",
            "\u7b49\u5230\u5929\u4eae\uff1b\u98ce\u66b4\u6765\u4e86\uff1b",
        ),
        ("zh", "\u6211\u80fd\u505a\u4ec0\u4e48\uff1f", "\u8865\u5145\u50a8\u5907\uff1b"),
        ("zh", "\u73b0\u5728\u662f\u7b2c\u51e0\u56de\u5408\uff1f", "\u8fc7\u4e863\u4e2a\u56de\u5408\u3002"),
        (
            "zh",
            "\u6e38\u620f\u7ed3\u675f\u4e86\u5417\uff1f",
            "\u8fd8\u6ca1\u6709\uff0c\u8fd8\u5728\u7ee7\u7eed\u3002",
        ),
        ("zh", "\u6211\u8865\u5145\u50a8\u5907\u51e0\u6b21\uff1f", "2\u6b21\u3002"),
        (
            "zh",
            "\u6211\u4ec0\u4e48\u65f6\u5019\u7b49\u5230\u5929\u4eae\u7684\uff1f",
            "\u7b2c2\u56de\u5408\u3002",
        ),
        (
            "zh",
            "Beta\u8bf4\u4e86\u4ec0\u4e48\uff1f",
            "\u201c\u5f97\u6570\u4e00\u6570\u3002\u201d",
        ),
        ("zh", "\u8c01\u5728\u8fd9\u91cc\uff1f", "Beta\u3002"),
        ("zh", "Beta\u5728\u54ea\u91cc\uff1f", "\u5728x room\u3002"),
        ("zh", "\u6211\u6709\u4ec0\u4e48\uff1f", "\u6ca1\u6709\u3002"),
        (
            "zh",
            "\u98ce\u66b4\u4ec0\u4e48\u65f6\u5019\u53d1\u751f\u7684\uff1f",
            "\u7b2c1, 2\u56de\u5408\u3002",
        ),
    ],
)
def test_a_question_is_answered_in_the_language_of_the_game(language: str, question: str, text: str) -> None:
    answer = answer_question(GAMES[language].record, question)
    assert (answer.is_found, answer.text[: len(text)]) == (True, text)


@pytest.mark.parametrize(
    ("language", "question", "text"),
    [
        ("es", "¿Por qué?", "El registro no lo dice."),
        ("de", "Wie viel Geheimnis gibt es?", "Das geht aus der Aufzeichnung nicht hervor."),
        ("zh", "\u4e3a\u4ec0\u4e48\uff1f", "\u8bb0\u5f55\u91cc\u6ca1\u6709\u7b54\u6848\u3002"),
        ("fr", "Combien de réserve?", "The record does not answer that. Ask in English"),
    ],
)
def test_a_question_without_an_answer_says_so_in_the_language(
    language: str, question: str, text: str
) -> None:
    answer = answer_question(GAMES[language].record, question)
    assert (answer.is_found, answer.text[: len(text)]) == (False, text)


PREMISE = {
    "en": "You keep the gate and the lamp of the harbour, and you open the gate.",
    "es": "Guardas la puerta y la lámpara del puerto, y tú abres la puerta.",
    "de": "Du hütest das Tor und die Lampe im Hafen, und du öffnest das Tor.",
    "zh": "\u4f60\u770b\u7ba1\u7740\u6e2f\u53e3\u7684\u706f\uff0c\u4e5f\u770b\u7ba1\u7740\u5927\u95e8\u3002",
}


def knowing(language: str, *, is_at_start: bool = False) -> SessionRecord:
    """Return a record with a clue, a statement and a promise, or before any of them."""
    terms = {"to": "beta", "terms": "To open it.", "due": 3}
    spec = document(
        spec_version="1.1",
        horizon=9,
        opening=PREMISE[language],
        entities=[
            {"id": "me", "name": "The Keeper", "playable": True, "description": "Awake."},
            {"id": "beta", "name": "Beta Vale", "description": "Tall.", "secret": CANARIES[0]},
        ],
        clues={"mark": {"text": "The mark is that of Vale."}, "unseen": {"text": CANARIES[1]}},
        statements={"claim": {"by": "beta", "text": "Never.", "true": True, "broken_by": "mark"}},
        promises={"help": terms, "own": {**terms, "by": "beta", "to": "me"}},
    )
    tree = {"clues": {"mark": "The mark is that of Vale."}, "statements": {"claim": "Never."}}
    seen = {} if is_at_start else {**tree, "promises": {"help": "open", "own": "open"}}
    return SessionRecord(json.loads(spec), "me", seen, Status("ongoing"), [], [])


@pytest.mark.parametrize(
    ("language", "question", "text"),
    [
        ("en", "Who is Beta Vale, and what is hers?", "Beta Vale: Tall."),
        ("en", "What do I know?", "The mark is that of Vale. Beta Vale: \u201cNever.\u201d"),
        ("en", "Tell me about the mark", "The mark is that of Vale."),
        ("en", "What have I found out about Vale?", "Beta Vale: Tall. The mark is that of Vale. Beta Vale: "),
        ("en", "What did I promise?", "Beta Vale: To open it (open)."),
        ("en", "How many turns are left?", "9 turns are left."),
        ("en", "Has Beta said anything?", "Nothing."),
        ("es", "¿Quién es Beta?", "Beta Vale: Tall."),
        ("es", "¿Qué sé de la mark?", None),
        ("es", "¿Qué he averiguado?", "The mark is that of Vale. "),
        ("es", "¿Qué he prometido?", "Beta Vale: To open it (pendiente)."),
        ("es", "¿Cuántos turnos quedan?", "Quedan 9 turnos."),
        ("de", "Wer ist Beta Vale?", "Beta Vale: Tall."),
        ("de", "Was weiß ich über Beta?", "Beta Vale: Tall. "),
        ("de", "Was habe ich versprochen?", "Beta Vale: To open it (offen)."),
        ("de", "Wie viele Züge bleiben noch?", "Noch 9 Züge."),
        ("zh", "Beta\u662f\u8c01\uff1f", "Beta Vale\uff1aTall."),
        ("zh", "\u6211\u77e5\u9053\u4ec0\u4e48\uff1f", "The mark is that of Vale. "),
        ("zh", "\u6211\u7b54\u5e94\u4e86\u4ec0\u4e48\uff1f", "Beta Vale\uff1aTo open it\uff08"),
        ("zh", "\u8fd8\u5269\u591a\u5c11\u56de\u5408\uff1f", "\u8fd8\u52699\u4e2a\u56de\u5408\u3002"),
        ("en", "What do I know about the thief?", None),
    ],
)
def test_what_the_player_knows_is_told(language: str, question: str, text: str | None) -> None:
    answer = answer_question(knowing(language), question)
    assert (answer.is_found, answer.text[: len(text or "")]) == (text is not None, text or "")
    assert not any(secret in answer.text for secret in CANARIES)


def test_nothing_is_known_or_promised_at_the_start() -> None:
    record = knowing("en", is_at_start=True)
    for question in ("What do I know?", "What have I promised?"):
        assert answer_question(record, question).text == "Nothing."


def test_every_language_has_all_texts_and_methods() -> None:
    english = load_words("en")
    for language in list_question_languages():
        words = load_words(language)
        assert words.texts.keys() | {"cannot_here"} == english.texts.keys()
        methods = {pattern.method for pattern in words.patterns}
        assert methods == {pattern.method for pattern in english.patterns}

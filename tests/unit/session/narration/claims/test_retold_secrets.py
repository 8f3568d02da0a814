"""Sentences with most content words of a secret are withheld, unless the audience knows these words."""

from __future__ import annotations

import pytest

from peripety.session.narration.claims.checker import ClaimChecker, ClaimFilter
from peripety.session.narration.claims.conduct import RetoldSecrets, content_words
from peripety.session.narration.outcome_schema import _build_checker
from support.engine.specs import action, document
from support.session.claims import cases
from support.session.sessions import scene_of

HIDDEN = "While the others slept, Beta stole the marker and buried it under the yard. Nobody saw it."


@pytest.mark.parametrize(
    ("sentence", "is_told"),
    [
        ("Beta buries the marker in the yard.", True),
        ("Under the yard lies the stolen marker, and Beta sleeps.", True),
        ("'It was I, Beta, who stole and buried your marker,' she says.", True),
        ("Beta looks at the yard, and thinks of the marker.", False),
        ("Nobody saw it.", False),
        ("Gamma sleeps in the yard.", False),
    ],
)
def test_a_sentence_with_most_words_of_a_secret_retells_it(sentence: str, is_told: bool) -> None:
    assert RetoldSecrets([HIDDEN], ()).is_told(sentence) is is_told


def test_words_that_one_known_text_has_may_be_told() -> None:
    sentence = "Beta buries the marker in the yard."
    assert not RetoldSecrets([HIDDEN], ["Is the marker of Beta buried in the yard?"]).is_told(sentence)
    apart = ["Beta likes the yard.", "The marker is buried."]
    assert RetoldSecrets([HIDDEN], apart).is_told(sentence)


def test_words_are_compared_by_their_lemmas_without_light_ones() -> None:
    assert content_words("They took the markers, and slept.") == {"marker", "sleep"}


def test_the_beginning_of_a_retold_secret_is_not_released() -> None:
    facts = next(case.facts for case in cases("honest") if case.kind == "amount")
    checker = ClaimChecker(facts)
    told = "At night Beta hid the marker in the south yard."
    assert [found.kind for found in checker.check(told)] == ["secret"]
    stream = ClaimFilter(checker)
    released = "".join(stream.feed(character) for character in f"{told} And so on. ")
    assert "marker" not in released
    assert stream.has_contradiction


def test_a_private_text_is_a_secret_of_a_turn_unless_the_player_has_its_words() -> None:
    state = {"a": 1, "private": {"q": {"x": HIDDEN}, "p": {"y": "own"}}}
    entities = [{"id": "p", "name": "P", "playable": True}, {"id": "q", "name": "Q", "playable": True}]
    spec = document(state=state, entities=entities, actions=[action("act")])
    retold = "Beta buries the marker in the yard."
    kinds = {}
    for spoken in ("", "I say that Beta buried the marker in the yard."):
        about = scene_of(spec, viewer="p", spoken=spoken)
        found = _build_checker(about, about.speculation.preview()).check(retold)
        kinds[spoken] = [one.kind for one in found]
    assert [*kinds.values()] == [["secret"], []]
    own = scene_of(spec, viewer="q")
    assert _build_checker(own, own.speculation.preview()).check(retold) == []

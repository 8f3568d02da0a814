"""Words that stand where one point of view may not look."""

from __future__ import annotations

import json

from peripety import engine
from peripety.session.narrator_metrics import insert_canaries
from peripety.session.visibility import Projector
from support.engine.specs import spec

ENTITIES = [{"id": name, "name": name, "kind": "one", "playable": name == "a"} for name in ("a", "b", "c")]


def test_a_word_stands_in_what_is_hidden_and_in_what_each_of_the_others_keeps() -> None:
    changed, words = insert_canaries(spec(entities=ENTITIES), "a", 1)
    assert len(set(words)) == 3
    assert changed["state"]["hidden"]["canary"] in words
    assert set(changed["state"]["private"]) == {"b", "c"}


def test_the_point_of_view_sees_none_of_them() -> None:
    changed, words = insert_canaries(spec(entities=ENTITIES), "a", 1)
    program = engine.compile(json.dumps(changed).encode())
    seen = json.dumps(Projector(program.spec).for_viewer("a").project_state(program.new_state().tree()))
    assert not any(word in seen for word in words)


def test_what_stood_there_stays_and_the_original_is_not_changed() -> None:
    original = spec(entities=ENTITIES)
    original["state"] |= {"hidden": {"x": 1}, "private": {"b": {"y": 2}}}
    before = json.dumps(original)
    changed, _ = insert_canaries(original, "a", 1)
    assert json.dumps(original) == before
    assert changed["state"]["hidden"]["x"] == 1
    assert changed["state"]["private"]["b"]["y"] == 2


def test_words_follow_from_the_seed() -> None:
    one, again, other = (insert_canaries(spec(), None, seed)[1] for seed in (1, 1, 2))
    assert one == again != other


def test_a_slot_that_holds_no_object_is_left_alone() -> None:
    strange = spec()
    strange["state"]["hidden"] = 5
    changed, words = insert_canaries(strange, None, 1)
    assert (changed["state"]["hidden"], words) == (5, ())

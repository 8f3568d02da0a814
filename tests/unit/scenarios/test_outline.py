"""From words to rules: any words at all, always valid, always balanced."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from peripety import sim
from peripety.scenarios.gate import verdict_of
from peripety.scenarios.model import DryRunOptions
from peripety.scenarios.outline import OUTLINE, excerpt, spec_from_outline
from peripety.sim.schema import check
from support.scenarios import WORKERS

PARTS = ("resource", "asset", "danger", "goal", "accident", "luck")


def outline(*words: str, title: str = "Title", person: str = "") -> dict[str, str]:
    return {"title": title, **dict(zip(PARTS, words, strict=True)), "person": person}


PLAIN = outline("one", "two", "three", "four", "five", "six")


def test_each_word_plays_its_part() -> None:
    spec = spec_from_outline(PLAIN, "", 1)
    shown = {key.split()[0] for key in spec["state"] if key not in {"hidden", "private"}}
    assert shown == {"One", "Two", "Three", "Four"}
    assert "One" in next(iter(spec["negativity_budget"]["decay_per_turn"]))
    assert {"Five", "Six"} <= {event["name"].split(":")[0] for event in spec["random_events"]}


def test_the_seed_decides_what_the_words_leave_open() -> None:
    one, same, other = [spec_from_outline(PLAIN, "about", seed) for seed in (1, 1, 2)]
    assert one == same
    assert one["seed"] == 1
    assert one["id"] != other["id"]
    assert len({json.dumps(spec_from_outline(PLAIN, "", seed)["horizon"]) for seed in range(20)}) == 3


def test_a_word_that_looks_like_a_made_up_identifier_keeps_it_to_itself() -> None:
    spec = spec_from_outline(outline("q2", "火", "水", "木", "five", "six"), "", 1)
    about_words = {event["id"].rpartition("_")[2] for event in spec["random_events"][:3]}
    assert len(about_words) == 3


@pytest.mark.parametrize(
    "words",
    [
        ("one",) * 6,
        ("",) * 6,
        ('"', "\\", "{{x}}", "${y}", "<%z%>", "[0]"),
        ("player", "state", "hidden", "private", "__proto__", "constructor"),
        ("7", "_", "a", "://", "x_y", "-"),
        ("é" * 32, "火", "\U0001f600", "\u05d0\u05d1", "\u202eabc", "क्षि"),
        ("a b c d e f g h i j k l m n o p q",) * 6,
        ("One", "one", "ONE", " one ", "one.", "«one»"),
    ],
)
def test_any_words_make_a_valid_specification(words: tuple[str, ...]) -> None:
    for description in ("", "alpha and beta wait for gamma", "\u05d0\u05d1\u05d2 \u05d3\u05d4\u05d5"):
        for person in ("", "Beta", "player", '"'):
            spec = spec_from_outline(outline(*words, title=words[0], person=person), description, 3)
            assert sim.validate(json.dumps(spec)) == []


def test_random_text_makes_valid_specifications() -> None:
    dice = random.Random(1)
    alphabet = [chr(code) for code in (*range(0x20, 0x180), 0x200D, 0x202E, 0x5D0, 0x4E00, 0x1F600, 0x301)]
    for seed in range(60):
        words = ["".join(dice.choices(alphabet, k=dice.randrange(33))) for _ in range(8)]
        spec = spec_from_outline(outline(*words[:6], title=words[6], person=words[7]), words[7], seed)
        assert sim.validate(json.dumps(spec)) == []


def test_a_word_that_cannot_be_used_is_replaced_by_one_of_the_description() -> None:
    spec = spec_from_outline(outline("one", "one", "2", "four", "five", "six"), "The gauge waits.", 1)
    assert any("Gauge" in key for key in spec["state"])


def test_a_name_that_the_limit_cut_ends_with_a_whole_word() -> None:
    cut = "alpha beta gamma delta epsilon zeta"[:32]
    spec = spec_from_outline(outline(cut, "two", "three", "four", "five", "six"), "", 1)
    assert any(key.startswith("Alpha beta gamma delta epsilon (") for key in spec["state"])


@pytest.mark.parametrize(
    ("description", "person", "known"),
    [("Beta keeps it", "beta", True), ("nobody is here", "Beta", False), ("Beta keeps it", "", False)],
)
def test_only_people_of_the_description_take_part(description: str, person: str, known: bool) -> None:
    spec = spec_from_outline({**PLAIN, "person": person}, description, 1)
    assert ("Beta" in [entity.get("name") for entity in spec["entities"]]) is known


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_the_seed_it_meets_its_budget(seed: int) -> None:
    rules = sim.compile(json.dumps(spec_from_outline({**PLAIN, "person": "one"}, "one", seed)))
    assert (await verdict_of(rules, DryRunOptions(), WORKERS)).accepted


def test_the_schema_is_small_and_takes_an_outline() -> None:
    document: dict[str, Any] = dict(OUTLINE.document)
    assert check(document, PLAIN) == []
    assert check(document, {**PLAIN, "more": ""}) != []
    assert len(json.dumps(document)) < 1000


def test_an_excerpt_is_short_and_whole() -> None:
    assert excerpt("a\u202e b") == "a b"
    assert len(excerpt("ab" * 50_000)) == 2_000

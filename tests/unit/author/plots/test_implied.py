"""Goals that a situation implies, and goals that the text leaves incomplete."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.author.plots.addressing import address_actor
from peripety.author.plots.implied import imply_goal
from peripety.author.plots.plot import PLAIN, load_texts
from peripety.author.plots.slots import collect_slots
from peripety.author.text_analysis.reading import Reading, read_text
from support.repo.repository import ROOT

CASES: list[dict[str, Any]] = json.loads(
    (ROOT / "tests/data/offline_reading/first_screens.json").read_text(encoding="utf-8")
)["goals"]


def imply(text: str) -> Reading:
    reading = read_text(address_actor(text))
    return imply_goal(reading, load_texts(PLAIN, reading.language)["common"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["text"][:24]))
def test_a_situation_without_a_goal_gets_one_in_words_of_the_text(case: dict[str, Any]) -> None:
    reading = imply(case["text"])
    slots = collect_slots(reading, load_texts(reading.pattern, reading.language))
    assert (reading.pattern, slots["own_goal"]) == (case["pattern"], case["goal"])


@pytest.mark.parametrize("text", ["office politics", "surprise me", ""])
def test_a_vague_text_keeps_the_plain_plot(text: str) -> None:
    reading = read_text(address_actor(text))
    assert imply_goal(reading, load_texts(PLAIN)["common"]) == reading


def test_who_is_expected_has_no_other_part() -> None:
    case = next(case for case in CASES if case["goal"] == "be ready for the critic")
    slots = collect_slots(imply(case["text"]), load_texts("make_ready"))
    assert "critic" not in f"{slots['ally']} {slots['rival']}"


def test_a_member_of_the_group_of_the_player_takes_a_part() -> None:
    slots = collect_slots(imply(CASES[2]["text"]), load_texts("hold_out"))
    assert getattr(slots["ally"], "bare", "") == "eldest student"


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("Ice road, heater dying.", ""),
        ("Ice road, one passenger, dying.", "save"),
        ("Ice road, the oxen are dying.", "save"),
    ],
)
def test_a_single_sign_of_a_plot_about_persons_needs_a_person(text: str, pattern: str) -> None:
    assert imply(text).pattern == pattern

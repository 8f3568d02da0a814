"""An outline gives names; whatever is said in it, a blueprint with every role comes of it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from peripety.authoring.blueprint import Action, Blueprint, Quantity, Role
from peripety.scenarios.stepwise.outline import OUTLINE, blueprint_of, question_about
from peripety.sim.schema import check
from support import stepwise

ROLES = set(Role)


def outline(**more: Any) -> dict[str, Any]:
    return {**stepwise.OUTLINE, **more}


def named(blueprint: Blueprint) -> list[str]:
    parts: tuple[Action | Quantity, ...] = (*blueprint.quantities, *blueprint.actions)
    return [part.name.casefold() for part in parts]


def test_each_name_plays_the_part_that_it_was_given() -> None:
    blueprint = blueprint_of(stepwise.OUTLINE, stepwise.DESCRIPTION)
    assert blueprint.title == "A gauge and its keeper"
    assert blueprint.quantities == (
        Quantity("Fuel", Role.SUPPLY),
        Quantity("Spares", Role.SUPPLY),
        Quantity("Gauge", Role.WARD),
        Quantity("Drift", Role.THREAT),
        Quantity("Report", Role.GOAL),
        Quantity("Crack", Role.THREAT, is_hidden=True),
    )
    assert [action.name for action in blueprint.actions] == [
        "File the report",
        "Mend the gauge",
        "Trim",
        "Barter",
    ]
    assert [event.name for event in blueprint.events] == ["Leak", "Storm", "Visit", "Rust"]
    assert blueprint.people == ("Beta",)
    assert blueprint.has_deadline


def test_a_name_is_nothing_but_the_first_that_it_was_given_for() -> None:
    said = outline(resources=["Fuel", "fuel", " FUEL. "], assets=["fuel"], actions=["Fuel", "trim"])
    blueprint = blueprint_of(said, stepwise.DESCRIPTION)
    names = named(blueprint)
    assert names.count("fuel") == 1
    assert len(names) == len(set(names))


def test_a_role_without_a_name_gets_a_word_of_the_description() -> None:
    blueprint = blueprint_of(outline(assets=["", "7"]), "The valve is stuck.")
    (ward,) = [each.name for each in blueprint.quantities if each.role is Role.WARD]
    assert ward == "Valve"


def test_a_key_is_a_name_only_where_the_description_has_the_word() -> None:
    said = outline(resources=["dangers"], assets=["goals"])
    names = {each.name for each in blueprint_of(said, "The goals were set too high.").quantities}
    assert "Dangers" not in names
    assert "Goals" in names


def test_only_people_of_the_description_take_part_and_all_whom_rules_find_there() -> None:
    said = outline(people=["the keeper", "Delta"])
    assert blueprint_of(said, "Yesterday Beta met the keeper.").people == ("The keeper", "Beta")


def test_numbers_and_spans_of_time_are_those_of_the_description() -> None:
    said = outline(resources=["fuel", "spares"], deadline=False)
    text = "There are 40 spares and 3 valves for the next six days, and by noon in two hours they are due."
    blueprint = blueprint_of(said, text)
    amounts = {each.name: each.amount for each in blueprint.quantities}
    assert (amounts["Spares"], amounts["Fuel"]) == (40, None)
    assert blueprint.hours == 6 * 24
    assert 0 < blueprint.due_hours < blueprint.hours
    assert blueprint.has_deadline


def test_a_word_that_carries_nothing_names_nobody() -> None:
    assert blueprint_of(outline(people=["and", "may"]), "The gauge and the valve may fail.").people == ()


def test_a_name_that_the_limit_cut_ends_with_a_whole_word() -> None:
    blueprint = blueprint_of(outline(resources=["alpha beta gamma delta epsilon zeta"[:32]]), "")
    assert blueprint.quantities[0].name == "Alpha beta gamma delta epsilon"


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"title": 7, "resources": "fuel", "people": [None], "actions": {"a": 1}, "deadline": "yes"},
        outline(title="", resources=[], assets=[], dangers=[], goals=[]),
        outline(resources=['"', "\\", "{{x}}", "${y}", "<%z%>", "[0]", "://"]),
        outline(resources=["é" * 32, "火", "\U0001f600", "\u202eabc", "क्षि"]),
    ],
)
@pytest.mark.parametrize("description", ["", "alpha waits for beta", "\u05d0\u05d1\u05d2 \u05d3\u05d4\u05d5"])
def test_whatever_is_said_every_role_is_there_and_every_name_is_its_own(said: Any, description: str) -> None:
    blueprint = blueprint_of(said, description)
    names = [each.name.casefold() for each in blueprint.quantities]
    assert {each.role for each in blueprint.quantities} == ROLES
    assert all(names)
    assert len(names) == len(set(names))
    assert blueprint.title


def test_random_text_makes_distinct_names() -> None:
    dice = random.Random(1)
    alphabet = [chr(code) for code in (*range(0x20, 0x180), 0x200D, 0x202E, 0x5D0, 0x4E00, 0x1F600, 0x301)]
    for _ in range(60):
        words = ["".join(dice.choices(alphabet, k=dice.randrange(33))) for _ in range(12)]
        blueprint = blueprint_of(outline(resources=words[:3], actions=words[3:11]), words[11])
        names = named(blueprint)
        assert len(names) == len(set(names))


def test_the_schema_is_small_and_takes_an_outline() -> None:
    document = dict(OUTLINE)
    assert check(document, stepwise.OUTLINE) == []
    assert check(document, outline(more="")) != []
    assert check(document, outline(goals=["2026-11-22"])) != []
    assert len(json.dumps(document)) < 2_000


def test_a_question_holds_a_short_excerpt_and_words_to_copy() -> None:
    asked = question_about("The \u202egauge falls. " + "ab" * 50_000)
    assert len(asked["description"]) <= 2_000
    assert asked["description"].startswith("The gauge falls.")
    assert "Gauge" in asked["words"]

"""An outline gives names; whatever is said in it, something for every part comes of it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from peripety.author.blueprint import Role
from peripety.author.blueprint_builder import MIN_TERMS
from peripety.author.text_analysis.terms import Term
from peripety.engine.schema_validation import validate_against_schema
from peripety.scenario.outline_authoring.outline_author import (
    OUTLINE_SCHEMA,
    extract_outline_terms,
    outline_request,
    parse_outline,
)
from support.scenario import generation

VALVE = "The valve is stuck."


def outline(**more: Any) -> dict[str, Any]:
    return {**generation.OUTLINE, **more}


def named(said: Any, description: str) -> list[str]:
    return [term.text.casefold() for term in extract_outline_terms(said, description).terms]


def test_each_name_plays_the_part_that_it_was_given() -> None:
    words = extract_outline_terms(generation.OUTLINE, generation.DESCRIPTION)
    assert words.title == "A gauge and its keeper"
    assert words.people == ("Beta",)
    assert words.terms[:5] == (
        Term("Fuel", Role.SUPPLY),
        Term("Spares", Role.SUPPLY),
        Term("Gauge", Role.WARD),
        Term("Drift", Role.THREAT),
        Term("Report", Role.GOAL),
    )


def test_sections_are_about_what_everybody_sees_and_secrets_and_rules_by_name() -> None:
    blueprint = generation.outlined()
    assert [one.term for one in blueprint.quantities if one.role is Role.SUPPLY] == ["Fuel", "Spares"]
    assert [one.name for one in blueprint.quantities if one.is_unseen] == ["Crack"]
    assert {one.role for one in blueprint.quantities} == set(Role)
    names = [action.name for action in blueprint.actions]
    assert names == ["File the report", "Mend the gauge", "Trim", "Barter"]
    assert [event.name for event in blueprint.events] == ["Leak", "Storm", "Visit", "Rust"]
    assert blueprint.has_deadline


def test_a_name_is_nothing_but_the_first_that_it_was_given_for() -> None:
    said = outline(resources=["Fuel", "fuel"], assets=[" FUEL. "], actions=["Fuel", "gauge", "trim"])
    words = extract_outline_terms(said, generation.DESCRIPTION)
    assert [term for term in words.terms if term.text == "Fuel"] == [Term("Fuel", Role.SUPPLY)]
    blueprint = parse_outline(said, generation.DESCRIPTION, generation.composed_of(words))
    assert "Fuel" not in [action.name for action in blueprint.actions]


def test_words_of_the_description_come_behind_those_of_the_model() -> None:
    assert named(outline(assets=["", "7"]), VALVE)[:5] == ["fuel", "spares", "drift", "report", "valve"]


def test_words_that_say_little_come_before_none_at_all() -> None:
    said = outline(resources=[], assets=[], dangers=[], goals=[])
    names = named(said, "It was given to us, and nothing is left of it.")
    assert not any(name.isdigit() for name in names)


def test_words_of_the_prompt_are_names_only_where_the_description_has_them() -> None:
    said = outline(resources=["dangers", "events may happen"], assets=["goals", "much fuel"])
    names = named(said, "The goals were set too high.")
    assert "dangers" not in names
    assert "events may happen" not in names
    assert names[:2] == ["goals", "much fuel"]


def test_only_people_of_the_description_take_part_and_all_whom_rules_find_there() -> None:
    said = outline(people=["the keeper", "Delta"])
    assert extract_outline_terms(said, "Yesterday Beta met the keeper.").people == ("The keeper", "Beta")


def test_a_word_that_carries_nothing_names_nobody() -> None:
    assert (
        extract_outline_terms(outline(people=["and", "may"]), "The gauge and the valve may fail.").people
        == ()
    )


def test_numbers_and_spans_of_time_are_those_of_the_description() -> None:
    words = extract_outline_terms(
        outline(),
        "There are 40 spares for the next six days, and they are due in two hours.",
    )
    amounts = {term.text: term.amount for term in words.terms}
    assert (amounts["Spares"], amounts["Fuel"]) == (40, None)
    assert words.spans == (6 * 24, 2)


def test_a_name_that_the_limit_cut_ends_with_a_whole_word() -> None:
    words = extract_outline_terms(outline(resources=["alpha beta gamma delta epsilon zeta"[:32]]), "")
    assert words.terms[0].text == "Alpha beta gamma delta epsilon"


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"title": 7, "resources": "fuel", "people": [None], "actions": {"a": 1}, "deadline": "yes"},
        outline(title="", resources=[], assets=[], dangers=[], goals=[]),
        outline(resources=['"', "\\", "{{x}}", "${y}", "<%z%>", "[0]", "://"], assets=["a", "b", "c", "d"]),
        outline(resources=["é" * 32, "火", "\U0001f600", "\u202eabc", "क्षि"]),
    ],
)
@pytest.mark.parametrize(
    "description",
    ["", "7", "Beta", "alpha waits for beta", "\u05d0\u05d1\u05d2 \u05d3\u05d4\u05d5"],
)
def test_whatever_is_said_there_is_enough_and_every_name_is_its_own(said: Any, description: str) -> None:
    words = extract_outline_terms(said, description)
    names = named(said, description)
    assert words.title
    assert len(names) >= MIN_TERMS
    assert all(names)
    assert len(names) == len(set(names))
    blueprint = parse_outline(said, description, generation.composed_of(words))
    assert {one.role for one in blueprint.quantities if not one.is_unseen} == set(Role)


def test_random_text_makes_distinct_names() -> None:
    dice = random.Random(1)
    alphabet = [chr(code) for code in (*range(0x20, 0x180), 0x200D, 0x202E, 0x5D0, 0x4E00, 0x1F600, 0x301)]
    for _ in range(60):
        texts = ["".join(dice.choices(alphabet, k=dice.randrange(33))) for _ in range(12)]
        names = named(outline(resources=texts[:3], assets=texts[3:11]), texts[11])
        assert len(names) == len(set(names))


def test_the_schema_is_small_and_takes_an_outline() -> None:
    document = dict(OUTLINE_SCHEMA)
    assert validate_against_schema(document, generation.OUTLINE) == []
    assert validate_against_schema(document, outline(more="")) != []
    assert validate_against_schema(document, outline(goals=["2026-11-22"])) != []
    assert len(json.dumps(document)) < 2_000


def test_a_question_holds_a_short_excerpt_and_words_to_copy() -> None:
    asked = outline_request("The \u202egauge falls. " + "ab" * 50_000)
    assert len(asked["description"]) <= 2_000
    assert asked["description"].startswith("The gauge falls.")
    assert "Gauge" in asked["words"]

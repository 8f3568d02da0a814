"""Section prompts: written with the names of the outline, and answers are parsed leniently."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from peripety.author.blueprint import Action, Blueprint, Chance, Event, Flow, Quantity, Role, Size, Trigger
from peripety.engine.schema_validation import validate_against_schema
from peripety.scenario.outline_authoring.section_prompts import OUTLINE_SECTIONS
from support.scenario import generation

QUANTITIES, ACTIONS, EVENTS = OUTLINE_SECTIONS
OUTLINED = generation.outlined()
ANSWERS = (generation.QUANTITIES, generation.ACTIONS, generation.EVENTS)


@pytest.mark.parametrize(("section", "answer"), list(zip(OUTLINE_SECTIONS, ANSWERS, strict=True)))
def test_a_schema_takes_an_answer_about_every_part_and_no_other_name(section: Any, answer: Any) -> None:
    schema = section.schema(OUTLINED)
    assert validate_against_schema(schema, answer) == []
    first = next(iter(answer))
    assert validate_against_schema(schema, {**answer, first: {**answer[first], "name": "another"}}) != []
    assert validate_against_schema(schema, {key: part for key, part in answer.items() if key != first}) != []


def test_quantities_get_their_sizes_and_secrets_their_holders() -> None:
    blueprint, missing = QUANTITIES.apply_answer(OUTLINED, generation.QUANTITIES)
    assert missing == 0
    fuel = blueprint.quantities[0]
    assert (fuel.name, fuel.start, fuel.fades) == ("Fuel (reserve)", Size.LARGE, True)
    assert blueprint.quantities[6] == Quantity("Crack", Role.THREAT, Size.SMALL, holder="Beta")


def test_a_secret_belongs_to_a_person_and_without_people_stays_hidden() -> None:
    told = {"quantities_07": {"start": "small", "known_to": "nobody", "helps": True}}
    blueprint, _ = QUANTITIES.apply_answer(OUTLINED, told)
    assert blueprint.quantities[6] == Quantity("Crack", Role.SUPPLY, Size.SMALL, holder="Beta")
    assert "nobody" not in json.dumps(QUANTITIES.schema(OUTLINED))
    alone = replace(OUTLINED, people=())
    blueprint, _ = QUANTITIES.apply_answer(alone, told)
    assert blueprint.quantities[6] == Quantity("Crack", Role.SUPPLY, Size.SMALL, is_hidden=True)


@pytest.mark.parametrize(
    ("section", "part", "change", "agrees"),
    [
        (ACTIONS, "actions_01", {}, True),
        (ACTIONS, "actions_01", {"for": "Gauge (condition)"}, False),
        (ACTIONS, "actions_01", {"changes": ["-- Report (progress)", "- Fuel (reserve)"]}, False),
        (ACTIONS, "actions_01", {"changes": ["++ Report (progress)", "+ Fuel (reserve)"]}, False),
        (EVENTS, "events_01", {}, True),
        (EVENTS, "events_01", {"about": "Gauge (condition)"}, False),
    ],
)
def test_an_answer_has_to_agree_with_what_it_is_about(
    section: Any,
    part: str,
    change: dict[str, Any],
    agrees: bool,
) -> None:
    answer = (generation.ACTIONS if section is ACTIONS else generation.EVENTS)[part]
    assert section.agrees(OUTLINED, {**answer, **change}) is agrees
    silent = {key: value for key, value in answer.items() if key not in {"for", "about"}}
    assert section.agrees(OUTLINED, silent)


def test_a_third_of_the_parts_may_contradict_themselves() -> None:
    wrong = {key: {**answer, "for": "Crack"} for key, answer in generation.ACTIONS.items()}
    first, second, *_ = wrong
    assert not ACTIONS.contradicts_itself(OUTLINED, {**generation.ACTIONS, first: wrong[first]})
    two = {**generation.ACTIONS, first: wrong[first], second: wrong[second]}
    assert ACTIONS.contradicts_itself(OUTLINED, two)
    assert not ACTIONS.contradicts_itself(OUTLINED, None)


def test_actions_get_their_changes() -> None:
    blueprint, missing = ACTIONS.apply_answer(OUTLINED, generation.ACTIONS)
    assert missing == 0
    gain, price = Flow("Report (progress)", rises=True), Flow("Fuel (reserve)", rises=False, size=Size.SMALL)
    assert blueprint.actions[0] == Action("File the report", (gain, price), is_scaled=True)
    assert [action.is_delayed for action in blueprint.actions] == [False, True, False, False]
    assert [action.is_final for action in blueprint.actions] == [False, False, False, True]


def test_events_get_their_changes_and_what_they_wait_for() -> None:
    blueprint, missing = EVENTS.apply_answer(OUTLINED, generation.EVENTS)
    assert missing == 0
    drained = (Flow("Fuel (reserve)", rises=False),)
    assert blueprint.events[0] == Event(
        "Leak",
        drained,
        Chance.RARE,
        Trigger("Gauge (condition)", is_high=False),
        lasts=True,
    )
    assert blueprint.events[1].when is None
    assert blueprint.events[3].when == Trigger("Crack", is_high=True)


@pytest.mark.parametrize(
    ("changes", "flows"),
    [
        (["+ Crack", "--- Crack"], (Flow("Crack", rises=True, size=Size.SMALL),)),
        (["++ Crack", "+ Nothing", "crack", "", 7, None], (Flow("Crack", rises=True),)),
        (["++++ Crack", "+- Crack", "* Crack"], ()),
        ("+ Crack", ()),
        (None, ()),
    ],
)
def test_of_changes_what_makes_sense_is_kept(changes: Any, flows: tuple[Flow, ...]) -> None:
    blueprint, missing = ACTIONS.apply_answer(OUTLINED, {"actions_01": {"changes": changes}})
    assert blueprint.actions[0].flows == flows
    assert missing == 4 - bool(flows)


@pytest.mark.parametrize("answer", [None, [], "text", {}, {"actions_01": 7}, {"events_99": {"changes": []}}])
@pytest.mark.parametrize("section", OUTLINE_SECTIONS)
def test_an_answer_of_no_use_changes_nothing_and_is_noted(section: Any, answer: Any) -> None:
    assert section.apply_answer(OUTLINED, answer) == (OUTLINED, len(section.parts(OUTLINED)))


def test_keys_stay_in_the_order_of_the_parts_however_they_are_sorted() -> None:
    many = Blueprint("", {}, tuple(Quantity(f"Gauge {letter}", Role.SUPPLY) for letter in "abcdefghijkl"))
    keys = list(QUANTITIES.schema(many)["properties"])
    assert keys == sorted(keys)

"""The first screen of a text: persons on their side, nouns that fit, and particulars that come back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.author.narration import narrate
from peripety.author.plots.addressing import address_player
from peripety.author.plots.beats import Scene, recognize_plot
from peripety.author.plots.noun_phrases import NounPhrase, parse_definite
from peripety.author.plots.particulars import find_situation, list_details, list_facts, list_wishes
from peripety.author.plots.plot import PLAIN, load_texts
from peripety.author.plots.slots import collect_slots
from peripety.author.spec_author import author_from_text
from peripety.author.text_analysis.noun_forms import find_gender, find_plural
from peripety.author.text_analysis.reading import Reading, read_text
from support.author_plots import scenario_of
from support.repo.repository import ROOT

CASES = json.loads((ROOT / "tests/data/offline_reading/first_screens.json").read_text(encoding="utf-8"))
PEOPLE: list[dict[str, Any]] = CASES["people"]
SITUATIONS = [case for case in PEOPLE if "begins" in case]


def name(case: dict[str, Any]) -> str:
    return str(case["text"][:24])


def slots_of(reading: Reading) -> dict[str, NounPhrase | str]:
    return dict(collect_slots(reading, load_texts(reading.pattern or PLAIN, reading.language)))


@pytest.mark.parametrize("case", PEOPLE, ids=name)
def test_a_person_is_on_the_side_where_the_text_puts_it(case: dict[str, Any]) -> None:
    sides = {
        who: person.side for person in read_text(case["text"]).people for who in (person.name, person.role)
    }
    assert {who: sides.get(who) for who in case["sides"]} == case["sides"]


@pytest.mark.parametrize("case", [case for case in PEOPLE if "wishes" in case], ids=name)
def test_a_person_wants_what_the_text_says(case: dict[str, Any]) -> None:
    people = read_text(case["text"]).people
    wishes = {who: person.wish for person in people for who in (person.name, person.role)}
    assert {who: wishes.get(who) for who in case["wishes"]} == case["wishes"]


def test_a_wish_of_the_text_comes_back_in_the_prose() -> None:
    case = next(case for case in PEOPLE if case.get("wishes", {}).get("Ines"))
    spec = author_from_text(case["text"], 1)
    scenario = {**scenario_of(spec), "premise": spec["premise"]}
    facts = {"turn": 2, "actions": [], "changes": [], "status": {"kind": "ongoing"}}
    told = narrate(facts, (), Scene(scenario, spec["state"]))["narrative"]
    assert "Ines" in told
    assert "turn back" in told
    assert "to turn back" in {entity.get("wants") for entity in spec["entities"]}


def test_lines_without_fillers_come_first() -> None:
    plain = author_from_text("Hold out until the ship comes.", 1)["opening"]
    assert "Trouble" not in plain
    assert "your supplies" not in plain.casefold()
    named = author_from_text("Hold out against the flood. There is food for three days.", 1)["opening"]
    assert "the flood" in named.casefold()


def test_food_is_a_supply_without_an_amount() -> None:
    reading = read_text("Prepare the feast. Two hundred guests expect bread.")
    assert slots_of(reading)["supply"].definite == "the bread"  # type: ignore[union-attr]


def test_a_thing_of_an_opponent_is_stopped_and_not_kept() -> None:
    text = "Brigands have put a toll gate across our road. Close the toll gate before the fair."
    reading = read_text(text)
    assert reading.pattern == "stop"
    assert slots_of(reading)["danger"].definite == "the brigands"  # type: ignore[union-attr]
    own = read_text("You have a gate. Close the gate before the fair.")
    assert own.pattern != "stop"


@pytest.mark.parametrize("case", PEOPLE, ids=name)
def test_a_part_is_played_by_a_person_who_can_play_it(case: dict[str, Any]) -> None:
    slots = slots_of(read_text(case["text"]))
    parts = {part: phrase.definite for part, phrase in slots.items() if isinstance(phrase, NounPhrase)}
    assert {part: parts.get(part) for part in case["cast"]} == case["cast"]
    for part in ("ally", "rival", "third", "left", "right"):
        assert not any(who in parts.get(part, "") for who in case.get("not_cast", ()))


@pytest.mark.parametrize("case", CASES["slots"], ids=lambda case: str(case["why"]))
def test_a_noun_fits_its_slot(case: dict[str, Any]) -> None:
    phrase = slots_of(read_text(case["text"]))[case["slot"]]
    assert isinstance(phrase, NounPhrase)
    assert case["unfit"] not in phrase.bare


@pytest.mark.parametrize("case", CASES["filled"], ids=lambda case: str(case["why"]))
def test_a_slot_has_the_words_of_the_text(case: dict[str, Any]) -> None:
    phrase = slots_of(read_text(case["text"]))[case["slot"]]
    assert isinstance(phrase, NounPhrase)
    assert phrase.definite == case["phrase"]
    assert parse_definite(phrase.definite, phrase.language).definite == phrase.definite


@pytest.mark.parametrize("case", SITUATIONS, ids=name)
def test_the_situation_is_the_text_without_the_goal(case: dict[str, Any]) -> None:
    reading = read_text(case["text"])
    told = find_situation(reading)
    assert (address_player(told) if reading.language == "en" else told).startswith(case["begins"])
    assert case["without"] not in told


def test_a_goal_after_a_semicolon_leaves_a_whole_sentence() -> None:
    text = "The water is low; you have to wait for the ferry."
    assert find_situation(read_text(text)) == "The water is low."


def test_the_opening_names_the_goal_once_and_does_not_begin_with_the_text() -> None:
    case = PEOPLE[0]
    opening = author_from_text(case["text"], 1)["opening"]
    goal = str(slots_of(read_text(case["text"]))["own_goal"])
    assert opening.count(goal) == 1
    assert not opening.startswith(case["text"][:20])
    assert "Brandt" in opening.rpartition("\n\n")[2]


def test_a_text_without_a_goal_is_told_first_and_once() -> None:
    spec = author_from_text(CASES["without_goal"], 1)
    assert spec["opening"].startswith(CASES["without_goal"][:20])
    assert spec["opening"].count(CASES["without_goal"][-12:-1]) == 1


def test_what_has_no_part_comes_back_in_the_prose() -> None:
    spec = author_from_text(PEOPLE[1]["text"], 1)
    scenario = {**scenario_of(spec), "premise": spec["premise"]}
    plot = recognize_plot(scenario)
    assert plot is not None
    named = {phrase.definite for _, phrase in plot.details}
    parts = {phrase.definite for phrase in plot.slots.values()}
    assert {"Maren", "the radio", "the dogs"} <= named | parts
    assert {"the dogs"} <= named
    facts = {"turn": 1, "actions": [], "changes": [], "status": {"kind": "ongoing"}}
    told = narrate(facts, (), Scene(scenario, spec["state"]))["narrative"]
    assert any(detail in told for detail in named)
    without = {key: value for key, value in scenario.items() if key != "premise"}
    assert recognize_plot(without) is not None
    assert not any(
        detail in narrate(facts, (), Scene(without, spec["state"]))["narrative"] for detail in named
    )


def test_a_number_is_no_detail_of_the_prose() -> None:
    reading = read_text("We must reach Nordvik with 40 crates. The radio is dead.")
    common = load_texts(PLAIN)["common"]
    details = list_details(reading, {}, common)
    assert not [phrase for _, phrase in details if any(char.isdigit() for char in phrase.bare)]


def test_clauses_that_stay_true_are_facts_of_the_prose() -> None:
    reading = read_text(
        "I have to bring the vobado to the kavota. The zorel smells hot, and the mirel has a fever. "
        "We leave tomorrow. Where is the lumo?"
    )
    slots = collect_slots(reading, load_texts("reach"))
    phrases = {name: slot for name, slot in slots.items() if not isinstance(slot, str)}
    assert list_facts(reading, phrases) == ["the zorel smells hot", "the mirel has a fever"]


@pytest.mark.parametrize(
    "text",
    [
        "I must win the kavota. Lena knows them, but she and my uncle Otto are not speaking.",
        "I must win the kavota. We have one zorel and a mirel that smells hot.",
    ],
)
def test_a_part_of_a_subject_or_of_a_list_is_no_fact(text: str) -> None:
    assert list_facts(read_text(text), {}) == []


@pytest.mark.parametrize(("noun", "gender", "plural"), CASES["german"])
def test_an_unknown_german_noun_has_the_forms_of_a_compound(noun: str, gender: str, plural: str) -> None:
    assert (find_gender(noun, "de"), find_plural(noun, "de")) == (gender, plural)


def test_a_clock_without_a_unit_counts_turns() -> None:
    labels = author_from_text("Hold out until the ship comes.", 1)["labels"]
    assert labels["state.time"]["unit"] == "turns"


@pytest.mark.parametrize(
    ("text", "language", "bare", "is_name"),
    [
        ("Your manager", "en", "your manager", True),
        ("Tu abuela", "es", "tu abuela", True),
        ("Die W\u00f6rterin aus dem Team", "de", "W\u00f6rterin aus dem Team", False),
    ],
)
def test_a_phrase_of_the_player_or_of_a_group_is_read_back(
    text: str, language: str, bare: str, is_name: bool
) -> None:
    read = parse_definite(text, language)
    assert (read.bare, read.is_name, read.is_plural) == (bare, is_name, False)


@pytest.mark.parametrize(
    ("bare", "form", "inflected"),
    [
        ("\u00e4ltere Kollege", "dat", "dem \u00e4lteren Kollegen"),
        ("\u00e4ltere Kollege", "acc", "den \u00e4lteren Kollegen"),
        ("\u00e4ltere Kollege", "", "der \u00e4ltere Kollege"),
        ("Anf\u00fchrerin aus dem Team", "dat", "der Anf\u00fchrerin aus dem Team"),
    ],
)
def test_a_german_member_of_a_group_is_inflected(bare: str, form: str, inflected: str) -> None:
    assert NounPhrase(bare, language="de").inflect(form) == inflected


@pytest.mark.parametrize("case", CASES["players"], ids=name)
def test_the_player_is_who_the_text_says_and_not_a_relative(case: dict[str, Any]) -> None:
    opening = author_from_text(case["text"], 1)["opening"]
    assert case.get("told", "") in opening
    assert "untold" not in case or case["untold"] not in opening


@pytest.mark.parametrize("case", CASES["objects"], ids=name)
def test_the_object_of_a_goal_is_what_is_got_back_or_kept(case: dict[str, Any]) -> None:
    reading = read_text(case["text"])
    assert reading.goal is not None
    assert reading.goal.object is not None
    assert (reading.pattern, reading.goal.object.text) == (case["pattern"], case["object"])
    assert case.get("against") in (None, *(one.role for one in reading.people if one.side == "against"))
    assert case.get("worn") in (None, *(thing.text for thing in reading.worn))
    spec = author_from_text(case["text"], 1)
    assert case["object"] in str([one["name"] for one in (*spec["actions"], *spec["labels"].values())])


def test_a_person_without_a_name_in_the_text_says_nothing() -> None:
    spec = author_from_text("Hold out until the ship comes.", 1)
    scenario = {**scenario_of(spec), "premise": spec["premise"]}
    default = str(slots_of(read_text("Hold out until the ship comes."))["ally"].definite)  # type: ignore[union-attr]
    for turn in range(1, 12):
        facts = {"turn": turn, "actions": [], "changes": [], "status": {"kind": "ongoing"}}
        told = narrate(facts, (), Scene(scenario, spec["state"]))["narrative"]
        assert f"says {default}" not in told


@pytest.mark.parametrize("case", CASES["no_part"], ids=lambda case: case["gone"])
def test_the_dead_and_mere_owners_take_no_part(case: dict[str, str]) -> None:
    assert case["gone"] not in [person.role for person in read_text(case["text"]).people]


@pytest.mark.parametrize("case", CASES["verbs"], ids=lambda case: case["text"][:20])
def test_the_object_of_a_verb_decides_its_pattern(case: dict[str, str]) -> None:
    assert read_text(case["text"]).pattern == case["pattern"]


def test_who_wants_to_end_what_you_save_is_against_you() -> None:
    case = CASES["ending"]
    sides = {person.name: person.side for person in read_text(case["text"]).people}
    assert sides[case["name"]] == "against"


def test_a_wish_names_its_thing() -> None:
    case = CASES["wish"]
    found = [(phrase.bare, wish) for phrase, wish in list_wishes(read_text(case["text"]))]
    assert (case["name"], case["wish"]) in found

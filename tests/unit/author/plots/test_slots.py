from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.author.plots.addressing import address_player
from peripety.author.plots.noun_phrases import NounPhrase, parse_definite
from peripety.author.plots.phrases import fill_line, find_fillers
from peripety.author.plots.plot import load_texts
from peripety.author.plots.slots import choose_supply, collect_slots
from peripety.author.text_analysis.reading import Amount, Goal, Person, Phrase, Reading, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping


def phrase(slots: Mapping[str, NounPhrase | str], name: str) -> NounPhrase:
    found = slots[name]
    assert isinstance(found, NounPhrase)
    return found


@pytest.mark.parametrize(
    ("told", "addressed"),
    [
        ("I want us to win. It should be hard, please.", "You want all of you to win."),
        (
            "A clerk has to convince her rival. Easy mode.",
            "You are a clerk, and you have to convince your rival.",
        ),
        ("Play as a team that must keep its word.", "You are a team that must keep your word."),
        ("idk surprise me", ""),
        ("Hi!! So I need the kavota lol. Thank youuu", "You need the kavota."),
    ],
)
def test_a_text_is_about_the_player(told: str, addressed: str) -> None:
    assert address_player(told) == addressed


@pytest.mark.parametrize(
    ("text", "opponent"),
    [
        ("We must outdo the machine.", "machine"),
        ("I have to win again, but this year Mr Vobado next door is better.", "Mr Vobado"),
        ("I have to win again, but my aunt Vobada is better.", "competition"),
    ],
)
def test_an_opponent_is_what_is_beaten_or_who_is_in_the_way(text: str, opponent: str) -> None:
    slots = collect_slots(read_text(text), load_texts("outdo"))
    assert phrase(slots, "opponent").bare == opponent


def test_a_thing_of_the_player_with_the_name_of_a_time_is_made_ready() -> None:
    reading = read_text("We must get our stage ready by Friday. There is a letter from the club.")
    assert phrase(collect_slots(reading, load_texts("make_ready")), "object").bare == "stage"


@pytest.mark.parametrize(
    ("phrase", "line", "filled"),
    [
        (NounPhrase("Vorräte", is_plural=True, language="de"), "mit {x.dat}", "Mit den Vorräten"),
        (NounPhrase("Gegner", language="de"), "ohne {x.acc}", "Ohne den Gegner"),
        (NounPhrase("Kollege", language="de"), "mit {x.dat}", "Mit dem Kollegen"),
        (NounPhrase("Ada", is_name=True, language="de"), "mit {x.dat}", "Mit Ada"),
        (NounPhrase("peligro", language="es"), "antes {x.of}", "Antes del peligro"),
        (NounPhrase("Ada", is_name=True, language="es"), "antes {x.of}", "Antes de Ada"),
        (NounPhrase("dudas", is_plural=True, language="es"), "frente {x.to}", "Frente a las dudas"),
        (NounPhrase("\u5371\u9669", language="zh"), "{x}", "\u5371\u9669"),
    ],
)
def test_a_phrase_has_the_forms_of_its_language(phrase: NounPhrase, line: str, filled: str) -> None:
    assert fill_line(line, {"x": phrase}) == filled


@pytest.mark.parametrize(
    ("text", "language", "is_plural"),
    [
        ("die Vorräte", "de", True),
        ("die Frage", "de", False),
        ("los riesgos", "es", True),
        ("the alphas", "en", True),
    ],
)
def test_a_definite_phrase_is_read_back(text: str, language: str, is_plural: bool) -> None:
    read = parse_definite(text, language)
    assert (read.definite, read.is_plural, read.is_name) == (text, is_plural, False)


@pytest.mark.parametrize(("text", "is_plural"), [("Your alphas", True), ("your alpha", False)])
def test_several_things_of_the_player_are_read_back_as_plural(text: str, is_plural: bool) -> None:
    read = parse_definite(text)
    assert (read.is_plural, read.is_name) == (is_plural, True)


def test_one_single_thing_is_not_used_up_unless_it_is_measured() -> None:
    alpha, beta = Phrase("alpha", "alpha"), Phrase("beta", "beta", is_plural=True)
    reading = Reading("We have one alpha and betas.", "en", supplies=(alpha, beta))
    assert choose_supply(reading) is beta
    measured = Reading(reading.text, "en", supplies=(alpha,), amounts=(Amount(40, "percent", alpha, "40 %"),))
    assert choose_supply(measured) is alpha


def test_only_a_person_of_the_player_is_on_the_side_of_the_player() -> None:
    people = (Person("Ada", "clerk"), Person("Bert", "helper"))
    goal = Goal("convince", Phrase("council", "council", sense="group"), "convince the council")
    texts = load_texts("win_over")
    reading = Reading(
        "Convince the council. A clerk called Ada waits. My helper is Bert.", "en", goal=goal, people=people
    )
    assert phrase(collect_slots(reading, texts), "ally").bare == "Bert"
    assert phrase(collect_slots(reading, texts), "other").bare == "council"
    unnamed = Reading("Convince the council. A clerk called Ada waits.", "en", goal=goal, people=people[:1])
    assert phrase(collect_slots(unnamed, texts), "ally").bare == texts["defaults"]["ally"]["bare"]


@pytest.mark.parametrize("language", ["en", "es", "de", "zh"])
def test_a_player_who_is_alone_has_no_invented_companion(language: str) -> None:
    for plot_id in ("plain", "hold_out", "reach", "find_out", "decide"):
        texts = load_texts(plot_id, language)
        alone = collect_slots(Reading("", language, is_alone=True), texts)
        usual = collect_slots(Reading("", language), texts)
        names = {name for name in ("ally", "rival", "third") if alone.get(name) != usual.get(name)}
        # Suspects, and those who oppose the player, are not companions.
        assert names == {"find_out": set(), "decide": {"ally"}}.get(plot_id, {"ally", "rival"})
        assert names <= find_fillers(alone, texts)


def test_a_person_of_the_text_takes_a_part_beside_a_player_who_is_alone() -> None:
    reading = Reading(
        "Your sister Ada is on the radio.", "en", people=(Person("Ada", "sister"),), is_alone=True
    )
    assert phrase(collect_slots(reading, load_texts("reach")), "ally").bare == "Ada"


def test_the_goal_of_a_plot_names_the_person() -> None:
    texts = load_texts("win_over")
    assert "{" not in str(collect_slots(Reading("", "en"), texts)["goal"])

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.author.plots.amounts import find_clock, find_scale, find_store, read_clock
from peripety.author.plots.plot import build_plot_state, list_languages, list_plots, load_plot, load_texts
from peripety.author.spec_author import author_from_text
from peripety.author.text_analysis.languages import OFFLINE_MARK
from peripety.author.text_analysis.reading import Amount, Deadline, Phrase, read_text
from peripety.certification.options import CertificateOptions
from peripety.certification.types import CertificateVerdict
from support.author_plots import document_of, subjects
from support.scenario.batches import certified

if TYPE_CHECKING:
    from collections.abc import Iterator


ENOUGH = CertificateOptions(max_runs=2_048)
SUBJECTS = subjects()
WRITTEN = [(plot, language) for language in list_languages() for plot in list_plots(language)]

native = pytest.mark.skipif(engine.BACKEND != "native", reason="the planner takes the core in Python minutes")


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


@pytest.mark.parametrize(("plot", "language"), WRITTEN)
def test_the_texts_fit_the_rules(plot: str, language: str) -> None:
    rules, texts = load_plot(plot), load_texts(plot, language)
    decisions = {action["id"] for action in rules.actions if "decides" in action}
    assert texts["actions"].keys() == {action["id"] for action in rules.actions}
    assert texts["events"].keys() == {event["id"] for event in rules.events}
    assert texts["losses"].keys() == {loss["id"] for loss in rules.losses}
    assert all(clue.keys() == set(rules.truths) for clue in texts["clues"].values())
    assert 6 <= len(rules.actions) <= 9
    for name, text in texts["actions"].items():
        assert text["name"]
        assert (text["right"] and text["wrong"]) if name in decisions else text["first"], name
    waiting = [event for event in rules.events if "truth" in event.get("when", "")]
    assert 0.25 <= len(waiting) / len(rules.events) <= 0.5


def test_a_text_of_another_language_is_quoted() -> None:
    quoted = author_from_text("Bonjour, je suis la capitaine et je veux une histoire.", 1)
    assert "left open" in quoted["premise"]["text"]


@pytest.mark.slow_after(2, reason="validates all plots in each language")
@pytest.mark.parametrize("language", list_languages())
def test_each_plot_is_valid_in_each_language(language: str) -> None:
    assert list_plots(language) == list_plots()
    for plot in list_plots(language):
        spec = document_of(SUBJECTS[0], plot, language=language)
        assert engine.validate(json.dumps(spec)) == []


def test_a_language_that_is_asked_for_is_written_or_its_absence_is_said() -> None:
    text = "My name is Vobado and I need the kavota."
    plain = author_from_text(text, 1)
    assert author_from_text(text, 1, language="en-GB") == plain
    absent = author_from_text(text, 1, language="xa")
    assert "no plot in that language" in absent["premise"]["text"]
    chosen = author_from_text("Hola, me llamo Vobado y necesito la kavota.", 1, language="en")
    assert "no plot in that language" not in chosen["premise"]["text"]


@pytest.mark.parametrize("plot", list_plots())
def test_subjects_give_a_valid_scenario_with_their_words(plot: str) -> None:
    for reading in SUBJECTS[:2]:
        spec = document_of(reading, plot)
        assert engine.validate(json.dumps(spec)) == []
        told = "\n".join(strings(spec)).casefold()
        assert "{" not in told
        assert spec["name"].endswith(OFFLINE_MARK)
        # A plot whose people are on the side of the player takes only those that the text calls the player's.
        parts = load_texts(plot)["people"].values()
        for person in () if any(part.get("is_own") for part in parts) else reading.people:
            assert (person.name or person.role).casefold() in told
        if reading.supplies[0].is_mass and "supply" in load_plot(plot).gauges:
            assert reading.supplies[0].text in told


@native
@pytest.mark.slow(reason="certifies dozens of scenarios")
@pytest.mark.parametrize("plot", list_plots())
async def test_every_plot_earns_its_certificate_on_every_subject(plot: str) -> None:
    for reading in SUBJECTS:
        certificate = await certified(document_of(reading, plot), ENOUGH)
        assert certificate.verdict is CertificateVerdict.CERTIFIED, certificate.findings
        assert certificate.findings == ()


@pytest.mark.parametrize("plot", list_plots())
def test_a_player_who_does_nothing_loses_however_long_it_takes(plot: str) -> None:
    for days in (10, 14, 19):
        reading = replace(SUBJECTS[0], deadline=Deadline(days, "day", ""))
        spec = document_of(reading, plot)
        assert spec["horizon"] == days
        assert engine.compile(json.dumps(spec)).dry_run(runs=512, persona="idle").won == 0


@native
@pytest.mark.parametrize("plot", list_plots())
def test_a_greedy_player_neither_always_wins_nor_mostly_loses(plot: str) -> None:
    for reading in SUBJECTS[:2]:
        report = engine.compile(json.dumps(document_of(reading, plot))).dry_run(runs=512, persona="greedy")
        assert 0.5 <= report.won / report.runs <= 0.8


@native
@pytest.mark.parametrize("plot", list_plots())
def test_a_player_who_looks_ahead_wins_neither_early_nor_always(plot: str) -> None:
    program = engine.compile(json.dumps(document_of(SUBJECTS[0], plot)))
    for persona, least, greatest in (("par", 0.66, 0.93), ("planner", 0.65, 0.95)):
        report = program.dry_run(runs=128, persona=persona, detail=True)  # type: ignore[arg-type]
        assert report.detail is not None
        assert least <= report.won / report.runs <= greatest
        early = sum(count for turn, count in report.detail.won_turns.items() if turn < 6)
        assert early <= report.won * 0.6, persona


@pytest.mark.slow(reason="plays every pair of actions")
@pytest.mark.parametrize("plot", list_plots())
def test_no_pair_of_actions_wins_by_repetition(plot: str) -> None:
    spec = document_of(SUBJECTS[0], plot)
    for pair in combinations([action["id"] for action in spec["actions"]], 2):
        steps = [{"action": action, "otherwise": "skip"} for action in pair]
        program = engine.compile(json.dumps({**spec, "solutions": [{"id": "pair", "steps": steps}]}))
        report = program.dry_run(runs=32, persona="par")
        assert report.won <= 0.6 * report.runs, pair


@pytest.mark.parametrize(
    ("amount", "unit", "turns", "step", "shown"),
    [
        (6, "week", 14, 3, "day"),
        (12, "day", 12, 1, "day"),
        (6, "hour", 12, 1, "half_hour"),
        (7, "day", 14, 1, "half_day"),
        (3, "day", 12, 6, "hour"),
        (1, "night", 14, 1, "half_hour"),
        (0, "night", 14, 1, "half_hour"),
        (14, "day", 14, 1, "day"),
        (2.5, "day", 14, 1, ""),
        (3, "turn", 14, 1, ""),
    ],
)
def test_a_deadline_is_divided_into_whole_turns(
    amount: float, unit: str, turns: int, step: int, shown: str
) -> None:
    clock = read_clock(Deadline(amount, unit, ""))
    assert (clock.turns, clock.step, clock.unit) == (turns, step, shown)


@pytest.mark.parametrize("plot", [plot for plot in list_plots() if "supply" in load_plot(plot).gauges])
def test_an_amount_of_the_text_is_the_start_and_stays_whole(plot: str) -> None:
    gamma = Phrase("gamma", "gamma", is_mass=True)
    reading = replace(SUBJECTS[3], supplies=(gamma,), amounts=(Amount(60, "percent", gamma, "60 %"),))
    spec = document_of(reading, plot)
    assert spec["state"]["supply"] == 60
    assert engine.validate(json.dumps(spec)) == []
    assert all(isinstance(value, int) for value in numbers(spec["state"]))
    assert all(isinstance(value, int) for rule in spec["actions"] for value in numbers(rule["effects"]))


@pytest.mark.parametrize(
    ("text", "time", "supply"),
    [
        ("We hold out until the ship comes. There is food for three days.", (72, "hour"), (72, "hour", True)),
        ("Hold out until help comes. I have six weeks of cash left.", (42, "day"), (42, "day", True)),
        (
            "Resiste hasta que llegue la lluvia. Tienes agua para cinco d\u00edas.",
            (120, "hour"),
            (120, "hour", True),
        ),
        (
            "Wir m\u00fcssen durchhalten. Ich habe Diesel f\u00fcr acht Stunden.",
            (480, "minute"),
            (480, "minute", True),
        ),
        (
            "\u5fc5\u987b\u575a\u6301\u5230\u6551\u63f4\u5230\u6765\uff0c\u53ea\u5269\u4e03\u5929\u7684\u7164\u3002",
            (168, "hour"),
            (168, "hour", True),
        ),
        ("Hold out until help comes. There are five beds.", (14, ""), (85, "%", True)),
        ("Hold out until help comes. I have almost no fuel.", (14, ""), (17, "", True)),
        (
            "Hold out until help comes. The food is in the cellar, and the deploy was six hours ago.",
            (14, ""),
            None,
        ),
    ],
)
def test_times_and_supplies_have_the_units_of_the_text(
    text: str, time: tuple[int, str], supply: tuple[int, str, bool] | None
) -> None:
    reading, plot = read_text(text), load_plot("hold_out")
    clock = find_clock(reading)
    store = find_store(reading, clock)
    assert (clock.turns * clock.step, clock.unit) == time
    if supply is not None:
        started = build_plot_state(plot, find_scale(plot, clock, store))["supply"]
        assert (started, store.unit, store.is_scarce) == supply


def test_a_scarce_supply_does_not_start_as_enough() -> None:
    spec = author_from_text("Hold out until the last ship comes. There are five beds.", 1)
    shown = spec["labels"]["state.supply"]
    assert (shown["unit"], shown["bands"][-1]["word"]) == ("%", "barely enough")
    assert spec["labels"]["state.time"]["name"] == "Time until the last ship comes"
    assert engine.validate(json.dumps(spec)) == []


def numbers(value: Any) -> Iterator[int | float]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from numbers(item)
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item)


def test_seeds_differ_in_secrets_and_events_but_not_in_the_subject() -> None:
    written = [document_of(SUBJECTS[0], "hold_out", seed) for seed in range(6)]
    assert len({spec["opening"] for spec in written}) > 1
    assert len({json.dumps(spec["entities"]) for spec in written}) > 1
    assert len({json.dumps(spec["labels"]) for spec in written}) == 1
    state = {
        spec["seed"]: engine.compile(json.dumps(spec)).new_state(spec["seed"]).tree() for spec in written
    }
    assert len({tree["hidden"]["truth"] for tree in state.values()}) > 1


def test_the_same_text_and_seed_give_the_same_bytes() -> None:
    for text in ("", "We keep the alpha.", "\u7532" * 500):
        assert json.dumps(author_from_text(text, 9)) == json.dumps(author_from_text(text, 9))
        assert json.dumps(author_from_text(text)) == json.dumps(author_from_text(text))
        assert author_from_text(text)["name"].endswith(
            (OFFLINE_MARK, load_texts("plain", "zh")["common"]["mark"])
        )


@pytest.mark.parametrize("seed", [0, 2**53 - 1, 2**53, -1, 10**30])
def test_any_whole_number_seeds(seed: int) -> None:
    assert 0 <= author_from_text("alpha", seed=seed)["seed"] < 2**53


@pytest.mark.parametrize("language", list_languages())
def test_the_title_says_in_its_language_that_no_model_writes(language: str) -> None:
    spec = author_from_text("", 1, language=language)
    assert spec["name"].endswith(load_texts("plain", language)["common"]["mark"])
    assert load_texts("plain")["common"]["mark"] == OFFLINE_MARK


def test_a_text_that_is_not_understood_is_played_plainly_and_says_so() -> None:
    spec = author_from_text("")
    assert spec["win_conditions"][0]["id"] == "plain"
    assert "left open" in spec["premise"]["text"]


@pytest.mark.parametrize(
    ("amount", "unit"), [(23, "hour"), (29, "day"), (97, "minute"), (17, "hour"), (3, "week")]
)
def test_a_turn_is_a_round_number_of_units(amount: int, unit: str) -> None:
    clock = read_clock(Deadline(amount, unit, ""))
    assert clock.step in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)
    assert clock.turns <= 24

"""Elements and variants: what a text names is acted on, and lines suit its persons and things."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest

from peripety import engine
from peripety.author.plots.beats import recognize_plot
from peripety.author.plots.elements import ELEMENTS, add_elements, list_price
from peripety.author.plots.plot import (
    VARIANTS,
    apply_variants,
    list_languages,
    list_plots,
    load_element_rules,
    load_plot,
    load_texts,
)
from peripety.author.spec_author import author_from_text
from peripety.author.text_analysis.reading import read_text
from peripety.session.narration.claims.checker import ClaimChecker
from support.author_plots import recorded_narrations, scenario_of
from support.repo.repository import ROOT

CASES: list[dict[str, Any]] = json.loads(
    (ROOT / "tests/data/offline_reading/first_screens.json").read_text(encoding="utf-8")
)["elements"]
VARIED = [
    (plot, language)
    for language in list_languages()
    for plot in list_plots(language)
    if "variants" in load_texts(plot, language)
]


def name(case: dict[str, Any]) -> str:
    return str(case["text"][:24])


@pytest.mark.parametrize("case", CASES, ids=name)
def test_what_the_text_names_has_an_action_and_a_gauge(case: dict[str, Any]) -> None:
    spec = author_from_text(case["text"], 1)
    assert spec["win_conditions"][0]["id"] == case["plot"]
    assert set(case["actions"]) <= {action["name"] for action in spec["actions"]}
    assert set(case["gauges"]) <= {label["name"] for label in spec["labels"].values()}
    told = json.dumps(spec, ensure_ascii=False)
    assert not [words for words in case.get("without", ()) if words in told]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_narrator_knows_the_elements_and_the_words_of_the_goal(case: dict[str, Any]) -> None:
    spec = author_from_text(case["text"], 1)
    found = recognize_plot(scenario_of(spec))
    assert found is not None
    assert found.plot.id == case["plot"]
    assert found.texts["actions"].keys() == {action["id"] for action in spec["actions"]}
    for told, record in recorded_narrations(spec, 1, 8):
        assert told
        assert "{" not in told
        assert ClaimChecker(record).check(told) == [], told


@pytest.mark.parametrize("language", list_languages())
def test_elements_have_texts_for_their_rules(language: str) -> None:
    told = load_texts("plain", language)["common"].get("elements", {})
    for element in told:
        assert told[element].keys() == {"opening", "gauge", "action", "event", "loss"}
        assert load_element_rules()[element].keys() == {"gauge", "action", "price", "event", "loss"}


@pytest.mark.parametrize("plot", list_plots())
def test_an_element_adds_one_of_each_part(plot: str) -> None:
    base, more = load_plot(plot), add_elements(load_plot(plot), ELEMENTS)
    for part in ("gauges", "actions", "events", "losses", "solution"):
        assert len(getattr(more, part)) == len(getattr(base, part)) + len(ELEMENTS)
    named = {gauge for action in more.actions for gauge in action.get("does", ())}
    assert named <= {*more.gauges, "seen"}


@pytest.mark.parametrize(("plot", "language"), VARIED)
def test_a_variant_is_told_from_the_others_by_the_name_of_an_event_or_gauge(plot: str, language: str) -> None:
    texts = load_texts(plot, language)
    names = tuple(texts["variants"])
    assert set(names) <= set(VARIANTS)
    seen = []
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            varied = apply_variants(texts, chosen)
            assert varied["actions"].keys() == texts["actions"].keys()
            assert varied["events"].keys() == texts["events"].keys()
            seen.append(json.dumps([event["name"] for event in varied["events"].values()]))
    assert len(set(seen)) == len(seen)


@pytest.mark.skipif(engine.BACKEND != "native", reason="the core in Python takes minutes")
@pytest.mark.parametrize("case", CASES, ids=name)
def test_a_game_with_elements_is_neither_lost_nor_won_by_waiting(case: dict[str, Any]) -> None:
    program = engine.compile(json.dumps(author_from_text(case["text"], 1)))
    rates = {who: program.dry_run(runs=256, persona=who).won / 256 for who in ("par", "curious", "idle")}
    assert rates["par"] >= 0.6
    assert 0.15 <= rates["curious"] <= 0.5
    assert rates["idle"] == 0


@pytest.mark.parametrize("plot", list_plots())
def test_no_two_actions_have_the_same_price(plot: str) -> None:
    for names in (chosen for size in range(3) for chosen in combinations(ELEMENTS, size)):
        rules = add_elements(load_plot(plot), names)
        for part in ("does", "wrong"):
            prices = [list_price(action[part], rules.gauges) for action in rules.actions if part in action]
            assert all(prices)
            assert len({frozenset(price) for price in prices}) == len(prices), (names, part)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_every_action_shows_its_price(case: dict[str, Any]) -> None:
    spec = author_from_text(case["text"], 1)
    told = [action["description"] for action in spec["actions"]]
    assert len(set(told)) == len(told)
    common = load_texts(case["plot"], read_text(case["text"]).language)["common"]
    signs = [common[key].partition("{")[0] for key in ("price", "worsen", "mistake")]
    assert all(any(sign in line for sign in signs) for line in told)

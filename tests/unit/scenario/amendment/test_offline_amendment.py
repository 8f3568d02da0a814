"""Changes that rules make of a text.

What a text wants changed, in the languages that are known.
"""

from __future__ import annotations

from typing import Any

import pytest

from peripety import engine
from peripety.engine.rule_text import diff_specs
from peripety.errors import Finding
from peripety.scenario.amendment.offline_amendment import (
    EditKind,
    EditRequest,
    apply_edits,
    find_mentioned,
    parse_instruction,
)
from support.engine.specs import action, as_bytes, at_most, event, spec


def move(op: str, name: str, value: float) -> dict[str, Any]:
    return {"op": op, "path": f"state.{name}", "value": value}


LATER = {"op": "schedule", "id": "echo", "after": 3, "effects": [move("inc", "gauge", 2)]}
SCENARIO = spec(
    state={"gauge": 20, "stock": {"fuel": 5}, "both": 4},
    actions=[
        action("tend", [move("inc", "gauge", 1), LATER]),
        action("rest") | {"name": "Take a rest"},
        action("use_both", [move("dec", "gauge", 4)]) | {"name": "Both"},
    ],
    random_events=[
        event("storm", [move("dec", "gauge", 3)], weight=0.2, duration="1d12h"),
        event("drought", [move("dec", "gauge", 1)], weight=0.1) | {"name": "The great drought"},
    ],
    loss_conditions=[at_most("low", "state.gauge", 0), at_most("empty", "state.stock.fuel", 0)],
    negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.stock.fuel": 0.5}},
    horizon=20,
)
TENDED = "action 'tend': gauge +1 → gauge +2; 3 turns later: gauge +2 → 3 turns later: gauge +4"


@pytest.mark.parametrize(
    ("text", "summaries"),
    [
        ("make the storm longer", ["event 'storm': duration 1d12h → 2d18h"]),
        ("a shorter storm", ["event 'storm': duration 1d12h → 1d8h"]),
        ("a longer drought", ["event 'drought': duration 2h added"]),
        ("storms more often", ["event 'storm': weight 0.2 → 0.3"]),
        ("drought less often", ["event 'drought': weight 0.1 → 0.0667"]),
        ("a stronger storm", ["event 'storm': gauge -3 → gauge -4"]),
        ("drought 50 % stronger", ["event 'drought': gauge -1 → gauge -2"]),
        ("more fuel", ["initial stock: fuel 5 → 8"]),
        ("less gauge", ["initial gauge 20 → 13"]),
        ("more both", ["initial both 4 → 6"]),
        ("fuel sinks slower", ["decay: stock.fuel 0.5 → 0.333"]),
        ("make tend longer", ["action 'tend': 3 turns later: gauge +2 → 5 turns later: gauge +2"]),
        ("double what tend does", [TENDED]),
        ("remove the rest", ["action 'rest' removed"]),
        ("make it longer", ["horizon 20 → 30"]),
        ("make it harder", ["min_fail_rate 0.25 → 0.65"]),
        ("make it easier", ["max_fail_rate added: 0.35"]),
        ("a storm shorter and harder", ["event 'storm': duration 1d12h → 1d8h; gauge -3 → gauge -4"]),
        (
            "storm longer, drought likelier",
            ["event 'drought': weight 0.1 → 0.15", "event 'storm': duration 1d12h → 2d18h"],
        ),
    ],
)
def test_changes(text: str, summaries: list[str]) -> None:
    result = apply_edits(SCENARIO, text, fail_rate=0.5)
    assert isinstance(result, dict), result
    assert engine.validate(as_bytes(result)) == []
    assert sorted(edit.summary for edit in diff_specs(SCENARIO, result)) == summaries


def test_easier_than_hardly_lost_keeps_a_band() -> None:
    result = apply_edits(SCENARIO, "make it much easier", fail_rate=0.1)
    assert isinstance(result, dict)
    budget = result["negativity_budget"]
    assert 0 < budget["min_fail_rate"] < budget["max_fail_rate"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the text is empty"),
        ("add another gauge", "add another gauge"),
        ("make omega longer", "made longer"),
        ("make the omega stronger", "made more"),
        ("remove the omega", "could be removed"),
        ("make the storm faster", "made faster"),
        ("storms more often, and paint them blue", "paint them blue"),
        ("more", "more"),
        (f"{'9' * 400} % more fuel", "not a change that rules can make"),
        ("more fuel, and " * 200, "at most 2,000 characters"),
    ],
)
def test_what_rules_cannot_do_is_said(text: str, told: str) -> None:
    found = apply_edits(SCENARIO, text, fail_rate=0.5)
    assert isinstance(found, Finding), found
    assert found.code == "AMENDMENT_NOT_UNDERSTOOD"
    assert told in found.message


def test_what_is_at_its_bound_does_not_move() -> None:
    often = {**SCENARIO, "random_events": [SCENARIO["random_events"][0] | {"weight": 0.3}]}
    found = apply_edits(often, "storms more often", fail_rate=0.5)
    assert isinstance(found, Finding)
    assert found.code == "AMENDMENT_CHANGES_NOTHING"


def test_what_no_number_can_be_stays() -> None:
    vast = {**SCENARIO, "state": SCENARIO["state"] | {"gauge": 1.7e308}}
    found = apply_edits(vast, "double the gauge", fail_rate=0.5)
    assert isinstance(found, Finding)
    assert found.code == "AMENDMENT_CHANGES_NOTHING"


def heard(text: str) -> list[tuple[EditKind, float] | str]:
    """Ways and factors; clauses that were not understood as they are."""
    return [
        one if isinstance(one, str) else (one.kind, round(one.factor, 3)) for one in parse_instruction(text)
    ]


def only(text: str) -> EditRequest:
    (wish,) = parse_instruction(text)
    assert isinstance(wish, EditRequest), wish
    return wish


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("Make alpha longer", EditKind.LONGER),
        ("alpha soll länger dauern", EditKind.LONGER),
        ("rends alpha plus court", EditKind.SHORTER),
        ("haz alpha más frecuente", EditKind.LIKELIER),
        ("alpha più raramente", EditKind.RARER),
        ("alpha mais devagar", EditKind.SLOWER),
        ("laat alpha sneller gaan", EditKind.FASTER),
        ("пусть alpha будет сложнее", EditKind.HARDER),
        ("让 alpha 更容易", EditKind.EASIER),
        ("alpha を強くして", EditKind.MORE),
        ("less alpha", EditKind.LESS),
        ("please remove alpha", EditKind.REMOVED),
        ("alpha should happen more often", EditKind.LIKELIER),
        ("less frequent alpha", EditKind.RARER),
    ],
)
def test_directions_are_understood_in_every_language(text: str, way: EditKind) -> None:
    wish = only(text)
    assert wish.kind is way
    assert find_mentioned(wish.target, [("alpha", 1), ("beta", 2)]) == [1]


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ("alpha longer", 1.5),
        ("alpha shorter", 0.667),
        ("alpha much longer", 2.0),
        ("alpha slightly longer", 1.2),
        ("alpha longer, twice", 1.5),
        ("alpha twice as long", 2.0),
        ("alpha doppelt so oft", 2.0),
        ("double alpha", 2.0),
        ("halve alpha", 0.5),
        ("shorten alpha by 25 %", 0.75),
        ("alpha um 10 Prozent länger", 1.1),
        ("alpha longer by 12.5%", 1.125),
        ("alpha twice as likely", 2.0),
        ("alpha half as long", 0.5),
        ("alpha half as often", 0.5),
        ("alpha halb so oft", 0.5),
        ("alpha longer by half", 1.5),
        ("alpha shorter by half", 0.5),
    ],
)
def test_how_far_is_understood(text: str, factor: float) -> None:
    assert heard(text)[0] in {(way, factor) for way in EditKind}


def test_several_changes_are_heard_one_by_one() -> None:
    assert heard("Alpha longer and beta less often; gamma faster.") == [
        (EditKind.LONGER, 1.5),
        (EditKind.RARER, 0.667),
        (EditKind.FASTER, 1.5),
    ]


def test_what_was_named_need_not_be_named_again() -> None:
    one, other = parse_instruction("alpha longer and harder")
    assert isinstance(one, EditRequest)
    assert isinstance(other, EditRequest)
    assert (one.target, other.kind, other.is_general) == (other.target, EditKind.HARDER, False)


def test_one_change_may_be_about_several_things() -> None:
    wish = only("make alpha and beta longer")
    assert find_mentioned(wish.target, [("alpha", 1)]) == find_mentioned(wish.target, [("beta", 1)]) == [1]


@pytest.mark.parametrize(
    "text",
    [
        "add a gamma that eats alpha",
        "do not make alpha longer",
        "alpha nicht länger",
        "make alpha longer by 3 turns",
        "shorten alpha by 100%",
    ],
)
def test_what_is_not_understood_is_given_back(text: str) -> None:
    assert any(isinstance(one, str) for one in heard(text))


@pytest.mark.parametrize(
    "text",
    ["make it harder", "Mach alles schwerer", "让整个游戏更难", "全体を難しくして", "longer"],
)
def test_what_names_nothing_is_about_the_whole(text: str) -> None:
    assert only(text).is_general


def test_what_names_something_is_not() -> None:
    assert not only("make omega harder").is_general


def test_nothing_is_heard_in_nothing() -> None:
    assert heard("") == heard(" . ") == []


NAMES = [
    ("The long alpha: it mounts", "first"),
    ("beta (of all)", "second"),
    ("beta_gamma", "third"),
    ("甲乙来 (上升)", "fourth"),
]


@pytest.mark.parametrize(
    ("text", "things"),
    [
        ("alpha", ["first"]),
        ("long alphas", ["first"]),
        ("beta", ["third"]),
        ("beta gamma", ["third"]),
        ("gammas come", ["third"]),
        ("alpha  gamma", ["third", "first"]),
        ("让甲乙", ["fourth"]),
        ("甲乙丙", ["fourth"]),
        ("omega", []),
        ("omegas around alpha", []),
        ("给游戏加更多在甲乙", []),
        ("", []),
    ],
)
def test_things_are_named_by_what_is_most_of_the_text(text: str, things: list[str]) -> None:
    assert find_mentioned(text, NAMES) == things


def test_of_things_named_equally_the_earlier_group_is_meant() -> None:
    rules, quantities = [("tend beta", 1), ("alpha", 2)], [("beta", 3), ("gamma beta low", 4)]
    assert find_mentioned("beta", quantities, rules) == [3]
    assert find_mentioned("beta", rules, quantities) == [1]
    assert find_mentioned("tend beta", quantities, rules) == [1]

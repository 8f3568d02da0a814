"""Changes that rules make of a text."""

from __future__ import annotations

from typing import Any

import pytest

from peripety import engine
from peripety.errors import Finding
from peripety.scenario.amendment.offline_amendment import apply_edits
from peripety.scenario.rule_text import diff_specs
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

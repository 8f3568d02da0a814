"""Names, gauges and changes as a reader sees them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.api.common.v1 import engine_pb2
from peripety.cli.render.gauges import BAR_CELLS, ScenarioNames, draw_bar, format_number

SPEC: dict[str, Any] = {
    "name": "A way",
    "horizon": 20,
    "clock": {"turn": "1d"},
    "state": {"alpha": 10, "beta": 3, "gamma": 0, "hidden": {"delta": 1}},
    "bounds": {"state.beta": {"min": 0, "max": 6}},
    "labels": {
        "state.alpha": {
            "name": "Alpha",
            "unit": "l",
            "bands": [{"upto": 4, "word": "low"}, {"word": "enough"}],
        },
        "state.beta": {"name": "Beta"},
        'state["gamma"]': {"name": "Gamma"},
    },
    "win_conditions": [{"id": "done", "when": {"and": [{">=": [{"var": "state.gamma"}, 8]}]}}],
    "entities": [{"id": "me", "name": "You"}, {"id": "omega", "name": "Omega"}],
    "places": {"north": {"name": "North room"}},
    "statements": {"claim": {"by": "omega", "text": "I am."}},
    "promises": {"oath": {"to": "omega", "terms": "t", "due": 2}},
}
STATE = {"alpha": 4, "beta": 6, "gamma": 1}


def change(path: str, before: Any, after: Any) -> engine_pb2.Change:
    return engine_pb2.Change(
        path=path,
        before=None if before is None else json.dumps(before).encode(),
        after=None if after is None else json.dumps(after).encode(),
    )


def parts(*changes: engine_pb2.Change, spec: dict[str, Any] | None = None) -> list[str]:
    return ScenarioNames(SPEC if spec is None else spec).summarize(changes).parts


def test_the_status_has_names_bars_bands_and_the_time_that_is_left() -> None:
    assert ScenarioNames(SPEC).status_parts(STATE, 6, BAR_CELLS) == [
        "Alpha ▆▁▁ low",
        "Beta ▆▆▆",
        "Gamma ▃▁▁",
        "14 days",
    ]


def test_without_labels_every_visible_number_is_named_by_its_key_and_has_an_amount_without_a_scale() -> None:
    spec = {"state": {"in_stock": 0, "left": 8, "private": {"me": {"own": 1}}}}
    state = {"in_stock": 5.3999999999999995, "left": 4, "private": {"me": {"own": 1}}, "name": "x"}
    names = ScenarioNames(spec)
    assert names.status_parts(state, 0, BAR_CELLS) == ["In stock 5.4", "Left ▆▃▁"]


@pytest.mark.parametrize(
    ("unit", "told"),
    [("days", "Alpha +1"), ("half-days", "Alpha +1"), ("medias horas", "Alpha +1"), ("%", "Alpha +1 %")],
)
def test_a_single_unit_is_not_told_in_the_plural(unit: str, told: str) -> None:
    spec = {**SPEC, "labels": {"state.alpha": {"name": "Alpha", "unit": unit}}}
    assert parts(change("state.alpha", 3, 4), spec=spec) == [told]


@pytest.mark.parametrize(
    ("share", "bar"),
    [(0, "▁▁▁"), (0.01, "▃▁▁"), (0.5, "▆▃▁"), (0.99, "▆▆▃"), (1, "▆▆▆")],
)
def test_only_a_full_quantity_fills_its_bar_and_only_an_empty_one_leaves_it_empty(
    share: float, bar: str
) -> None:
    assert draw_bar(share, BAR_CELLS) == bar


@pytest.mark.parametrize(
    ("number", "beside", "text"),
    [
        (5.3999999999999995, 5.4, "5.4"),
        (120.4, 130, "120"),
        (0.30000000000000004, 0.4, "0.3"),
        (2.0, 3, "2"),
        (0.001, 12, "0"),
        (1234567, 1234567, "1,234,567"),
    ],
)
def test_numbers_are_rounded_by_their_size(number: float, beside: float, text: str) -> None:
    assert format_number(number, beside) == text


@pytest.mark.parametrize(
    ("turn", "clock", "left"),
    [
        (6, {"turn": "1d"}, "14 days"),
        (19, {"turn": "P1D"}, "1 day"),
        (16, {"turn": "6h"}, "1 day"),
        (17, {"turn": "6h"}, "18 hours"),
        (9, {"turn": "6h"}, "2 days 18 hours"),
        (0, {"turn": "30m"}, "10 hours"),
        (18, None, "2 turns"),
        (20, None, ""),
    ],
)
def test_the_time_is_told_in_the_unit_of_the_clock(turn: int, clock: Any, left: str) -> None:
    assert ScenarioNames({"horizon": 20, "clock": clock}).time_left(turn, {}) == left


def test_changes_are_named_rounded_and_net() -> None:
    assert parts(
        change("state.alpha", 10, 4.6000000000000005),
        change("state.alpha", 4.6, 4),
        change("state.beta", 3, 4),
        change("state.beta", 4, 3),
        change("state.gamma", 0, 2),
    ) == ["Alpha \N{MINUS SIGN}6 l (low)", "Gamma +2"]


def test_a_change_that_rounds_to_nothing_is_not_told() -> None:
    assert parts(change("state.alpha", 100, 100.2), change("state.hidden.delta", 1, 2)) == []


def test_texts_flags_and_lists_are_told_in_words() -> None:
    assert parts(
        change("state.door", "shut", "open"),
        change("state.is_lit", False, True),
        change("state.things", ["one"], ["one", "two"]),
        change("state.things", ["one", "two"], ["two"]),
    ) == ["Door: open", "Is lit: yes", "Things + two, \N{MINUS SIGN} one"]


def test_what_the_reader_learns_is_told_with_its_speaker() -> None:
    summary = ScenarioNames(SPEC).summarize(
        [
            change("state.clues.known", "Old news.", "Old news."),
            change("state.clues.trace", None, "The trace leads north."),
            change("state.statements.claim", None, "I am."),
            change("state.places.me", "south", "north"),
            change("state.promises.oath", None, "open"),
        ],
    )
    assert summary.learned == [("", "The trace leads north."), ("Omega", "I am.")]
    assert summary.parts == ["You → North room", "promise to Omega: open"]


def test_no_path_is_shown() -> None:
    shown = parts(change('state["a b"].inner_part', 1, 3), change("not a path [", 1, 2), spec={})
    assert shown == ["Inner part +2"]


def test_the_time_that_is_left_is_that_of_the_countdown() -> None:
    spec = {
        "horizon": 14,
        "clock": {"turn": "PT8H"},
        "state": {"time": 14, "a": 3},
        "labels": {"state.time": {"name": "Time"}},
        "negativity_budget": {"decay_per_turn": {"state.time": 1, "state.a": 1}},
    }
    names = ScenarioNames(spec)
    assert names.time_left(2, {"time": 12, "a": 1}) == "4 days"
    assert names.time_left(2, {"time": 9, "a": 1}) == "3 days"

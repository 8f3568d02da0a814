"""What changed in a part, as a person is told it."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.scenario.rule_text import diff_specs
from support.engine.specs import action, at_most, event, spec


def told(section: str, before: Any, after: Any) -> list[str]:
    edits = diff_specs({**spec(), section: before}, {**spec(), section: after})
    return [edit.summary for edit in edits]


def moves(*amounts: tuple[str, str, float]) -> list[dict[str, Any]]:
    return [{"op": op, "path": f"state.{name}", "value": value} for op, name, value in amounts]


def test_numbers_and_durations_of_an_event() -> None:
    before = event("a", moves(("dec", "x", 3)), weight=0.1, duration="2h")
    after = event("a", moves(("dec", "x", 5)), weight=0.15, duration="4h")
    (line,) = told("random_events", [before], [after])
    assert line == "event 'a': weight 0.1 → 0.15; duration 2h → 4h; x -3 → x -5"


def test_effects_that_come_go_and_turn_around() -> None:
    before = action("a", moves(("inc", "x", 1), ("dec", "y", 2)))
    after = action("a", moves(("dec", "x", 1), ("inc", "z", 4)))
    assert told("actions", [before], [after]) == ["action 'a': x +1 → x -1; z +4 added; y -2 removed"]


def test_effects_in_another_order_are_no_other_effects() -> None:
    before = action("a", moves(("inc", "x", 1), ("dec", "y", 2)))
    after = {**before, "effects": before["effects"][::-1]}
    assert told("actions", [before], [after]) == ["action 'a': put in another order"]


def test_conditions_parameters_and_derived_values() -> None:
    param = {"type": "integer", "minimum": 1, "maximum": 3}
    before = action("a", params={"n": param, "sure": {"type": "boolean"}}, derives={"d": {"*": [2, 3]}})
    after = before | {
        "params": {"n": param | {"maximum": 5}},
        "preconditions": {">": [{"var": "state.x"}, 2]},
        "derives": {"d": {"*": [2, 4]}},
    }
    (line,) = told("actions", [before], [after])
    assert line.split("; ") == [
        "action 'a': when always → x > 2",
        "n integer from 1 to 3 → integer from 1 to 5",
        "d = 2 * 3 → 2 * 4",
        "sure yes or no removed",
    ]


def test_what_comes_says_what_it_is_and_what_goes_its_name() -> None:
    new = event("b", moves(("dec", "x", 2)), weight=0.2, when={"<": [{"var": "turn"}, 5]}, duration="7d")
    assert told("random_events", [event("a")], [new]) == [
        "event 'b' added: weight 0.2; when turn < 5; duration 7d; x -2",
        "event 'a' removed",
    ]


def test_endings_quantities_and_figures() -> None:
    before, after = at_most("low", "state.a", 0), at_most("low", "state.a", 2)
    assert told("loss_conditions", [before], [after]) == ["loss 'low': when a ≤ 0 → a ≤ 2"]
    assert told("state", {"a": 1, "b": {"c": 2, "d": 0}}, {"a": 3, "b": {"c": 4, "d": 0}}) == [
        "initial a 1 → 3",
        "initial b: c 2 → 4",
    ]
    one, other = ({"decay_per_turn": {"state.a": amount}} for amount in (1, 2))
    assert told("negativity_budget", one, other) == ["decay: a 1 → 2"]
    assert told("horizon", 20, 40) == ["horizon 20 → 40"]
    assert told("clock", {"turn": "1h"}, {"turn": "1d"}) == ["clock: turn 1h → 1d"]
    label = {"path": "state.a", "to": "public"}
    assert told("visibility", [label], [label | {"to": "hidden"}]) == ['who sees a: to "public" → "hidden"']


def test_long_texts_are_cut_and_those_that_begin_alike_are_reworded() -> None:
    before, after = ({"id": "e", "description": "x" * 200 + end} for end in "ab")
    assert told("entities", [before], [after]) == ["entity 'e': description reworded"]


@pytest.mark.parametrize("junk", [None, 3, [], {"effects": 3}, {"effects": [7], "when": [1]}, {"params": []}])
def test_a_draft_may_hold_anything(junk: Any) -> None:
    rule = {"id": "a", **junk} if isinstance(junk, dict) else junk
    assert all(told("actions", [rule], [action("a")]))
    assert all(told("actions", [action("a")], [rule]))

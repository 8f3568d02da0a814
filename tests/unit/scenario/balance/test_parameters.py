"""Numbers that balancing may change, and those that it leaves unchanged.

Selection of the numbers to change, and their ranges.
"""

from __future__ import annotations

from typing import Any

import pytest

from peripety.engine.schema_validation import format_pointer
from peripety.scenario.balance.parameters import (
    NumberKind,
    TunableNumber,
    round_toward,
    scale_numbers,
    select_for_balance,
    select_for_repair,
)
from support.engine.specs import action, at_most, event, never, siege, spec


def ways(value: dict[str, Any]) -> dict[str, int]:
    return {format_pointer(knob.segments): knob.harder_direction for knob in select_for_balance(value)}


def test_everything_that_says_how_hard_it_is_may_move_with_what_is_known_of_its_way() -> None:
    value = siege()
    value["actions"] = [action("mend", [{"op": "inc", "path": "state.a", "value": 1}])]
    value["state"]["c"] = 3
    assert ways(value) == {
        "/random_events/0/weight": 1,
        "/random_events/0/effects/0/value": 1,
        "/random_events/1/weight": 1,
        "/random_events/1/effects/0/value": 1,
        "/random_events/2/weight": -1,
        "/random_events/2/effects/0/value": -1,
        "/actions/0/effects/0/value": -1,
        "/negativity_budget/decay_per_turn/state.a": 1,
        "/state/a": -1,
        "/state/c": 0,
    }


def test_an_initial_value_stays_within_its_declared_bounds() -> None:
    value = siege()
    value["bounds"] = {"state.a": {"min": 11, "max": 20}}
    number = next(one for one in select_for_balance(value) if one.segments == ("state", "a"))
    assert number.bounds == (11, 20)
    assert number.with_factor(1.5) == 20


def test_an_event_that_hurts_and_helps_has_no_way() -> None:
    value = siege()
    value["random_events"] = [
        event(
            "both",
            [{"op": "dec", "path": "state.a", "value": 1}, {"op": "dec", "path": "state.b", "value": 1}],
        ),
    ]
    assert ways(value)["/random_events/0/weight"] == 0


def test_what_is_compared_for_being_equal_keeps_its_steps() -> None:
    stepped = {"==": [{"var": "state.b"}, 3]}
    value = spec(
        state={"a": 10, "b": 2},
        actions=[action("next", [{"op": "inc", "path": 'state["b"]', "value": 1}])],
        random_events=[event("now", [{"op": "dec", "path": "state.b", "value": 1}], when=stepped)],
        loss_conditions=[at_most("gone", "state.a", 0), never("never")],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.b": 1}},
    )
    assert list(ways(value)) == ["/random_events/0/weight", "/state/a"]


def test_arrays_flags_derived_values_and_nothing_are_no_numbers_to_move() -> None:
    value = spec(
        state={"a": 0, "flag": True, "list": [1, 2]},
        actions=[action("act", [{"op": "inc", "path": "state.a", "value": "d"}], derives={"d": 2})],
    )
    assert ways(value) == {}


FACTORS = (0.5, 0.75, 0.9, 1.1, 1.25, 1.5)


def paths_of(value: dict[str, Any], factor: float = 1.2) -> list[str]:
    _, edits = scale_numbers(value, select_for_repair(value), factor)
    return [edit.path for edit in edits]


def test_what_helps_is_left_alone_and_everything_else_is_turned() -> None:
    assert paths_of(siege()) == [
        "/random_events/0/weight",
        "/random_events/0/effects/0/value",
        "/random_events/1/weight",
        "/random_events/1/effects/0/value",
        "/negativity_budget/decay_per_turn/state.a",
    ]


def test_what_brings_a_win_nearer_helps() -> None:
    won = spec(
        state={"a": 1, "b": 5},
        random_events=[event("up", [{"op": "inc", "path": "state.a", "value": 1}])],
        loss_conditions=[at_most("one", "state.b", 0), at_most("two", "state.b", -1)],
        win_conditions=[{"id": "won", "when": {"and": [{">": [{"var": "state.a"}, 9]}]}}],
    )
    assert paths_of(won) == []


@pytest.mark.parametrize(
    "when",
    [
        {"<": [{"var": "state.a"}, 1]},
        {">=": [1, {"var": ["state.a"]}]},
        {"!": [{">": [{"var": "state.a"}, 1]}]},
        {"or": [{"==": [1, 2]}, {"<": [{"+": [{"var": "state.a"}, 2]}, 3]}]},
        {">": [{"-": [0, {"var": "state.a"}]}, -1]},
    ],
)
def test_which_way_a_quantity_hurts_is_read_from_any_comparison(when: dict[str, Any]) -> None:
    value = spec(
        state={"a": 5},
        actions=[{"id": "wait", "params": {}, "preconditions": {}, "effects": []}],
        random_events=[
            event("down", [{"op": "dec", "path": "state.a", "value": 1}], weight=0.1),
            event("up", [{"op": "inc", "path": "state.a", "value": 1}], weight=0.1),
            event("shrink", [{"op": "mul", "path": "state.a", "value": 0.8}], weight=0.1),
        ],
        loss_conditions=[{"id": "one", "when": when}, {"id": "two", "when": when}],
    )
    assert paths_of(value) == [
        "/random_events/0/weight",
        "/random_events/0/effects/0/value",
        "/random_events/2/weight",
        "/random_events/2/effects/0/value",
    ]


def test_scheduled_effects_are_turned_as_well_and_derived_values_are_not() -> None:
    later = {
        "op": "schedule",
        "id": "s",
        "after": 2,
        "effects": [{"op": "dec", "path": "state.a", "value": 1}],
    }
    value = siege()
    value["random_events"] = [
        event("late", [later, {"op": "dec", "path": "state.a", "value": "d"}], weight=0.3, derives={"d": 2}),
    ]
    del value["negativity_budget"]["decay_per_turn"]
    assert paths_of(value) == ["/random_events/0/effects/0/effects/0/value"]


def test_a_quantity_that_hurts_both_ways_counts_as_harm() -> None:
    value = siege()
    value["loss_conditions"].append({"id": "a_full", "when": {">": [{"var": "state.a"}, 99]}})
    assert "/random_events/2/effects/0/value" in paths_of(value)


@pytest.mark.parametrize("factor", FACTORS)
def test_no_number_moves_by_more_than_half_or_out_of_its_bounds(factor: float) -> None:
    value = siege()
    value["random_events"][0]["effects"] += [
        {"op": "mul", "path": "state.a", "value": 0.1},
        {"op": "mul", "path": "state.a", "value": 0.9},
        {"op": "dec", "path": "state.a", "value": 1.001},
        {"op": "inc", "path": "state.a", "value": -7.77777},
    ]
    _, edits = scale_numbers(value, select_for_repair(value), factor)
    assert edits
    for edit in edits:
        assert abs(edit.after - edit.before) <= 0.5 * abs(edit.before)
        assert float(f"{edit.after:.4g}") == edit.after
        if edit.path.endswith("weight"):
            assert 0.05 <= edit.after <= 0.30


def test_the_document_given_is_not_touched() -> None:
    value = siege()
    copy, edits = scale_numbers(value, select_for_repair(value), 1.5)
    assert value == siege()
    assert copy != value
    assert {edit.path: edit.before for edit in edits}["/random_events/0/effects/0/value"] == 4
    assert copy["random_events"][0]["effects"][0]["value"] == 6


def test_a_factor_of_one_changes_nothing() -> None:
    assert scale_numbers(siege(), select_for_repair(siege()), 1.0) == (siege(), ())


def test_keys_with_slashes_have_pointers_that_find_them() -> None:
    value = spec(
        state={"a/b": 9},
        negativity_budget={"min_fail_rate": 0.3, "decay_per_turn": {'state["a/b"]': 2}},
    )
    assert paths_of(value) == ['/negativity_budget/decay_per_turn/state["a~1b"]']


def test_the_smallest_numbers_stay_as_they_are() -> None:
    assert round_toward(1e-308, toward=0) == 1e-308


def test_a_whole_number_moves_in_whole_steps_and_not_by_more_than_half() -> None:
    number = TunableNumber(("a",), 14.0, NumberKind.AMOUNT).keep_whole()
    assert number.bounds == (7, 21)
    assert [number.with_value(value) for value in (8.4, 13.9, 14.0, 14.9, 20.6)] == [9, 14, 14, 14, 20]
    one = TunableNumber(("a",), 1.0, NumberKind.AMOUNT).keep_whole()
    assert one.bounds == (1, 1)
    part = TunableNumber(("a",), 0.5, NumberKind.AMOUNT).keep_whole()
    assert part.with_value(0.6) == 0.6

"""Which numbers balancing may move, and which it leaves alone."""

from __future__ import annotations

from typing import Any

from peripety.engine.schema_validation import format_pointer
from peripety.scenario.balance.parameters import select_for_balance
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

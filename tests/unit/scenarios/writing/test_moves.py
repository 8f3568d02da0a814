"""Numbers that were moved are known for as long as nobody writes them anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from peripety.scenario.generation.draft import filter_present_moves
from peripety.scenario.types import NumberEdit
from support.engine.specs import event, spec

EFFECTS = [{"op": "dec", "path": "state.a", "value": 3}]
MOVED = spec(random_events=[event("one", EFFECTS), event("two", EFFECTS)])
AMOUNT = NumberEdit("/random_events/1/effects/0/value", 2, 3, "event 'two': dec a by 2 → 3")
DECAY = NumberEdit("/negativity_budget/decay_per_turn/state.a", 1, 2)


def test_a_move_is_found_where_its_part_went() -> None:
    after = {**MOVED, "random_events": [event("two", EFFECTS, duration="2h")]}
    assert filter_present_moves((AMOUNT,), MOVED, after) == (
        replace(AMOUNT, path="/random_events/0/effects/0/value"),
    )


def test_a_key_with_a_dot_in_it_is_one_key() -> None:
    budget = {"min_fail_rate": 0.3, "decay_per_turn": {"state.a": 2}}
    moved = {**MOVED, "negativity_budget": budget}
    assert filter_present_moves((DECAY,), moved, {**moved, "horizon": 9}) == (DECAY,)


@pytest.mark.parametrize(
    "two",
    [
        [event("two", [{"op": "dec", "path": "state.a", "value": 4}])],
        [event("two")],
        [{"id": "two", "effects": "none"}],
        [],
    ],
)
def test_what_was_written_anew_or_is_gone_is_moved_no_longer(two: list[dict[str, Any]]) -> None:
    assert filter_present_moves((AMOUNT,), MOVED, {**MOVED, "random_events": two}) == ()

from __future__ import annotations

import pytest

from peripety.sim._pure.compiled.code import LIMIT, Code, Kind, NotLoweredError
from peripety.sim._pure.compiled.draft import Draft
from peripety.sim._pure.compiled.slots import Slot
from peripety.sim._pure.effects import TURN_LIMIT
from peripety.sim._pure.logic import FUEL

SLOT = Slot("s0", ("state", "a"), Kind.NUMBER, 20.0)


def test_a_bound_covers_whatever_is_put_added_and_multiplied_in_a_thousand_turns() -> None:
    draft = Draft(16)
    draft.grows(SLOT, to=20)
    draft.grows(SLOT, by=1.5)
    draft.grows(SLOT, by=0.5)
    draft.grows(SLOT, times=0.5)
    assert draft.bounds() == {"s0": 20 + 1000 * 2}


def test_what_doubles_each_turn_has_no_bound_and_is_guarded() -> None:
    draft = Draft(16)
    draft.grows(SLOT, to=20)
    draft.grows(SLOT, times=2)
    assert draft.bounds() == {}
    assert Draft(16, draft.bounds()).is_guarded(SLOT)
    assert not Draft(16, {"s0": 1e6}).is_guarded(SLOT)


def test_a_number_above_the_limit_is_held() -> None:
    draft = Draft(16)
    small, large = (Code("s0 + s1", Kind.NUMBER, bound=bound, atom=False) for bound in (5.0, 2 * LIMIT))
    assert draft.held(small) is small
    assert (draft.held(large).text, draft.held(large).bound) == ("held(s0 + s1)", LIMIT)


def test_fuel_and_the_steps_of_a_turn_cannot_run_out() -> None:
    draft = Draft(16)
    draft.evaluation(Code("x", Kind.NUMBER, FUEL), times=TURN_LIMIT // FUEL)
    with pytest.raises(NotLoweredError):
        draft.evaluation(Code("x", Kind.NUMBER))
    with pytest.raises(NotLoweredError):
        Draft(16).evaluation(Code("x", Kind.NUMBER, FUEL + 1))


def test_constants_are_known_by_name_only() -> None:
    draft = Draft(16)
    codes = [draft.literal(value) for value in ("text", ["x", "y"], 2.5, True, None)]
    assert [code.text for code in codes] == ["k0", "k3", "2.5", "True", "None"]
    assert draft.names["k0"] == "text"
    assert draft.names["k3"] == ("x", "y")

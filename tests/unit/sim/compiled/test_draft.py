from __future__ import annotations

import pytest

from peripety.engine._reference.codegen.code import (
    MAX_NUMBER,
    CodeFragment,
    CodegenContext,
    NotLoweredError,
    Slot,
    ValueKind,
)
from peripety.engine._reference.effects import TURN_LIMIT
from peripety.engine._reference.jsonlogic import FUEL

SLOT = Slot("s0", ("state", "a"), ValueKind.NUMBER, 20.0)


def test_a_bound_covers_whatever_is_put_added_and_multiplied_in_a_thousand_turns() -> None:
    draft = CodegenContext(16)
    draft.record_growth(SLOT, to=20)
    draft.record_growth(SLOT, by=1.5)
    draft.record_growth(SLOT, by=0.5)
    draft.record_growth(SLOT, times=0.5)
    assert draft.compute_bounds() == {"s0": 20 + 1000 * 2}


def test_what_doubles_each_turn_has_no_bound_and_is_guarded() -> None:
    draft = CodegenContext(16)
    draft.record_growth(SLOT, to=20)
    draft.record_growth(SLOT, times=2)
    assert draft.compute_bounds() == {}
    assert CodegenContext(16, draft.compute_bounds()).is_guarded(SLOT)
    assert not CodegenContext(16, {"s0": 1e6}).is_guarded(SLOT)


def test_a_number_above_the_limit_is_held() -> None:
    draft = CodegenContext(16)
    small, large = (
        CodeFragment("s0 + s1", ValueKind.NUMBER, bound=bound, is_atom=False)
        for bound in (5.0, 2 * MAX_NUMBER)
    )
    assert draft.limit(small) is small
    assert (draft.limit(large).text, draft.limit(large).bound) == ("held(s0 + s1)", MAX_NUMBER)


def test_fuel_and_the_steps_of_a_turn_cannot_run_out() -> None:
    draft = CodegenContext(16)
    draft.charge_evaluation(CodeFragment("x", ValueKind.NUMBER, FUEL), times=TURN_LIMIT // FUEL)
    with pytest.raises(NotLoweredError):
        draft.charge_evaluation(CodeFragment("x", ValueKind.NUMBER))
    with pytest.raises(NotLoweredError):
        CodegenContext(16).charge_evaluation(CodeFragment("x", ValueKind.NUMBER, FUEL + 1))


def test_constants_are_known_by_name_only() -> None:
    draft = CodegenContext(16)
    codes = [draft.literal_code(value) for value in ("text", ["x", "y"], 2.5, True, None)]
    assert [code.text for code in codes] == ["k0", "k3", "2.5", "True", "None"]
    assert draft.names["k0"] == "text"
    assert draft.names["k3"] == ("x", "y")

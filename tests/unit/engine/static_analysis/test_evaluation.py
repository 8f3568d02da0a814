"""Signs of derived values: known only where no state can make them otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.engine.static_analysis.evaluation import find_signs

PARAMS = {
    "up": {"type": "integer", "minimum": 0, "maximum": 3},
    "down": {"type": "number", "enum": [-2, -1]},
    "either": {"type": "number", "minimum": -1, "maximum": 1},
}


@pytest.mark.parametrize(
    ("logic", "sign"),
    [
        (3, 1),
        (-3, -1),
        ({"*": [{"var": "params.up"}, 2]}, 1),
        ({"*": [{"var": "params.down"}, 2]}, -1),
        ({"var": "params.either"}, 0),
        ({"-": [{"var": "params.up"}]}, -1),
        ({"if": [{"var": "state.flag"}, 1, 2]}, 1),
        ({"if": [{"var": "state.flag"}, 1, -2]}, 0),
        ({"max": [{"var": "params.up"}, 0]}, 1),
        ({"var": "turn"}, 1),
        ({"var": "state.a"}, 0),
        ("text", 0),
    ],
)
def test_a_sign_is_known_where_the_state_does_not_matter(logic: Any, sign: int) -> None:
    assert find_signs({"params": PARAMS, "derives": {"x": logic}}) == {"x": sign}


def test_derived_values_may_be_read_in_any_order() -> None:
    derives = {"a": {"*": [{"var": "derives.b"}, -1]}, "b": {"var": "params.up"}}
    assert find_signs({"params": PARAMS, "derives": derives}) == {"a": -1, "b": 1}


def test_a_rule_without_derived_values_has_none() -> None:
    assert find_signs({}) == {}

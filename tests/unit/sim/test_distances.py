from __future__ import annotations

from typing import Any

import pytest

from peripety.engine._reference.jsonlogic import evaluate
from peripety.engine._reference.jsonlogic_operators import is_truthy
from peripety.engine._reference.personas import compile_distance

JUST_FAILED = (1 / 1024) / (1 / 1024 + 1)


def var(name: str) -> dict[str, str]:
    return {"var": f"state.{name}"}


def root(state: dict[str, Any]) -> dict[str, Any]:
    numbers = {name: float(value) if type(value) is int else value for name, value in state.items()}
    return {"state": numbers, "params": {}, "derives": {}, "turn": 1.0, "entities": []}


def floats(logic: Any) -> Any:
    """Logic with the numbers that the border gives."""
    if isinstance(logic, dict):
        return {name: floats(item) for name, item in logic.items()}
    if isinstance(logic, list):
        return [floats(item) for item in logic]
    return float(logic) if type(logic) is int else logic


def distance(logic: Any, initial: dict[str, Any] | None = None, **state: Any) -> float:
    """The distance of a condition in a state of a scenario that begins with another."""
    return compile_distance(floats(logic), root(state if initial is None else initial))(root(state))


def away(gap: float, scale: float) -> float:
    """What the text makes of a gap."""
    d = gap + scale / 1024
    return d / (d + scale)


@pytest.mark.parametrize(
    ("operator", "a", "b", "gap"),
    [
        ("<", 9, 4, 5),
        ("<", 4, 4, 0),
        ("<=", 9, 4, 5),
        (">", 4, 9, 5),
        (">", 4, 4, 0),
        (">=", 4, 9, 5),
        ("==", 4, 9, 5),
        ("==", 9, 4, 5),
        ("===", 9, 4, 5),
        ("===", 4, 9, 5),
    ],
)
def test_a_comparison_of_numbers_is_as_far_as_its_gap_on_the_scale_of_the_start(
    operator: str,
    a: float,
    b: float,
    gap: float,
) -> None:
    logic = {operator: [var("a"), var("b")]}
    assert distance(logic, {"a": 2, "b": 12}, a=a, b=b) == away(gap, 10)
    assert distance(logic, {"a": 12, "b": 2}, a=a, b=b) == away(gap, 10)


@pytest.mark.parametrize("operator", ["<=", ">=", "==", "==="])
def test_equal_numbers_are_no_distance_apart(operator: str) -> None:
    assert distance({operator: [var("a"), 4]}, a=4) == 0


@pytest.mark.parametrize("initial", [4, "4", True, None, [], {}, 4 + 1e-301])
def test_the_scale_is_1_where_the_start_has_none(initial: Any) -> None:
    logic = {">": [var("a"), 4]}
    assert distance(logic, {"a": initial}, a=1) == away(3, 1)


def test_the_scale_is_1_where_the_start_cannot_be_evaluated() -> None:
    logic = {">": [{"/": [1, var("a")]}, 4]}
    assert distance(logic, {"a": 0}, a=1) == away(3, 1)


def test_a_scale_next_to_nothing_is_1_so_that_what_does_not_hold_is_some_distance_away() -> None:
    assert distance({"<": [var("a"), 0]}, {"a": 5e-324}, a=0) == JUST_FAILED


def test_a_gap_and_a_scale_that_overflow_are_1e300() -> None:
    initial = {"a": 1.7e308, "b": -1.7e308}
    for operator in ("<", "<=", "==", "==="):
        assert distance({operator: [var("a"), var("b")]}, initial, **initial) == away(1e300, 1e300)
    assert distance({"<": [var("a"), 0]}, {"a": 1}, a=1.7e308) == 1


@pytest.mark.parametrize(
    ("logic", "expected"),
    [
        ({"==": [5, "5"]}, 0),
        ({"===": [5, "5"]}, 1),
        ({"<": ["a", "b"]}, 0),
        ({"<": ["b", "a"]}, 1),
        ({">": [True, 0]}, 0),
        ({">": [True, 1]}, 1),
        ({"<": [None, 1]}, 0),
        ({"==": [None, 1]}, 1),
        ({"===": [[1, 2], [1, 2]]}, 0),
        ({"<": [{"var": "state"}, 1]}, 1),
        ({"!=": [4, 4]}, 1),
        ({"!=": [4, 5]}, 0),
        ({"!==": [4, 4]}, 1),
        ({"!==": [4, "4"]}, 0),
    ],
)
def test_other_comparisons_hold_or_do_not(logic: Any, expected: float) -> None:
    assert distance(logic) == expected


@pytest.mark.parametrize(
    ("logic", "expected"),
    [
        ({}, 0),
        (True, 0),
        (0, 1),
        ("", 1),
        ([], 1),
        ([0], 0),
        ({"in": ["a", "cab"]}, 0),
        ({"in": ["x", "cab"]}, 1),
        ({"if": [True, {"<": [5, 1]}, True]}, 1),
        ({"some": [[1, 2], {">": [{"var": ""}, 1]}]}, 0),
        ({"+": [1, 1]}, 0),
    ],
)
def test_anything_else_holds_or_does_not_and_its_opposite_the_other_way(logic: Any, expected: float) -> None:
    assert distance(logic) == expected
    assert distance({"!": [logic]}) == 1 - expected


@pytest.mark.parametrize(
    "logic",
    [
        {"<": [{"/": [1, 0]}, 5]},
        {"==": [5, {"/": [1, 0]}]},
        {"!=": [5, {"/": [1, 0]}]},
        {"!!": [{"/": [1, 0]}]},
        {"<": [{"var": "state"}, 1]},
        {"and": True},
    ],
)
def test_what_cannot_be_evaluated_is_farthest_and_so_is_its_opposite(logic: Any) -> None:
    assert distance(logic) == 1
    assert distance({"!": [logic]}) == 1


NEAR, FAR, HELD = {"<": [var("a"), 4]}, {"<": [var("a"), 1]}, {"<": [var("a"), 9]}
NEAR_AWAY, FAR_AWAY = away(1, 1), away(4, 4)


@pytest.mark.parametrize(
    ("logic", "expected"),
    [
        ({"and": [NEAR, FAR, HELD]}, max(NEAR_AWAY, FAR_AWAY)),
        ({"or": [NEAR, FAR]}, min(NEAR_AWAY, FAR_AWAY)),
        ({"or": [NEAR, FAR, HELD]}, 0),
        ({"and": [NEAR]}, NEAR_AWAY),
        ({"!!": [NEAR]}, NEAR_AWAY),
        ({"!!": NEAR}, NEAR_AWAY),
        ({"and": [HELD, {"or": [FAR, {"and": [NEAR, HELD]}]}]}, min(NEAR_AWAY, FAR_AWAY)),
    ],
)
def test_of_several_conditions_the_farthest_or_the_nearest_counts(logic: Any, expected: float) -> None:
    assert distance(logic, a=5) == expected


OPPOSITES = {"<": ">=", ">": "<=", "==": "!=", "===": "!=="}
PAIRS = [(1, 2), (2, 1), (2, 2), ("1", 1), ("a", "b"), (True, 1), (None, 0), (0, 1e300)]


@pytest.mark.parametrize(("one", "other"), [*OPPOSITES.items(), *((b, a) for a, b in OPPOSITES.items())])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_opposite_of_a_comparison_is_the_other_comparison(one: str, other: str, a: Any, b: Any) -> None:
    assert distance({"!": [{one: [a, b]}]}) == distance({other: [a, b]})
    assert distance({"!": {"!": [{one: [a, b]}]}}) == distance({one: [a, b]})
    assert (distance({one: [a, b]}) == 0) != (distance({other: [a, b]}) == 0)


@pytest.mark.parametrize("joined", ["and", "or"])
def test_the_opposite_of_several_is_the_other_of_their_opposites(joined: str) -> None:
    other = {"and": "or", "or": "and"}[joined]
    parts = [{"<": [var("a"), 4]}, {">=": [var("a"), 8]}, {"!=": [var("a"), 5]}]
    opposites = [{"!": part} for part in parts]
    for a in (3, 5, 9):
        assert distance({"!": [{joined: parts}]}, {"a": 1}, a=a) == distance(
            {other: opposites},
            {"a": 1},
            a=a,
        )


def test_a_chain_is_all_of_its_pairs_and_its_opposite_one_of_theirs() -> None:
    chain = {"<": [1, var("a"), var("b"), 9]}
    pairs = [{"<": [1, var("a")]}, {"<": [var("a"), var("b")]}, {"<": [var("b"), 9]}]
    initial = {"a": 3, "b": 7}
    for a, b in ((2, 5), (5, 2), (0, 12), (4, 4)):
        assert distance(chain, initial, a=a, b=b) == distance({"and": pairs}, initial, a=a, b=b)
        opposites = {"or": [{"!": pair} for pair in pairs]}
        assert distance({"!": [chain]}, initial, a=a, b=b) == distance(opposites, initial, a=a, b=b)


def test_each_operand_has_the_fuel_of_an_evaluation() -> None:
    """Together they would need more than one evaluation may take."""
    long = {"+": [1] * 6_000}
    assert distance({"<": [long, long]}) == JUST_FAILED
    assert distance({"<": [{"cat": [long]}, long]}) == 1
    assert distance({"!=": [long, {"+": [long, 1]}]}) == 0
    many = [0] * 3_000
    assert distance({"===": [many, many]}) == 0
    assert distance({"<": [{"+": [1] * 12_000}, 0]}) == 1


@pytest.mark.parametrize(
    "logic",
    [HELD, NEAR, {"!": [FAR]}, {"and": [HELD, NEAR]}, {"or": [HELD, NEAR]}, {"<": [0, var("a"), 5]}],
)
@pytest.mark.parametrize("a", [0, 1, 4, 4.5, 5, 9])
def test_the_distance_is_nothing_exactly_where_the_condition_holds(logic: Any, a: float) -> None:
    holds = is_truthy(evaluate(floats(logic), root({"a": a})))
    assert (distance(logic, {"a": 5}, a=a) == 0) == holds
    assert 0 <= distance(logic, {"a": 5}, a=a) <= 1

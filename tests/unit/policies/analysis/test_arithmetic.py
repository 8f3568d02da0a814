"""Comparisons of arithmetic over one argument: between two turns nothing changes."""

from __future__ import annotations

import json
from bisect import bisect_left
from math import inf, nextafter
from random import Random
from typing import Any

import pytest

from peripety import engine
from peripety.policy.analysis.breakpoints import find_breakpoints
from peripety.policy.analysis.condition_logic import evaluate_truth

_X = {"var": "arguments.a"}
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@pytest.mark.parametrize(
    ("logic", "turn"),
    [
        ({"<": [{"+": [_X, _X]}, 1]}, 0.5),
        ({">=": [10, {"-": [{"*": [_X, 4]}, 2]}]}, 3.0),
        ({"==": [{"/": [_X, "8"]}, 2]}, 16.0),
        ({"<": [_X, {"+": [1, 2]}]}, 3.0),
    ],
)
def test_it_turns_where_both_sides_are_the_same(logic: Any, turn: float) -> None:
    assert turn in (find_breakpoints(logic, ("a",)) or ())


@pytest.mark.parametrize(
    "logic",
    [
        {"<": [{"*": [_X, _X]}, 4]},
        {"<": [{"-": [{"*": [_X, 2]}, _X]}, 4]},
        {"<": [{"%": [_X, 2]}, 1]},
        {"<": [{"/": [1, _X]}, 1]},
        {"<": [_X, {"cat": ["a", "b"]}]},
        {"<": [{"+": [_X, 1]}, _X]},
        {"<": [{"+": [_X, 1e300]}, 1]},
        {"<": [1, {"+": [_X, 1]}, 5]},
    ],
)
def test_what_may_change_anywhere_is_not_told(logic: Any) -> None:
    assert find_breakpoints(logic, ("a",)) is None


@pytest.mark.parametrize(
    "logic",
    [
        {"<": [{"/": [{"-": [_X, 5]}, 1e-308]}, 0]},
        {"<": [{"*": [{"+": [_X, 1e9]}, *[1e9] * 35]}, 0]},
    ],
)
def test_what_may_have_a_value_though_it_has_none_for_0_is_not_told(logic: Any) -> None:
    assert find_breakpoints(logic, ("a",)) is None


def test_what_depends_on_whether_the_argument_is_there_is_not_told() -> None:
    assert find_breakpoints({"<": [_X, {"if": [{"missing": ["arguments.a"]}, 5, "b"]}]}, ("a",)) is None


@pytest.mark.parametrize("logic", [{"<": [{"+": [_X, "b"]}, 4]}, {"<": [{"/": [_X, 0]}, 4]}])
def test_what_never_has_a_value_turns_nowhere(logic: Any) -> None:
    assert find_breakpoints(logic, ("a",)) == ()


def test_a_literal_beyond_the_exact_integers_is_asked_about_as_it_is() -> None:
    assert find_breakpoints({"<": [{"*": [_X, {"*": [1e20, 1e-20]}]}, 3]}, ("a",)) is not None


def test_the_engine_is_asked_once_about_one_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    logic = {"<": [{"*": [_X, 2]}, 12.125]}
    found = find_breakpoints(logic, ("a",))
    monkeypatch.delattr(engine, "compile_rule")
    assert find_breakpoints(json.loads(json.dumps(logic)), ("a",)) == found


@pytest.mark.parametrize("seed", range(150))
def test_between_two_turns_the_engine_says_the_same(seed: int) -> None:
    random = Random(seed)
    logic = {random.choice(_COMPARISONS): _sides(random)}
    found = find_breakpoints(logic, ("a",))
    assert found is not None
    points = sorted(found)
    said: dict[tuple[int, bool], set[bool | None]] = {}
    for number in _numbers(random, points):
        place = bisect_left(points, number)
        at = place < len(points) and points[place] == number
        said.setdefault((place, at), set()).add(evaluate_truth(logic, {"arguments": {"a": number}}))
    assert all(len(answers) == 1 for answers in said.values()), (logic, points)


def _sides(random: Random) -> list[Any]:
    sides = [_growing(random, 2), random.choice((0, 1, -7, 99.5, "3", None, 0.1))]
    random.shuffle(sides)
    return sides


def _growing(random: Random, depth: int) -> Any:
    """An expression that grows with the argument."""
    if not depth or random.random() < 0.2:
        return {"+": [_X, _literal(random)]}
    inner, factor = _growing(random, depth - 1), abs(_literal(random)) + 0.5
    return random.choice(
        (
            {"+": [inner, _growing(random, depth - 1)]},
            {"-": [inner, _literal(random), {"*": [-1, _growing(random, depth - 1)]}]},
            {"*": [factor, inner]},
            {"/": [inner, factor, factor]},
            {"-": [{"-": [inner]}]} if random.random() < 0.5 else {"+": [_literal(random), inner]},
        ),
    )


def _literal(random: Random) -> float:
    return random.choice((0, 1, -1, 2.5, 1e8, -1e-9, 0.1, 3))


def _numbers(random: Random, points: list[float]) -> list[float]:
    near = [nextafter(point, end) for point in points for end in (-inf, inf)]
    scattered = [random.uniform(-200, 200) for _ in range(100)]
    large = [random.choice((-1, 1)) * 10 ** random.uniform(-300, 308) for _ in range(100)]
    return [one for one in (*points, *near, *scattered, *large, 0.0) if abs(one) < inf]

"""Comparisons of arithmetic over one argument: between two turns nothing changes.

Numbers between two others stand for all that lie there.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from math import inf, nextafter
from random import Random
from typing import Any

import pytest

from peripety import engine
from peripety.policy.analysis.breakpoints import find_breakpoints, numbers_between
from peripety.policy.analysis.condition_logic import evaluate_truth
from peripety.policy.analysis.equivalence import Differs, compare_variants
from support.engine.policies import policy_of, rule, tool

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


_SIZE = {"var": "arguments.size"}
_LARGEST = 2.0**53 - 1


def _is_told_apart(before: Any, after: Any, **schema: Any) -> bool:
    inputs = {"type": "object", "properties": {"size": schema}, "required": ["size"]}
    tools = (tool("a", "alpha", input_schema=inputs),)
    policy, other = (policy_of(rule("r", "allow", logic=logic), tools=tools) for logic in (before, after))
    (verdict,) = compare_variants(policy, [other.rules])
    return (
        isinstance(verdict, Differs)
        and policy.decide(verdict.witness).decision is not other.decide(verdict.witness).decision
    )


@pytest.mark.parametrize("kind", ["number", "integer"])
@pytest.mark.parametrize(
    "bound",
    [{">": [_SIZE, _LARGEST]}, {"<": [_SIZE, -_LARGEST]}, {">": [_SIZE, 1e300]}],
)
def test_numbers_beyond_those_that_are_exact_everywhere_tell_rules_apart(kind: str, bound: Any) -> None:
    assert _is_told_apart(bound, {"<": [1, 0]}, type=kind)


def test_a_multiple_does_not_stand_for_those_beside_it() -> None:
    above, below = {">": [_SIZE, 0.3]}, {"<": [_SIZE, 0.5]}
    nothing = {"and": [above, {"<": [_SIZE, 0.3]}]}
    assert _is_told_apart({"and": [above, below]}, nothing, type="number", multipleOf=0.1)


def test_a_multiple_that_is_no_number_does_not_stand_for_those_beside_it() -> None:
    assert 9e15 not in numbers_between(9e15, inf, {"multipleOf": 0.1}, whole=False)


@pytest.mark.parametrize(
    ("low", "high", "schema", "whole"),
    [
        (1e20, inf, {"maximum": 1e20}, False),
        (1e20, nextafter(1e20, inf), {}, False),
        (0.3, 0.4, {"multipleOf": 0.1}, False),
        (5.0, 6.0, {}, True),
        (10.0, inf, {"maximum": 10}, True),
    ],
)
def test_where_a_schema_accepts_no_number_there_is_none(
    low: float,
    high: float,
    schema: Any,
    whole: bool,
) -> None:
    assert numbers_between(low, high, schema, whole=whole) == ()


@pytest.mark.parametrize(
    ("low", "high"),
    [(-inf, inf), (0.0, 1.0), (_LARGEST, inf), (-inf, -1e308), (1e20, 1e20 + 2**20), (0.0, 5e-323)],
)
def test_numbers_lie_between_the_others(low: float, high: float) -> None:
    found = numbers_between(low, high, {}, whole=False)
    assert found
    assert all(low < number < high for number in found)

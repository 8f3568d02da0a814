"""Numbers between two others stand for all that lie there."""

from __future__ import annotations

from math import inf, nextafter
from typing import Any

import pytest

from peripety.policy.analysis.breakpoints import numbers_between
from peripety.policy.analysis.equivalence import Differs, compare_variants
from support.engine.policies import policy_of, rule, tool

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

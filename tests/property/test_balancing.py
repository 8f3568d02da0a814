"""Balancing random scenarios: they come out where they should, and nothing but numbers is touched."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety import sim
from peripety.scenarios.balancing.balancing import Balancer
from peripety.scenarios.balancing.choosing import balanceable, repairable
from peripety.scenarios.balancing.knobs import turned
from peripety.scenarios.balancing.model import Balanced, BalanceOrder, Target
from peripety.scenarios.model import DryRunOptions, errors_among
from peripety.scenarios.random_specs import random_spec
from peripety.sim.schema import pointer
from support.scenarios import WORKERS

if TYPE_CHECKING:
    from peripety.scenarios.balancing.model import NotBalanced

LEAST, MOST = 0.3, 0.4
TOLERANCE = 0.02
# The core in Python plays some hundred times slower.
SPECS, RUNS = (12, 4_000) if sim.BACKEND == "native" else (3, 2_000)


def balanced(document: bytes, target: Target, runs: int) -> Balanced | NotBalanced:
    async def last() -> Any:
        order = BalanceOrder(document, target, DryRunOptions(max_runs=runs))
        return [event async for event in Balancer(WORKERS).balance(order)][-1]

    found: Balanced | NotBalanced = asyncio.run(last())
    return found


def leaves(node: Any, place: tuple[str | int, ...] = ()) -> dict[str, Any]:
    """Everything in a document that holds nothing else, by its JSON Pointer."""
    if isinstance(node, (dict, list)) and node:
        items = node.items() if isinstance(node, dict) else enumerate(node)
        return {at: leaf for key, value in items for at, leaf in leaves(value, (*place, key)).items()}
    return {pointer(place): node}


@pytest.mark.parametrize("index", range(SPECS))
def test_a_random_scenario_comes_out_where_it_should(index: int) -> None:
    """`make bench-balance` does the same with a hundred of them."""
    before = random_spec(11, index)
    found = balanced(before, Target(LEAST, MOST), RUNS)
    assert isinstance(found, Balanced), found
    fresh = sim.compile(found.document).dry_run(runs=4_000, first_run=2**45)
    assert LEAST - TOLERANCE <= fresh.fail_rate <= MOST + TOLERANCE
    check_only_numbers_moved(before, found)


@given(index=st.integers(0, 10_000), least=st.floats(0, 0.9), width=st.floats(0.05, 0.1))
@settings(max_examples=SPECS // 2, deadline=None)
def test_nothing_but_numbers_is_touched_wherever_it_should_come_out(
    index: int, least: float, width: float
) -> None:
    before = random_spec(12, index)
    found = balanced(before, Target(least, least + width), 200)
    if isinstance(found, Balanced):
        check_only_numbers_moved(before, found)
    else:
        assert found.findings
        assert found.closest is not None


def check_only_numbers_moved(before: bytes, found: Balanced) -> None:
    assert sim.validate(found.document) == sim.validate(before)
    old, new = leaves(sim.parse(before)), leaves(sim.parse(found.document))
    assert old.keys() == new.keys()
    moved = {place: (old[place], new[place]) for place in old if old[place] != new[place]}
    assert moved == {edit.path: (edit.before, edit.after) for edit in found.edits}
    for place, (value, other) in moved.items():
        assert abs(other - value) <= 0.5 * abs(value) + 1e-12
        assert float(f"{other:.4g}") == other
        if place.endswith("/weight"):
            assert 0.05 <= other <= 0.30


@given(index=st.integers(0, 10_000), factor=st.floats(0.5, 1.5))
@settings(max_examples=40, deadline=None)
def test_turned_numbers_leave_a_scenario_valid(index: int, factor: float) -> None:
    spec = sim.parse(random_spec(13, index))
    for choose in (balanceable, repairable):
        other, edits = turned(spec, choose(spec), factor)
        assert not errors_among(sim.validate(sim.canonical(other)))
        assert all(edit.after != edit.before for edit in edits)

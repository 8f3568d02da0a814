"""Balancing random scenarios: they come out where they should, and nothing but numbers is touched."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from peripety import engine
from peripety.certification.options import DryRunOptions
from peripety.engine.schema_validation import format_pointer
from peripety.errors import filter_errors
from peripety.scenario.balance.balancer import BalanceOrder, Balancer, BalanceReached, BalanceTarget
from peripety.scenario.balance.parameters import scale_numbers, select_for_balance, select_for_repair
from peripety.scenario.spec_generator.generator import generate_spec
from support.scenario.batches import WORKERS

if TYPE_CHECKING:
    from peripety.scenario.balance.balancer import BalanceFailed


LEAST, MOST = 0.3, 0.4
TOLERANCE = 0.02
# The core in Python plays some hundred times slower.
SPECS, RUNS = (12, 4_000) if engine.BACKEND == "native" else (3, 2_000)


def balanced(document: bytes, target: BalanceTarget, runs: int) -> BalanceReached | BalanceFailed:
    async def last() -> Any:
        order = BalanceOrder(document, target, DryRunOptions(max_runs=runs))
        return [event async for event in Balancer(WORKERS).balance(order)][-1]

    found: BalanceReached | BalanceFailed = asyncio.run(last())
    return found


def leaves(node: Any, place: tuple[str | int, ...] = ()) -> dict[str, Any]:
    """Everything in a document that holds nothing else, by its JSON Pointer."""
    if isinstance(node, (dict, list)) and node:
        items = node.items() if isinstance(node, dict) else enumerate(node)
        return {at: leaf for key, value in items for at, leaf in leaves(value, (*place, key)).items()}
    return {format_pointer(place): node}


@pytest.mark.slow_after(3, reason="balances a scenario")
@pytest.mark.parametrize("index", range(SPECS))
def test_a_random_scenario_comes_out_where_it_should(index: int) -> None:
    """`make bench-balance` does the same with a hundred of them."""
    before = generate_spec(11, index)
    found = balanced(before, BalanceTarget(LEAST, MOST), RUNS)
    assert isinstance(found, BalanceReached), found
    fresh = engine.compile(found.document).dry_run(runs=4_000, first_run=2**45)
    assert LEAST - TOLERANCE <= fresh.fail_rate <= MOST + TOLERANCE
    check_only_numbers_moved(before, found)


@pytest.mark.slow(reason="balances many scenarios")
@given(index=st.integers(0, 10_000), least=st.floats(0, 0.9), width=st.floats(0.05, 0.1))
@example(index=475, least=0.0, width=0.0546875)
@settings(max_examples=SPECS // 2, deadline=None)
def test_nothing_but_numbers_is_touched_wherever_it_should_come_out(
    index: int,
    least: float,
    width: float,
) -> None:
    before = generate_spec(12, index)
    found = balanced(before, BalanceTarget(least, least + width), 200)
    if isinstance(found, BalanceReached):
        check_only_numbers_moved(before, found)
    else:
        assert found.findings
        assert found.closest is not None


def check_only_numbers_moved(before: bytes, found: BalanceReached) -> None:
    assert engine.validate(found.document) == engine.validate(before)
    old, new = leaves(engine.parse(before)), leaves(engine.parse(found.document))
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
    spec = engine.parse(generate_spec(13, index))
    for choose in (select_for_balance, select_for_repair):
        other, edits = scale_numbers(spec, choose(spec), factor)
        assert not filter_errors(engine.validate(engine.canonicalize(other)))
        assert all(edit.after != edit.before for edit in edits)

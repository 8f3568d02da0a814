"""The repair of numbers: as little as will do, on runs of its own, and honest where it cannot."""

from __future__ import annotations

import pytest

from peripety.certification.difficulty_gate import BudgetMiss, evaluate_to_verdict
from peripety.certification.options import DryRunOptions
from peripety.scenario.balance.candidate_runs import FIRST_FRESH_RUN, BudgetRepair, repair
from peripety.scenario.balance.parameters import scale_numbers, select_for_repair
from support.engine.specs import program, siege
from support.scenario.batches import WORKERS

OPTIONS = DryRunOptions()


def rate_of(value: BudgetRepair) -> float:
    assert value.program is not None
    return value.program.dry_run(runs=4000, first_run=2 * FIRST_FRESH_RUN).fail_rate


async def test_a_scenario_that_is_too_easy_becomes_as_hard_as_asked() -> None:
    easy = program(siege(min_fail_rate=0.6))
    assert (await evaluate_to_verdict(easy, OPTIONS, WORKERS)).miss is BudgetMiss.TOO_EASY
    found = await repair(easy, BudgetMiss.TOO_EASY, OPTIONS, WORKERS)
    assert rate_of(found) >= 0.6
    assert all(edit.after > edit.before for edit in found.edits)


async def test_a_scenario_that_is_too_hard_becomes_as_easy_as_asked() -> None:
    hard = program(siege(min_fail_rate=0.05, max_fail_rate=0.25))
    assert (await evaluate_to_verdict(hard, OPTIONS, WORKERS)).miss is BudgetMiss.TOO_HARD
    found = await repair(hard, BudgetMiss.TOO_HARD, OPTIONS, WORKERS)
    assert 0.05 <= rate_of(found) <= 0.25
    assert all(edit.after < edit.before for edit in found.edits)


async def test_only_numbers_change() -> None:
    easy = program(siege(min_fail_rate=0.6))
    found = await repair(easy, BudgetMiss.TOO_EASY, OPTIONS, WORKERS)
    assert found.program is not None
    back, _ = scale_numbers(found.program.spec, select_for_repair(found.program.spec), 1.0)
    for edit in found.edits:
        *parents, last = edit.path.split("/")[1:]
        node = back
        for key in parents:
            node = node[int(key)] if isinstance(node, list) else node[key]
        node[int(last) if isinstance(node, list) else last] = edit.before
    assert back == easy.spec


async def test_the_change_is_no_larger_than_it_has_to_be() -> None:
    near = await repair(program(siege(min_fail_rate=0.5)), BudgetMiss.TOO_EASY, OPTIONS, WORKERS)
    far = await repair(program(siege(min_fail_rate=0.75)), BudgetMiss.TOO_EASY, OPTIONS, WORKERS)
    assert rate_of(near) < rate_of(far)
    assert [e.path for e in near.edits] == [e.path for e in far.edits]
    decays = [found.edits[-1].after for found in (near, far)]
    assert 0.5 < decays[0] < decays[1] <= 0.75


async def test_the_same_scenario_is_repaired_in_the_same_way() -> None:
    easy = program(siege(min_fail_rate=0.6))
    first, second = [await repair(easy, BudgetMiss.TOO_EASY, OPTIONS, WORKERS) for _ in range(2)]
    assert first.edits == second.edits
    assert first.program is not None
    assert second.program is not None
    assert first.program.document == second.program.document


async def test_what_the_largest_moves_do_not_reach_is_given_up_with_the_rate_they_reach() -> None:
    found = await repair(program(siege(min_fail_rate=1.0)), BudgetMiss.TOO_EASY, OPTIONS, WORKERS)
    assert found.program is None
    assert 0.5 < found.fail_rate < 1.0


@pytest.mark.parametrize("miss", list(BudgetMiss))
async def test_without_numbers_to_move_nothing_is_reached(miss: BudgetMiss) -> None:
    still = (
        siege(min_fail_rate=0.1, max_fail_rate=0.2)
        if miss is BudgetMiss.TOO_HARD
        else siege(min_fail_rate=0.9)
    )
    still["random_events"] = []
    still["negativity_budget"].pop("decay_per_turn")
    if miss is BudgetMiss.TOO_HARD:
        still["loss_conditions"][0]["when"] = {"<": [0, 1]}
    found = await repair(program(still), miss, OPTIONS, WORKERS)
    assert (found.program, found.edits) == (None, ())

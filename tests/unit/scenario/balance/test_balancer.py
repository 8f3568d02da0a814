"""Balancing of whole documents: changed values, confirmation, and errors if the target cannot be reached."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.certification.options import DryRunOptions
from peripety.errors import InvalidArgumentError
from peripety.scenario.balance.balancer import (
    BalanceFailed,
    BalanceOrder,
    Balancer,
    BalanceReached,
    BalanceTarget,
)
from peripety.scenario.balance.candidate_runs import FIRST_FRESH_RUN
from peripety.scenario.types import Progress
from support.engine.specs import action, as_bytes, at_most, chance, event, never, siege, spec
from support.scenario.batches import WORKERS

if TYPE_CHECKING:
    from peripety.engine import Persona
    from peripety.scenario.balance.balancer import BalanceEvent


RUNS = 2_000


async def events_of(
    value: Any,
    least: float,
    most: float,
    *,
    persona: Persona = "random",
    runs: int = RUNS,
) -> list[BalanceEvent]:
    data = value if isinstance(value, bytes) else as_bytes(value)
    order = BalanceOrder(data, BalanceTarget(least, most), DryRunOptions(persona, max_runs=runs))
    return [event async for event in Balancer(WORKERS).balance(order)]


async def balanced(value: Any, least: float, most: float, **more: Any) -> BalanceReached:
    last = (await events_of(value, least, most, **more))[-1]
    assert isinstance(last, BalanceReached), last
    return last


async def refused(value: Any, least: float, most: float) -> BalanceFailed:
    last = (await events_of(value, least, most))[-1]
    assert isinstance(last, BalanceFailed), last
    return last


@pytest.mark.parametrize(("least", "most"), [(0.1, 0.2), (0.3, 0.4), (0.6, 0.7), (0.85, 1.0)])
async def test_the_persona_loses_as_often_as_wanted_on_runs_that_nobody_has_seen(
    least: float,
    most: float,
) -> None:
    found = await balanced(siege(), least, most)
    assert found.after.first_run >= FIRST_FRESH_RUN
    assert found.after == engine.compile(found.document).dry_run(runs=RUNS, first_run=found.after.first_run)
    unseen = engine.compile(found.document).dry_run(runs=10_000, first_run=2**45)
    assert least - 0.02 <= unseen.fail_rate <= most + 0.02


async def test_what_is_there_already_is_left_as_it_is() -> None:
    found = await balanced(siege(), 0.0, 1.0)
    assert found.edits == ()
    assert found.document == engine.compile(as_bytes(siege())).document


async def test_one_number_is_moved_where_one_does_it() -> None:
    found = await balanced(siege(), 0.6, 0.7)
    (edit,) = found.edits
    assert edit.before != edit.after
    assert abs(edit.after / edit.before - 1) <= 0.5
    assert edit.summary


async def test_actions_and_what_there_is_at_the_start_may_be_moved_too() -> None:
    value = spec(
        state={"a": 10},
        actions=[action("spend", [{"op": "dec", "path": "state.a", "value": 1}]), action("wait")],
        loss_conditions=[at_most("gone", "state.a", 0), never("never")],
        horizon=12,
    )
    found = await balanced(value, 0.5, 0.7)
    assert {edit.path.split("/")[1] for edit in found.edits} <= {"actions", "state"}


async def test_whoever_is_named_plays() -> None:
    found = await balanced(siege(), 0.3, 0.4, persona="idle")
    assert found.after.persona == "idle"


async def test_it_repeats_itself() -> None:
    first, second = [await balanced(siege(), 0.3, 0.4) for _ in range(2)]
    assert first == second


async def test_progress_never_goes_back() -> None:
    steps = [event for event in await events_of(siege(), 0.6, 0.7) if isinstance(event, Progress)]
    fractions = [step.fraction for step in steps]
    assert len(steps) > 3
    assert fractions == sorted(fractions)


async def test_what_is_out_of_reach_is_told_with_the_rate_and_what_stopped_it() -> None:
    found = await refused(chance(0.2), 0.9, 0.95)
    (finding,) = found.findings
    assert found.closest is not None
    assert finding.code == "BALANCE_OUT_OF_REACH"
    assert f"brings the rate to {found.closest.fail_rate:.1%} only" in finding.message
    assert "event 'strike': weight" in finding.message
    assert "the target is 90.0% to 95.0%" in finding.message


async def test_numbers_that_change_nothing_are_told() -> None:
    value = spec(state={"a": 1}, actions=[action("wait")])
    (finding,) = (await refused(value, 0.3, 0.4)).findings
    assert finding.code == "BALANCE_OUT_OF_REACH"
    assert "none of the 1 movable numbers" in finding.message


async def test_a_rate_that_jumps_over_the_target_is_told_with_the_number_that_makes_it_jump() -> None:
    value = spec(
        state={"a": 10},
        actions=[action("wait")],
        loss_conditions=[at_most("gone", "state.a", 5), never("never")],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.a": 1}},
        horizon=4,
    )
    (finding,) = (await refused(value, 0.3, 0.4)).findings
    assert "jumps from 0.0% to 100.0%" in finding.message


async def test_a_document_with_errors_is_a_result() -> None:
    found = await refused(b'{"spec_version": "1.0"}', 0.3, 0.4)
    assert found.findings
    assert found.closest is None


async def test_rules_that_fail_are_mended_first() -> None:
    value = siege()
    value["state"]["list"] = []
    value["actions"] = [action("take", [{"op": "pop", "path": "state.list"}])]
    found = await refused(value, 0.3, 0.4)
    assert found.findings[0].code == "EMPTY_ARRAY"


async def test_a_number_that_has_to_agree_with_something_else_is_not_moved_unnoticed() -> None:
    take: list[Any] = [{"op": "pop", "path": "state.list"}, {"op": "dec", "path": "state.count", "value": 1}]
    value = spec(
        state={"list": [1, 2, 3], "count": 3},
        actions=[action("wait")],
        random_events=[event("taken", take, weight=0.05)],
        loss_conditions=[at_most("gone", "state.count", 0), never("never")],
        horizon=60,
    )
    assert (await refused(value, 0.0, 0.2)).findings[0].code == "EMPTY_ARRAY"


@pytest.mark.parametrize(
    ("least", "most", "field"),
    [
        (-0.1, 0.5, "target.min_fail_rate"),
        (0.2, 1.1, "target.max_fail_rate"),
        (0.5, 0.4, "target.max_fail_rate"),
        (float("nan"), 0.4, "target.min_fail_rate"),
    ],
)
def test_a_target_that_is_none_is_refused(least: float, most: float, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        asyncio.run(events_of(siege(), least, most))
    assert caught.value.violations[0].field == field


async def test_a_narrow_target_is_met_as_closely_as_runs_can_tell() -> None:
    found = await balanced(siege(), 0.45, 0.45, runs=10_000)
    assert abs(found.after.fail_rate - 0.45) <= 0.01

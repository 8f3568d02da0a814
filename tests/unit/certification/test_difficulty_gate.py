"""Difficulty gate: accepted scenarios, refused scenarios and error messages."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.certification.difficulty_gate import BudgetMiss, GateVerdict, evaluate, evaluate_to_verdict
from peripety.certification.options import BLOCK, DryRunOptions
from peripety.engine import DryRunReport
from peripety.errors import Severity
from support.engine.specs import at_most, chance, event, program, spec
from support.scenario.batches import WORKERS

RANDOM = DryRunOptions()


@pytest.mark.parametrize(
    ("rate", "budget", "miss"),
    [
        (0.45, {"min_fail_rate": 0.25}, None),
        (0.25, {"min_fail_rate": 0.45}, BudgetMiss.TOO_EASY),
        (0.45, {"min_fail_rate": 0.1, "max_fail_rate": 0.25}, BudgetMiss.TOO_HARD),
        (0.45, {"min_fail_rate": 0.3, "max_fail_rate": 0.6}, None),
        (0.2, {"min_fail_rate": 0.3, "max_fail_rate": 0.6}, BudgetMiss.TOO_EASY),
        (0.75, {"min_fail_rate": 0.3, "max_fail_rate": 0.6}, BudgetMiss.TOO_HARD),
    ],
)
async def test_the_budget_decides(rate: float, budget: dict[str, float], miss: BudgetMiss | None) -> None:
    verdict = await evaluate_to_verdict(program(chance(rate, **budget)), RANDOM, WORKERS)
    assert verdict.miss is miss
    assert verdict.is_accepted is (miss is None)


async def test_a_miss_names_the_number_that_was_missed_and_what_was_seen() -> None:
    verdict = await evaluate_to_verdict(program(chance(0.2, min_fail_rate=0.6)), RANDOM, WORKERS)
    (finding,) = verdict.findings
    assert (finding.code, finding.path) == ("TOO_EASY", "/negativity_budget/min_fail_rate")
    assert "60.0%" in finding.message
    assert f"of {verdict.report.runs} runs" in finding.message


async def test_clear_cases_need_few_runs_and_close_ones_no_more_than_were_allowed() -> None:
    clear = await evaluate_to_verdict(program(chance(0.9, min_fail_rate=0.2)), RANDOM, WORKERS)
    close = await evaluate_to_verdict(program(chance(0.25)), DryRunOptions(max_runs=200), WORKERS)
    assert clear.report.runs == BLOCK
    assert close.report.runs == 200
    assert close.is_accepted is (close.report.fail_rate >= 0.25)


async def test_every_block_is_reported_and_the_verdict_comes_last() -> None:
    steps = [step async for step in evaluate(program(chance(0.25)), DryRunOptions(max_runs=160), WORKERS)]
    reports = [step for step in steps if isinstance(step, DryRunReport)]
    assert [report.runs for report in reports] == [64, 128, 160]
    assert isinstance(steps[-1], GateVerdict)
    assert steps[-1].report == reports[-1]


async def test_the_verdict_rests_on_the_very_runs_of_a_plain_dry_run() -> None:
    rules = program(chance(0.4))
    verdict = await evaluate_to_verdict(rules, RANDOM, WORKERS)
    assert verdict.report == rules.dry_run(runs=verdict.report.runs)


async def test_fresh_runs_are_other_runs() -> None:
    rules = program(chance(0.5))
    first, fresh = [
        [step async for step in evaluate(rules, DryRunOptions(max_runs=64), WORKERS, first_run=run)][-1]
        for run in (0, 1 << 32)
    ]
    assert isinstance(first, GateVerdict)
    assert isinstance(fresh, GateVerdict)
    assert fresh.report.first_run == 1 << 32
    assert fresh.report.turns != first.report.turns


async def test_a_rule_that_fails_in_play_refuses_the_scenario_whatever_its_rate() -> None:
    broken: dict[str, Any] = chance(0.9)
    broken["state"]["note"] = [1]
    broken["random_events"].append(event("odd", [{"op": "pop", "path": "state.note"}]))
    verdict = await evaluate_to_verdict(program(broken), RANDOM, WORKERS)
    (finding,) = verdict.findings
    assert not verdict.is_accepted
    assert verdict.miss is None
    assert (finding.code, finding.severity) == ("EMPTY_ARRAY", Severity.ERROR)
    assert finding.path.startswith("/random_events/1/effects/0")


async def test_the_idle_persona_does_nothing() -> None:
    only_actions_lose = spec(
        state={"a": 1},
        actions=[
            {
                "id": "spend",
                "params": {},
                "preconditions": {},
                "effects": [{"op": "dec", "path": "state.a", "value": 1}],
            },
        ],
        loss_conditions=[
            {"id": "gone", "when": {"<=": [{"var": "state.a"}, 0]}},
            {"id": "never", "when": {"<": [1, 0]}},
        ],
        horizon=3,
    )
    rules = program(only_actions_lose)
    assert (await evaluate_to_verdict(rules, RANDOM, WORKERS)).report.fail_rate == 1
    assert (await evaluate_to_verdict(rules, DryRunOptions(persona="idle"), WORKERS)).report.fail_rate == 0


async def test_a_scenario_that_is_lost_before_it_is_played_is_passed_with_a_warning() -> None:
    lost = chance(0.4)
    lost["loss_conditions"][1]["when"] = {"<": [0, 1]}
    verdict = await evaluate_to_verdict(program(lost), RANDOM, WORKERS)
    assert verdict.is_accepted
    assert [finding.code for finding in verdict.findings] == ["LOST_AT_ONCE"]


async def test_a_world_that_only_gets_better_is_refused_with_the_figure_and_the_way_out() -> None:
    verdict = await evaluate_to_verdict(program(rising(by=1)), RANDOM, WORKERS)
    (finding,) = verdict.findings
    assert not verdict.is_accepted
    assert verdict.miss is None
    assert (finding.code, finding.path) == ("POSITIVE_DRIFT", "/negativity_budget/max_positive_drift")
    assert "state.b moves away from losing by 10.0%" in finding.message
    assert "at most 5.0%" in finding.message
    assert "negativity_budget.max_positive_drift" in finding.message


async def test_drift_is_held_to_the_limit_of_the_scenario() -> None:
    lenient = await evaluate_to_verdict(program(rising(by=1, max_positive_drift=0.2)), RANDOM, WORKERS)
    strict = await evaluate_to_verdict(program(rising(by=0.4, max_positive_drift=0.03)), RANDOM, WORKERS)
    usual = await evaluate_to_verdict(program(rising(by=0.4)), RANDOM, WORKERS)
    assert lenient.is_accepted
    assert [finding.code for finding in strict.findings] == ["POSITIVE_DRIFT"]
    assert usual.is_accepted


async def test_drift_does_not_show_in_the_report_of_the_verdict() -> None:
    refused = await evaluate_to_verdict(program(rising(by=1)), RANDOM, WORKERS)
    assert refused.report == program(rising(by=1)).dry_run(runs=refused.report.runs)


def rising(*, by: float, **budget: Any) -> dict[str, Any]:
    """A scenario that is lost often enough, while a quantity that could lose it as well only rises."""
    value = chance(0.6, **budget)
    value["state"]["b"] = 10
    value["negativity_budget"]["decay_per_turn"] = {"state.b": -by}
    value["loss_conditions"][1] = at_most("b_gone", "state.b", 0)
    return value

"""Accepted scenarios meet their budget on unseen runs; rejected ones have a reason."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety import engine
from peripety.certification.gate_thresholds import INDIFFERENCE_ZONE
from peripety.certification.options import DryRunOptions
from peripety.errors import Severity
from peripety.scenario.types import NumbersAdjusted, RegistrationFailed, ScenarioRegistered
from support.engine.spec_generators import specs
from support.engine.specs import action, as_bytes, at_most, event, spec
from support.scenario.batches import compiled_alone

KNOWN = {"TOO_EASY", "TOO_HARD", "POSITIVE_DRIFT", "UNREACHABLE_WIN", "IMPOSSIBLE_LOSS", "CERTAIN_LOSS"}
RUNS = 3_000 if engine.BACKEND == "native" else 300
FEW = DryRunOptions(max_runs=1024)
AMOUNTS = st.sampled_from([0.25, 0.5, 1, 1.5, 2, 3, 5])
WEIGHTS = st.sampled_from([0.05, 0.1, 0.15, 0.2, 0.3])


@st.composite
def contests(draw: st.DrawFn) -> dict[str, Any]:
    """Scenarios in which two quantities are pulled up and down by actions, events and decay."""
    effects = st.builds(
        lambda op, path, value: {"op": op, "path": path, "value": value},
        st.sampled_from(["inc", "dec"]),
        st.sampled_from(["state.a", "state.b"]),
        AMOUNTS,
    )
    least = draw(st.sampled_from([0.1, 0.25, 0.4, 0.6]))
    budget: dict[str, Any] = {"min_fail_rate": least}
    if draw(st.booleans()):
        budget["max_fail_rate"] = least + draw(st.sampled_from([0.1, 0.2, 0.3]))
    if draw(st.booleans()):
        budget["decay_per_turn"] = {"state.a": draw(AMOUNTS)}
    return spec(
        seed=draw(st.integers(0, 2**53 - 1)),
        state={"a": draw(st.integers(3, 20)), "b": draw(st.integers(3, 20))},
        actions=[
            action(f"act{index}", draw(st.lists(effects, max_size=2)))
            for index in range(draw(st.integers(1, 2)))
        ],
        random_events=[
            event(f"event{index}", draw(st.lists(effects, max_size=2)), weight=draw(WEIGHTS))
            for index in range(draw(st.integers(1, 3)))
        ],
        loss_conditions=[at_most("a_gone", "state.a", 0), at_most("b_gone", "state.b", 0)],
        win_conditions=[{"id": "won", "when": {">": [{"var": "state.b"}, 25]}}],
        negativity_budget=budget,
        horizon=draw(st.integers(4, 10)),
    )


def assert_held(data: bytes) -> None:
    """Fresh seeds, far more runs than a verdict needs, and no more slack than chance and the test allow."""
    rules = engine.compile(data)
    budget = rules.spec["negativity_budget"]
    report = rules.dry_run(runs=RUNS, seed=(rules.spec["seed"] + 1) % 2**53)
    slack = INDIFFERENCE_ZONE + 4 * math.sqrt(0.25 / RUNS)
    assert budget["min_fail_rate"] - slack <= report.fail_rate
    assert report.fail_rate <= budget.get("max_fail_rate", 1) + slack


@pytest.mark.slow(reason="compiles many scenarios")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(contests())
def test_what_is_accepted_keeps_its_budget_and_what_is_refused_has_a_reason(value: dict[str, Any]) -> None:
    last = compiled_alone(as_bytes(value))[-1]
    if isinstance(last, ScenarioRegistered):
        assert_held(last.record.scenario.document)
    else:
        assert isinstance(last, RegistrationFailed)
        reasons = {finding.code for finding in last.findings if finding.severity is Severity.ERROR}
        assert reasons & KNOWN


@pytest.mark.slow(reason="repairs many random documents")
@settings(max_examples=25, deadline=None, derandomize=True)
@given(contests())
def test_a_repair_moves_few_numbers_a_little_and_nothing_else(value: dict[str, Any]) -> None:
    events = compiled_alone(as_bytes(value))
    moved = [happened for happened in events if isinstance(happened, NumbersAdjusted)]
    last = events[-1]
    if not moved or not isinstance(last, ScenarioRegistered):
        return
    repaired = json.loads(last.record.scenario.document)
    for edit in moved[0].edits:
        assert abs(edit.after - edit.before) <= 0.5 * abs(edit.before)
        if edit.path.endswith("weight"):
            assert 0.05 <= edit.after <= 0.30
    assert {key: repaired[key] for key in repaired if key not in {"random_events", "negativity_budget"}} == {
        key: value[key] for key in value if key not in {"random_events", "negativity_budget"}
    }


@pytest.mark.slow(reason="compiles many scenarios")
@settings(max_examples=25, deadline=None, derandomize=True)
@given(specs())
def test_rules_that_fail_are_refused_and_never_raise(value: dict[str, Any]) -> None:
    data = as_bytes(value)
    last = compiled_alone(data, FEW)[-1]
    if isinstance(last, ScenarioRegistered):
        assert_held(last.record.scenario.document)
    else:
        assert isinstance(last, RegistrationFailed)
        assert last.findings
        if last.dry_run is not None and last.dry_run.errors:
            assert {finding.code for finding in last.findings} == {e.code for e in last.dry_run.errors}


@pytest.mark.slow(reason="compiles each scenario several times")
@settings(max_examples=15, deadline=None, derandomize=True)
@given(contests())
def test_compiling_is_repeatable(value: dict[str, Any]) -> None:
    first, second = [compiled_alone(as_bytes(value), FEW)[-1] for _ in range(2)]
    if isinstance(first, ScenarioRegistered) and isinstance(second, ScenarioRegistered):
        assert first.record.scenario.document == second.record.scenario.document
        assert first.record.dry_run == second.record.dry_run
    else:
        assert first == second

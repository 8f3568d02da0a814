"""Heat: observed activity of each rule during play, and its format."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from typing import Any

from peripety import engine
from peripety.certification.options import DryRunOptions
from peripety.core.concurrency import WorkerPool
from peripety.scenario.rule_graph.activity import LEVELS, activity_levels, describe_activity, inspect_program
from peripety.scenario.rule_graph.graph import Inspection
from support.engine.specs import action, at_most, chance, event, never, spec


async def _inspected(document: dict[str, Any], options: DryRunOptions | None) -> Inspection:
    with closing(WorkerPool()) as workers:
        events = inspect_program(engine.compile(json.dumps(document).encode()), options, workers)
        last = [event async for event in events][-1]
    assert isinstance(last, Inspection)
    return last


def inspected(runs: int | None = 64, **parts: Any) -> Inspection:
    """The inspection of a small scenario after so many runs of two turns."""
    options = None if runs is None else DryRunOptions(max_runs=runs, horizon=2)
    return asyncio.run(_inspected(spec(**parts), options))


def told(inspection: Inspection) -> dict[str, str]:
    return {node.label: describe_activity(node, inspection) for node in inspection.graph.nodes}


def test_rules_are_as_hot_as_the_report_says() -> None:
    inspection = asyncio.run(_inspected(chance(0.45), DryRunOptions(max_runs=64)))
    report = inspection.report
    assert report is not None
    assert report.detail is not None
    heat = {node.key: inspection.activity[node.node_id] for node in inspection.graph.nodes}
    for name, count in {**report.losses, **report.wins, **report.detail.events}.items():
        assert heat[name] == count
    for name, use in report.detail.actions.items():
        assert heat[name] == use.taken


def test_a_quantity_is_written_as_often_as_its_writers_are_at_work() -> None:
    up = {"op": "inc", "path": "state.a", "value": 1}
    inspection = inspected(
        actions=[action("act", [up, up])],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.a": 0.5}},
    )
    assert inspection.activity["/actions/0"] == 128
    assert inspection.activity["state.a"] == 256
    assert told(inspection)["a"] == "2.0 a turn (256)"
    assert told(inspection)["a: decay"] == "every turn"


def test_what_is_scheduled_counts_when_it_is_scheduled() -> None:
    last = {
        "op": "schedule",
        "id": "last",
        "after": 9,
        "effects": [{"op": "dec", "path": "state.b", "value": 1}],
    }
    next_ = {"op": "schedule", "id": "next", "after": 9, "effects": [last]}
    shares = told(inspected(actions=[action("act", [next_])]))
    assert {shares[name] for name in ("act", "next", "last", "b")} == {"100% of turns (128)"}


def test_what_was_never_seen_says_so() -> None:
    closed = action("shut", [{"op": "set", "path": "state.b", "value": 1}], preconditions={"<": [1, 0]})
    inspection = inspected(actions=[action("open"), closed])
    assert told(inspection) == {
        "b": "never written",
        "open": "100% of turns (128)",
        "shut": "never",
        "first": "never",
        "second": "never",
    }


def test_endings_are_told_as_shares_of_runs() -> None:
    fall = event("fall", [{"op": "set", "path": "state.a", "value": 0}], weight=0.05)
    inspection = inspected(
        runs=1024,
        random_events=[fall],
        loss_conditions=[at_most("low", "state.a", 0), never("x")],
    )
    count = inspection.activity["/loss_conditions/0"]
    assert told(inspection)["low"] == f"{100 * count / 1024:.0f}% of runs ({count})"


def test_levels_compare_what_is_counted_alike() -> None:
    inspection = inspected(
        actions=[action("a"), action("b"), action("c", preconditions={"<": [1, 0]})],
        random_events=[event("e", weight=0.05)],
    )
    levels = {node.label: activity_levels(inspection)[node.node_id] for node in inspection.graph.nodes}
    assert max(levels["a"], levels["b"]) == LEVELS
    assert levels["c"] == 0
    assert levels["e"] == LEVELS


def test_without_runs_there_is_no_heat() -> None:
    inspection = inspected(runs=None)
    assert inspection.report is None
    assert not inspection.activity
    assert set(told(inspection).values()) == {""}
    assert set(activity_levels(inspection).values()) == {0}

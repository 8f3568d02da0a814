"""Drift of quantities relative to losing: tracked quantities, direction and limit."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.certification.drift import (
    MAX_POSITIVE_DRIFT,
    Drift,
    find_excessive_drift,
    measure_drift,
    watched_paths,
)
from peripety.errors import Severity
from support.engine.specs import action, at_most, never, program, spec

Json = dict[str, Any]


def world(*when: Json, **parts: Any) -> Json:
    """Return a scenario without effective actions, lost when one of the conditions holds."""
    losses = [{"id": f"loss_{number}", "when": logic} for number, logic in enumerate(when)]
    idle = [{"id": "wait", "params": {}, "preconditions": {}, "effects": []}]
    return spec(**{"actions": idle, "loss_conditions": [*losses, never("never")], "horizon": 4, **parts})


def decay(**amounts: float) -> Json:
    budget = {f"state.{name}": amount for name, amount in amounts.items()}
    return {"min_fail_rate": 0.25, "decay_per_turn": budget}


def measured(value: Json) -> dict[str, float]:
    rules = program(value)
    report = rules.dry_run(runs=8, detail=True, watch=watched_paths(rules))
    return {drift.path: drift.per_turn for drift in measure_drift(rules, report)}


def var(path: str) -> Json:
    return {"var": path}


@pytest.mark.parametrize(
    ("when", "distance"),
    [
        ({"<=": [var("state.a"), 0]}, 10),
        ({"<": [var("state.a"), 4]}, 6),
        ({">=": [var("state.a"), 15]}, 5),
        ({"!": [{">": [var("state.a"), 3]}]}, 7),
        ({"<=": [var("state.a"), {"*": [2, var("state.b")]}]}, 6),
        ({"and": [{"<": [var("state.a"), 8]}, {"<": [var("state.a"), 1]}]}, 2),
        ({"<": [{"+": [var("state.a"), 3]}, 1]}, 10),
        ({"<": [3, var("state.a")]}, None),
        ({"==": [var("state.a"), 0]}, None),
        ({"or": [{"<": [var("state.a"), 0]}, {">": [var("state.a"), 99]}]}, None),
    ],
)
def test_the_scale_is_the_distance_from_losing_at_the_start(when: Json, distance: float | None) -> None:
    assert watched_paths(program(world(when, state={"a": 10, "b": 2}))).get("state.a") == distance


def test_what_only_decay_reads_is_followed_too_and_arrays_are_not() -> None:
    value = world(
        {"<": [var("state.list.0"), 0]},
        state={"c": 40, "list": [5]},
        negativity_budget=decay(c=1),
    )
    assert watched_paths(program(value)) == {"state.c": 40}


def test_keys_that_are_no_identifiers_are_found_from_any_spelling() -> None:
    value = world({"<": [var("state.a b"), 0]}, state={"a b": 8})
    assert watched_paths(program(value)) == {'state["a b"]': 8}


@pytest.mark.parametrize(
    ("when", "taken", "per_turn"),
    [
        ({"<": [var("state.a"), 0]}, 1, -0.1),
        ({"<": [var("state.a"), 0]}, -1, 0.1),
        ({">": [var("state.a"), 20]}, 1, 0.1),
        ({">": [var("state.a"), 20]}, -2, -0.2),
        ({"<=": [{"*": [-1, var("state.a")]}, -20]}, -2, -0.2),
    ],
)
def test_away_from_losing_is_positive(when: Json, taken: float, per_turn: float) -> None:
    value = world(when, state={"a": 10}, negativity_budget=decay(a=taken))
    assert measured(value)["state.a"] == pytest.approx(per_turn, abs=1e-5)


def test_turns_count_and_not_runs() -> None:
    value = world({"<=": [var("state.a"), 0]}, state={"a": 2}, negativity_budget=decay(a=1))
    assert measured(value) == {"state.a": pytest.approx(-0.5)}


def test_a_task_that_is_still_to_be_done_has_no_drift() -> None:
    late = {"and": [{"<": [var("state.a"), 4]}, {">=": [var("turn"), 3]}]}
    assert measured(world(late, state={"a": 0}, negativity_budget=decay(a=-1))) == {}


def test_without_detail_there_is_no_drift() -> None:
    rules = program(world(at_most("x", "state.a", 0)["when"], state={"a": 5}))
    assert measure_drift(rules, rules.dry_run(runs=2)) == ()


def test_the_limit_is_the_scenarios_or_the_usual_one() -> None:
    value = world({"<": [var("state.a"), 0]}, state={"a": 10})
    value["negativity_budget"]["max_positive_drift"] = 0.5
    for limit in (0.5, MAX_POSITIVE_DRIFT):
        rules = program(value)
        (drift,) = measure_drift(rules, rules.dry_run(runs=1, detail=True, watch=watched_paths(rules)))
        assert drift.limit == limit
        value["negativity_budget"].pop("max_positive_drift", None)


def test_only_what_is_above_its_limit_is_wrong() -> None:
    found = [Drift("state.a", 0.05, 0.05), Drift("state.b", 0.051, 0.05), Drift("state.c", -3.0, 0.05)]
    (finding,) = find_excessive_drift(found)
    assert finding.severity is Severity.ERROR
    assert "state.b" in finding.message


def test_a_goal_that_is_meant_to_grow_has_no_drift_from_version_1_1_on() -> None:
    goal = spec(
        state={"a": 2, "b": 5},
        actions=[action("act", [{"op": "inc", "path": "state.a", "value": 1}])],
        loss_conditions=[at_most("out", "state.a", 0), at_most("less", "state.b", 0)],
        win_conditions=[{"id": "w", "when": {">=": [{"var": "state.a"}, 9]}}],
    )
    assert watched_paths(program(goal)) == {"state.a": 2, "state.b": 5}
    later = {**goal, "spec_version": "1.1"}
    assert watched_paths(program(later)) == {"state.b": 5}
    key = [{"op": "set", "path": "state.key", "value": 1}]
    through_a_condition = {
        **later,
        "state": {"a": 2, "b": 5, "key": 0},
        "actions": [action("act", key, preconditions={">=": [{"var": "state.b"}, 7]})],
        "win_conditions": [{"id": "w", "when": {"==": [{"var": "state.key"}, 1]}}],
    }
    assert watched_paths(program(through_a_condition)) == {"state.a": 2}
    assert watched_paths(program({**through_a_condition, "spec_version": "1.0"})) == {
        "state.a": 2,
        "state.b": 5,
    }
    falling = {**later, "win_conditions": [{"id": "w", "when": {"<": [{"var": "state.a"}, 1]}}]}
    assert watched_paths(program(falling)) == {"state.a": 2, "state.b": 5}

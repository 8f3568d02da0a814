"""The order within columns: few lines cross, and nothing is lost."""

from __future__ import annotations

import json

import pytest

from peripety import sim
from peripety.scenarios.inspecting.drawing.columns import columns
from peripety.scenarios.inspecting.drawing.links import Link, links
from peripety.scenarios.inspecting.drawing.ordering import crossings, ordered
from peripety.scenarios.inspecting.graph import rule_graph
from peripety.scenarios.inspecting.model import EdgeKind
from peripety.scenarios.random_specs import random_spec
from support.specs import action, event, spec


def inc(name: str) -> dict[str, object]:
    return {"op": "inc", "path": f"state.{name}", "value": 1}


def test_lines_that_need_not_cross_do_not() -> None:
    names = ["a", "b", "c", "d"]
    graph = rule_graph(
        spec(
            state=dict.fromkeys(names, 1),
            actions=[action(name.upper(), [inc(name)]) for name in reversed(names)],
            random_events=[event(f"e{name}", [inc(name)]) for name in ("c", "a", "d", "b")],
        )
    )
    before, lines = columns(graph), links(graph)
    assert crossings(before, lines) == 6 + 3
    assert crossings(ordered(before, lines), lines) == 0


def test_crossings_are_counted_pair_by_pair() -> None:
    graph = rule_graph(
        spec(
            state={"a": 1, "b": 1},
            actions=[action("x", [inc("a"), inc("b")]), action("y", [inc("a"), inc("b")])],
        )
    )
    assert crossings(columns(graph), links(graph)) == 1


@pytest.mark.parametrize("index", range(12))
def test_ordering_never_adds_a_crossing_and_keeps_every_section(index: int) -> None:
    graph = rule_graph(sim.parse(random_spec(5, index)))
    before, lines = columns(graph), links(graph)
    after = ordered(before, lines)
    assert crossings(after, lines) <= crossings(before, lines)
    for one, other in zip(before.right, after.right, strict=True):
        assert one.heading == other.heading
        assert {block.key for block in one.blocks} == {block.key for block in other.blocks}
    assert ordered(before, lines) == after


def test_what_is_scheduled_stays_below_its_rule() -> None:
    later = {"op": "schedule", "id": "later", "after": 1, "effects": [inc("b")]}
    graph = rule_graph(spec(actions=[action("x", [inc("a"), later]), action("y", [inc("b")])]))
    after = ordered(columns(graph), links(graph))
    told = {block.key: [(node.label, depth) for node, depth in block.nodes] for block in after.left[0].blocks}
    assert told == {"/actions/0": [("x", 0), ("later", 1)], "/actions/1": [("y", 0)]}


def test_edges_between_the_same_two_are_one_link() -> None:
    condition = {">": [{"var": "state.a"}, 1]}
    down = {"op": "dec", "path": "state.a", "value": 1}
    several = [inc("b"), {"op": "dec", "path": "state.b", "value": 1}]
    document = spec(actions=[action("x", [down, *several], preconditions=condition)])
    found = [
        link for link in links(rule_graph(json.loads(json.dumps(document)))) if link.rule == "/actions/0"
    ]
    assert found == [
        Link("/actions/0", "state.a", reads=True, effect=EdgeKind.LOWERS),
        Link("/actions/0", "state.b", reads=False, effect=EdgeKind.WRITES),
    ]

"""The order within columns: few lines cross, and nothing is lost."""

from __future__ import annotations

import json

import pytest

from peripety import engine
from peripety.scenario.rule_graph.graph import EdgeKind, build_graph
from peripety.scenario.rule_graph.layout import count_crossings, reduce_crossings
from peripety.scenario.rule_graph.shapes import EdgeBundle, assign_columns, bundle_edges
from peripety.scenario.spec_generator.generator import generate_spec
from support.engine.specs import action, event, spec


def inc(name: str) -> dict[str, object]:
    return {"op": "inc", "path": f"state.{name}", "value": 1}


def test_lines_that_need_not_cross_do_not() -> None:
    names = ["a", "b", "c", "d"]
    graph = build_graph(
        spec(
            state=dict.fromkeys(names, 1),
            actions=[action(name.upper(), [inc(name)]) for name in reversed(names)],
            random_events=[event(f"e{name}", [inc(name)]) for name in ("c", "a", "d", "b")],
        ),
    )
    before, lines = assign_columns(graph), bundle_edges(graph)
    assert count_crossings(before, lines) == 6 + 3
    assert count_crossings(reduce_crossings(before, lines), lines) == 0


def test_crossings_are_counted_pair_by_pair() -> None:
    graph = build_graph(
        spec(
            state={"a": 1, "b": 1},
            actions=[action("x", [inc("a"), inc("b")]), action("y", [inc("a"), inc("b")])],
        ),
    )
    assert count_crossings(assign_columns(graph), bundle_edges(graph)) == 1


@pytest.mark.parametrize("index", range(12))
def test_ordering_never_adds_a_crossing_and_keeps_every_section(index: int) -> None:
    graph = build_graph(engine.parse(generate_spec(5, index)))
    before, lines = assign_columns(graph), bundle_edges(graph)
    after = reduce_crossings(before, lines)
    assert count_crossings(after, lines) <= count_crossings(before, lines)
    for one, other in zip(before.right, after.right, strict=True):
        assert one.heading == other.heading
        assert {block.key for block in one.blocks} == {block.key for block in other.blocks}
    assert reduce_crossings(before, lines) == after


def test_what_is_scheduled_stays_below_its_rule() -> None:
    later = {"op": "schedule", "id": "later", "after": 1, "effects": [inc("b")]}
    graph = build_graph(spec(actions=[action("x", [inc("a"), later]), action("y", [inc("b")])]))
    after = reduce_crossings(assign_columns(graph), bundle_edges(graph))
    told = {block.key: [(node.label, depth) for node, depth in block.nodes] for block in after.left[0].blocks}
    assert told == {"/actions/0": [("x", 0), ("later", 1)], "/actions/1": [("y", 0)]}


def test_edges_between_the_same_two_are_one_link() -> None:
    condition = {">": [{"var": "state.a"}, 1]}
    down = {"op": "dec", "path": "state.a", "value": 1}
    several = [inc("b"), {"op": "dec", "path": "state.b", "value": 1}]
    document = spec(actions=[action("x", [down, *several], preconditions=condition)])
    found = [
        link
        for link in bundle_edges(build_graph(json.loads(json.dumps(document))))
        if link.rule == "/actions/0"
    ]
    assert found == [
        EdgeBundle("/actions/0", "state.a", reads=True, effect=EdgeKind.LOWERS),
        EdgeBundle("/actions/0", "state.b", reads=False, effect=EdgeKind.WRITES),
    ]

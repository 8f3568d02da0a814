"""The rule graph: every rule and what it touches, by the names that the specification gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import ResourceExhaustedError
from peripety.scenario.rule_graph.graph import (
    EdgeKind,
    GraphEdge,
    NodeKind,
    build_graph,
    find_read_paths,
    find_unread_actions,
)
from support.engine.specs import action, at_most, event, full_spec, spec

if TYPE_CHECKING:
    from peripety.scenario.rule_graph.graph import RuleGraph


READS, RAISES, LOWERS = EdgeKind.READS, EdgeKind.RAISES, EdgeKind.LOWERS
WRITES, SCHEDULES = EdgeKind.WRITES, EdgeKind.SCHEDULES


def done_by(effects: list[dict[str, Any]], **more: Any) -> set[tuple[str, EdgeKind]]:
    """Return the targets and kinds of the edges from the only action of a scenario."""
    graph = build_graph(spec(actions=[action("act", effects, **more)]))
    return {(edge.target, edge.kind) for edge in graph.edges if edge.source == "/actions/0"}


def ids(graph: RuleGraph, kind: NodeKind) -> list[str]:
    return [node.node_id for node in graph.nodes if node.kind is kind]


def test_each_rule_is_a_node_in_the_order_of_the_specification() -> None:
    graph = build_graph(full_spec())
    kinds = list(dict.fromkeys(node.kind for node in graph.nodes))
    assert kinds == [
        NodeKind.QUANTITY,
        NodeKind.ACTION,
        NodeKind.SCHEDULE,
        NodeKind.EVENT,
        NodeKind.LOSS,
        NodeKind.DECAY,
        NodeKind.WIN,
    ]
    assert ids(graph, NodeKind.LOSS) == ["/loss_conditions/0", "/loss_conditions/1"]
    assert len({node.node_id for node in graph.nodes}) == len(graph.nodes)


def test_rules_go_by_their_names_and_quantities_by_their_paths() -> None:
    written = [
        {"op": "inc", "path": "state.a", "value": 1},
        {"op": "inc", "path": 'state["odd key"]', "value": 1},
    ]
    graph = build_graph(
        spec(state={"a": 1, "odd key": 1}, actions=[{**action("x", written), "name": "Do X"}, action("y")]),
    )
    labels = [node.label for node in graph.nodes]
    assert labels == ["a", "odd key", "Do X", "y", "first", "second"]


@pytest.mark.parametrize(
    ("effect", "kind"),
    [
        ({"op": "inc", "value": 2}, RAISES),
        ({"op": "inc", "value": -2}, LOWERS),
        ({"op": "dec", "value": 2}, LOWERS),
        ({"op": "dec", "value": -2}, RAISES),
        ({"op": "inc", "value": 0}, WRITES),
        ({"op": "mul", "value": 2}, WRITES),
        ({"op": "set", "value": 2}, WRITES),
    ],
)
def test_an_effect_raises_lowers_or_writes(effect: dict[str, Any], kind: EdgeKind) -> None:
    assert done_by([{**effect, "path": "state.a"}]) == {("state.a", kind)}


def test_a_derived_amount_has_its_way_where_that_is_certain() -> None:
    params = {"n": {"type": "integer", "minimum": 0, "maximum": 3}}
    derives = {"much": {"*": [{"var": "params.n"}, 2]}, "rest": {"-": [{"var": "state.b"}, 1]}}
    effects = [
        {"op": "dec", "path": "state.a", "value": "much"},
        {"op": "dec", "path": "state.tree.x", "value": "rest"},
    ]
    assert done_by(effects, params=params, derives=derives) == {
        ("state.a", LOWERS),
        ("state.tree.x", WRITES),
        ("state.b", READS),
    }


def test_elements_stand_for_their_array_and_members_for_themselves() -> None:
    effects: list[dict[str, Any]] = [
        {"op": "set", "path": "state.list[1]", "value": 3},
        {"op": "push", "path": "state.list", "value": 3},
        {"op": "patch", "path": "state.tree", "value": {"x": 1, "y": 2}},
    ]
    condition = {">": [{"var": "state.list.0"}, 0]}
    assert done_by(effects, preconditions=condition) == {
        ("state.list", READS),
        ("state.list", WRITES),
        ("state.tree.x", WRITES),
        ("state.tree.y", WRITES),
    }


def test_who_reads_an_object_reads_what_is_in_it() -> None:
    effects = [{"op": "inc", "path": "state.tree.x", "value": 1}]
    assert done_by(effects, preconditions={"!!": [{"var": "state.tree"}]}) == {
        ("state.tree.x", READS),
        ("state.tree.x", RAISES),
    }


def test_what_is_scheduled_is_a_node_of_its_own_however_deep() -> None:
    inner = {
        "op": "schedule",
        "id": "last",
        "after": 1,
        "effects": [{"op": "dec", "path": "state.b", "value": 1}],
    }
    outer = {"op": "schedule", "id": "next", "after": 1, "effects": [{"op": "addlog", "message": "m"}, inner]}
    graph = build_graph(spec(random_events=[event("e", [outer])]))
    place = "/random_events/0/effects/0"
    assert ids(graph, NodeKind.SCHEDULE) == [place, f"{place}/effects/1"]
    assert [edge for edge in graph.edges if "random_events" in edge.source] == [
        GraphEdge("/random_events/0", place, SCHEDULES),
        GraphEdge(place, f"{place}/effects/1", SCHEDULES),
        GraphEdge(f"{place}/effects/1", "state.b", LOWERS),
    ]


def test_decay_lowers_and_a_negative_one_raises() -> None:
    decay = {"state.a": 0.5, "state.b": -0.5}
    graph = build_graph(spec(negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": decay}))
    found = {(edge.target, edge.kind) for edge in graph.edges if "decay" in edge.source}
    assert found == {("state.a", LOWERS), ("state.b", RAISES)}


def test_what_no_rule_touches_is_not_drawn() -> None:
    graph = build_graph(spec(loss_conditions=[at_most("low", "state.b", 0), at_most("same", "state.b", 0)]))
    assert ids(graph, NodeKind.QUANTITY) == ["state.a", "state.b"]


@pytest.mark.parametrize(
    ("logic", "paths"),
    [
        ({"var": "state.a.b"}, ["state.a.b"]),
        ({"var": ["state.a", {"var": "state.b"}]}, ["state.a", "state.b"]),
        ({"and": [{"var": "turn"}, {"var": "params.n"}, {"var": "state.a"}]}, ["state.a"]),
        ({"missing": ["state.a", "state.b"]}, ["state.a", "state.b"]),
        ({"missing_some": [1, ["state.a", "params.n"]]}, ["state.a"]),
        ({"some": [{"var": "state.list"}, {">": [{"var": "state"}, 1]}]}, ["state.list"]),
        (
            {"reduce": [{"var": "state.list"}, {"var": "current"}, {"var": "state.a"}]},
            ["state.list", "state.a"],
        ),
        ({"var": ""}, []),
    ],
)
def test_an_expression_reads_what_it_names_of_the_state(logic: Any, paths: list[str]) -> None:
    assert [".".join(map(str, path)) for path in find_read_paths(logic)] == paths


def test_a_graph_that_nobody_could_look_through_is_refused() -> None:
    names = [f"q{index}" for index in range(150)]
    whole = [action(f"a{index}", preconditions={"!!": [{"var": "state"}]}) for index in range(150)]
    effects = [{"op": "inc", "path": f"state.{name}", "value": 1} for name in names]
    document = spec(state=dict.fromkeys(names, 1), actions=[*whole, action("all", effects)])
    with pytest.raises(ResourceExhaustedError, match="more than 20,000 edges"):
        build_graph(document)


def test_an_action_depends_on_every_value_of_a_parameter_in_a_path() -> None:
    ask = action(
        "ask",
        [{"op": "inc", "path": "state.said[params.who]", "value": 1}],
        params={"who": {"type": "string", "enum": ["p", "q"]}},
    )
    graph = build_graph(spec(spec_version="1.1", state={"a": 1, "said": {"p": 0, "q": 1}}, actions=[ask]))
    edges = {(edge.target, edge.kind.name) for edge in graph.edges if edge.source == "/actions/0"}
    assert edges == {("state.said.p", "RAISES"), ("state.said.q", "RAISES")}


def test_a_reveal_reads_what_its_condition_reads() -> None:
    when = {"and": [{"known": "two"}, {">": [{"var": "state.said[params.who]"}, 0]}]}
    ask = action(
        "ask",
        [{"op": "reveal", "clue": "one", "when": when}],
        params={"who": {"type": "string", "enum": ["p", "q"]}},
    )
    state = {"a": 1, "said": {"p": 0, "q": 1}}
    clues = {"one": {"text": "x"}, "two": {"text": "y"}}
    graph = build_graph(spec(spec_version="1.1", state=state, clues=clues, actions=[ask]))
    edges = {(edge.target, edge.kind.name) for edge in graph.edges if edge.source == "/actions/0"}
    assert edges == {
        ("state.clues.one", "WRITES"),
        ("state.clues.two", "READS"),
        ("state.said.p", "READS"),
        ("state.said.q", "READS"),
    }


def adds(name: str) -> dict[str, Any]:
    return {"op": "inc", "path": f"state.{name}", "value": 1}


@pytest.mark.parametrize(
    ("acting", "is_unread"),
    [
        (action("act", [adds("x")]), True),
        (action("act", [{"op": "schedule", "id": "s", "after": 1, "effects": [adds("x")]}]), True),
        (action("act", [adds("x")], preconditions={"<": [{"var": "state.x"}, 3]}), True),
        (action("act", [adds("x"), {"op": "addlog", "message": "m"}]), True),
        (action("act", [{"op": "schedule", "id": "s", "after": 1, "effects": [adds("a")]}]), False),
        (action("act", [adds("needed")]), False),
        (action("act", [adds("x"), {"op": "reveal", "clue": "c"}]), False),
        (action("act", []), False),
        (action("act", [adds("tree.y")]), False),
        (action("act", [{"op": "patch", "path": "state.tree", "value": {"z": 1}}]), True),
    ],
)
def test_an_action_whose_changes_no_other_rule_reads_is_found(
    acting: dict[str, Any], is_unread: bool
) -> None:
    other = action("other", [adds("a")], preconditions={"<": [{"var": "state.needed"}, 3]})
    document = spec(
        spec_version="1.1",
        state={"a": 9, "x": 0, "needed": 0, "tree": {"y": 1, "z": 2}},
        clues={"c": {"text": "t"}},
        actions=[acting, other],
        random_events=[event("e", when={">": [{"var": "state.tree.y"}, 0]})],
        loss_conditions=[at_most("out", "state.a", 0)],
    )
    assert find_unread_actions(document) == (["act"] if is_unread else [])


def test_a_promise_that_another_action_fulfils_is_read() -> None:
    promises = {"p": {"to": "me", "terms": "t", "due": 3}}
    actions = [
        action("pledge", [{"op": "promise", "promise": "p"}]),
        action("fulfil", [{"op": "keep", "promise": "p"}, adds("a")]),
    ]
    document = spec(
        spec_version="1.1",
        entities=[{"id": "me"}],
        promises=promises,
        actions=actions,
        state={"a": 9},
        loss_conditions=[at_most("out", "state.a", 0)],
    )
    assert find_unread_actions(document) == []

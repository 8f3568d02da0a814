"""Runs that generated source plays, and those that it leaves to the interpreter, each kind of them."""

from __future__ import annotations

from itertools import islice
from textwrap import indent
from typing import Any

import pytest

from bench.reference import numeric_spec
from peripety.engine import strict_json
from peripety.engine._reference.codegen import runner
from peripety.engine._reference.codegen.runner import DrawBlocks
from peripety.engine.rng import draw, stream_key
from support.engine.backends import compiled_report, interpreted_report, player_of
from support.engine.specs import action, at_most, event, never, spec

SEEDS = [0, 1, 6457827717110365317, 2**64 - 1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("width", [0, 1, 3])
def test_rows_hold_the_draws_of_each_turn_across_blocks(seed: int, width: int) -> None:
    policy, event = stream_key("policy"), stream_key("event")
    rows = list(islice(DrawBlocks(width).rows(seed), 40))
    assert rows == [
        (draw(seed, event, turn, 0), *(draw(seed, policy, turn, index) for index in range(width)))
        for turn in range(1, 41)
    ]


def test_runs_share_nothing_but_the_counters() -> None:
    draws = DrawBlocks(1)
    first, second = draws.rows(1), draws.rows(2)
    mixed = [row for pair in zip(islice(first, 20), islice(second, 20), strict=True) for row in pair]
    assert mixed[::2] == list(islice(DrawBlocks(1).rows(1), 20))
    assert mixed[1::2] == list(islice(DrawBlocks(1).rows(2), 20))


Json = dict[str, Any]
PERSONAS = ["random", "idle"]


def same(document: Json, **options: Any) -> int | None:
    """Compare with the interpreter; how many runs were left to it."""
    report, left = compiled_report(document, **options)
    assert report == interpreted_report(document, **options)
    return left


def effect(operation: str, path: str, value: Any = None) -> Json:
    return {"op": operation, "path": path, **({} if value is None else {"value": value})}


def happening(*effects: Json, when: Json | None = None, **parts: Any) -> Json:
    """A scenario in which something happens now and then."""
    return spec(random_events=[event("e0", list(effects), when=when or {}, **parts)], horizon=12)


def bench_document() -> Json:
    document = strict_json.parse(numeric_spec())
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("persona", PERSONAS)
def test_the_reference_scenario_is_played_to_the_end(persona: str) -> None:
    assert same(bench_document(), persona=persona, runs=20, horizon=20) == 0


def test_the_source_is_as_the_package_shows_it() -> None:
    document = spec(
        state={"a": 20, "b": 3},
        actions=[
            action(
                "a0",
                [effect("dec", "state.a", 1.5), effect("mul", "state.b", 0.95)],
                preconditions={">": [{"var": "state.a"}, 2]},
            ),
        ],
        random_events=[
            event("e0", [effect("inc", "state.a", 2)], weight=0.25, when={"<": [{"var": "state.b"}, 5]}),
        ],
        loss_conditions=[at_most("l0", "state.a", 0)],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.b": 0.25}},
    )
    player = player_of(document)
    assert player is not None
    assert indent(player.source, "    ") in str(runner.__doc__)


def test_no_text_of_the_document_stands_in_the_source() -> None:
    name = "peculiar"
    document = spec(
        id=name,
        state={name: "peculiar text", "n": 1},
        actions=[
            action(
                name,
                [
                    effect("set", f"state.{name}", "another peculiar one"),
                    {"op": "schedule", "id": name, "after": 1, "effects": [effect("inc", "state.n", name)]},
                ],
                params={name: {"type": "string", "enum": ["peculiar x", "peculiar y"]}},
                preconditions={"!=": [{"var": f"state.{name}"}, {"var": f"params.{name}"}]},
                derives={name: {"+": [{"var": "state.n"}, 1]}},
            ),
        ],
        random_events=[event(name, [])],
    )
    player = player_of(document)
    assert player is not None
    assert name not in player.source
    assert same(document) == 0


@pytest.mark.parametrize(
    "document",
    [
        happening(effect("pop", "state.list")),
        happening(effect("mul", "state.a", 1e30), effect("mul", "state.a", 1e30)),
        happening(effect("set", "state.list", []), effect("set", "state.list[0]", 1)),
        happening(effect("set", "state.a", 0), when={">": [{"/": [1, {"var": "state.a"}]}, 0]}),
        happening(effect("dec", "state.a", 5), when={">": [{"%": [1, {"var": "state.a"}]}, 0]}),
        happening(effect("pop", "state.list"), when={">": [{"max": {"var": "state.list"}}, 0]}),
        happening(effect("pop", "state.list"), when={">": [{"var": "state.list.0"}, 0]}),
    ],
    ids=[
        "empty array",
        "overflow",
        "no element",
        "division",
        "remainder",
        "extreme of nothing",
        "nothing there",
    ],
)
def test_a_run_in_which_a_rule_may_fail_is_left_and_reported_as_ever(document: Json) -> None:
    left = same(document, runs=12, horizon=6, persona="idle")
    assert left is not None
    assert 0 < left < 12


def test_arrays_that_grow_long_are_left() -> None:
    grow = action("a0", [effect("push", "state.list", 1)] * 20)
    document = spec(actions=[grow], horizon=20)
    assert same(document, runs=2, horizon=5) == 0
    assert same(document, runs=2, horizon=20) == 2


def test_arrays_are_held_shorter_where_expressions_over_them_are_costly() -> None:
    body: Json = {"+": [{"var": ""}] * 50}
    costly = {"some": [{"map": [{"var": "state.list"}, body]}, {">": [{"var": ""}, 1e9]}]}
    document = spec(actions=[action("a0", [effect("push", "state.list", 1)] * 20)], horizon=9)
    document["loss_conditions"] = [{"id": "l1", "when": costly}, never("l2")]
    player = player_of(document)
    assert player is not None
    assert "if len(s1) > 256" not in player.source
    assert same(document, runs=2) == 2


@pytest.mark.parametrize(
    "document",
    [
        happening(effect("set", "state.new", {})),
        happening(effect("set", "state.a", "text")),
        happening(effect("inc", "state.note", 1)),
        happening(effect("push", "state.list", "text")),
        happening(effect("set", "state.tree", {"x": 2})),
        happening(effect("push", "state.list", [1])),
        happening(effect("mul", "state.a", 1e200)),
        happening(effect("set", "state.note", "x" * 2000)),
        happening(effect("set", "state.list", [1.0] * 300)),
        spec(
            loss_conditions=[
                {"id": "l", "when": {"some": [list(range(5000)), {"<": [{"var": ""}, 0]}]}},
                never("m"),
            ],
        ),
    ],
)
def test_what_cannot_be_lowered_is_played_by_the_interpreter(document: Json) -> None:
    assert same(document, runs=2, horizon=3) is None


@pytest.mark.parametrize("persona", ["greedy", "cautious", "planner", "saboteur"])
def test_who_looks_ahead_is_played_by_the_interpreter(persona: str) -> None:
    assert player_of(bench_document()) is not None
    assert player_of(bench_document(), persona) is None


@pytest.mark.parametrize("persona", PERSONAS)
def test_where_detail_is_asked_for_the_interpreter_plays(persona: str) -> None:
    assert same(bench_document(), persona=persona, detail=True) == 0
    report, _ = compiled_report(bench_document(), persona=persona, detail=True)
    assert report["detail"]["actions"].keys() == {rule["id"] for rule in bench_document()["actions"]}


def test_where_most_runs_are_left_no_more_are_tried() -> None:
    document = spec(actions=[action("a0", [effect("pop", "state.list")])])
    assert same(document, runs=40, horizon=5) == 16


def test_numbers_that_cannot_grow_large_are_not_guarded() -> None:
    steady, growing = (
        player_of(
            spec(actions=[action("a0", [effect("mul", "state.a", factor), effect("inc", "state.a", 9)])]),
        )
        for factor in (1.01, 2)
    )
    assert steady is not None
    assert growing is not None
    assert "Deopt" not in steady.source
    assert "raise Deopt" in growing.source


def test_values_that_come_and_go_are_there_only_while_they_are() -> None:
    made, gone, note = {"var": "state.made"}, {"var": "state.gone"}, {"var": ["state.tree.note", "y"]}
    document = spec(
        state={"a": 5, "gone": None, "tree": {}},
        actions=[
            action("a0", [effect("set", "state.made", 2)], preconditions={"!": made}),
            action("a1", [effect("set", "state.gone", "x")], preconditions={"===": [gone, None]}),
            action("a2", [{"op": "set", "path": "state.gone", "value": None}], preconditions={"!!": gone}),
            action("a3", [effect("set", "state.tree.note", "x")], preconditions={"==": [note, "y"]}),
        ],
        random_events=[
            event("e0", [effect("inc", "state.a", "d")], derives={"d": {"+": [made, 1]}}),
            event("e1", [effect("inc", "state.made", 1)], when={">": [made, 1]}),
            event("e2", [effect("set", "state.kept", "d")], derives={"d": {"var": ["state.made", 7]}}),
        ],
        horizon=12,
    )
    assert same(document, runs=20) == 0
    assert same(document, runs=20, persona="idle", horizon=2) == 0


def test_a_change_of_what_is_not_there_leaves_the_run() -> None:
    document = happening(effect("inc", "state.made", 1))
    document["actions"] = [action("a0", [effect("set", "state.made", 1)])]
    assert same(document, runs=10, horizon=3) == 0
    assert same(document, runs=10, horizon=1, persona="idle") in range(1, 10)


@pytest.mark.parametrize("persona", PERSONAS)
def test_lasting_events_go_on_in_the_order_of_their_onset(persona: str) -> None:
    document = spec(
        random_events=[
            event("e0", [effect("inc", "state.a", 3)], duration="3h"),
            event("e1", [effect("mul", "state.a", 0.5)], duration="5h"),
            event("e2", [effect("dec", "state.a", 1)]),
        ],
        horizon=30,
    )
    assert same(document, runs=10, persona=persona) == 0


def test_weights_above_one_are_scaled() -> None:
    events = [
        event(f"e{n}", [effect("inc", "state.a", n)], when={">": [{"var": "turn"}, n]}) for n in range(5)
    ]
    assert same(spec(random_events=events, horizon=20), runs=10) == 0


def test_schedules_replace_follow_and_nest() -> None:
    def later(name: str, after: int, *effects: Json) -> Json:
        return {"op": "schedule", "id": name, "after": after, "effects": list(effects)}

    double, add = effect("mul", "state.a", 2), effect("inc", "state.a", "d")
    document = spec(
        actions=[
            action("a0", [later("s", 2, double), later("t", 2, add)], derives={"d": {"var": "state.b"}}),
            action("a1", [later("s", 1, add, later("u", 1, add))], derives={"d": {"var": "state.a"}}),
            action("a2", [{"op": "schedule", "id": "t", "at": 5, "effects": [effect("set", "state.a", 1)]}]),
        ],
        horizon=15,
    )
    assert same(document, runs=20) == 0


def test_parameters_are_drawn_as_the_persona_does() -> None:
    params = {
        "n": {"type": "integer", "minimum": 0, "maximum": 9},
        "u": {"type": "number", "minimum": -1, "maximum": 1},
    }
    choosy = {"<": [{"+": [{"var": "params.n"}, {"var": "params.u"}]}, 1]}
    use = {"d": {"+": [{"var": "params.n"}, {"var": "params.u"}]}}
    document = spec(
        actions=[
            action("a0", [effect("inc", "state.a", "d")], params=params, preconditions=choosy, derives=use),
            action("a1", [effect("set", "state.b", "d")], params=params, derives=use),
            action(
                "a2",
                [],
                params={"b": {"type": "boolean"}},
                preconditions=at_most("", "state.a", 0)["when"],
            ),
            action("a3", [effect("dec", "state.a", 1)], params={"t": {"type": "string", "maxLength": 3}}),
        ],
        horizon=20,
    )
    assert same(document, runs=10) == 0


def test_many_actions_and_events_compile() -> None:
    document = spec(
        actions=[action(f"a{n}", [effect("inc", "state.a", n)]) for n in range(512)],
        random_events=[event(f"e{n}", [effect("dec", "state.a", n)], weight=0.05) for n in range(512)],
    )
    assert same(document, runs=2, horizon=1) == 0

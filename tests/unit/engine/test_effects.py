from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.errors import ResourceExhaustedError
from support.engine.backends import program_on
from support.engine.specs import action, document

if TYPE_CHECKING:
    from peripety.engine import ActResult, Program, State
    from peripety.engine.backend_protocol import Backend


def take(core: Backend, effects: list[dict[str, Any]], **parts: Any) -> tuple[ActResult, State]:
    """The result of one action with these effects, and the state after it."""
    program = program_on(core, document(actions=[action("act", effects)], **parts))
    state = program.new_state()
    return program.act(state, "act"), state


@pytest.mark.parametrize(
    ("effect", "path", "before", "after"),
    [
        ({"op": "set", "path": "state.a", "value": "x"}, "state.a", 10, "x"),
        ({"op": "set", "path": "state.new", "value": {"k": [1]}}, "state.new", engine.ABSENT, {"k": [1]}),
        ({"op": "set", "path": "state.list[1]", "value": 9}, "state.list[1]", 2, 9),
        (
            {"op": "set", "path": 'state.tree["odd key"]', "value": 1},
            'state.tree["odd key"]',
            engine.ABSENT,
            1,
        ),
        ({"op": "inc", "path": "state.a", "value": 2.5}, "state.a", 10, 12.5),
        ({"op": "dec", "path": "state.a", "value": 10}, "state.a", 10, 0),
        ({"op": "mul", "path": "state.a", "value": -0.5}, "state.a", 10, -5),
        ({"op": "patch", "path": "state.tree", "value": {"y": 2}}, "state.tree.y", engine.ABSENT, 2),
        ({"op": "push", "path": "state.list", "value": 3}, "state.list[2]", engine.ABSENT, 3),
        ({"op": "pop", "path": "state.list"}, "state.list[1]", 2, engine.ABSENT),
    ],
)
def test_each_operation_writes_and_says_what_it_wrote(
    core: Backend,
    effect: dict[str, Any],
    path: str,
    before: Any,
    after: Any,
) -> None:
    result, _ = take(core, [effect])
    assert result.accepted
    assert result.changes == (engine.Change(path, effect["op"], before, after, "action:act"),)


@pytest.mark.parametrize(
    ("effect", "code", "message"),
    [
        ({"op": "inc", "path": "state.note", "value": 1}, "TYPE_MISMATCH",
         "'state.note' holds a string, not a number"),
        ({"op": "inc", "path": "state.made", "value": 1}, "MISSING_PATH", "'state.made' does not exist"),
        ({"op": "set", "path": "state.made.b", "value": 1}, "MISSING_PATH",
         "'state.made.b' does not exist"),
        ({"op": "set", "path": "state.list[7]", "value": 1}, "MISSING_PATH",
         "'state.list[7]' does not exist"),
        ({"op": "mul", "path": "state.big", "value": 10}, "NUMERIC_RANGE",
         "the result does not fit binary64"),
        ({"op": "pop", "path": "state.empty"}, "EMPTY_ARRAY",
         "'state.empty' is empty: there is nothing to remove"),
        ({"op": "patch", "path": "state.note", "value": {}}, "TYPE_MISMATCH",
         "'state.note' holds a string, not an object"),
    ],
)  # fmt: skip
def test_an_effect_that_cannot_be_applied_rejects_the_whole_action(
    core: Backend,
    effect: dict[str, Any],
    code: str,
    message: str,
) -> None:
    state = {"a": 10, "note": "n", "list": [1], "big": 1e308, "empty": []}
    # Another action may write these paths, so only a run of the rule can detect the error.
    others = [
        action("x", [{"op": "set", "path": "state.made", "value": 1}]),
        action("y", [{"op": "set", "path": "state.note", "value": 1}]),
    ]
    effects: list[dict[str, Any]] = [
        {"op": "inc", "path": "state.a", "value": 1},
        {"op": "addlog", "message": "m"},
        effect,
    ]
    actions = [action("act", effects), *others]
    program = program_on(core, document(state=state, actions=actions))
    run = program.new_state()
    before = run.tree()
    result = program.act(run, "act")
    assert not result.accepted
    assert result.reasons == (engine.RuleError(code, "/actions/0/effects/2", message),)
    assert result.errors == result.reasons
    assert (result.changes, result.log) == ((), ())
    assert run.tree() == before


def test_a_string_that_names_a_derived_value_means_it(core: Backend) -> None:
    effects: list[dict[str, Any]] = [
        {"op": "inc", "path": "state.a", "value": "twice"},
        {"op": "set", "path": "state.note", "value": "text"},
        {"op": "set", "path": "state.tree", "value": {"kept": "twice"}},
    ]
    derives = {
        "twice": {"*": [{"var": "state.b"}, 2]},
        "text": {"cat": ["a", {"var": "derives.twice"}]},
    }
    program = program_on(core, document(actions=[action("act", effects, derives=derives)]))
    state = program.new_state()
    program.act(state, "act")
    tree = state.tree()
    assert (tree["a"], tree["note"], tree["tree"]) == (14, "a4", {"kept": "twice"})


def test_a_derived_value_keeps_what_it_read_when_effects_change_it(core: Backend) -> None:
    effects: list[dict[str, Any]] = [
        {"op": "push", "path": "state.list", "value": 9},
        {"op": "set", "path": "state.note", "value": "before"},
    ]
    derives = {"before": {"var": "state.list"}}
    program = program_on(core, document(actions=[action("act", effects, derives=derives)]))
    state = program.new_state()
    program.act(state, "act")
    assert (state.tree()["list"], state.tree()["note"]) == ([1, 2, 9], [1, 2])


def test_a_derived_value_that_is_looked_for_is_there(core: Backend) -> None:
    derives = {"a": {"missing": ["derives.b", "derives.c"]}, "b": 1}
    effects = [{"op": "set", "path": "state.note", "value": "a"}]
    program = program_on(core, document(actions=[action("act", effects, derives=derives)]))
    state = program.new_state()
    program.act(state, "act")
    assert state.tree()["note"] == ["derives.c"]


def test_a_derived_value_of_the_wrong_type_is_an_error_of_the_effect(core: Backend) -> None:
    effects = [{"op": "inc", "path": "state.a", "value": "text"}]
    program = program_on(core, document(actions=[action("act", effects, derives={"text": {"cat": ["a"]}})]))
    result = program.act(program.new_state(), "act")
    assert [(e.code, e.rule) for e in result.reasons] == [("TYPE_MISMATCH", "/actions/0/effects/0")]


def test_a_failing_derived_value_names_its_place(core: Backend) -> None:
    derives = {"odd/name": {"/": [1, {"var": "state.zero"}]}}
    program = program_on(
        core,
        document(state={"a": 1, "zero": 0}, actions=[action("act", [], derives=derives)]),
    )
    result = program.act(program.new_state(), "act")
    assert [(e.code, e.rule) for e in result.reasons] == [
        ("DIVISION_BY_ZERO", "/actions/0/derives/odd~1name"),
    ]


def test_a_change_keeps_the_value_of_its_moment(core: Backend) -> None:
    result, _ = take(
        core,
        [
            {"op": "set", "path": "state.tree", "value": {"x": [1]}},
            {"op": "push", "path": "state.tree.x", "value": 2},
        ],
    )
    assert result.changes[0].after == {"x": [1]}


def test_two_uses_of_one_literal_do_not_share_it(core: Backend) -> None:
    literal = {"op": "set", "path": "state.tree", "value": {"x": []}}
    program = program_on(
        core,
        document(actions=[action("act", [literal, {"op": "push", "path": "state.tree.x", "value": 1}])]),
    )
    state = program.new_state()
    program.act(state, "act")
    program.act(state, "act")
    assert state.tree()["tree"] == {"x": [1]}


def test_the_log_drops_its_oldest_lines_first(core: Backend) -> None:
    many = [{"op": "addlog", "message": f"m{n}"} for n in range(256)]
    program = program_on(core, document(actions=[action("act", many)]))
    state = program.new_state()
    program.act(state, "act")
    program.act(state, "act")
    log = json.loads(state.to_json())["log"]
    assert len(log) == 256
    assert log[0] == {"cause": "action:act", "message": "m0", "turn": 1}


def limit_is_hit(program: Program, state: State) -> bool:
    try:
        program.act(state, "act")
    except ResourceExhaustedError as error:
        return error.code == "STATE_LIMIT"
    return False


@pytest.mark.parametrize(
    "effect",
    [
        {"op": "push", "path": "state.list", "value": list(range(9000))},
        {"op": "push", "path": "state.list", "value": ["x" * 60_000] * 10},
        {"op": "patch", "path": "state.tree", "value": {f"k{n}": n for n in range(9991)}},
    ],
)
def test_a_state_that_outgrows_its_limits_fails_the_call_and_changes_nothing(
    core: Backend,
    effect: dict[str, Any],
) -> None:
    program = program_on(core, document(actions=[action("act", [effect])]))
    state = program.new_state()
    before = state.to_json()
    while not limit_is_hit(program, state):
        before = state.to_json()
    assert state.to_json() == before


def test_a_tree_that_grows_deep_hits_its_limit(core: Backend) -> None:
    derives = {"nested": [{"var": "state.tree"}]}
    effects = [{"op": "set", "path": "state.tree", "value": "nested"}]
    program = program_on(core, document(actions=[action("act", effects, derives=derives)]))
    state = program.new_state()
    for _ in range(62):
        assert program.act(state, "act").accepted
    before = state.to_json()
    with pytest.raises(ResourceExhaustedError, match="nested deeper than 64 levels"):
        program.act(state, "act")
    assert state.to_json() == before


def test_a_derived_value_cannot_be_deeper_than_a_state(core: Backend) -> None:
    derives = {"nested": {"reduce": [{"var": "state.list"}, [{"var": "accumulator"}], 1]}}
    effects = [{"op": "set", "path": "state.tree", "value": "nested"}]
    parts = {"state": {"list": [0] * 300, "tree": 0}, "actions": [action("act", effects, derives=derives)]}
    program = program_on(core, document(**parts))
    (reason,) = program.act(program.new_state(), "act").reasons
    assert (reason.code, reason.rule) == ("FUEL_EXHAUSTED", "/actions/0/derives/nested")

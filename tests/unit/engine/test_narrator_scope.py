from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.engine import ABSENT, Change, NarratorPermission, list_narrator_permissions
from peripety.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError
from support.engine.backends import program_on
from support.engine.specs import Json, action, document, event, never

if TYPE_CHECKING:
    from peripety.engine import ActResult, Program
    from peripety.engine.backend_protocol import Backend


def op(name: str, path: str, *value: Any) -> Json:
    return {"op": name, "path": path, **({"value": value[0]} if value else {})}


def program_of(core: Backend, *effects: Json, **parts: Any) -> Program:
    return program_on(core, document(actions=[action("act", list(effects), derives={"d": 3})], **parts))


def told(program: Program, *changes: Json) -> ActResult:
    return program.narrate(program.new_state(), changes)


def refusal(program: Program, *changes: Json) -> tuple[str, str]:
    result = told(program, *changes)
    assert not result.accepted
    assert result.changes == ()
    (reason,) = result.reasons
    return reason.code, reason.rule


NO_LIMIT: Json = {"path": "state.tree", "ops": ["patch"]}
OUT = ("OUT_OF_SCOPE", "/state_changes/0")
PATCH_Q = op("patch", "state", {"q": 2})


def test_a_change_that_a_rule_makes_is_applied_under_the_narrators_name(core: Backend) -> None:
    program = program_of(core, op("inc", "state.a", 2))
    state = program.new_state()
    result = program.narrate(state, [op("dec", "state.a", 1.5)])
    assert result.accepted
    assert result.changes == (Change("state.a", "dec", 10, 8.5, "narrator"),)
    assert state.tree()["a"] == 8.5


def test_no_changes_are_accepted_and_change_nothing(core: Backend) -> None:
    result = told(program_of(core))
    assert (result.accepted, result.changes, result.reasons) == (True, (), ())


def test_amounts_go_up_to_the_largest_literal_of_inc_and_dec_together(core: Backend) -> None:
    program = program_of(core, op("inc", "state.a", 1), op("dec", "state.a", 3))
    assert told(program, op("inc", "state.a", 3)).accepted
    assert told(program, op("dec", "state.a", -3)).accepted
    assert refusal(program, op("inc", "state.a", 3.1)) == OUT
    assert refusal(program, op("inc", "state.a", -3.1)) == OUT


def test_scheduled_effects_and_events_are_rules_too_and_decay_is_none(core: Backend) -> None:
    later = {"op": "schedule", "id": "s", "after": 1, "effects": [op("inc", "state.a", 4)]}
    nested = {"op": "schedule", "id": "t", "after": 1, "effects": [later]}
    program = program_of(
        core,
        nested,
        random_events=[event("e", [op("set", "state.note", "x")])],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.b": 1}},
    )
    assert told(program, op("inc", "state.a", 4), op("set", "state.note", "x")).accepted
    assert refusal(program, op("dec", "state.b", 1)) == OUT


def test_a_derived_value_is_no_precedent(core: Backend) -> None:
    program = program_of(core, op("inc", "state.a", "d"), op("set", "state.note", "d"))
    assert refusal(program, op("inc", "state.a", 1)) == OUT
    assert refusal(program, op("set", "state.note", 3)) == OUT
    assert refusal(program, op("set", "state.note", "d")) == OUT


def test_a_name_that_another_rule_derives_is_an_ordinary_literal(core: Backend) -> None:
    other = action("other", [op("set", "state.note", "d")])
    program = program_on(core, document(actions=[action("act", derives={"d": 3}), other]))
    result = told(program, op("set", "state.note", "d"))
    assert [change.after for change in result.changes] == ["d"]


@pytest.mark.parametrize(
    ("effect", "allowed", "refused"),
    [
        (op("set", "state.note", "x"), op("set", "state.note", "x"), op("set", "state.note", "y")),
        (op("set", "state.flag", True), op("set", "state.flag", True), op("set", "state.flag", 1)),
        (op("mul", "state.b", 0.5), op("mul", "state.b", 0.5), op("mul", "state.b", 0.25)),
        (op("push", "state.list", [1]), op("push", "state.list", [1]), op("push", "state.list", 1)),
        (op("pop", "state.list"), op("pop", "state.list"), op("pop", "state.note")),
        (op("patch", "state", {"p": 1, "q": 2}), PATCH_Q, op("patch", "state", {"q": 3})),
        (op("patch", "state", {"new": 1}), op("patch", "state", {"new": 1}), op("set", "state.new", 1)),
        (op("set", "state.tree.x", 2), op("set", 'state["tree"].x', 2), op("set", "state.tree", {"x": 2})),
        (op("inc", "state.list[0]", 1), op("inc", "state.list[0]", 1), op("inc", "state.list[1]", 1)),
    ],
)  # fmt: skip
def test_by_default_the_narrator_may_do_what_the_rules_do(
    core: Backend,
    effect: Json,
    allowed: Json,
    refused: Json,
) -> None:
    program = program_of(core, effect)
    assert told(program, allowed).accepted
    assert refusal(program, refused) == OUT


def test_members_of_different_patches_can_be_merged_at_once(core: Backend) -> None:
    program = program_of(core, op("patch", "state.tree", {"x": 2}), op("patch", "state.tree", {"y": 3}))
    assert told(program, op("patch", "state.tree", {"x": 2, "y": 3})).accepted


@pytest.mark.parametrize("name", ["inc", "dec", "mul"])
def test_many_small_changes_do_not_make_a_large_one(core: Backend, name: str) -> None:
    program = program_of(core, op("inc", "state.a", 2), op("mul", "state.a", 2))
    result = told(program, op("inc", "state.a", 2), op(name, "state.a", 2))
    assert [(reason.code, reason.rule) for reason in result.reasons] == [("OUT_OF_SCOPE", "/state_changes/1")]


def test_one_change_out_of_scope_rejects_all_and_every_reason_is_given(core: Backend) -> None:
    program = program_of(core, op("inc", "state.a", 2))
    state = program.new_state()
    changes = [
        op("inc", "state.a", 1),
        op("inc", "state.b", 1),
        op("inc", "state.a", {"+": [1]}),
        op("set", "b", 1),
    ]
    result = program.narrate(state, changes)
    assert [(reason.code, reason.rule) for reason in result.reasons] == [
        ("OUT_OF_SCOPE", "/state_changes/1"),
        ("CHANGE_INVALID", "/state_changes/2"),
        ("BAD_PATH", "/state_changes/3"),
    ]
    assert state.hash() == program.new_state().hash()


def test_one_change_that_fails_takes_the_others_back(core: Backend) -> None:
    program = program_of(core, op("inc", "state.a", 2), op("pop", "state.list"))
    state = program.new_state()
    result = program.narrate(state, [op("inc", "state.a", 2), *[op("pop", "state.list")] * 3])
    assert [(reason.code, reason.rule) for reason in result.reasons] == [("EMPTY_ARRAY", "/state_changes/3")]
    assert result.changes == ()
    assert state.hash() == program.new_state().hash()


def test_a_refusal_says_what_would_do(core: Backend) -> None:
    program = program_of(core, op("inc", "state.a", 2), op("set", "state.note", "x"))
    changes = [
        op("inc", "state.a", 9),
        op("set", "state.a", 9),
        op("set", "state.note", "y"),
        op("inc", "state.b", 1),
    ]
    assert [reason.message for reason in told(program, *changes).reasons] == [
        "the narrator may inc 'state.a' with numbers within ±2 only",
        "the narrator may not set 'state.a'; it may: inc, dec",
        "the narrator may set 'state.note' only with what the scenario does: \"x\"",
        "the narrator may not inc 'state.b'; leave this change out",
    ]


def granted(core: Backend, *scope: Json) -> Program:
    return program_of(core, op("inc", "state.a", 2), narrator_scope=list(scope))


def test_what_the_scenario_grants_replaces_the_default(core: Backend) -> None:
    program = granted(core, {"path": "state.note", "ops": ["set"]})
    assert told(program, op("set", "state.note", "anything")).accepted
    assert refusal(program, op("inc", "state.a", 1)) == OUT
    assert refusal(granted(core), op("inc", "state.a", 1)) == OUT


def test_a_grant_holds_for_all_below_its_path_and_for_nothing_beside_it(core: Backend) -> None:
    program = granted(core, {"path": "state.tree", "ops": ["set", "inc"]})
    assert told(program, op("inc", "state.tree.x", 100), op("set", "state.tree.new", [])).accepted
    assert refusal(program, op("set", "state.trees", 1)) == OUT
    assert refusal(program, op("patch", "state.tree", {"x": 1})) == OUT


def test_a_magnitude_bounds_every_number_in_a_value(core: Backend) -> None:
    program = granted(core, {"path": "state.tree", "ops": ["set", "inc"], "max_magnitude": 2})
    assert told(program, op("set", "state.tree.x", {"k": [-2, "long text", True]})).accepted
    assert refusal(program, op("set", "state.tree.x", {"k": [-2.5]})) == OUT
    assert refusal(program, op("inc", "state.tree.x", 2.5)) == OUT


def test_to_add_less_than_nothing_needs_the_right_to_subtract(core: Backend) -> None:
    program = granted(core, {"path": "state.a", "ops": ["inc"]})
    assert told(program, op("inc", "state.a", 1)).accepted
    assert told(program, op("dec", "state.a", -1)).accepted
    assert refusal(program, op("inc", "state.a", -1)) == OUT


def test_one_of_several_grants_is_enough(core: Backend) -> None:
    program = granted(
        core,
        {"path": "state", "ops": ["inc"], "max_magnitude": 1},
        {"path": "state.a", "ops": ["inc", "dec"], "max_magnitude": 5},
    )
    assert told(program, op("inc", "state.a", 5)).accepted
    assert told(program, op("inc", "state.b", 1)).accepted
    assert refusal(program, op("inc", "state.b", 5)) == OUT
    assert refusal(program, op("dec", "state.b", 1)) == OUT


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"+": [1, 2]}, "CODE_IN_VALUE"),
        (["a", {"k": {"var": "state.a"}}], "CODE_IN_VALUE"),
        ("{{name}}", "CODE_IN_VALUE"),
        ({"k": "${name}"}, "CODE_IN_VALUE"),
        ({"k": [{"__proto__": 1}]}, "FORBIDDEN_KEY"),
    ],
)
def test_what_is_granted_must_still_be_a_harmless_literal(core: Backend, value: Any, code: str) -> None:
    program = granted(core, {"path": "state", "ops": ["set"]})
    assert refusal(program, op("set", "state.note", value)) == (code, "/state_changes/0")


def test_the_first_call_of_a_turn_opens_it_even_when_it_is_rejected(core: Backend) -> None:
    later = {"op": "schedule", "id": "s", "after": 1, "effects": [op("set", "state.flag", True)]}
    program = program_of(core, later)
    state = program.new_state()
    program.act(state, "act")
    program.step(state)
    result = program.narrate(state, [op("set", "state.note", "y")])
    assert not result.accepted
    assert result.changes == (Change("state.flag", "set", False, True, "schedule:s"),)
    assert program.narrate(state, []).changes == ()


def test_actions_and_the_narrator_share_a_turn(core: Backend) -> None:
    program = program_of(core, op("inc", "state.a", 2))
    state = program.new_state()
    program.act(state, "act")
    program.narrate(state, [op("inc", "state.a", 1)])
    assert program.step(state).turn == 1
    assert state.tree()["a"] == 13


def test_a_state_that_would_outgrow_its_limits_is_left_as_it_was(core: Backend) -> None:
    program = granted(core, {"path": "state", "ops": ["push", "set"]})
    state = program.new_state()
    before = state.to_json()
    with pytest.raises(ResourceExhaustedError) as refused:
        program.narrate(state, [op("set", "state.a", 1), *[op("push", "state.list", "x" * 60_000)] * 18])
    assert refused.value.code == "STATE_LIMIT"
    assert refused.value.details == {"path": "/state_changes"}
    assert state.to_json() == before


def test_more_changes_than_an_outcome_can_hold_are_refused(core: Backend) -> None:
    program = granted(core, {"path": "state", "ops": ["push"]})
    assert told(program, *[op("push", "state.list", 1)] * 64).accepted
    assert refusal(program, *[op("push", "state.list", 1)] * 65) == ("CHANGE_INVALID", "/state_changes")


def test_what_is_no_value_of_the_engines_is_refused(core: Backend) -> None:
    program = granted(core, {"path": "state", "ops": ["set"]})
    for value in (float("nan"), "x" * 70_000, ABSENT):
        with pytest.raises(InvalidArgumentError):
            told(program, op("set", "state.note", value))


def test_in_a_run_that_has_ended_the_narrator_changes_nothing(core: Backend) -> None:
    program = program_of(core, loss_conditions=[{"id": "now", "when": {}}, never("b")])
    state = program.new_state()
    program.step(state)
    with pytest.raises(FailedPreconditionError) as refused:
        program.narrate(state, [])
    assert refused.value.code == "RUN_ENDED"


def test_a_key_that_no_snapshot_may_have_is_refused(core: Backend) -> None:
    program = program_of(core, narrator_scope=[{"path": "state", "ops": ["set"]}])
    state = program.new_state()
    assert program.narrate(state, [op("set", f'state["{"k" * 256}"]', 1)]).accepted
    assert program.load_state(state.to_json()).hash() == state.hash()
    code = ("KEY_TOO_LONG", "/state_changes/0")
    assert refusal(program, op("set", f'state["{"k" * 257}"]', 1)) == code
    assert refusal(program, op("set", f"state.{'k' * 257}", 1)) == code
    assert refusal(program, op("set", f'state["{"é" * 129}"]', 1)) == code


def test_a_path_longer_than_one_of_a_scenario_is_refused(core: Backend) -> None:
    program = program_of(core, narrator_scope=[{"path": "state", "ops": ["set"]}])
    longest = "state" + ".a" * 253 + "b"
    assert len(longest) == 512
    assert refusal(program, op("set", longest, 1)) == ("MISSING_PATH", "/state_changes/0")
    assert refusal(program, op("set", longest + "b", 1)) == ("BAD_PATH", "/state_changes/0")


def test_the_granted_scope_is_listed() -> None:
    spec = json.loads(
        document(narrator_scope=[{"path": "state.a", "ops": ["inc", "set"], "max_magnitude": 2}, NO_LIMIT]),
    )
    a, tree = ("state", "a"), ("state", "tree")
    assert list_narrator_permissions(spec) == (
        NarratorPermission(a, "set", includes_children=True, limit=2),
        NarratorPermission(a, "inc", includes_children=True, limit=2),
        NarratorPermission(tree, "patch", includes_children=True),
    )


def test_without_grants_the_listed_scope_is_what_the_rules_do() -> None:
    later = {"op": "schedule", "id": "s", "after": 1, "effects": [op("dec", "state.a", 3)]}
    done = [op("inc", "state.a", 2), later, op("inc", "state.b", "d"), op("pop", "state.list")]
    done += [op("set", "state.note", value) for value in ("y", "x")] + [
        op("patch", "state.tree", {"x": 1, "y": 2}),
    ]
    spec = json.loads(document(actions=[action("act", done, derives={"d": 3})]))
    assert {
        (engine.format_path(each.path), each.operation): (each.limit, each.values)
        for each in list_narrator_permissions(spec)
    } == {
        ("state.a", "inc"): (3, None),
        ("state.a", "dec"): (3, None),
        ("state.list", "pop"): (None, ()),
        ("state.note", "set"): (None, ('"x"', '"y"')),
        ("state.tree", "patch"): (None, ('{"x":1}', '{"y":2}')),
    }


READS: list[tuple[Json, bool]] = [
    ({"<=": [{"var": "state.a"}, 0]}, False),
    ({"<=": [{"var": ["state.a", 1]}, 0]}, False),
    ({"<": [{"+": [1, {"var": "state.tree.deep"}]}, 0]}, True),
    ({"missing": ["turn", "state.a"]}, False),
    ({"==": [{"var": "state"}, 5]}, False),
    ({"<": [{"var": "turn"}, 0]}, True),
]


@pytest.mark.parametrize(("when", "is_allowed"), READS)
@pytest.mark.parametrize("end", ["loss_conditions", "win_conditions"])
def test_from_1_1_on_no_default_holds_a_path_that_an_end_condition_reads(
    core: Backend,
    when: Json,
    is_allowed: bool,
    end: str,
) -> None:
    losses = [never("first"), never("second")]
    ends = {"loss_conditions": losses} | {end: [*losses, {"id": "end", "when": when}]}
    parts: Json = {**ends, "state": {"a": 10, "tree": {"deep": 5}}}
    new = program_of(core, op("inc", "state.a", 2), spec_version="1.1", **parts)
    old = program_of(core, op("inc", "state.a", 2), **parts)
    assert told(new, op("inc", "state.a", 1)).accepted is is_allowed
    assert told(old, op("inc", "state.a", 1)).accepted
    granted = program_of(
        core,
        spec_version="1.1",
        narrator_scope=[{"path": "state.a", "ops": ["inc"]}],
        **parts,
    )
    assert told(granted, op("inc", "state.a", 1)).accepted


def test_a_path_above_or_below_one_that_an_end_reads_is_not_in_the_default_scope(core: Backend) -> None:
    ends = [never("first"), {"id": "second", "when": {"<": [{"var": "state.tree.list.1"}, 0]}}]
    program = program_of(
        core,
        op("set", "state.tree", {"list": []}),
        op("set", "state.tree.list[1]", 5),
        op("set", "state.tree.list[0]", 5),
        op("set", "state.tree.deep", 5),
        spec_version="1.1",
        loss_conditions=ends,
        state={"a": 1, "tree": {"list": [1, 2], "deep": 1}},
    )
    assert refusal(program, op("set", "state.tree", {"list": []})) == OUT
    assert refusal(program, op("set", "state.tree.list[1]", 5)) == OUT
    assert told(program, op("set", "state.tree.list[0]", 5)).accepted
    assert told(program, op("set", "state.tree.deep", 5)).accepted

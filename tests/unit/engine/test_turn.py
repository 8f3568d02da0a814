from __future__ import annotations

import hashlib
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.engine import draw
from peripety.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError
from support.engine.backends import program_on
from support.engine.specs import action, at_most, document, event, never

if TYPE_CHECKING:
    from peripety.engine import Program, State, StepResult
    from peripety.engine.backend_protocol import Backend


SEED = 5


def quiet(core: Backend) -> Program:
    return program_on(core, document())


def test_a_roll_is_the_keyed_draw_of_its_kind_and_target(core: Backend) -> None:
    program = quiet(core)
    result = program.roll(program.new_state(SEED), "k", "x", difficulty=11)
    value = draw(SEED, "roll:k:x", 1, 0)
    assert result.draw.value == f"{value:016x}"
    assert result.roll == (((value >> 32) * 20) >> 32) + 1
    assert result.success == (result.roll >= 11)
    assert (result.kind, result.target, result.difficulty) == ("k", "x", 11)


def test_every_face_can_come_up_and_no_other(core: Backend) -> None:
    program = quiet(core)
    faces = {program.roll(program.new_state(seed), "k", difficulty=1).roll for seed in range(400)}
    assert faces == set(range(1, 21))


def test_a_face_that_equals_the_difficulty_is_a_success_and_one_below_is_none(core: Backend) -> None:
    program = quiet(core)
    face = program.roll(program.new_state(SEED), "k", difficulty=1).roll
    assert program.roll(program.new_state(SEED), "k", difficulty=face).success
    assert not program.roll(program.new_state(SEED), "k", difficulty=face + 1).success


def test_equal_rolls_in_one_turn_have_draws_of_their_own(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    draws = [program.roll(state, "k", "x", difficulty=5).draw for _ in range(3)]
    assert [drawn.index for drawn in draws] == [0, 1, 2]
    assert len({drawn.value for drawn in draws}) == 3


def test_rolls_of_another_kind_or_target_do_not_disturb(core: Backend) -> None:
    program = quiet(core)
    alone, among = program.new_state(SEED), program.new_state(SEED)
    program.roll(among, "m", "x", difficulty=5)
    program.roll(among, "k", difficulty=5)
    assert program.roll(among, "k", "x", difficulty=5) == program.roll(alone, "k", "x", difficulty=5)


def test_the_next_turn_counts_from_the_start(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    program.roll(state, "k", difficulty=5)
    program.step(state)
    drawn = program.roll(state, "k", difficulty=5).draw
    assert (drawn.turn, drawn.index) == (2, 0)


def test_a_copy_and_a_reloaded_state_go_on_where_the_first_was(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    program.roll(state, "k", difficulty=5)
    copy, reloaded = state.fork(), program.load_state(state.to_json())
    expected = program.roll(state, "k", difficulty=5)
    assert expected.draw.index == 1
    assert program.roll(copy, "k", difficulty=5) == expected
    assert program.roll(reloaded, "k", difficulty=5) == expected


def test_a_roll_changes_nothing_of_the_scenario_and_opens_no_turn(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    before = json.loads(state.to_json())
    program.roll(state, "k", difficulty=5)
    after = json.loads(state.to_json())
    assert after.pop("rolls") == {"roll:k:": 1}
    assert after == before


def test_a_snapshot_without_rolls_is_that_of_a_turn_without_any(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    assert "rolls" not in json.loads(state.to_json())
    assert program.roll(program.load_state(state.to_json()), "k", difficulty=5).draw.index == 0


@pytest.mark.parametrize("rolls", [[], {"k": 0}, {"k": 257}, {"k": 1.5}, {"k": "1"}, {"k": -1}, None])
def test_a_snapshot_with_rolls_that_cannot_be_is_refused(core: Backend, rolls: Any) -> None:
    program = quiet(core)
    snapshot = json.loads(program.new_state(SEED).to_json()) | {"rolls": rolls}
    with pytest.raises(InvalidArgumentError) as refused:
        program.load_state(json.dumps(snapshot).encode())
    assert refused.value.code == "SNAPSHOT_INVALID"


def test_rolls_of_a_turn_are_bounded(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    for number in range(256):
        program.roll(state, f"k{number % 3}", difficulty=5)
    before = state.to_json()
    with pytest.raises(ResourceExhaustedError, match="more than 256 rolls") as refused:
        program.roll(state, "k", difficulty=5)
    assert refused.value.code == "STATE_LIMIT"
    assert state.to_json() == before
    program.step(state)
    assert program.roll(state, "k", difficulty=5).draw.index == 0


@pytest.mark.parametrize(
    ("kind", "target", "difficulty"),
    [
        ("", None, 5),
        ("two words", None, 5),
        ("k" * 65, None, 5),
        ("k", "", 5),
        ("k", None, 0),
        ("k", "x", 31),
    ],
)
def test_what_cannot_be_rolled_is_refused(
    core: Backend,
    kind: str,
    target: str | None,
    difficulty: int,
) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    with pytest.raises(InvalidArgumentError) as refused:
        program.roll(state, kind, target, difficulty=difficulty)
    assert refused.value.code == "ROLL_INVALID"
    assert state.to_json() == program.new_state(SEED).to_json()


def test_a_run_that_has_ended_rolls_no_more(core: Backend) -> None:
    program = program_on(core, document(loss_conditions=[{"id": "now", "when": {}}, never("b")]))
    state = program.new_state(SEED)
    program.step(state)
    with pytest.raises(FailedPreconditionError) as refused:
        program.roll(state, "k", difficulty=5)
    assert refused.value.code == "RUN_ENDED"


INC_A = {"op": "inc", "path": "state.a", "value": 1}
DEC_A = {"op": "dec", "path": "state.a", "value": 1}


def play(program: Program, turns: int, *, act: str | None = None) -> tuple[State, list[StepResult]]:
    state = program.new_state()
    results = []
    for _ in range(turns):
        if act:
            program.act(state, act)
        results.append(program.step(state))
    return state, results


def certain(name: str, effects: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """Enough equal events that one of them happens each turn (their weights reach 1)."""
    return [event(f"{name}{n}", effects, weight=0.25, **more) for n in range(4)]


def test_a_turn_runs_schedules_then_actions_then_events_then_decay(core: Backend) -> None:
    later = {"op": "schedule", "id": "s", "after": 1, "effects": [INC_A]}
    program = program_on(
        core,
        document(
            actions=[action("plan", [later]), action("act", [INC_A])],
            random_events=certain("e", [INC_A]),
            negativity_budget={"min_fail_rate": 0.1, "decay_per_turn": {"state.b": 1, "state.a": 1}},
        ),
    )
    state = program.new_state()
    program.act(state, "plan")
    program.step(state)
    acted = program.act(state, "act")
    stepped = program.step(state)
    causes = [change.cause.split(":")[0] for change in (*acted.changes, *stepped.changes)]
    assert causes == ["schedule", "action", "event", "decay", "decay"]
    assert [change.path for change in stepped.changes[-2:]] == ["state.a", "state.b"]


def test_a_turn_is_opened_once_however_many_actions_it_has(core: Backend) -> None:
    later = {"op": "schedule", "id": "s", "after": 1, "effects": [INC_A]}
    program = program_on(core, document(actions=[action("plan", [later]), action("wait", [])]))
    state = program.new_state()
    program.act(state, "plan")
    program.step(state)
    changes = [program.act(state, "wait").changes for _ in range(2)]
    assert [len(c) for c in changes] == [1, 0]
    assert program.step(state).changes == ()


@pytest.mark.parametrize(
    ("timing", "due"),
    [
        ({"after": 2}, 3),
        ({"after": "2d"}, 3),
        ({"after": "1h"}, 2),
        ({"at": 4}, 4),
        ({"at": 1}, 2),
        ({"at": "P3D"}, 3),
    ],
)
def test_scheduled_effects_are_due_when_they_say(core: Backend, timing: dict[str, Any], due: int) -> None:
    later = {
        "op": "schedule",
        "id": "s",
        "effects": [{"op": "set", "path": "state.flag", "value": True}],
        **timing,
    }
    program = program_on(core, document(clock={"turn": "1d"}, actions=[action("plan", [later])]))
    state = program.new_state()
    program.act(state, "plan")
    for turn in range(1, 6):
        result = program.step(state)
        assert bool(result.changes) == (turn == due)


def test_the_same_schedule_id_replaces_the_earlier_entry(core: Backend) -> None:
    def plan(after: int) -> dict[str, Any]:
        return {"op": "schedule", "id": "s", "after": after, "effects": [INC_A]}

    program = program_on(core, document(actions=[action("soon", [plan(1)]), action("late", [plan(3)])]))
    state = program.new_state()
    program.act(state, "soon")
    program.act(state, "late")
    assert [len(program.step(state).changes) for _ in range(4)] == [0, 0, 0, 1]


def test_due_schedules_run_by_turn_then_in_the_order_they_were_made(core: Backend) -> None:
    def plan(name: str, after: int) -> dict[str, Any]:
        return {"op": "schedule", "id": name, "after": after, "effects": [INC_A]}

    program = program_on(
        core,
        document(
            actions=[action("act", [plan("z", 1), plan("y", 1), plan("x", 2)]), action("w", [plan("v", 1)])],
        ),
    )
    state = program.new_state()
    program.act(state, "act")
    program.step(state)
    program.act(state, "w")
    first = [change.cause for change in program.step(state).changes]
    second = [change.cause for change in program.step(state).changes]
    assert second == ["schedule:x", "schedule:v"]
    assert first == []


def test_a_schedule_freezes_the_derived_values_of_its_moment(core: Backend) -> None:
    later = {
        "op": "schedule",
        "id": "s",
        "after": 1,
        "effects": [{"op": "set", "path": "state.note", "value": "now"}],
    }
    program = program_on(
        core,
        document(actions=[action("act", [later, INC_A], derives={"now": {"var": "state.a"}})]),
    )
    state = program.new_state()
    program.act(state, "act")
    program.step(state)
    program.step(state)
    assert state.tree()["note"] == 10


def test_a_failing_schedule_is_reported_and_has_no_effect(core: Backend) -> None:
    later = {
        "op": "schedule",
        "id": "s",
        "after": 1,
        "effects": [INC_A, {"op": "pop", "path": "state.empty"}],
    }
    program = program_on(core, document(state={"a": 1, "empty": []}, actions=[action("act", [later])]))
    state = program.new_state()
    program.act(state, "act")
    program.step(state)
    result = program.step(state)
    assert [(e.code, e.rule) for e in result.errors] == [("EMPTY_ARRAY", "schedule:s/1")]
    assert state.tree()["a"] == 1


def test_events_with_a_whole_weight_always_happen_and_one_at_a_time(core: Backend) -> None:
    program = program_on(core, document(random_events=certain("e", [INC_A])))
    state, results = play(program, 20)
    assert all(result.event is not None and len(result.changes) == 1 for result in results)
    assert state.tree()["a"] == 30
    assert len({result.event for result in results}) > 1


def test_weights_over_one_are_normalised(core: Backend) -> None:
    events = [event(f"e{n}", [INC_A], weight=0.3) for n in range(10)]
    _, results = play(program_on(core, document(random_events=events)), 40)
    assert all(result.event is not None for result in results)


def test_weights_are_probabilities(core: Backend) -> None:
    program = program_on(core, document(random_events=[event("e", [INC_A], weight=0.2)], seed=11))
    state = program.new_state()
    happened = sum(program.step(state).event is not None for _ in range(2000))
    assert 340 < happened < 460


def test_an_event_whose_condition_does_not_hold_is_not_drawn(core: Backend) -> None:
    events = certain("e", [INC_A], when={">": [{"var": "state.a"}, 100]})
    _, results = play(program_on(core, document(random_events=events)), 5)
    assert all(result.event is None and result.draws == () for result in results)


def test_an_event_whose_condition_fails_is_reported_and_never_read_as_true(core: Backend) -> None:
    events = [event("e", [INC_A], when={"<": [{"var": "state.note"}, 1]})]
    _, (result,) = play(program_on(core, document(random_events=events)), 1)
    assert result.event is None
    assert [(e.code, e.rule) for e in result.errors] == [("NOT_A_NUMBER", "/random_events/0/when")]


def test_a_lasting_event_goes_on_and_is_not_drawn_again_meanwhile(core: Backend) -> None:
    events = [event("long", [DEC_A], duration="3d", weight=0.3)]
    program = program_on(core, document(clock={"turn": "1d"}, random_events=events, state={"a": 1000}))
    state = program.new_state()
    results = [program.step(state) for _ in range(300)]
    onsets = [result.turn for result in results if result.event == "long"]
    touched = [result.turn for result in results if result.changes]
    assert len(onsets) > 5
    assert all(later - earlier >= 3 for earlier, later in itertools.pairwise(onsets))
    assert touched == sorted({turn + step for turn in onsets for step in range(3) if turn + step <= 300})


def test_an_event_that_fails_at_its_onset_does_not_last(core: Backend) -> None:
    events = certain("e", [INC_A, {"op": "pop", "path": "state.empty"}], duration="5h")
    _, results = play(program_on(core, document(state={"a": 1, "empty": []}, random_events=events)), 3)
    assert [len(result.errors) for result in results] == [1, 1, 1]
    assert all(result.changes == () for result in results)


def test_a_decay_that_fails_names_its_path(core: Backend) -> None:
    breaks = action("act", [{"op": "set", "path": "state.a", "value": "x"}])
    budget = {"min_fail_rate": 0.1, "decay_per_turn": {"state.a": 1, "state.b": 1}}
    program = program_on(core, document(actions=[breaks], negativity_budget=budget))
    state, (result,) = play(program, 1, act="act")
    place = "/negativity_budget/decay_per_turn/state.a"
    assert [(error.code, error.rule) for error in result.errors] == [("TYPE_MISMATCH", place)]
    assert state.tree()["b"] == 1


def test_losses_are_judged_before_wins_and_in_order(core: Backend) -> None:
    program = program_on(
        core,
        document(
            loss_conditions=[never("no"), at_most("low", "state.a", 10), at_most("lower", "state.a", 10)],
            win_conditions=[at_most("win", "state.a", 10)],
        ),
    )
    state = program.new_state()
    assert program.step(state).status == engine.Status("lost", "low", None)
    with pytest.raises(FailedPreconditionError, match="has ended"):
        program.step(state)


def test_the_empty_condition_holds(core: Backend) -> None:
    program = program_on(
        core,
        document(loss_conditions=[{"id": "now", "when": {}, "message": "m"}, never("b")]),
    )
    assert program.step(program.new_state()).status == engine.Status("lost", "now", "m")


def test_an_action_is_rejected_with_reasons_and_changes_nothing(core: Backend) -> None:
    blocked = action("act", [INC_A], preconditions={">": [{"var": "state.a"}, 100]})
    program = program_on(core, document(actions=[blocked]))
    state = program.new_state()
    before = state.tree()
    result = program.act(state, "act")
    message = "the preconditions of 'act' do not hold"
    assert result.reasons == (engine.RuleError("PRECONDITION_FAILED", "/actions/0/preconditions", message),)
    assert (state.tree(), program.legal_actions(state)) == (before, ())


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 3}, 4, "the parameter 'n' is above its maximum"),
        ({"type": "integer", "minimum": 1, "maximum": 3}, 0, "the parameter 'n' is below its minimum"),
        ({"type": "integer", "minimum": 1, "maximum": 3}, 1.5, "the parameter 'n' must be of type integer"),
        ({"type": "number", "minimum": 0, "maximum": 1}, True, "the parameter 'n' must be of type number"),
        ({"type": "string", "enum": ["x", "y"]}, "z", "the parameter 'n' is not one of the allowed values"),
        ({"type": "string", "maxLength": 2}, "😀😀😀", "the parameter 'n' is longer than 2 characters"),
        ({"type": "boolean"}, "true", "the parameter 'n' must be of type boolean"),
    ],
)
def test_illegal_parameters_are_named(
    core: Backend,
    schema: dict[str, Any],
    value: Any,
    problem: str,
) -> None:
    program = program_on(core, document(actions=[action("act", [INC_A], params={"n": schema})]))
    state = program.new_state()
    assert [reason.message for reason in program.act(state, "act", {"n": value}).reasons] == [problem]
    assert [reason.message for reason in program.act(state, "act", {"m": 1}).reasons] == [
        "'m' is not a parameter of this action",
        "the parameter 'n' is missing",
    ]


def test_an_action_whose_parameters_matter_is_legal_when_some_of_them_suit(core: Backend) -> None:
    params = {"n": {"type": "integer", "minimum": 1, "maximum": 4}}
    choosy = action("act", [INC_A], params=params, preconditions={"==": [{"var": "params.n"}, 3]})
    program = program_on(core, document(actions=[choosy]))
    legal = [program.legal_actions(program.new_state(seed)) for seed in range(50)]
    assert legal.count(("act",)) > 35


def test_an_unknown_action_is_an_error_of_the_caller(core: Backend) -> None:
    program = program_on(core, document())
    with pytest.raises(InvalidArgumentError, match="has no action 'nope'"):
        program.act(program.new_state(), "nope")


def test_looking_at_legal_actions_changes_nothing(core: Backend) -> None:
    later = {"op": "schedule", "id": "s", "after": 1, "effects": [INC_A]}
    program = program_on(core, document(actions=[action("plan", [later])]))
    state = program.new_state()
    program.act(state, "plan")
    program.step(state)
    before = state.to_json()
    program.legal_actions(state)
    assert state.to_json() == before


def test_a_fork_goes_its_own_way(core: Backend) -> None:
    program = program_on(core, document())
    state = program.new_state()
    fork = state.fork()
    program.act(fork, "act")
    program.step(fork)
    assert (state.turn, state.tree()["a"]) == (0, 10)
    assert (fork.turn, fork.tree()["a"]) == (1, 11)


def test_a_snapshot_goes_on_exactly_where_it_was_taken(core: Backend) -> None:
    later = {"op": "schedule", "id": "s", "after": 2, "effects": [DEC_A]}
    program = program_on(
        core,
        document(actions=[action("act", [INC_A, later])], random_events=certain("e", [DEC_A], duration="4h")),
    )
    state, _ = play(program, 3, act="act")
    program.act(state, "act")
    restored = program.load_state(state.to_json())
    for _ in range(4):
        assert program.step(restored) == program.step(state)
    assert restored.to_json() == state.to_json()


@pytest.mark.parametrize(
    "snapshot",
    [b"{}", b"[]", b"null", b'{"rng_version":2}', b'{"rng_version":1}', b"no"],
)
def test_a_foreign_snapshot_is_refused(core: Backend, snapshot: bytes) -> None:
    program = program_on(core, document())
    with pytest.raises(InvalidArgumentError):
        program.load_state(snapshot)


@pytest.mark.parametrize(
    "part",
    [
        {"turn": "5"},
        {"turn": 0.5},
        {"seed": 7},
        {"state": []},
        {"lasting": [{"id": "ghost", "until": 3}]},
        {"scheduled": [{"id": "s"}]},
        {"rng_version": 2},
        {"turn": -1},
        {"seed": "-1"},
        {"seed": str(2**64)},
        {"status": {}},
        {"status": {"kind": "lost", "condition": "ghost"}},
        {"lasting": [{"id": "storm"}]},
        {"log": [1]},
        {"scheduled": [{"id": "s", "due": 1.5, "effects": []}]},
        {"scheduled": [{"id": "s", "due": 2, "effects": [], "more": 1}]},
        {"scheduled": [{"id": "s", "due": 2, "effects": [{"op": "inc"}]}]},
        {"scheduled": [{"id": "s", "due": 2, "effects": [{"op": ["inc"], "path": "state.a"}]}]},
        {"scheduled": [{"id": "s", "due": 2, "effects": [{"op": "set", "path": "state", "value": 1}]}]},
        {"scheduled": [{"id": "s", "due": 2, "effects": [{"op": "schedule", "id": "t", "effects": []}]}]},
        {"log": [{"turn": 1, "message": "m", "cause": "decay", "more": 1}]},
        {"seed": "007"},
        {"seed": "+7"},
        {"turn": 1e60},
        {"status": {"kind": ["ongoing"]}},
        {"status": {"kind": "ongoing", "condition": "first"}},
        {"status": {"kind": "lost", "condition": "first", "message": "another"}},
        {"more": 1},
    ],
)
def test_a_snapshot_of_the_wrong_shape_is_refused(core: Backend, part: dict[str, Any]) -> None:
    program = program_on(core, document())
    snapshot = json.loads(program.new_state().to_json()) | part
    with pytest.raises(InvalidArgumentError) as caught:
        program.load_state(engine.canonicalize(snapshot))
    assert caught.value.code == "SNAPSHOT_INVALID"


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused(core: Backend, seed: int) -> None:
    with pytest.raises(InvalidArgumentError, match="seed must be"):
        program_on(core, document()).new_state(seed)


def test_the_hash_is_sha256_of_the_canonical_tree(core: Backend) -> None:
    state = program_on(core, document(state={"b": 1.0, "a": [True]})).new_state()
    assert state.hash() == hashlib.sha256(b'{"a":[true],"b":1}').hexdigest()


def test_rules_see_the_number_of_the_turn_and_the_entities(core: Backend) -> None:
    when = {"and": [{">=": [{"var": "turn"}, 3]}, {"==": [{"var": "entities.0.id"}, "p"]}]}
    program = program_on(
        core,
        document(entities=[{"id": "p"}], loss_conditions=[{"id": "third", "when": when}, never("b")]),
    )
    _, results = play(program, 3)
    assert [result.status.kind for result in results] == ["ongoing", "ongoing", "lost"]

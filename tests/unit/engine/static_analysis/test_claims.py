"""Of each kind of claim one that is found, and one that is nearly true and is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import InvalidArgumentError, Severity
from support.engine.backends import program_on
from support.engine.specs import action, at_most, document, event

if TYPE_CHECKING:
    from peripety.engine import Program, Proof
    from peripety.engine.backend_protocol import Backend


A, B = "state.a", "state.b"


def at_least(name: str, path: str, limit: float) -> dict[str, Any]:
    return {"id": name, "when": {">=": [{"var": path}, limit]}}


def op(name: str, path: str, value: Any) -> dict[str, Any]:
    return {"op": name, "path": path, "value": value}


def sound(core: Backend, **parts: Any) -> Program:
    """A scenario about which nothing can be claimed, but for what `parts` replace."""
    whole: dict[str, Any] = {
        "state": {"a": 10, "b": 2, "word": "x", "items": [1]},
        "horizon": 20,
        "actions": [action("up", [op("inc", A, 2)]), action("down", [op("dec", A, 3)])],
        "random_events": [event("hit", [op("dec", B, 1)])],
        "loss_conditions": [at_most("out", A, 0), at_most("spent", B, 0)],
        "win_conditions": [at_least("up", A, 50)],
    }
    return program_on(core, document(**{**whole, **parts}))


def claims(program: Program, horizon: int | None = None) -> list[tuple[str, str]]:
    return [(proof.code, proof.path) for proof in program.prove(horizon)]


def only(program: Program, code: str) -> Proof:
    """The one finding there is."""
    (proof,) = program.prove()
    assert proof.code == code
    return proof


def test_nothing_is_claimed_of_a_sound_scenario(core: Backend) -> None:
    assert sound(core).prove() == ()


def test_a_win_that_is_reached_in_the_last_turn_is_reachable_and_one_turn_less_is_not(core: Backend) -> None:
    program = sound(core)
    assert program.prove(20) == ()
    (proof,) = program.prove(19)
    assert (proof.code, proof.path, proof.severity) == (
        "UNREACHABLE_WIN",
        "/win_conditions/0",
        Severity.ERROR,
    )
    assert "state.a starts at 10 and stays between" in proof.argument
    assert "action up +2" in proof.argument
    assert "48" in proof.argument
    assert proof.witness == ()


def test_one_unreachable_win_among_others_is_a_warning(core: Backend) -> None:
    program = sound(core, win_conditions=[at_least("up", A, 50), at_least("far", A, 51)])
    assert only(program, "UNREACHABLE_WIN").severity is Severity.WARNING


@pytest.mark.parametrize(("limit", "reachable"), [(5, True), (4, False)])
def test_preconditions_bound_what_an_action_can_reach(core: Backend, limit: int, reachable: bool) -> None:
    climb = action("climb", [op("inc", A, 1)], preconditions={"<": [{"var": A}, limit]})
    program = sound(
        core,
        state={"a": 1, "b": 2},
        actions=[climb, action("down", [op("dec", A, 1)])],
        win_conditions=[{"id": "up", "when": {">": [{"var": A}, 4]}}],
    )
    assert (program.prove() == ()) is reachable


def test_a_win_is_unreachable_when_a_loss_that_holds_first_preempts_it(core: Backend) -> None:
    program = sound(core, loss_conditions=[at_least("over", A, 30), at_most("spent", B, 0)])
    assert claims(program) == [("UNREACHABLE_WIN", "/win_conditions/0")]


def test_parts_that_cannot_hold_together_are_found(core: Backend) -> None:
    both = {"and": [{">": [{"var": A}, 20]}, {"!": [{">": [{"var": A}, 15]}]}]}
    assert claims(sound(core, win_conditions=[{"id": "w", "when": both}])) == [
        ("UNREACHABLE_WIN", "/win_conditions/0"),
    ]


@pytest.mark.parametrize(("limit", "codes"), [(-50, []), (-51, ["IMPOSSIBLE_LOSS"])])
def test_an_impossible_loss_is_found(core: Backend, limit: int, codes: list[str]) -> None:
    program = sound(
        core,
        loss_conditions=[at_most("out", A, limit), at_most("spent", B, 0)],
    )
    assert [proof.code for proof in program.prove()] == codes
    assert all(proof.severity is Severity.WARNING for proof in program.prove())


def test_it_is_an_error_when_no_loss_is_possible(core: Backend) -> None:
    program = sound(core, loss_conditions=[at_most("out", A, -500), at_most("spent", B, -500)])
    assert [proof.severity for proof in program.prove()] == [Severity.ERROR, Severity.ERROR]


def decaying(core: Backend, *, gain: int) -> Program:
    return sound(
        core,
        actions=[action("up", [op("inc", A, gain)])],
        win_conditions=[],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {A: 2}},
    )


def test_a_certain_loss_is_found_with_the_turn_by_which_it_comes(core: Backend) -> None:
    proof = only(decaying(core, gain=1), "CERTAIN_LOSS")
    assert (proof.path, proof.severity) == ("/loss_conditions/0", Severity.ERROR)
    assert "at the end of turn 10" in proof.argument
    assert decaying(core, gain=1).prove(9) == ()


def test_a_loss_that_an_action_can_hold_off_is_not_certain(core: Backend) -> None:
    assert decaying(core, gain=2).prove() == ()


def test_a_loss_before_which_a_run_can_be_won_is_not_certain(core: Backend) -> None:
    program = sound(
        core,
        loss_conditions=[{"id": "late", "when": {">=": [{"var": "turn"}, 10]}}, at_most("out", A, 0)],
        win_conditions=[at_least("up", A, 20)],
    )
    assert program.prove() == ()


@pytest.mark.parametrize(("limit", "codes"), [(28, []), (29, ["DEAD_ACTION"])])
def test_a_dead_action_is_found_whatever_its_parameters(core: Backend, limit: int, codes: list[str]) -> None:
    amount = {"type": "integer", "minimum": 1, "maximum": 8}
    within = {"<=": [limit, {"+": [{"var": "params.n"}, {"var": A}]}]}
    rich = action("rich", [], params={"n": amount}, preconditions=within)
    grown = sound(
        core,
        horizon=6,
        actions=[rich, action("up", [op("inc", A, 2)]), action("down", [op("dec", A, 3)])],
        win_conditions=[],
    )
    assert [proof.code for proof in grown.prove() if proof.code == "DEAD_ACTION"] == codes


@pytest.mark.parametrize(("word", "codes"), [("y", []), ("z", ["DEAD_EVENT"])])
def test_a_dead_event_is_found(core: Backend, word: str, codes: list[str]) -> None:
    when = {"==": [{"var": "state.word"}, word]}
    program = sound(
        core,
        actions=[action("turn", [op("set", "state.word", "y")]), action("up", [op("inc", A, 2)])],
        random_events=[event("hit", [op("dec", B, 1)]), event("rare", [op("dec", A, 20)], when=when)],
        win_conditions=[],
    )
    assert [proof.code for proof in program.prove() if proof.code == "DEAD_EVENT"] == codes


def test_scheduled_effects_are_part_of_what_can_be_reached(core: Backend) -> None:
    later = {"op": "schedule", "id": "later", "after": 3, "effects": [op("inc", A, 40)]}
    program = sound(core, actions=[action("plan", [later]), action("down", [op("dec", A, 3)])])
    unreachable = ("UNREACHABLE_WIN", "/win_conditions/0")
    assert unreachable not in claims(program, 4)
    assert unreachable in claims(program, 3)


def test_an_event_that_lasts_happens_once_in_each_of_its_turns(core: Backend) -> None:
    long = event("long", [op("inc", A, 10)], duration="3h")
    program = sound(core, random_events=[long, event("hit", [op("dec", B, 1)])])
    unreachable = ("UNREACHABLE_WIN", "/win_conditions/0")
    assert unreachable not in claims(program, 4)
    assert unreachable in claims(program, 3)


@pytest.mark.parametrize(("most", "codes"), [(3, []), (4, ["DEAD_EVENT"])])
def test_a_bound_on_how_many_items_there_are_bounds_the_array(
    core: Backend,
    most: int,
    codes: list[str],
) -> None:
    held = {"reduce": [{"var": "state.items"}, {"+": [{"var": "accumulator"}, 1]}, 0]}
    add = action("add", [op("push", "state.items", 1)], preconditions={"<": [held, 3]})
    full = event("full", [op("dec", A, 1)], when={">=": [held, most]})
    program = sound(
        core,
        actions=[*sound(core).spec["actions"], add],
        random_events=[event("hit", [op("dec", B, 1)]), full],
    )
    assert [proof.code for proof in program.prove()] == codes


def test_a_number_that_runs_away_is_found_with_a_run_that_shows_it(core: Backend) -> None:
    late = {"id": "late", "when": {"and": [{"==": [{"var": "turn"}, 20]}, {"<=": [{"var": A}, 3]}]}}
    free = sound(
        core,
        actions=[action("grow", [op("mul", A, 10)]), action("down", [op("dec", A, 3)])],
        loss_conditions=[at_most("out", A, 0), late],
        win_conditions=[],
    )
    proof = only(free, "RUNAWAY_GROWTH")
    assert (proof.path, proof.severity) == ("/actions/0", Severity.WARNING)
    assert [call.action_id for call in proof.witness] == ["grow"] * 15
    assert "RUNAWAY_GROWTH" not in [proof.code for proof in free.prove(14)]


def test_steady_growth_is_no_runaway(core: Backend) -> None:
    assert (
        sound(core, actions=[action("up", [op("inc", A, 1e9)]), action("down", [op("dec", A, 3)])]).prove()
        == ()
    )


def test_growth_that_an_upper_bound_allows_and_no_run_shows_is_not_claimed(core: Backend) -> None:
    """The action is illegal above 100, but the interval bound of the product ignores this."""
    held = action("grow", [op("mul", A, 10)], preconditions={"<": [{"var": A}, 100]})
    program = sound(core, actions=[held, action("down", [op("dec", A, 3)])])
    assert program.prove() == ()


def test_a_rule_that_meets_what_another_has_set_is_found_with_the_run(core: Backend) -> None:
    program = sound(
        core,
        actions=[
            action("up", [op("inc", A, 2)]),
            action("down", [op("dec", A, 3)]),
            action("name", [op("set", B, "word")]),
        ],
    )
    proof = next(proof for proof in program.prove() if proof.code == "TYPE_ERROR")
    assert (proof.path, proof.severity) == ("/random_events/0/effects/0", Severity.ERROR)
    state = program.new_state()
    for call in proof.witness[:-1]:
        program.act(state, call.action_id, call.params)
        program.step(state)
    call = proof.witness[-1]
    errors = [*program.act(state, call.action_id, call.params).errors] if call.action_id else []
    errors += program.step(state).errors
    assert proof.path in [error.rule for error in errors]


def test_a_rule_that_always_fails_is_found(core: Backend) -> None:
    broken = action("split", [op("set", B, "d")], derives={"d": {"/": [{"var": A}, 0]}})
    program = sound(core, actions=[*sound(core).spec["actions"], broken])
    proof = only(program, "TYPE_ERROR")
    assert proof.path == "/actions/2/derives/d"


@pytest.mark.parametrize("guard", [{"!=": [{"var": B}, 0]}, {">": [{"var": B}, 0]}])
def test_a_division_behind_its_guard_is_no_error(core: Backend, guard: dict[str, Any]) -> None:
    share = {"and": [guard, {">": [{"/": [{"var": A}, {"var": B}]}, 1]}]}
    program = sound(core, actions=[*sound(core).spec["actions"], action("share", [], preconditions=share)])
    assert program.prove() == ()


def test_proofs_are_the_same_each_time_and_of_both_cores(core: Backend) -> None:
    program = decaying(core, gain=1)
    assert program.prove() is program.prove()
    assert program.prove(20) == program.prove()


def test_what_takes_too_much_work_is_left_unproved(core: Backend) -> None:
    many = [action(f"a{n}", [op("inc", A, 1)] * 8) for n in range(500)]
    assert sound(core, actions=many, horizon=1000, win_conditions=[at_least("far", A, 1e12)]).prove() == ()


@pytest.mark.parametrize("horizon", [0, 1001, 1.5])
def test_a_horizon_out_of_range_is_refused(core: Backend, horizon: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="horizon"):
        sound(core).prove(horizon)


@pytest.mark.parametrize(
    "text",
    [
        {"and": 3 * [{"!=": [{"cat": ["x" * 30_000, "a"]}, "b"]}]},
        {"and": 2 * [{"!=": [{"substr": ["x" * 65_000, 0]}, "b"]}]},
        {"and": 300 * [{"!": {"in": ["y", {"var": "state.word"}]}}]},
    ],
)
def test_a_condition_that_may_need_too_much_is_not_certain(core: Backend, text: dict[str, Any]) -> None:
    program = sound(
        core,
        state={"a": 10, "b": 2, "word": "x" * 65_000, "items": [1]},
        loss_conditions=[{"id": "long", "when": text}, at_most("spent", B, 0)],
    )
    assert program.dry_run(runs=4, horizon=2).losses["long"] == 0
    assert "CERTAIN_LOSS" not in {code for code, _ in claims(program)}

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import PERSONAS
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from support.engine.backends import program_on
from support.engine.specs import action, at_most, document, event, never

if TYPE_CHECKING:
    from peripety.engine import Persona, Program, State
    from peripety.engine.backend_protocol import Backend


DEC_A = {"op": "dec", "path": "state.a", "value": 1}
INC_A = {"op": "inc", "path": "state.a", "value": 1}
LATER = {"op": "schedule", "id": "later", "after": 3, "effects": [{**DEC_A, "value": 100}]}


def risky(core: Backend, **parts: Any) -> Program:
    return program_on(
        core,
        document(
            state={"a": 4},
            horizon=12,
            actions=[action("up", [INC_A]), action("wait", []), action("plan", [LATER])],
            random_events=[
                event("hit", [DEC_A], weight=0.3),
                event("storm", [DEC_A], weight=0.2, duration="3h"),
            ],
            loss_conditions=[at_most("out", "state.a", 0), never("b")],
            win_conditions=[{"id": "up", "when": {">=": [{"var": "state.a"}, 8]}}],
            **parts,
        ),
    )


def futures(program: Program, state: State, **options: Any) -> Any:
    return program.simulate_from(state, **{"runs": 40, "seed": 7, "horizon": 12, "digest": True, **options})


@pytest.mark.parametrize("persona", PERSONAS)
def test_the_futures_of_the_initial_state_are_a_dry_run(core: Backend, persona: Persona) -> None:
    program = risky(core)
    options: dict[str, Any] = {"runs": 12, "persona": persona, "horizon": 6, "first_run": 3}
    assert futures(program, program.new_state(99), **options) == program.dry_run(
        seed=7,
        digest=True,
        **options,
    )


def test_turns_and_the_horizon_are_counted_from_the_state(core: Backend) -> None:
    program = program_on(core, document(horizon=5))
    state = program.new_state()
    for _ in range(3):
        program.step(state)
    report = futures(program, state, runs=10, horizon=4)
    assert (report.survived, report.turns, report.horizon) == (10, 40, 4)


def test_a_run_goes_on_from_the_tree_and_the_turn_of_the_state(core: Backend) -> None:
    late = {"id": "late", "when": {"and": [{">": [{"var": "turn"}, 5]}, {"==": [{"var": "state.a"}, 12]}]}}
    program = program_on(core, document(actions=[action("up", [INC_A])], win_conditions=[late]))
    state = program.new_state()
    for _ in range(2):
        program.act(state, "up")
    for _ in range(4):
        program.step(state)
    report = futures(program, state, persona="idle", runs=3)
    assert (report.wins["late"], report.turns) == (3, 6)


def test_what_is_pending_happens_in_every_future(core: Backend) -> None:
    program = risky(core)
    state = program.new_state()
    assert program.act(state, "plan").accepted
    program.step(state)
    report = futures(program, state, persona="idle", runs=8, horizon=3)
    assert report.losses["out"] == 8
    assert report.turns == 24


def test_what_lasts_goes_on_in_every_future(core: Backend) -> None:
    storm = event("storm", [DEC_A], weight=1, duration="3h")
    program = program_on(
        core,
        document(
            state={"a": 3},
            random_events=[storm],
            loss_conditions=[at_most("out", "state.a", 0), never("b")],
        ),
    )
    state = program.new_state()
    program.step(state)
    report = futures(program, state, persona="idle", runs=5)
    assert (report.losses["out"], report.turns) == (5, 10)


def test_the_luck_is_that_of_the_seed_and_not_of_the_state(core: Backend) -> None:
    program = risky(core)
    reports = [futures(program, program.new_state(seed)) for seed in (1, 2)]
    assert reports[0] == reports[1]
    assert futures(program, program.new_state(1), seed=8) != reports[0]


def test_the_state_is_not_touched(core: Backend) -> None:
    program = risky(core)
    state = program.new_state()
    program.act(state, "plan")
    before = state.to_json()
    futures(program, state)
    assert state.to_json() == before


def test_a_state_goes_on_as_its_snapshot_does(core: Backend) -> None:
    program = risky(core)
    state = program.new_state()
    program.act(state, "plan")
    program.roll(state, "k", difficulty=9)
    assert futures(program, program.load_state(state.to_json())) == futures(program, state)


def test_a_persona_acts_in_the_current_turn_unless_all_is_done(core: Backend) -> None:
    win = [{"id": "up", "when": {">": [{"var": "state.a"}, 10]}}]
    program = program_on(core, document(actions=[action("up", [INC_A])], win_conditions=win))
    state = program.new_state()
    for options, turns in (({"acted": False}, 1), ({"acted": True}, 2)):
        for persona in ("random", "greedy", "planner"):
            report = futures(program, state, persona=persona, runs=4, horizon=3, **options)
            assert (report.won, report.turns) == (4, 4 * turns), (persona, options)


def test_what_was_done_on_a_fork_is_what_every_future_begins_with(core: Backend) -> None:
    program = risky(core)
    state = program.new_state()
    fork = state.fork()
    program.act(fork, "up")
    program.act(fork, "up")
    chosen = futures(program, fork, persona="idle", acted=True)
    assert chosen.losses["out"] < futures(program, state, persona="idle").losses["out"]


def test_two_ranges_together_are_the_whole_range(core: Backend) -> None:
    program = risky(core)
    state = program.new_state()
    program.act(state, "plan")
    program.step(state)
    parts = [
        futures(program, state, runs=runs, first_run=first, digest=False)
        for first, runs in ((5, 64), (69, 32))
    ]
    assert parts[0].merge(parts[1]) == futures(program, state, runs=96, first_run=5, digest=False)


def test_neither_threads_nor_repetition_show_in_a_report(core: Backend) -> None:
    program = risky(core)
    state = program.new_state()
    program.step(state)
    reports = [futures(program, state, runs=3_000, horizon=2, threads=threads) for threads in (1, 2)]
    assert reports[0] == reports[1]


def test_a_rule_that_fails_in_a_future_is_counted(core: Backend) -> None:
    drop = action("drop", [{"op": "pop", "path": "state.list"}])
    program = program_on(core, document(state={"a": 1, "list": [1]}, actions=[drop]))
    state = program.new_state()
    assert futures(program, state, runs=3, horizon=1).errors == ()
    assert program.act(state, "drop").accepted
    (error,) = futures(program, state, runs=3, horizon=1).errors
    assert (error.code, error.rule, error.count) == ("EMPTY_ARRAY", "/actions/0/effects/0", 3)


def test_a_run_that_has_ended_has_no_future(core: Backend) -> None:
    program = program_on(core, document(loss_conditions=[{"id": "now", "when": {}}, never("b")]))
    state = program.new_state()
    program.step(state)
    with pytest.raises(FailedPreconditionError) as raised:
        futures(program, state)
    assert raised.value.code == "RUN_ENDED"


@pytest.mark.parametrize(
    "options",
    [
        {"runs": 0},
        {"first_run": -1},
        {"horizon": 0},
        {"horizon": 1001},
        {"seed": -1},
        {"threads": 0},
        {"persona": "nobody"},
    ],
)
def test_options_out_of_range_are_refused(core: Backend, options: dict[str, Any]) -> None:
    program = risky(core)
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        futures(program, program.new_state(), **options)

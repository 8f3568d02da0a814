from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import InvalidArgumentError
from support.engine.backends import program_on
from support.engine.specs import action, at_most, document, event, never

if TYPE_CHECKING:
    from peripety.engine import Program
    from peripety.engine.backend_protocol import Backend


DEC_A = {"op": "dec", "path": "state.a", "value": 1}
INC_A = {"op": "inc", "path": "state.a", "value": 1}


def risky(core: Backend, **parts: Any) -> Program:
    return program_on(
        core,
        document(
            state={"a": 4},
            horizon=12,
            actions=[action("up", [INC_A]), action("wait", [])],
            random_events=[event("hit", [DEC_A], weight=0.3), event("blow", [DEC_A, DEC_A], weight=0.3)],
            loss_conditions=[at_most("out", "state.a", 0), never("b")],
            win_conditions=[{"id": "up", "when": {">=": [{"var": "state.a"}, 8]}}],
            **parts,
        ),
    )


def test_runs_and_turns_are_counted_separately_and_add_up(core: Backend) -> None:
    report = risky(core).dry_run(runs=100)
    assert report.runs == 100
    assert report.lost + report.won + report.survived + report.errored == 100
    assert sum(report.losses.values()) == report.lost
    assert sum(report.wins.values()) == report.won
    assert 100 <= report.turns <= 1200
    assert report.fail_rate == report.lost / 100


def test_the_same_seed_gives_the_same_report_and_another_seed_another(core: Backend) -> None:
    program = risky(core)
    assert program.dry_run(runs=64) == program.dry_run(runs=64)
    assert program.dry_run(runs=64).turns != program.dry_run(runs=64, seed=99).turns


def test_two_ranges_together_are_the_whole_range(core: Backend) -> None:
    program = risky(core)
    parts = program.dry_run(runs=64, first_run=5).merge(program.dry_run(runs=32, first_run=69))
    assert parts == program.dry_run(runs=96, first_run=5)


def test_two_ranges_together_have_no_digest(core: Backend) -> None:
    program = risky(core)
    parts = [program.dry_run(runs=2, first_run=first, digest=True) for first in (0, 2)]
    assert parts[0].merge(parts[1]).digest is None


def test_a_rule_that_fails_in_both_ranges_stands_in_the_whole_once(core: Backend) -> None:
    pop = event("even", [{"op": "pop", "path": "state.list"}])
    program = program_on(core, document(random_events=[pop], horizon=20))
    whole = program.dry_run(runs=6)
    assert program.dry_run(runs=4).merge(program.dry_run(runs=2, first_run=4)) == whole
    assert [(error.code, error.rule) for error in whole.errors] == [
        ("EMPTY_ARRAY", "/random_events/0/effects/0"),
    ]


def test_a_run_does_not_disturb_the_next_or_the_document(core: Backend) -> None:
    program = risky(core)
    first = program.dry_run(runs=1, first_run=5)
    program.dry_run(runs=50)
    assert program.dry_run(runs=1, first_run=5) == first
    assert program.new_state().tree() == {"a": 4}


def test_a_scenario_without_danger_is_survived_and_one_without_hope_is_lost(core: Backend) -> None:
    safe = program_on(core, document(horizon=5)).dry_run(runs=10)
    doomed = program_on(core, document(loss_conditions=[{"id": "now", "when": {}}, never("b")])).dry_run(
        runs=10,
    )
    assert (safe.survived, safe.turns) == (10, 50)
    assert (doomed.lost, doomed.turns) == (10, 10)


def test_an_action_without_conditions_is_available(core: Backend) -> None:
    """The empty condition is true here as in play: a spec that is easy must not pass as hard."""
    program = program_on(core, document(actions=[action("act", [INC_A])], horizon=3))
    state = program.new_state()
    assert program.legal_actions(state) == ("act",)
    report = program.dry_run(runs=5)
    assert report.lost == 0


def test_idle_does_nothing_and_random_acts(core: Backend) -> None:
    win = [{"id": "up", "when": {">": [{"var": "state.a"}, 10]}}]
    program = program_on(core, document(win_conditions=win, horizon=3))
    assert program.dry_run(runs=4, persona="idle").won == 0
    assert program.dry_run(runs=4, persona="random").won == 4


def test_random_chooses_evenly_among_legal_actions_and_parameters(core: Backend) -> None:
    params = {"n": {"type": "integer", "minimum": 1, "maximum": 4}}
    win = [{"id": f"w{n}", "when": {"==": [{"var": "state.a"}, n]}} for n in range(1, 5)]
    chosen = action("act", [{"op": "set", "path": "state.a", "value": "n"}], params=params)
    chosen["derives"] = {"n": {"var": "params.n"}}
    program = program_on(core, document(state={"a": 0}, actions=[chosen], win_conditions=win))
    report = program.dry_run(runs=800)
    assert report.won == 800
    assert all(150 < count < 250 for count in report.wins.values())


def test_failing_rules_are_counted_with_their_place(core: Backend) -> None:
    program = program_on(
        core,
        document(
            state={"a": 1, "empty": []},
            horizon=4,
            actions=[action("act", [{"op": "pop", "path": "state.empty"}])],
        ),
    )
    (error,) = program.dry_run(runs=3).errors
    assert (error.code, error.rule, error.count) == ("EMPTY_ARRAY", "/actions/0/effects/0", 12)


def test_a_run_that_outgrows_its_limits_ends_as_errored(core: Backend) -> None:
    grow = action("act", [{"op": "push", "path": "state.list", "value": list(range(4000))}])
    report = program_on(core, document(actions=[grow], horizon=10)).dry_run(runs=2)
    assert (report.errored, report.errors[0].code, report.errors[0].count) == (2, "STATE_LIMIT", 2)


@pytest.mark.parametrize(
    "options",
    [
        {"runs": 0},
        {"runs": 1.5},
        {"runs": 10_000_000},
        {"first_run": -1},
        {"horizon": 0},
        {"persona": "nobody"},
    ],
)
def test_options_out_of_range_are_refused(core: Backend, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        program_on(core, document()).dry_run(**options)


def test_the_horizon_can_be_shortened(core: Backend) -> None:
    assert program_on(core, document()).dry_run(runs=2, horizon=3).turns == 6


def test_params_that_rarely_suit_are_drawn_anew(core: Backend) -> None:
    params = {"n": {"type": "integer", "minimum": 0, "maximum": 9}}
    choosy = action("act", [INC_A], params=params, preconditions={"<": [{"var": "params.n"}, 2]})
    win = [{"id": "acted", "when": {">": [{"var": "state.a"}, 10]}}]
    program = program_on(core, document(actions=[choosy], win_conditions=win))
    report = program.dry_run(runs=200, horizon=1)
    assert 0.75 < report.won / 200 < 0.92


def test_a_precondition_that_fails_is_reported_and_never_passed_over(core: Backend) -> None:
    """Otherwise an unplayable scenario would look hard, and pass."""
    blocked = action("act", [INC_A], preconditions={">": [{"/": [1, {"var": "state.zero"}]}, 0]})
    report = program_on(core, document(state={"a": 1, "zero": 0}, actions=[blocked], horizon=3)).dry_run(
        runs=2,
    )
    (error,) = report.errors
    assert (error.code, error.rule, error.count) == ("DIVISION_BY_ZERO", "/actions/0/preconditions", 6)

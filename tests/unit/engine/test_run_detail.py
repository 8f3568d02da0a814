from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import PERSONAS, ActionUse, RunDetail
from peripety.errors import InvalidArgumentError
from support.engine.backends import program_on
from support.engine.specs import action, at_most, document, event, never

if TYPE_CHECKING:
    from peripety.engine import DryRunReport, Program
    from peripety.engine.backend_protocol import Backend


DEC_A = {"op": "dec", "path": "state.a", "value": 1}
INC_A = {"op": "inc", "path": "state.a", "value": 1}


def detail_of(report: DryRunReport) -> RunDetail:
    assert report.detail is not None
    return report.detail


def busy(core: Backend) -> Program:
    return program_on(
        core,
        document(
            state={"a": 4, "list": [1], "note": "n"},
            horizon=12,
            actions=[action("up", [INC_A]), action("pop", [{"op": "pop", "path": "state.list"}, DEC_A])],
            random_events=[event("hit", [DEC_A]), event("blow", [DEC_A, DEC_A], duration="2h")],
            loss_conditions=[at_most("out", "state.a", 0), never("b")],
            win_conditions=[{"id": "up", "when": {">=": [{"var": "state.a"}, 8]}}],
        ),
    )


@pytest.mark.parametrize("persona", PERSONAS)
def test_the_detail_adds_up_to_the_report(core: Backend, persona: Any) -> None:
    report = busy(core).dry_run(runs=12, persona=persona, detail=True)
    detail = detail_of(report)
    assert sum(detail.lost_turns.values()) == report.lost
    assert sum(detail.won_turns.values()) == report.won
    assert [*detail.lost_turns] == sorted(detail.lost_turns)
    assert [*detail.won_turns] == sorted(detail.won_turns)
    assert set(detail.actions) == {"up", "pop"}
    assert all(0 <= use.taken <= use.legal <= report.turns for use in detail.actions.values())
    assert sum(use.taken for use in detail.actions.values()) <= report.turns
    assert 0 < sum(detail.events.values()) <= report.turns


@pytest.mark.parametrize("persona", PERSONAS)
def test_to_ask_for_detail_changes_nothing_else(core: Backend, persona: Any) -> None:
    program = busy(core)
    plain = program.dry_run(runs=8, persona=persona, digest=True)
    detailed = program.dry_run(runs=8, persona=persona, digest=True, detail=True)
    assert plain.detail is None
    assert detailed.detail is not None
    assert detailed.digest == plain.digest
    assert (detailed.turns, detailed.errors, detailed.losses) == (plain.turns, plain.errors, plain.losses)


def test_turns_choices_events_and_moves_are_counted_one_by_one(core: Backend) -> None:
    program = program_on(
        core,
        document(
            state={"a": 3, "b": 0},
            actions=[
                action("down", [DEC_A]),
                action("never", [], preconditions={"<": [{"var": "state.a"}, 0]}),
                action("late", [], preconditions={">=": [{"var": "turn"}, 2]}),
            ],
            loss_conditions=[at_most("out", "state.a", 0), never("b")],
        ),
    )
    report = program.dry_run(runs=2, persona="saboteur", detail=True, watch={"state.a": 2, "state.b": 1})
    assert detail_of(report) == RunDetail(
        lost_turns={3: 2},
        won_turns={},
        actions={"down": ActionUse(6, 6), "never": ActionUse(0, 0), "late": ActionUse(4, 0)},
        events={},
        moves={"state.a": -2 * 3 * 2**19, "state.b": 0},
    )


def test_an_action_that_is_rejected_was_not_taken(core: Backend) -> None:
    pop = action("pop", [{"op": "pop", "path": "state.list"}])
    program = program_on(core, document(state={"a": 1, "list": [1, 2]}, actions=[pop], horizon=5))
    detail = detail_of(program.dry_run(runs=3, detail=True))
    assert detail.actions == {"pop": ActionUse(15, 6)}


def test_idle_looks_at_no_choices(core: Backend) -> None:
    detail = detail_of(program_on(core, document(horizon=5)).dry_run(runs=3, persona="idle", detail=True))
    assert detail.actions == {"act": ActionUse(0, 0)}


def test_an_event_counts_when_it_is_drawn_whether_or_not_it_fails_or_lasts(core: Backend) -> None:
    failing = event("fail", [{"op": "pop", "path": "state.list"}])
    lasting = event("last", [DEC_A], duration="50h")
    program = program_on(
        core,
        document(state={"a": 1, "list": []}, random_events=[failing, lasting], horizon=50),
    )
    report = program.dry_run(runs=4, persona="idle", detail=True)
    detail = detail_of(report)
    assert detail.events == {"fail": report.errors[0].count, "last": 4}


def test_a_run_that_outgrows_its_limits_counts_what_came_before(core: Backend) -> None:
    grow = action("grow", [{"op": "push", "path": "state.list", "value": list(range(4000))}, INC_A])
    program = program_on(core, document(state={"a": 0, "list": []}, actions=[grow], horizon=10))
    report = program.dry_run(runs=2, detail=True, watch={"state.a": 1})
    detail = detail_of(report)
    assert (report.errored, report.turns) == (2, 4)
    assert detail.actions == {"grow": ActionUse(6, 4)}
    assert (detail.lost_turns, detail.won_turns) == ({}, {})
    assert detail.moves == {"state.a": 2 * 2 * 2**20}


@pytest.mark.parametrize(
    ("path", "scale", "move"),
    [
        ("state.up", 1, 100 * 2**20),
        ("state.up", 0.001, 4096 * 2**20),
        ("state.down", 0.001, -4096 * 2**20),
        ("state.up", 3, 34952533),
        ("state.down", 3, -34952534),
        ("state.huge", 1e308, -4096 * 2**20),
        ('state["odd key"]', 1, 2**20),
        ("state.list[1]", 1, 5 * 2**20),
        ("state.list[7]", 1, 0),
        ("state.note", 1, 0),
        ("state.retyped", 1, 0),
        ("state.made", 1, 0),
        ("state.flag", 1, 0),
        ("state", 1, 0),
    ],
)
def test_a_move_is_cut_at_4096_scales_and_rounded_down(
    core: Backend,
    path: str,
    scale: float,
    move: float,
) -> None:
    changes = {
        "state.up": 100,
        "state.down": -100,
        "state.huge": -1.7e308,
        'state["odd key"]': 2,
        "state.list[1]": 7,
        "state.retyped": "x",
        "state.made": 5,
        "state.flag": True,
    }
    effects = [{"op": "set", "path": name, "value": value} for name, value in changes.items()]
    state = {"up": 0, "down": 0, "huge": 1.7e308, "odd key": 1, "list": [1, 2], "note": "n", "retyped": 1}
    program = program_on(
        core,
        document(state={**state, "flag": False}, actions=[action("act", effects)], horizon=1),
    )
    report = program.dry_run(runs=1, detail=True, watch={path: scale})
    assert detail_of(report).moves == {path: move}


@pytest.mark.parametrize("watch", [{"a..b": 1}, {"params.n": 1}, {"": 1}])
def test_what_is_no_path_into_the_state_is_not_watched(core: Backend, watch: dict[str, float]) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        program_on(core, document()).dry_run(runs=1, detail=True, watch=watch)
    assert refused.value.code == "BAD_PATH"


@pytest.mark.parametrize("scale", [0, -1, float("inf"), float("nan")])
def test_a_scale_is_more_than_nothing(core: Backend, scale: float) -> None:
    with pytest.raises(InvalidArgumentError, match=r"scale of 'state\.a'"):
        program_on(core, document()).dry_run(runs=1, detail=True, watch={"state.a": scale})

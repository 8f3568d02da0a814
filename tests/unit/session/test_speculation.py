from __future__ import annotations

from typing import Any

import pytest

from peripety import engine
from peripety.errors import ResourceExhaustedError
from peripety.session.events import ActionResolved, Rolled, WorldResolved
from peripety.session.speculation import SpeculativeTurn, TurnRestarted, begin_turn
from peripety.session.turn_transaction import TurnTransaction
from peripety.session.types import DieRollRequest, PlayerAction
from support.engine.specs import action, at_most, document, event, never

STEP = {"op": "inc", "path": "state.a", "value": 1}
MINE = {"op": "inc", "path": "state.a", "value": 1}
BEYOND = {"op": "inc", "path": "state.a", "value": 1_000}
DIE = DieRollRequest("k", 10)


def staged(*actions: str, **parts: Any) -> SpeculativeTurn:
    program = engine.compile(document(**({"actions": [action("act", [STEP])]} | parts)))
    board = TurnTransaction(program, program.new_state().to_json())
    stage, _ = begin_turn(board, [PlayerAction(name, {}) for name in actions])
    assert stage is not None
    return stage


def kinds(events: object) -> list[str]:
    assert isinstance(events, tuple)
    return [type(event).__name__ for event in events]


def test_what_was_told_is_not_told_again() -> None:
    stage = staged("act")
    assert kinds(stage.finish()) == ["WorldResolved"]
    assert stage.finish() == ()
    assert stage.result == stage.preview()


def test_dice_and_actions_of_the_narrator_are_told_at_once_and_stay() -> None:
    stage = staged("act")
    (act,) = stage.act(PlayerAction("act", {}))
    rolled = stage.roll(DIE)
    assert isinstance(act, ActionResolved)
    assert isinstance(rolled, Rolled)
    assert kinds(stage.finish()) == ["WorldResolved"]
    assert stage.result is not None
    assert [type(event) for event in stage.result.events] == [
        ActionResolved,
        ActionResolved,
        Rolled,
        WorldResolved,
    ]


def test_changes_before_the_world_is_told_are_told_with_it() -> None:
    stage = staged("act")
    told = stage.finish([MINE])
    assert kinds(told) == ["WorldResolved"]
    assert stage.result is not None
    world = stage.result.world
    assert world.changes[0].cause == "narrator"


def test_changes_after_the_world_was_told_make_the_turn_begin_anew() -> None:
    stage = staged("act")
    stage.finish()
    anew = stage.finish([MINE], [DIE])
    assert isinstance(anew, TurnRestarted)
    assert kinds(anew.events) == ["ActionResolved", "Rolled", "WorldResolved"]
    assert stage.finish([MINE], [DIE]) == ()


def test_true_in_the_place_of_one_is_not_what_was_told() -> None:
    grant = [{"path": "state.a", "ops": ["set"]}]
    stage = staged(narrator_scope=grant)
    stage.finish([{"op": "set", "path": "state.a", "value": 1}])
    anew = stage.finish([{"op": "set", "path": "state.a", "value": True}])
    assert isinstance(anew, TurnRestarted)
    world = anew.events[-1]
    assert isinstance(world, WorldResolved)
    assert world.changes[0].after is True


def test_only_what_was_closed_with_last_holds() -> None:
    stage = staged("act")
    untouched = stage.preview()
    stage.finish([MINE], [DIE])
    assert isinstance(stage.finish(), TurnRestarted)
    assert stage.result == untouched


def test_what_is_out_of_scope_is_objected_to_and_nothing_is_applied() -> None:
    stage = staged("act")
    before = stage.preview()
    (reason,) = stage.check_changes([MINE, BEYOND | {"path": "state.b"}])
    assert reason.code == "OUT_OF_SCOPE"
    assert stage.check_changes([MINE]) == ()
    assert stage.preview() == before


def test_a_narrator_who_was_told_how_the_turn_ends_cannot_alter_that() -> None:
    losing = {"loss_conditions": [at_most("low", "state.a", 10), never("other")], "state": {"a": 9}}
    stage = staged("act", **losing)
    # One more would save the run: who knows that it is lost may not.
    assert stage.check_changes([MINE]) == ()
    world = stage.preview().world
    assert world.status.kind == "lost"
    stage.pin_outcome(world)
    (reason,) = stage.check_changes([MINE])
    assert reason.code == "TURN_DECIDED"


def test_what_does_not_alter_the_end_of_the_turn_is_allowed_to_who_knows_it() -> None:
    stage = staged(
        "act",
        random_events=[event(f"e{n}", [{"op": "addlog", "message": "m"}]) for n in range(4)],
    )
    stage.pin_outcome(stage.preview().world)
    assert stage.check_changes([MINE]) == ()


def test_a_look_ahead_is_of_the_present() -> None:
    stage = staged()
    before = stage.preview()
    stage.act(PlayerAction("act", {}))
    assert stage.preview().state_hash != before.state_hash


def test_changes_after_which_the_turn_could_not_end_are_objected_to() -> None:
    grow = {"op": "push", "path": "state.list", "value": "x" * 60_000}
    stage = staged(
        state={"a": 1, "list": ["x" * 60_000] * 16, "b": 2},
        actions=[action("act", [grow])],
        random_events=[],
        narrator_scope=[{"path": "state.list", "ops": ["push"]}],
    )
    with pytest.raises(ResourceExhaustedError):
        stage.check_changes([grow] * 8)
    assert stage.finish() == stage.preview().events

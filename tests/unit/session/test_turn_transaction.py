from __future__ import annotations

import json
from typing import Any

import pytest

from peripety import engine
from peripety.errors import InvalidArgumentError
from peripety.session.events import ActionResolved, Event, RuleFailed, WorldResolved
from peripety.session.speculation import begin_turn
from peripety.session.turn_transaction import TurnResult, TurnTransaction, replay_turn, with_seed
from peripety.session.types import DieRollRequest, PlayerAction
from support.engine.specs import action, at_most, document, event, never

RAISE = {"op": "inc", "path": "state.a", "value": 1}


def played(program: engine.Program, snapshot: bytes, *actions: str) -> TurnResult:
    board = TurnTransaction(program, snapshot)
    for name in actions:
        board.act(PlayerAction(name, {}))
    return board.finish()


def abandoned(program: engine.Program, snapshot: bytes, *calls: PlayerAction) -> tuple[Event, ...]:
    stage, events = begin_turn(TurnTransaction(program, snapshot), calls)
    assert stage is None
    return events


def compiled(**parts: Any) -> tuple[engine.Program, bytes]:
    program = engine.compile(document(**parts))
    return program, program.new_state().to_json()


def test_a_turn_is_what_the_engine_says_it_is() -> None:
    program, snapshot = compiled(
        actions=[action("act", [RAISE])],
        random_events=[event(f"e{n}", [{"op": "addlog", "message": f"m{n}"}]) for n in range(4)],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.b": 1}},
    )
    state = program.load_state(snapshot)
    act, step = program.act(state, "act"), program.step(state)
    turn = played(program, snapshot, "act")
    assert turn.events == (
        ActionResolved("act", {}, accepted=True, reasons=(), changes=act.changes, log=()),
        WorldResolved(step.event, step.changes, step.log, (), step.status),
    )
    assert turn.changes == (*act.changes, *step.changes)
    assert turn.log == step.log != ()
    assert turn.snapshot == state.to_json()
    assert turn.state_hash == state.hash()
    assert turn.legal_actions == program.legal_actions(state)
    record = json.loads(turn.record)
    assert (record["turn"], record["event"], record["state_hash"]) == (1, step.event, state.hash())
    assert record["actions"] == [{"id": "act", "params": {}}]
    assert record["draws"] == [{"stream": "event", "turn": 1, "index": 0, "value": step.draws[0].value}]


def test_the_state_before_is_not_touched() -> None:
    program, snapshot = compiled()
    before = bytes(snapshot)
    played(program, snapshot, "act")
    assert snapshot == before
    assert played(program, snapshot, "act").record == played(program, snapshot, "act").record


def test_a_turn_without_actions_lets_the_world_move() -> None:
    program, snapshot = compiled()
    assert [type(event) for event in played(program, snapshot).events] == [WorldResolved]


def test_some_rejected_actions_do_not_stop_the_others() -> None:
    never_legal = action("no", [RAISE], preconditions={"<": [1, 0]})
    program, snapshot = compiled(actions=[never_legal, action("act", [RAISE])])
    turn = played(program, snapshot, "no", "act")
    assert [act.accepted for act in turn.actions] == [False, True]
    assert turn.actions[0].reasons[0].code == "PRECONDITION_FAILED"


def test_a_turn_whose_actions_are_all_rejected_is_abandoned_with_the_reasons() -> None:
    program, snapshot = compiled(actions=[action("no", [RAISE], preconditions={"<": [1, 0]})])
    first, second, last = abandoned(program, snapshot, PlayerAction("no", {}), PlayerAction("no", {"x": 1}))
    assert isinstance(first, ActionResolved)
    assert isinstance(second, ActionResolved)
    assert [first.reasons[0].code, second.reasons[0].code] == ["PRECONDITION_FAILED", "ILLEGAL_PARAM"]
    assert isinstance(last, RuleFailed)
    assert (last.code, last.rule, last.turn_abandoned) == (
        "ACTIONS_REJECTED",
        "/actions/0/preconditions",
        True,
    )


def test_a_turn_that_outgrows_the_state_is_abandoned() -> None:
    lists = [[0] * 200] * 49
    grow = [{"op": "push", "path": "state.list", "value": [0] * 250} for _ in range(8)]
    program, snapshot = compiled(state={"list": lists}, actions=[action("act", grow)])
    (last,) = abandoned(program, snapshot, PlayerAction("act", {}))
    assert isinstance(last, RuleFailed)
    assert (last.code, last.rule, last.turn_abandoned) == ("STATE_LIMIT", "/actions/0/effects", True)


def test_what_fell_due_stands_in_the_first_action_under_its_own_cause() -> None:
    later = {"op": "schedule", "id": "s", "after": 1, "effects": [RAISE]}
    program, snapshot = compiled(actions=[action("plan", [later]), action("act", [RAISE])])
    second = played(program, played(program, snapshot, "plan").snapshot, "act", "act")
    assert [change.cause for change in second.actions[0].changes] == ["schedule:s", "action:act"]
    assert [change.after for change in second.changes] == [11, 12, 13]


def test_what_fell_due_and_failed_is_told_beside_the_action() -> None:
    later = {"op": "schedule", "id": "s", "after": 1, "effects": [{"op": "pop", "path": "state.list"}]}
    empty = [{"op": "pop", "path": "state.list"}, {"op": "pop", "path": "state.list"}]
    program, snapshot = compiled(actions=[action("plan", [later, *empty]), action("act", [RAISE])])
    second = played(program, played(program, snapshot, "plan").snapshot, "act")
    failed = second.events[1]
    assert isinstance(failed, RuleFailed)
    assert (failed.code, failed.turn_abandoned) == ("EMPTY_ARRAY", False)
    assert json.loads(second.record)["errors"][0]["code"] == "EMPTY_ARRAY"


def test_a_rejection_is_not_told_twice() -> None:
    broken = action("broken", [{"op": "pop", "path": "state.list"}])
    program, snapshot = compiled(state={"list": [], "a": 1}, actions=[broken, action("act", [RAISE])])
    turn = played(program, snapshot, "broken", "act")
    assert [type(event) for event in turn.events] == [ActionResolved, ActionResolved, WorldResolved]


def test_when_the_run_ends_nothing_more_can_be_tried() -> None:
    program, snapshot = compiled(loss_conditions=[at_most("first", "state.b", 5), never("second")])
    turn = played(program, snapshot)
    assert turn.world.status.kind == "lost"
    assert turn.legal_actions == ()


def test_a_parameter_that_is_no_value_of_the_engines_is_refused() -> None:
    program, snapshot = compiled(actions=[action("act", params={"s": {"type": "string", "maxLength": 5}})])
    with pytest.raises(InvalidArgumentError):
        TurnTransaction(program, snapshot).act(PlayerAction("act", {"s": "x" * 70_000}))


def test_a_record_tells_all_that_it_takes_to_play_the_turn_again() -> None:
    program, snapshot = compiled(
        actions=[action("act", [RAISE])],
        random_events=[event(f"e{n}", [{"op": "addlog", "message": f"m{n}"}]) for n in range(4)],
    )
    board = TurnTransaction(program, with_seed(snapshot, 99), new_seed=99)
    board.act(PlayerAction("act", {}, "p"))
    board.roll(DieRollRequest("k", 10, "t"))
    assert board.apply_narrator_changes([{"op": "inc", "path": "state.a", "value": 1}]) == ()
    turn = board.finish()
    record = json.loads(turn.record)
    assert (record["seed"], record["actions"][0]["entity_id"]) == (99, "p")
    assert [change["cause"] for change in record["changes"]][:2] == ["action:act", "narrator"]
    assert replay_turn(program, snapshot, record) == turn


def test_what_the_narrator_changes_is_told_with_the_world() -> None:
    program, snapshot = compiled()
    board = TurnTransaction(program, snapshot)
    board.apply_narrator_changes([{"op": "inc", "path": "state.a", "value": 1}])
    turn = board.finish()
    assert turn.world.changes[0].cause == "narrator"
    assert turn.changes == turn.world.changes


def test_what_the_narrator_may_not_change_is_not_changed_at_all() -> None:
    program, snapshot = compiled()
    board = TurnTransaction(program, snapshot)
    within, beyond = ({"op": "inc", "path": "state.a", "value": value} for value in (1, 1_000))
    (reason,) = board.apply_narrator_changes([within, beyond])
    assert (reason.code, reason.rule) == ("OUT_OF_SCOPE", "/state_changes/1")
    assert board.finish().record == played(program, snapshot).record


def test_changes_that_are_rejected_leave_the_turn_as_it_was() -> None:
    later = [{"op": "schedule", "id": "s", "after": 1, "effects": [RAISE]}]
    program, snapshot = compiled(actions=[action("act", later)])
    before = played(program, snapshot, "act").snapshot
    board, untouched = (TurnTransaction(program, before) for _ in range(2))
    assert board.apply_narrator_changes([{"op": "set", "path": "state.none.more", "value": 1}])
    assert board.finish() == untouched.finish()

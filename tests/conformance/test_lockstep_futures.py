"""Futures in lockstep against the interpreter of the native core, from present states of every kind."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, cast

import pytest

from peripety.engine import canonicalize
from peripety.engine.backend_protocol import EngineError
from support.engine.backends import backend_named, lowered_document
from support.engine.seeded_specs import random_calls, random_spec
from support.engine.specs import action, at_most, document, event, never
from support.engine.vectors import called

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety_simcore._native import State

    from peripety.engine.backend_protocol import BackendProgram


Json = dict[str, Any]

# Shapes whose values have constant kinds in most scenarios, and others.
STEADY = ("numeric", "words", "params", "lasting", "long", "short")
OTHER = ("arrays", "objects", "schedules", "failing", "derives", "mixed", "growing")


def compiled(spec: Json) -> BackendProgram:
    return backend_named("native").compile(lowered_document(spec))


def native(state: Any) -> State:
    """The native state itself, beneath the interface that both cores have."""
    return cast("State", state.native)


def options(**more: Any) -> bytes:
    asked = {"runs": 66, "first_run": 0, "seed": "7", "persona": "random", "digest": True, "detail": True}
    return json.dumps({**asked, "horizon": 12, "threads": 1, **more}).encode()


def check_agreement(state: Any, **asked: Any) -> None:
    start = native(state)
    expected = start.simulate_from_with("interpreter", options(**asked))
    for name in ("baseline", "avx2", "avx512"):
        with suppress(ValueError):  # this processor lacks it
            assert start.simulate_from_with(name, options(**asked)) == expected, (name, asked)


def present(random: Random, spec: Json, program: BackendProgram, turns: int, *, mid_turn: bool) -> Any:
    """A state after some turns, or in the midst of the last; None when the run has ended before."""
    state = program.new_state(random.getrandbits(64))
    for turn in range(turns):
        legal = json.loads(program.legal_actions(state))
        *calls, step = random_calls(random, spec, legal)
        for call in calls if mid_turn and turn == turns - 1 else (*calls, step):
            with suppress(EngineError):
                called(program, state, call)
        if b"ongoing" not in state.status_json():
            return None
    return state


@pytest.mark.slow_after(3, reason="dry-runs many random scenarios on both cores")
@pytest.mark.parametrize("shape", [*STEADY, *OTHER])
def test_random_presents_come_to_the_same_in_lockstep(shape: str) -> None:
    random = Random(f"futures {shape}")
    compared = 0
    for number in range(28):
        spec = random_spec(random.getrandbits(32), shape=shape, later=number >= 20)
        with suppress(EngineError):
            state = present(
                random,
                spec,
                compiled(spec),
                random.choice((1, 2, 5)),
                mid_turn=random.random() < 0.5,
            )
            if state is None:
                continue
            compared += 1
            asked = {
                "seed": str(random.getrandbits(64)),
                "acted": random.random() < 0.5,
                "watch": [[f"state.{name}", 0.75] for name in [*spec["state"]][:3]],
            }
            for persona in ("random", "idle"):
                check_agreement(state, persona=persona, **asked)
            for persona in ("greedy", "cautious", "saboteur"):
                check_agreement(state, persona=persona, runs=20, horizon=5, **asked)
            check_agreement(state, persona="planner", runs=2, horizon=4, **asked)
    assert compared >= (3 if shape == "short" else 10)


def test_most_presents_of_steady_scenarios_are_played_on_in_lockstep() -> None:
    random = Random("futures")
    played = []
    for shape in STEADY:
        for seed in range(15):
            spec = random_spec(seed, shape=shape)
            state = present(random, spec, compiled(spec), 3, mid_turn=seed % 2 == 0)
            if state is not None:
                played.append(native(state).is_vectorised())
    assert len(played) > 40
    assert sum(played) > len(played) * 3 // 4


DEC_A = {"op": "dec", "path": "state.a", "value": 1}


def later(name: str, after: int, *effects: Json) -> Json:
    return {"op": "schedule", "id": name, "after": after, "effects": [*effects]}


BUSY: Json = json.loads(
    document(
        state={"a": 30, "b": 2, "list": [1, 2], "flag": False, "note": "n"},
        actions=[
            action("gain", [{"op": "inc", "path": "state.a", "value": 1}, {**DEC_A, "path": "state.b"}]),
            action(
                "plan",
                [
                    later("x", 2, {"op": "dec", "path": "state.a", "value": "d"}, later("z", 1, DEC_A)),
                    later("y", 2, {"op": "mul", "path": "state.a", "value": 0.5}),
                ],
                derives={"d": {"+": [{"var": "state.b"}, 1]}},
            ),
            action("hurry", [later("w", 1, {"op": "mul", "path": "state.a", "value": 0.75})]),
            action("replan", [later("y", 3, {"op": "push", "path": "state.list", "value": 3})]),
            action("grow", [{"op": "set", "path": "state.more", "value": 1}]),
        ],
        random_events=[
            event("drain", [DEC_A], duration="4h"),
            event("sink", [{"op": "mul", "path": "state.a", "value": 0.9}], duration="3h"),
            event("once", [{"op": "set", "path": "state.flag", "value": True}]),
        ],
        loss_conditions=[at_most("out", "state.a", 0), never("second")],
        horizon=20,
    ),
)
# Without the action by which a key comes, so that what a present state has is all there is.
STEADY_BUSY = {**BUSY, "actions": BUSY["actions"][:-1]}


def busy(*calls: str, spec: Json = STEADY_BUSY) -> tuple[BackendProgram, Any]:
    program = compiled(spec)
    state = program.new_state(3)
    for call in calls:
        program.step(state) if call == "step" else program.act(state, call, b"{}")
    return program, state


@pytest.mark.parametrize(
    "calls",
    [
        ("plan",),
        ("plan", "step"),
        ("plan", "step", "step"),
        ("plan", "step", "replan", "plan"),
        ("plan", "step", "plan", "step", "replan"),
        ("replan", "plan", "step", "gain", "step", "gain"),
    ],
)
@pytest.mark.parametrize("acted", [False, True])
def test_what_is_pending_or_lasts_is_part_of_a_plan(calls: tuple[str, ...], acted: bool) -> None:
    _, state = busy(*calls)
    assert native(state).is_vectorised()
    for persona in ("random", "idle", "greedy", "planner"):
        check_agreement(state, persona=persona, acted=acted, runs=3 if persona == "planner" else 130)


def test_a_state_of_another_shape_than_the_initial_one_has_a_plan_of_its_own() -> None:
    changing = {
        **BUSY,
        "actions": [*BUSY["actions"][:-1], action("use", preconditions={"<": [{"var": "state.a"}, 3]})],
    }
    program, state = busy(spec=changing)
    snapshot = json.loads(state.to_json())
    snapshot["state"] |= {"note": 5, "more": ["new text"], "list": []}
    other = program.load_state(canonicalize(snapshot))
    assert native(other).is_vectorised()
    check_agreement(other)


def test_a_state_whose_shape_will_change_is_left_to_the_interpreter() -> None:
    _, state = busy("plan", spec=BUSY)
    assert not native(state).is_vectorised()
    check_agreement(state)
    _, grown = busy("grow", spec=BUSY)
    assert native(grown).is_vectorised()
    check_agreement(grown)


def twice(snapshot: Json) -> None:
    snapshot["scheduled"] += snapshot["scheduled"]


def lasting_twice(snapshot: Json) -> None:
    snapshot["lasting"] = [
        {"id": name, "until": until} for name, until in (("sink", 4), ("drain", 9), ("sink", 7))
    ]


def lasting_in_this_order(snapshot: Json) -> None:
    snapshot["lasting"] = [{"id": "sink", "until": 3}, {"id": "drain", "until": 9}]


def lasting_in_that_order(snapshot: Json) -> None:
    snapshot["lasting"] = [{"id": "drain", "until": 3}, {"id": "sink", "until": 3}]


def lasting_though_short(snapshot: Json) -> None:
    snapshot["lasting"] = [{"id": "once", "until": 5}]


def over_long_ago(snapshot: Json) -> None:
    snapshot["lasting"] = [{"id": "drain", "until": 0}]


def due_long_ago(snapshot: Json) -> None:
    for due, entry in zip((2, 0, 1), snapshot["scheduled"], strict=False):
        entry["due"] = due


def due_and_open(snapshot: Json) -> None:
    due_long_ago(snapshot)
    snapshot["opened"] = True


def late(snapshot: Json) -> None:
    snapshot["turn"] = 2**53 - 3


def rather_late(snapshot: Json) -> None:
    snapshot["turn"] = 2**32 - 12


def large(snapshot: Json) -> None:
    snapshot["state"]["a"] = 1.7e308


def almost_full(snapshot: Json) -> None:
    snapshot["state"]["more"] = {f"k{number}": number for number in range(9_960)}


def many_of_one_name(snapshot: Json) -> None:
    snapshot["scheduled"] = [{"id": "q", "due": 900, "effects": []}] * 256


def many_names(snapshot: Json) -> None:
    snapshot["scheduled"] = [{"id": f"q{number}", "due": 900, "effects": []} for number in range(255)]


@pytest.mark.parametrize(
    "change",
    [
        twice,
        lasting_twice,
        lasting_in_this_order,
        lasting_in_that_order,
        lasting_though_short,
        over_long_ago,
        due_long_ago,
        due_and_open,
        late,
        rather_late,
        large,
        almost_full,
        many_of_one_name,
        many_names,
    ],
)
def test_what_nobody_has_played_goes_on_alike(change: Callable[[Json], None]) -> None:
    program, state = busy("plan", "step", "replan", "plan", "step")
    snapshot = json.loads(state.to_json())
    change(snapshot)
    made_up = program.load_state(canonicalize(snapshot))
    for persona in ("random", "greedy"):
        check_agreement(made_up, persona=persona, runs=40)


@pytest.mark.parametrize("change", [almost_full, many_of_one_name, many_names])
def test_what_is_made_up_comes_to_its_limits(change: Callable[[Json], None]) -> None:
    """Otherwise nothing would be left to the interpreter above."""
    program, state = busy("plan", "step")
    snapshot = json.loads(state.to_json())
    change(snapshot)
    made_up = program.load_state(canonicalize(snapshot))
    assert b"STATE_LIMIT" in native(made_up).simulate_from(options())


@pytest.mark.parametrize(("persona", "runs"), [("random", 5_000), ("greedy", 2_100), ("planner", 70)])
def test_neither_threads_nor_pieces_show_in_a_report(persona: str, runs: int) -> None:
    _, state = busy("plan", "step", "plan")
    asked = {"persona": persona, "runs": runs, "acted": True, "watch": [["state.a", 2]]}
    expected = native(state).simulate_from_with("interpreter", options(**asked))
    for threads in (1, 2, 7):
        assert native(state).simulate_from(options(**{**asked, "threads": threads})) == expected, threads


def test_an_unknown_executor_is_refused() -> None:
    _, state = busy()
    with pytest.raises(ValueError, match="executor"):
        native(state).simulate_from_with("fastest", options())

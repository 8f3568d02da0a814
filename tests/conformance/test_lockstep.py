"""Lockstep against the interpreter of the native core: the same reports and final states, byte for byte."""

from __future__ import annotations

import json
import multiprocessing
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine.json_values import loads
from peripety.engine.paths import format_path
from support.engine.backends import backend_named, lowered_document
from support.engine.seeded_specs import random_spec
from support.engine.specs import action, at_most, document, event, never

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety_simcore._native import Program


# Shapes whose values have constant kinds in most scenarios, and others.
STEADY = ("numeric", "words", "params", "lasting", "long", "short")
OTHER = ("arrays", "objects", "schedules", "failing", "derives", "mixed")


def native(spec: bytes) -> Program:
    """A scenario compiled by the native core itself, beneath the interface that both cores have."""
    backend_named("native")
    core = import_module("peripety_simcore")
    program: Program = core.compile(lowered_document(loads(core.parse(spec))))
    return program


def options(**more: Any) -> bytes:
    asked = {
        "runs": 100,
        "first_run": 0,
        "seed": "7",
        "persona": "random",
        "digest": True,
        "detail": True,
        "threads": 1,
    }
    return json.dumps({**asked, **more}).encode()


def executors(program: Program) -> Iterator[str]:
    """The ways to play in lockstep that this processor has."""
    for name in ("baseline", "avx2", "avx512"):
        try:
            program.dry_run_with(name, options(runs=1))
        except ValueError:
            continue
        yield name


def watched(state: dict[str, Any]) -> list[tuple[str, float]]:
    """Paths of what a state has at its top, and of the first items of arrays there."""
    paths = [format_path(("state", name)) for name in state]
    return [(path, 0.75) for path in paths] + [(f"{path}[0]", 3.0) for path in paths]


def check_agreement(program: Program, **asked: Any) -> None:
    expected = program.dry_run_with("interpreter", options(**asked))
    for name in executors(program):
        assert program.dry_run_with(name, options(**asked)) == expected, name


@pytest.mark.slow_after(2, reason="dry-runs many random scenarios on both cores")
@pytest.mark.parametrize("shape", [*STEADY, *OTHER])
def test_random_scenarios_come_to_the_same_in_lockstep(shape: str) -> None:
    random = Random(f"lockstep {shape}")
    for number in range(12):
        seed = random.randrange(2**32)
        spec = random_spec(seed, shape=shape, later=number % 3 == 0)
        program = native(json.dumps(spec).encode())
        asked = {"seed": str(seed), "first_run": seed, "watch": watched(spec["state"])}
        for persona in ("random", "idle"):
            check_agreement(program, persona=persona, horizon=40, **asked)
        for persona in ("greedy", "cautious", "saboteur"):
            check_agreement(program, persona=persona, runs=66, horizon=12, **asked)
        check_agreement(program, persona="planner", runs=3, horizon=10, **asked)


@pytest.mark.parametrize("later", [False, True])
def test_most_steady_scenarios_are_played_in_lockstep(*, later: bool) -> None:
    played = [
        native(json.dumps(random_spec(seed, shape=shape, later=later)).encode()).is_vectorised()
        for shape in STEADY
        for seed in range(20)
    ]
    assert sum(played) > len(played) * 3 // 4


def test_bounds_deals_and_variants_are_played_in_lockstep() -> None:
    path = "state.said[params.who]"
    spec = document(
        spec_version="1.1",
        state={"a": 10, "said": {"p": 0, "q": 2}, "word": "x"},
        bounds={"state.said.p": {"max": 1.5}},
        deal=[
            {"id": "a", "path": "state.a", "values": [3, 9]},
            {"id": "w", "path": "state.word", "values": ["y", "z"]},
        ],
        actions=[
            action(
                "ask",
                [{"op": "inc", "path": path, "value": 1}],
                params={"who": {"type": "string", "enum": ["p", "q"]}},
                preconditions={"<": [{"var": path}, {"var": "state.a"}]},
            ),
        ],
    )
    program = native(spec)
    assert program.is_vectorised()
    for persona in ("random", "cautious", "planner"):
        check_agreement(
            program, persona=persona, runs=20, horizon=9, watch=[["state.a", 1], ["state.said.p", 1]]
        )


BUSY = document(
    state={"a": 10, "list": [1, 2], "flag": False},
    actions=[
        action(
            "gain",
            [{"op": "inc", "path": "state.a", "value": 1}],
            preconditions={"<": [{"var": "state.a"}, 14]},
        ),
        action("lose", [{"op": "dec", "path": "state.a", "value": 2}, {"op": "pop", "path": "state.list"}]),
        action("fill", [{"op": "push", "path": "state.list", "value": 3}]),
    ],
    random_events=[event("drain", [{"op": "dec", "path": "state.a", "value": 1}], duration="3h")],
    loss_conditions=[at_most("out", "state.a", 0), never("second")],
)


@pytest.mark.parametrize(
    ("persona", "runs", "horizon"),
    [("random", 5_000, 50), ("greedy", 2_100, 50), ("planner", 70, 9)],
)
def test_neither_threads_nor_pieces_show_in_a_report(persona: str, runs: int, horizon: int) -> None:
    program = native(BUSY)
    assert program.is_vectorised()
    asked = {"persona": persona, "runs": runs, "horizon": horizon, "watch": [["state.a", 2]]}
    expected = program.dry_run_with("interpreter", options(**asked))
    for threads in (1, 2, 7):
        assert program.dry_run(options(threads=threads, **asked)) == expected, threads


def test_exceptional_runs_are_among_those_that_are_compared() -> None:
    assert json.loads(native(BUSY).dry_run(options(runs=200)))["errors"]


def _report_of_child(program: Program, asked: bytes, pipe: Any) -> None:
    pipe.send_bytes(program.dry_run(asked))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_plays_after_its_parent_did() -> None:
    program = native(BUSY)
    asked = options(runs=5_000, threads=2)
    expected = program.dry_run(asked)
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=_report_of_child, args=(program, asked, sender))
    child.start()
    try:
        assert receiver.poll(30), "the child hangs"
        assert receiver.recv_bytes() == expected
    finally:
        child.kill()
        child.join()


def test_an_unknown_executor_is_refused() -> None:
    with pytest.raises(ValueError, match="executor"):
        native(BUSY).dry_run_with("fastest", options())


@pytest.mark.parametrize(
    ("runs", "first_run", "horizon"),
    [(0, 0, 5), (1, 3, 0), (65, 2**53 - 66, 1), (64, 0, 2)],
)
def test_the_least_there_is_to_play_comes_to_the_same(runs: int, first_run: int, horizon: int) -> None:
    check_agreement(native(BUSY), runs=runs, first_run=first_run, horizon=horizon)


# --- what an interpreter notices, and lockstep has to ---


def test_a_text_is_never_in_an_array_of_numbers() -> None:
    program = native(
        document(
            state={"n": 2, "text": "b", "list": []},
            actions=[
                action(
                    "push",
                    [
                        {"op": "push", "path": "state.list", "value": "d"},
                        {"op": "inc", "path": "state.n", "value": 1},
                    ],
                    derives={"d": {"+": [{"var": "state.n"}, 0]}},
                ),
            ],
            loss_conditions=[
                {"id": "first", "when": {"in": [{"var": "state.text"}, {"var": "state.list"}]}},
                never("second"),
            ],
        ),
    )
    assert program.is_vectorised()
    check_agreement(program, horizon=80)


def test_steps_that_making_things_costs_are_accounted_for() -> None:
    texts = [f"{number:015d}" for number in range(2_100)]
    suits = {"and": [{">=": [{"var": "params.n"}, 0]}, {"in": [{"var": "state.note"}, texts]}]}
    params = {"n": {"type": "integer", "minimum": 0, "maximum": 5}}
    program = native(
        document(actions=[action(name, params=params, preconditions=suits) for name in ("first", "second")]),
    )
    check_agreement(program, runs=3)
    assert b"TURN_LIMIT" in program.dry_run(options(runs=3))


def test_steps_that_scheduling_costs_are_accounted_for() -> None:
    later = [{"op": "addlog", "message": "m"}] * 900
    schedules = [{"op": "schedule", "id": f"s{n}", "after": 1, "effects": later} for n in range(3)]
    dear = {"in": [{"var": "state.a"}, [*range(100, 4_800)]]}
    events = [event(f"e{n}", when=dear) for n in range(10)]
    program = native(document(random_events=[event("first", schedules), *events]))
    check_agreement(program, runs=64, horizon=4)
    assert b"TURN_LIMIT" in program.dry_run(options(runs=64, horizon=4))


def doubled(inner: Any, times: int, outer: str) -> Any:
    for _ in range(times):
        inner = {outer: [inner, {"<": [{"var": "state.a"}, 3]}, {"var": "state.flag"}]}
    return inner


@pytest.mark.parametrize("outer", ["if", "or", "and", "<"])
def test_conditions_within_conditions_do_not_grow_beyond_their_document(outer: str) -> None:
    nested = {"==": [doubled({"var": "state.flag"}, 26, outer), True]}
    check_agreement(
        native(document(loss_conditions=[{"id": "first", "when": nested}, never("second")])),
        horizon=3,
    )


def test_long_choices_need_no_deep_recursion() -> None:
    longest = {"if": [{"<": [{"var": "state.a"}, 0]}, 1] * 1_200}
    program = native(
        document(
            loss_conditions=[{"id": "first", "when": longest}, {"id": "second", "when": {">": [longest, 1]}}],
        ),
    )
    check_agreement(program, runs=3_000, threads=2, horizon=1)

"""The native core against the reference, to the byte: states, results, reports, errors and their messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peripety import engine
from peripety.engine.backend_protocol import EngineError
from peripety.errors import Severity
from support.engine.backends import backend_named
from support.engine.spec_generators import (
    conditions,
    damaged,
    expressions,
    literal_specs,
    literals,
    narrations,
    rolls,
    specs,
    stable_specs,
)
from support.examples import example_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine.backend_protocol import BackendProgram, BackendState


# `make fuzz-diff`-sized runs set this; the default is small for continuous integration.
EXAMPLES = example_count(150)
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

Params = dict[str, Any]
turns = st.lists(
    st.tuples(
        st.sampled_from(["a0", "a1", "a2", "zz"]),
        st.dictionaries(
            st.sampled_from(["m", "n"]),
            st.sampled_from([0, 1, 3, 0.5, True, "x", "é", ""]),
            max_size=2,
        ),
    ),
    max_size=6,
)


def outcome(work: Callable[[], Any]) -> Any:
    """Return the result of a call, or its error."""
    try:
        return work()
    except EngineError as error:
        return (error.code, error.message, error.path)


def valid_document(spec: dict[str, Any]) -> bytes | None:
    """The canonical document, when it is one that would be compiled."""
    document = json.dumps(spec).encode("utf-8")
    if any(finding.severity is Severity.ERROR for finding in engine.validate(document)):
        return None
    return backend_named("python").parse(document)


@thorough
@given(spec=specs(), calls=turns, seed=st.integers(0, 2**64 - 1))
def test_turns_are_equal_to_the_byte(
    spec: dict[str, Any],
    calls: list[tuple[str, Params]],
    seed: int,
) -> None:
    document = valid_document(spec)
    if document is None:
        return
    pairs = [backend_named(name).compile(document) for name in ("python", "native")]
    states = [program.new_state(seed) for program in pairs]
    for action, params in calls:
        assert_equal(pairs, states, action, params)


def assert_equal(
    programs: list[BackendProgram],
    states: list[BackendState],
    action: str,
    params: Params,
) -> None:
    """One turn on both cores: legal actions, the action, the step, and everything that is left."""
    given_params = json.dumps(params).encode("utf-8")
    assert _both(lambda i: programs[i].legal_actions(states[i]))
    assert _both(lambda i: programs[i].act(states[i], action, given_params))
    assert _both(lambda i: programs[i].step(states[i]))
    assert _both(lambda i: states[i].to_json())
    assert _both(lambda i: states[i].tree())
    assert _both(lambda i: programs[i].load_state(states[i].to_json()).to_json())


def _both(work: Callable[[int], Any]) -> bool:
    reference, native = outcome(lambda: work(0)), outcome(lambda: work(1))
    assert native == reference
    return True


@thorough
@given(
    spec=literal_specs,
    calls=st.lists(st.one_of(narrations, rolls, st.sampled_from(["a0", "step"])), max_size=12),
    seed=st.integers(0, 2**64 - 1),
)
def test_what_the_narrator_changes_and_rolls_is_equal_to_the_byte(
    spec: dict[str, Any],
    calls: list[Any],
    seed: int,
) -> None:
    document = valid_document(spec)
    if document is None:
        return
    programs = [backend_named(name).compile(document) for name in ("python", "native")]
    states = [program.new_state(seed) for program in programs]
    for call in calls:
        states = assert_equal_call(programs, states, call)


def assert_equal_call(
    programs: list[BackendProgram],
    states: list[BackendState],
    call: Any,
) -> list[BackendState]:
    """One call on both cores; what is given back was loaded from snapshots, which hold all that matters."""
    assert _both(lambda i: _called(programs[i], states[i], call))
    assert _both(lambda i: states[i].to_json())
    return [program.load_state(state.to_json()) for program, state in zip(programs, states, strict=True)]


def _called(program: BackendProgram, state: BackendState, call: Any) -> bytes:
    match call:
        case "step":
            return program.step(state)
        case str():
            return program.act(state, call, b"{}")
        case dict():
            return program.roll(state, json.dumps(call).encode("utf-8"))
        case _:
            return program.narrate(state, json.dumps(call).encode("utf-8"))


@thorough
@given(data=st.data(), spec=literal_specs, calls=st.lists(st.sampled_from(["a0", "step"]), max_size=4))
def test_what_is_taken_for_a_snapshot_is_the_same(
    data: st.DataObject,
    spec: dict[str, Any],
    calls: list[Any],
) -> None:
    document = valid_document(spec)
    if document is None:
        return
    programs = [backend_named(name).compile(document) for name in ("python", "native")]
    state = programs[0].new_state(1)
    for call in calls:
        outcome(lambda call=call: _called(programs[0], state, call))  # type: ignore[misc]
    snapshot = json.dumps(data.draw(damaged(json.loads(state.to_json())))).encode("utf-8")
    assert _both(lambda i: programs[i].load_state(snapshot).to_json())
    if not isinstance(outcome(lambda: programs[0].load_state(snapshot)), tuple):
        states = [program.load_state(snapshot) for program in programs]
        for call in ("a0", {"kind": "k", "difficulty": 5}, "step", "step"):
            states = assert_equal_call(programs, states, call)


@thorough
@given(
    spec=st.one_of(specs(), stable_specs()),
    first=st.integers(0, 1000),
    persona=st.sampled_from(["random", "idle"]),
)
def test_dry_runs_are_equal_to_the_byte(spec: dict[str, Any], first: int, persona: str) -> None:
    document = valid_document(spec)
    if document is None:
        return
    options = json.dumps(
        {
            "runs": 3,
            "first_run": first,
            "seed": str(spec["seed"]),
            "persona": persona,
            "horizon": 8,
            "digest": True,
        },
    ).encode("utf-8")
    programs = [backend_named(name).compile(document) for name in ("python", "native")]
    assert _both(lambda i: programs[i].dry_run(options))


@thorough
@given(
    logic=st.one_of(expressions, conditions),
    state=st.fixed_dictionaries({"a": literals, "list": st.lists(literals)}),
)
def test_expressions_are_equal_to_the_byte(logic: Any, state: Any) -> None:
    cores = [backend_named(name) for name in ("python", "native")]
    texts = engine.canonicalize(logic), engine.canonicalize({"state": state, "turn": 1})
    assert _both(lambda i: cores[i].evaluate(*texts))


@pytest.mark.slow(reason="counts over many random documents")
def test_random_scenarios_are_mostly_valid() -> None:
    """Otherwise the properties above would be about nothing."""
    seen: list[bool] = []

    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    @given(spec=specs())
    def collect(spec: dict[str, Any]) -> None:
        seen.append(valid_document(spec) is not None)

    collect()
    assert sum(seen) > len(seen) * 0.6

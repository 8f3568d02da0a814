"""Futures of present states of random scenarios: the native core against the reference, to the byte."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.comparison import Play, Programs, is_valid
from peripety.engine import PERSONAS, canonicalize
from support.engine.backends import backend_named
from support.engine.seeded_specs import SHAPES, random_calls, random_spec
from support.examples import example_count

# `make fuzz-diff`-sized runs set this; the default is small for continuous integration.
EXAMPLES = max(1, example_count(150) // len(PERSONAS))
# Each of the many actions of these is looked ahead from, which takes the reference long.
SMALL_SHAPES = [name for name in SHAPES if name not in {"wide", "many"}]
HORIZONS = {
    "idle": 20,
    "random": 20,
    "greedy": 8,
    "saboteur": 8,
    "cautious": 4,
    "planner": 3,
    "curious": 8,
    "par": 20,
}

thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def come_to_a_present(play: Play, spec: dict[str, Any], seed: int, turns: int, *, mid_turn: bool) -> None:
    """Play some turns, and perhaps into the midst of one more."""
    random = Random(seed)
    for turn in range(turns + mid_turn):
        *calls, step = random_calls(random, spec, play.legal())
        for call in calls if turn == turns else [*calls, step]:
            play.call(call)
        if play.ended:
            return


@pytest.mark.parametrize("persona", PERSONAS)
@thorough
@given(
    seed=st.integers(0, 2**64 - 1),
    shape=st.sampled_from(SMALL_SHAPES),
    turns=st.sampled_from([0, 1, 2, 5]),
    mid_turn=st.booleans(),
    acted=st.booleans(),
    first=st.integers(0, 1000),
    later=st.booleans(),
)
def test_both_cores_see_the_same_futures(
    persona: str,
    seed: int,
    shape: str,
    turns: int,
    mid_turn: bool,
    acted: bool,
    first: int,
    *,
    later: bool,
) -> None:
    backend_named("native")
    spec = random_spec(seed, shape=shape, later=later)
    if not is_valid(spec):
        return
    play = Play(Programs(spec), seed)
    come_to_a_present(play, spec, seed, turns, mid_turn=mid_turn)
    options: dict[str, Any] = {
        "runs": 2,
        "first_run": first,
        "seed": str(seed ^ 1),
        "persona": persona,
        "horizon": HORIZONS[persona],
        "acted": acted,
        "digest": True,
        "detail": True,
        "watch": [[f"state.{name}", 0.1] for name in [*spec["state"]][:3]],
    }
    play.compare_futures(options)


@pytest.mark.parametrize("persona", PERSONAS)
@thorough
@given(seed=st.integers(0, 2**64 - 1), shape=st.sampled_from(SMALL_SHAPES))
def test_the_futures_of_an_initial_state_are_a_dry_run(persona: str, seed: int, shape: str) -> None:
    spec = random_spec(seed, shape=shape)
    if not is_valid(spec):
        return
    options: dict[str, Any] = {
        "runs": 2,
        "first_run": 0,
        "seed": str(seed),
        "persona": persona,
        "horizon": HORIZONS[persona],
        "digest": True,
    }
    asked = canonicalize(options)
    for program in Programs(spec).on.values():
        assert program.simulate_from(program.new_state(99), asked) == program.dry_run(asked)


def test_most_random_presents_have_a_future() -> None:
    """Otherwise the properties above would be about nothing."""
    turns = []
    for seed in range(30):
        spec = random_spec(seed, shape=SMALL_SHAPES[seed % len(SMALL_SHAPES)])
        play = Play(Programs(spec), seed)
        come_to_a_present(play, spec, seed, 2, mid_turn=seed % 2 == 0)
        options = {"runs": 2, "first_run": 0, "seed": "7", "persona": "random", "horizon": 5}
        turns.append(play.compare_futures(options))
    assert sum(number > 0 for number in turns) > len(turns) / 2

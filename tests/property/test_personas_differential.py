"""Every persona in random scenarios of every shape: the native core against the reference, to the byte."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.comparison import Programs, compare_dry_runs, is_valid
from peripety.engine import PERSONAS
from support.engine.backends import backend_named
from support.engine.seeded_specs import SHAPES, random_spec
from support.examples import example_count

# `make fuzz-diff`-sized runs set this; the default is small for continuous integration.
EXAMPLES = max(1, example_count(150) // len(PERSONAS))
# Each of the many actions of these is played on by the planner, which takes the reference long.
CROWDED = frozenset({"wide", "many"})
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

scales = st.sampled_from([1, 0.1, 7, 1e-3, 1e300, 5e-324])


def horizon_of(persona: str, shape: str) -> int:
    return 1 if shape in CROWDED and persona == "planner" else HORIZONS[persona]


@pytest.mark.parametrize("persona", PERSONAS)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(
    seed=st.integers(0, 2**64 - 1),
    shape=st.sampled_from([*SHAPES]),
    first=st.integers(0, 1000),
    scale=scales,
    later=st.booleans(),
)
def test_both_cores_play_a_persona_alike(
    persona: str,
    seed: int,
    shape: str,
    first: int,
    scale: float,
    *,
    later: bool,
) -> None:
    backend_named("native")
    spec = random_spec(seed, shape=shape, later=later)
    if not is_valid(spec):
        return
    options: dict[str, Any] = {
        "runs": 2,
        "first_run": first,
        "seed": str(spec["seed"]),
        "persona": persona,
        "horizon": horizon_of(persona, shape),
        "digest": True,
        "detail": True,
        "watch": [[f"state.{name}", scale] for name in [*spec["state"]][:3]],
    }
    compare_dry_runs(Programs(spec), options)

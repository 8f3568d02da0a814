"""The native core reports that there is nothing to prove only if the reference finds nothing."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.reference import numeric_spec
from peripety.engine.json_values import loads
from peripety.engine.static_analysis.claims import prove
from peripety.scenario.spec_generator.generator import generate_spec as sound_spec
from support.engine.backends import backend_named, lowered_document
from support.engine.seeded_specs import SHAPES, random_spec
from support.engine.spec_generators import specs
from support.examples import example_count

if TYPE_CHECKING:
    from peripety.engine import Proof


EXAMPLES = example_count(60)
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def answers(document: bytes, horizon: int) -> tuple[bool, tuple[Proof, ...]]:
    """Return the result of the native core, and the proofs of the reference."""
    native = backend_named("native")
    canonical = lowered_document(loads(native.parse(document)))
    program = native.compile(canonical)
    return program.has_nothing_to_prove(horizon), prove(canonical, program, 7, horizon)


def agrees(document: bytes, horizon: int) -> None:
    nothing, proofs = answers(document, horizon)
    assert not (nothing and proofs), proofs


def moved(spec: dict[str, Any], random: Random) -> dict[str, Any]:
    """A scenario with other numbers in its conditions and effects: near its limits, or beyond them."""

    def other(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        return random.choice((value, value, value + 1, value - 1, value * 2, value / 2, -value, 0))

    def walked(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walked(item) for key, item in value.items()}
        return [walked(item) for item in value] if isinstance(value, list) else other(value)

    for section, key in (
        ("actions", "preconditions"),
        ("random_events", "when"),
        ("loss_conditions", "when"),
        ("win_conditions", "when"),
    ):
        for rule in spec.get(section, ()):
            if random.random() < 0.3:
                rule[key] = walked(rule[key])
    return spec


@thorough
@given(
    shape=st.sampled_from([*SHAPES]),
    seed=st.integers(0, 2**32),
    horizon=st.sampled_from([1, 4, 12, 30]),
    later=st.booleans(),
)
def test_random_scenarios(shape: str, seed: int, horizon: int, *, later: bool) -> None:
    agrees(json.dumps(random_spec(seed, shape=shape, later=later)).encode(), horizon)


@pytest.mark.slow(reason="shrinks many scenarios")
@thorough
@given(spec=specs(), horizon=st.sampled_from([1, 4, 12, 30]))
def test_scenarios_that_shrink(spec: dict[str, Any], horizon: int) -> None:
    agrees(json.dumps(spec).encode(), horizon)


@thorough
@given(index=st.integers(0, 2**20), seed=st.integers(0, 2**32), horizon=st.sampled_from([2, 6, 12]))
def test_sound_scenarios_whose_numbers_were_moved(index: int, seed: int, horizon: int) -> None:
    spec = moved(json.loads(sound_spec(5, index)), Random(seed))
    agrees(json.dumps(spec).encode(), horizon)


@pytest.mark.slow(reason="counts over many random documents")
def test_of_most_scenarios_without_findings_the_native_core_says_so() -> None:
    """Otherwise the screen would be safe and of no use."""
    found = [answers(document, 20) for document in (numeric_spec(), *(sound_spec(5, n) for n in range(60)))]
    said = [nothing for nothing, proofs in found if not proofs]
    assert len(said) >= 40
    assert sum(said) >= 0.9 * len(said)

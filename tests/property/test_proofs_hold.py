"""A run never contradicts a proof, for any player."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peripety import engine
from support.engine.oracles import is_contradicted, replayed
from support.engine.seeded_specs import SHAPES, random_spec
from support.engine.spec_generators import specs
from support.examples import example_count

EXAMPLES = example_count(60)
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
RUNS = 32


def holds(spec: dict[str, Any]) -> None:
    program = engine.compile(json.dumps(spec))
    proofs = program.prove()
    general = [proof for proof in proofs if proof.code not in {"TYPE_ERROR", "RUNAWAY_GROWTH"}]
    for persona in engine.PERSONAS if general else ():
        report = program.dry_run(runs=RUNS, persona=persona, detail=True)
        for proof in general:
            assert not is_contradicted(program, proof, report), (persona, proof)
    for proof in proofs:
        if proof.witness:
            assert replayed(program, proof), proof


@thorough
@given(shape=st.sampled_from([*SHAPES]), seed=st.integers(0, 2**32), later=st.booleans())
@pytest.mark.slow(reason="proves and plays hundreds of scenarios")
def test_random_scenarios(shape: str, seed: int, *, later: bool) -> None:
    holds(random_spec(seed, shape=shape, later=later))


@pytest.mark.slow(reason="proves and plays many scenarios")
@thorough
@given(spec=specs())
def test_scenarios_that_shrink(spec: dict[str, Any]) -> None:
    holds(spec)


@pytest.mark.parametrize("shape", ["numeric", "words", "schedules"])
def test_something_is_found_in_some_scenarios_and_nothing_in_others(shape: str) -> None:
    """Otherwise the properties above would hold for nothing."""
    codes = {
        proof.code
        for seed in range(12)
        for proof in engine.compile(json.dumps(random_spec(seed, shape=shape))).prove()
    }
    assert {"DEAD_ACTION", "IMPOSSIBLE_LOSS", "UNREACHABLE_WIN"} <= codes

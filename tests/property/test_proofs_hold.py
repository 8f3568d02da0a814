"""What is proved is never contradicted by a run, whoever plays it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peripety import sim
from peripety.errors import PeripetyError
from support.random_specs import SHAPES, random_spec
from support.strategies import specs

if TYPE_CHECKING:
    from peripety.sim import DryRunReport, Program, Proof

EXAMPLES = int(os.environ.get("PERIPETY_EXAMPLES", "60"))
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
RUNS = 32


def is_contradicted(program: Program, proof: Proof, report: DryRunReport) -> bool:
    """Whether a report cannot be when a proof holds."""
    assert report.detail is not None
    if proof.code == "CERTAIN_LOSS":
        return bool(report.won or report.survived)
    section, _, place = proof.path.strip("/").partition("/")
    rule = program.spec[section][int(place)]["id"]
    counts = {
        "UNREACHABLE_WIN": report.wins,
        "IMPOSSIBLE_LOSS": report.losses,
        "DEAD_ACTION": {name: use.legal + use.taken for name, use in report.detail.actions.items()},
        "DEAD_EVENT": report.detail.events,
    }
    return counts[proof.code][rule] > 0


def replayed(program: Program, proof: Proof) -> list[str]:
    """What goes wrong in the run that shows a proof: rules that fail, and paths of numbers that are large."""
    state = program.new_state()
    seen: list[str] = []
    for call in proof.witness:
        try:
            results: list[Any] = [program.act(state, call.action_id, call.params)] if call.action_id else []
            results.append(program.step(state))
        except PeripetyError as error:
            return [*seen, error.code]
        for result in results:
            seen += [error.rule for error in [*getattr(result, "reasons", ()), *result.errors]]
            seen += [
                change.path
                for change in result.changes
                if isinstance(change.after, int | float) and abs(change.after) > 1e15
            ]
    return seen


def holds(spec: dict[str, Any]) -> None:
    program = sim.compile(json.dumps(spec))
    proofs = program.proofs()
    general = [proof for proof in proofs if proof.code not in {"TYPE_ERROR", "RUNAWAY_GROWTH"}]
    for persona in sim.PERSONAS if general else ():
        report = program.dry_run(runs=RUNS, persona=persona, detail=True)
        for proof in general:
            assert not is_contradicted(program, proof, report), (persona, proof)
    for proof in proofs:
        if proof.witness:
            assert replayed(program, proof), proof


@thorough
@given(shape=st.sampled_from([*SHAPES]), seed=st.integers(0, 2**32))
def test_random_scenarios(shape: str, seed: int) -> None:
    holds(random_spec(seed, shape=shape))


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
        for proof in sim.compile(json.dumps(random_spec(seed, shape=shape))).proofs()
    }
    assert {"DEAD_ACTION", "IMPOSSIBLE_LOSS", "UNREACHABLE_WIN"} <= codes

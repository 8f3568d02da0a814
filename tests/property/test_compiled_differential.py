"""Generated source against the interpreter: the same report of the same runs, states included."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.engine.backends import compiled_report, interpreted_report
from support.engine.spec_generators import specs, stable_specs
from support.examples import example_count

EXAMPLES = example_count(150)
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
options = st.fixed_dictionaries(
    {
        "persona": st.sampled_from(["random", "random", "idle"]),
        "first_run": st.integers(0, 1000),
        "horizon": st.sampled_from([1, 5, 12]),
    },
)


@pytest.mark.slow(reason="compiles many scenarios")
@thorough
@given(spec=stable_specs(), chosen=options)
def test_scenarios_of_steady_kinds(spec: dict[str, Any], chosen: dict[str, Any]) -> None:
    report, _ = compiled_report(spec, **chosen)
    assert report == interpreted_report(spec, **chosen)


@thorough
@given(spec=specs(), chosen=options)
def test_scenarios_of_any_kind(spec: dict[str, Any], chosen: dict[str, Any]) -> None:
    report, _ = compiled_report(spec, **chosen)
    assert report == interpreted_report(spec, **chosen)


@pytest.mark.slow(reason="counts over many random documents")
def test_steady_scenarios_are_mostly_played_by_generated_source() -> None:
    """Otherwise the properties above would compare the interpreter with itself."""
    left: list[int | None] = []

    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    @given(spec=stable_specs(), chosen=options)
    def collect(spec: dict[str, Any], chosen: dict[str, Any]) -> None:
        left.append(compiled_report(spec, **chosen)[1])

    collect()
    lowered = [count for count in left if count is not None]
    assert len(lowered) > 0.8 * len(left)
    assert sum(count == 0 for count in lowered) > 0.5 * len(lowered)

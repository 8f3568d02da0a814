"""The engine never applies a narrator's change outside its scope, for any proposal.

The scope is implemented here a second time, from the text of docs/reference/semantics.md and apart from the
engine.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peripety import engine
from peripety.errors import Severity
from support.engine.backends import BACKEND_NAMES, backend_named, program_on
from support.engine.spec_generators import changes, literal_specs
from support.examples import example_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.engine import Program


Json = dict[str, Any]

EXAMPLES = example_count(150)
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def writes(scenario: Json) -> Iterator[Json]:
    """Every effect of actions and events that writes a literal, those for later included."""

    def below(effects: list[Json], derives: Json) -> Iterator[Json]:
        for effect in effects:
            if effect["op"] == "schedule":
                yield from below(effect["effects"], derives)
            elif "path" in effect and effect.get("value") not in list(derives):
                yield effect

    for rule in [*scenario["actions"], *scenario["random_events"]]:
        yield from below(rule["effects"], rule.get("derives", {}))


def _value(change: Json) -> Any:
    return change.get("value")


def same(first: Any, second: Any) -> bool:
    return engine.canonicalize(first) == engine.canonicalize(second)


def has_precedent(scenario: Json, change: Json) -> bool:
    op, path, value = change["op"], engine.parse_path(change["path"]), _value(change)
    there = [effect for effect in writes(scenario) if engine.parse_path(effect["path"]) == path]
    if op in {"inc", "dec"}:
        return any(effect["op"] in {"inc", "dec"} and abs(value) <= abs(effect["value"]) for effect in there)
    alike = [effect for effect in there if effect["op"] == op]
    if op == "pop":
        return bool(alike)
    if op == "patch" and value:
        merged = [(key, item) for effect in alike for key, item in effect["value"].items()]
        return all(any(key == k and same(item, i) for k, i in merged) for key, item in value.items())
    return any(same(value, effect["value"]) for effect in alike)


def numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def is_granted(grant: Json, change: Json) -> bool:
    op, path, value = change["op"], engine.parse_path(change["path"]), _value(change)
    above = engine.parse_path(grant["path"])
    if op in {"inc", "dec"} and value < 0:
        op = {"inc": "dec", "dec": "inc"}[op]
    within = all(abs(number) <= grant.get("max_magnitude", float("inf")) for number in numbers_in(value))
    return path[: len(above)] == above and op in grant["ops"] and within


def in_scope(scenario: Json, change: Json) -> bool:
    if "narrator_scope" in scenario:
        return any(is_granted(grant, change) for grant in scenario["narrator_scope"])
    return has_precedent(scenario, change)


@st.composite
def proposals(draw: st.DrawFn) -> tuple[Json, list[Any]]:
    """A scenario, and changes: many made of its own effects, as they are or a little off."""
    scenario = draw(literal_specs)
    known = list(writes(scenario))
    nudges = st.sampled_from([0, 0, 0, 0.5, -1])
    own = st.builds(_nudged, st.sampled_from(known), nudges) if known else changes
    return scenario, draw(st.lists(st.one_of(own, own, own, changes), min_size=1, max_size=3))


def _nudged(effect: Json, nudge: float) -> Json:
    value = _value(effect)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return {**effect, "value": value + nudge} if is_number and nudge else dict(effect)


def compiled(name: str, scenario: Json) -> Program | None:
    document = json.dumps(scenario).encode("utf-8")
    if any(finding.severity is Severity.ERROR for finding in engine.validate(document)):
        return None
    return program_on(backend_named(name), document)


@pytest.mark.parametrize("name", BACKEND_NAMES)
@thorough
@given(proposal=proposals())
def test_what_is_applied_was_in_scope_and_the_rest_changes_nothing(
    name: str,
    proposal: tuple[Json, list[Any]],
) -> None:
    scenario, proposed = proposal
    program = compiled(name, scenario)
    if program is None:
        return
    state = program.new_state()
    before = state.hash()
    result = program.narrate(state, proposed)
    if not result.accepted:
        assert result.reasons
        assert result.changes == ()
        assert state.hash() == before
        return
    assert all(in_scope(scenario, change) for change in proposed)
    assert {change.cause for change in result.changes} <= {"narrator"}


@pytest.mark.slow(reason="counts over many random documents")
def test_many_proposals_are_applied() -> None:
    """Otherwise the property above would be about nothing."""
    accepted: list[bool] = []

    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(proposal=proposals())
    def collect(proposal: tuple[Json, list[Any]]) -> None:
        scenario, proposed = proposal
        program = compiled("python", scenario)
        if program is not None:
            accepted.append(program.narrate(program.new_state(), proposed).accepted)

    collect()
    assert sum(accepted) > len(accepted) * 0.1

"""Rules in words."""

from __future__ import annotations

from typing import Any

import pytest

from peripety import engine
from peripety.scenario.rule_text import (
    describe_condition,
    describe_effect,
    describe_effects,
    describe_expression,
)
from peripety.scenario.spec_generator.generator import generate_spec

A, B, C = ({"var": f"state.{name}"} for name in "abc")


@pytest.mark.parametrize(
    ("logic", "words"),
    [
        ({">=": [A, 3]}, "a ≥ 3"),
        ({"<": [0, {"var": "params.amount"}, 2.50]}, "0 < amount < 2.5"),
        ({"and": [{"==": [A, True]}, {"or": [{"<": [B, 1]}, {">": [{"var": "turn"}, 8]}]}]},
         "a = true and (b < 1 or turn > 8)"),
        ({"and": [{"and": [A, B]}, C]}, "a and b and c"),
        ({"!": {"in": ["x", A]}}, 'not "x" in a'),
        ({"!": {"and": [A, B]}}, "not (a and b)"),
        ({"!!": [A]}, "a"),
        ({"-": [A, {"-": [B, C]}]}, "a - (b - c)"),
        ({"*": [{"+": [A, 1]}, B]}, "(a + 1) * b"),
        ({"<=": [{"+": [A, B]}, C]}, "a + b ≤ c"),
        ({"-": [A]}, "-a"),
        ({"if": [{">": [A, 1]}, B, 0]}, "b if a > 1 else 0"),
        ({"max": [A, 0]}, "max(a, 0)"),
        ({"var": ["state.a", 1]}, "a"),
        ({"var": 'state["odd key"]'}, "odd key"),
        ({"var": 'state.a["odd key"].b'}, "a.odd key.b"),
    ],
)  # fmt: skip
def test_expressions(logic: Any, words: str) -> None:
    assert describe_expression(logic) == words


def test_what_always_holds_needs_no_words() -> None:
    assert describe_condition({}) == ""


@pytest.mark.parametrize(
    ("done", "words"),
    [
        ({"op": "inc", "path": "state.a", "value": 2}, "a +2"),
        ({"op": "dec", "path": "state.a.b", "value": 0.5}, "a.b -0.5"),
        ({"op": "dec", "path": "state.a", "value": -1}, "a +1"),
        ({"op": "dec", "path": "state.a", "value": "price"}, "a - (b * 2)"),
        ({"op": "mul", "path": "state.a", "value": 0.5}, "a times 0.5"),
        ({"op": "set", "path": "state.a", "value": "text"}, 'a = "text"'),
        ({"op": "set", "path": "state.a", "value": "price"}, "a = (b * 2)"),
        ({"op": "patch", "path": "state.a", "value": {"x": 1, "y": None}}, "a.x = 1, a.y = null"),
        ({"op": "push", "path": "state.a", "value": [1]}, "a gains [1]"),
        ({"op": "pop", "path": "state.a"}, "a loses its last"),
        ({"op": "addlog", "message": "m"}, 'says "m"'),
        ({"op": "schedule", "id": "s", "after": 3, "effects": [{"op": "inc", "path": "state.a", "value": 1}]},
         "3 turns later: a +1"),
        ({"op": "schedule", "id": "s", "after": "2d", "effects": [{"op": "pop", "path": "state.a"}]},
         "2d later: a loses its last"),
        ({"op": "schedule", "id": "s", "at": 7, "effects": [{"op": "pop", "path": "state.a"}]},
         "in turn 7: a loses its last"),
    ],
)  # fmt: skip
def test_effects(done: Any, words: str) -> None:
    assert describe_effect(done, {"price": {"*": [B, 2]}}) == words


@pytest.mark.parametrize("junk", [None, 3, [], {}, {"op": "leap"}, {"op": "inc", "path": "state.a"}])
def test_what_is_no_effect_is_shown_as_it_is(junk: Any) -> None:
    assert describe_effect(junk, {}) != ""


def test_every_rule_of_random_scenarios_has_words() -> None:
    for index in range(20):
        spec = engine.parse(generate_spec(5, index))
        for rule in [*spec["actions"], *spec["random_events"]]:
            assert all(words and not words.startswith("{") for words in describe_effects(rule))
        for ending in spec["loss_conditions"]:
            assert describe_condition(ending["when"])

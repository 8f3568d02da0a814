"""Trials of numbers: what would bring the players into their bands, confirmed, and offered only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.scenario.generation.number_trials import try_numbers
from support.engine.specs import action, at_most, event, program, spec
from support.scenario.batches import WORKERS


def climb(**parts: Any) -> dict[str, Any]:
    """Two kinds of steps up, while a supply runs down."""
    rises = [
        action(
            name,
            [{"op": "inc", "path": "state.b", "value": by}, {"op": "dec", "path": "state.a", "value": cost}],
        )
        for name, by, cost in (("fast", 2, 1), ("slow", 1, 0), ("in_vain", 0, 1))
    ]
    document = spec(
        spec_version="1.1",
        state={"a": 9, "b": 0},
        horizon=20,
        actions=rises,
        loss_conditions=[at_most("out", "state.a", 0), {"id": "late", "when": {">=": [{"var": "turn"}, 12]}}],
        win_conditions=[{"id": "w", "when": {">=": [{"var": "state.b"}, 10]}}],
        random_events=[event("drop", [{"op": "dec", "path": "state.a", "value": 2}])],
        negativity_budget={"min_fail_rate": 0.2, "decay_per_turn": {"state.a": 1}},
        bounds={"state.a": {"max": 9}},
        solutions=[{"id": "s", "steps": [{"action": "fast"}]}],
    )
    return {**document, **parts}


async def test_changes_that_bring_the_players_into_their_bands_are_offered() -> None:
    document = climb()
    told = await try_numbers(program(document), WORKERS)
    assert 0 < len(told) <= 3
    assert "(all inside; at least 15% is advised for curious)" in told[0]
    assert all("par wins " in line and "curious wins " in line and "random loses " in line for line in told)
    assert document == climb()


async def test_an_initial_value_takes_its_bound_along_and_thresholds_count() -> None:
    told = await try_numbers(program(climb()), WORKERS)
    assert told[0].startswith("win 'w': b ≥ 10 → 6: ")


@pytest.mark.parametrize(
    ("texts", "is_marked"),
    [
        ({"premise": "Ten are needed."}, True),
        ({"premise": {"text": "There are 10 of them."}}, True),
        ({"opening": "10, no less."}, True),
        ({"premise": "110 are left."}, False),
    ],
)
async def test_numbers_that_texts_name_are_marked(texts: dict[str, Any], is_marked: bool) -> None:
    told = await try_numbers(program(climb(**texts)), WORKERS)
    assert ("; the texts name " in told[0]) is is_marked


async def test_where_nothing_helps_no_change_is_offered() -> None:
    hopeless = climb(
        actions=[action("fast"), action("slow")], win_conditions=[{"id": "w", "when": {"==": [1, 2]}}]
    )
    assert await try_numbers(program(hopeless), WORKERS) == ()


async def test_the_same_document_gets_the_same_lines() -> None:
    first = await try_numbers(program(climb()), WORKERS)
    assert await try_numbers(program(json.loads(json.dumps(climb()))), WORKERS) == first

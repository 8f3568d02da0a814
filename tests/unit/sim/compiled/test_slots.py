from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.engine import strict_json
from peripety.engine._reference.codegen.code import Element, NotLoweredError, SlotLayout, ValueKind
from peripety.engine._reference.state import Rules
from peripety.engine.canonical_json import canonicalize
from peripety.engine.paths import MISSING, split_variable
from support.engine.specs import action, spec

STATE = {"n": 1, "flag": True, "mode": "x", "none": None, "list": [1, 2], "empty": [], "rows": [{"n": 3}]}


def layout(*effects: dict[str, Any], **parts: Any) -> SlotLayout:
    document = spec(state=STATE, actions=[action("a0", list(effects), derives={"derived": 1})], **parts)
    return SlotLayout(Rules(canonicalize(strict_json.parse(json.dumps(document).encode()))))


def writing(path: str, operation: str = "set", value: Any = 1) -> dict[str, Any]:
    return {"op": operation, "path": path, "value": value}


def test_only_what_is_written_is_a_slot() -> None:
    slots = layout(writing("state.n"), writing("state.mode"), writing("state.rows[0].n", "inc")).slots
    assert [(slot.name, slot.path[1:], slot.kind) for slot in slots.values()] == [
        ("s0", ("mode",), ValueKind.TEXT),
        ("s1", ("n",), ValueKind.NUMBER),
        ("s2", ("rows", 0, "n"), ValueKind.NUMBER),
    ]


def test_patches_schedules_and_decay_write_too() -> None:
    slots = layout(
        writing("state", "patch", {"flag": False}),
        {"op": "schedule", "id": "s", "after": 1, "effects": [writing("state.n", "inc")]},
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.rows[0].n": 1}},
    ).slots
    assert [path[1:] for path in slots] == [("flag",), ("n",), ("rows", 0, "n")]


def test_an_array_that_changes_is_one_slot_with_elements() -> None:
    found = layout(writing("state.list[0]"), writing("state.list", "push"))
    (slot,) = found.slots.values()
    assert (slot.kind, found.find_target(("state", "list", 0))) == (ValueKind.NUMBERS, Element(slot, 0))
    assert found.resolve_variable(split_variable("state.list.1")) == Element(slot, 1)
    assert found.resolve_variable(split_variable("state.list.length")) is MISSING


def test_an_empty_array_takes_its_kind_from_what_is_put_into_it() -> None:
    assert layout(writing("state.empty", "push", "x")).slots["state", "empty"].kind is ValueKind.TEXTS


def test_what_is_null_or_absent_at_first_takes_its_kind_from_what_is_put_there() -> None:
    slots = layout(writing("state.none", value="x"), writing("state", "patch", {"new": True})).slots
    assert [(path[1], slot.kind, slot.is_optional) for path, slot in slots.items()] == [
        ("new", ValueKind.BOOLEAN, True),
        ("none", ValueKind.TEXT, True),
    ]


def test_what_is_not_written_is_a_constant() -> None:
    found = layout(writing("state.n"))
    assert (
        found.resolve_variable(split_variable("state.mode")),
        found.resolve_variable(split_variable("state.rows.0.n")),
    ) == (
        "x",
        3,
    )
    assert found.resolve_variable(split_variable("state.nothing")) is MISSING


def test_a_part_of_the_state_that_changes_inside_cannot_be_read() -> None:
    with pytest.raises(NotLoweredError):
        layout(writing("state.rows[0].n")).resolve_variable(split_variable("state.rows"))


@pytest.mark.parametrize(
    "effect",
    [
        writing("state.new.one"),
        writing("state.rows[0]"),
        writing("state", "patch", {"rows": []}),
        writing("state", "patch", "derived"),
        writing("state.list[7].n"),
    ],
)
def test_values_that_have_parts_are_not_lowered(effect: dict[str, Any]) -> None:
    with pytest.raises(NotLoweredError):
        layout(effect)

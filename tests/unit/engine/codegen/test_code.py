from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.engine import strict_json
from peripety.engine._reference.codegen.code import (
    MAX_NUMBER,
    CodeFragment,
    CodegenContext,
    Element,
    NotLoweredError,
    Slot,
    SlotLayout,
    ValueKind,
    indent,
    write_dispatch,
)
from peripety.engine._reference.effects import TURN_LIMIT
from peripety.engine._reference.jsonlogic import FUEL
from peripety.engine._reference.state import Rules
from peripety.engine.canonical_json import canonicalize
from peripety.engine.paths import MISSING, split_variable
from support.engine.specs import action, spec

SLOT = Slot("s0", ("state", "a"), ValueKind.NUMBER, 20.0)


def test_a_bound_covers_whatever_is_put_added_and_multiplied_in_a_thousand_turns() -> None:
    draft = CodegenContext(16)
    draft.record_growth(SLOT, to=20)
    draft.record_growth(SLOT, by=1.5)
    draft.record_growth(SLOT, by=0.5)
    draft.record_growth(SLOT, times=0.5)
    assert draft.compute_bounds() == {"s0": 20 + 1000 * 2}


def test_what_doubles_each_turn_has_no_bound_and_is_guarded() -> None:
    draft = CodegenContext(16)
    draft.record_growth(SLOT, to=20)
    draft.record_growth(SLOT, times=2)
    assert draft.compute_bounds() == {}
    assert CodegenContext(16, draft.compute_bounds()).is_guarded(SLOT)
    assert not CodegenContext(16, {"s0": 1e6}).is_guarded(SLOT)


def test_a_number_above_the_limit_is_held() -> None:
    draft = CodegenContext(16)
    small, large = (
        CodeFragment("s0 + s1", ValueKind.NUMBER, bound=bound, is_atom=False)
        for bound in (5.0, 2 * MAX_NUMBER)
    )
    assert draft.limit(small) is small
    assert (draft.limit(large).text, draft.limit(large).bound) == ("held(s0 + s1)", MAX_NUMBER)


def test_fuel_and_the_steps_of_a_turn_cannot_run_out() -> None:
    draft = CodegenContext(16)
    draft.charge_evaluation(CodeFragment("x", ValueKind.NUMBER, FUEL), times=TURN_LIMIT // FUEL)
    with pytest.raises(NotLoweredError):
        draft.charge_evaluation(CodeFragment("x", ValueKind.NUMBER))
    with pytest.raises(NotLoweredError):
        CodegenContext(16).charge_evaluation(CodeFragment("x", ValueKind.NUMBER, FUEL + 1))


def test_constants_are_known_by_name_only() -> None:
    draft = CodegenContext(16)
    codes = [draft.literal_code(value) for value in ("text", ["x", "y"], 2.5, True, None)]
    assert [code.text for code in codes] == ["k0", "k3", "2.5", "True", "None"]
    assert draft.names["k0"] == "text"
    assert draft.names["k3"] == ("x", "y")


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


def test_a_body_of_nothing_passes() -> None:
    assert indent([]) == ["    pass"]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 512])
def test_each_number_carries_out_its_own_body(count: int) -> None:
    source = compile(
        "\n".join(write_dispatch("number", [[f"done.append({n})"] for n in range(count)])),
        "",
        "exec",
    )
    for number in range(count):
        done: list[int] = []
        exec(source, {"number": number, "done": done})  # noqa: S102 - made above
        assert done == [number]

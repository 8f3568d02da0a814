from __future__ import annotations

import json
from typing import Any

import pytest

from peripety import engine
from peripety.errors import Severity, SpecError
from support.engine.specs import action, document, event, never, spec


def findings(**parts: Any) -> list[tuple[str, str]]:
    return [(finding.code, finding.path) for finding in engine.validate(document(**parts))]


def test_a_valid_document_has_no_findings() -> None:
    assert engine.validate(document()) == []


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"extra": 1}, ("UNKNOWN_KEY", "/extra")),
        ({"seed": -1}, ("OUT_OF_RANGE", "/seed")),
        ({"spec_version": "2.0"}, ("WRONG_VALUE", "/spec_version")),
        ({"loss_conditions": [never("a")]}, ("TOO_SHORT", "/loss_conditions")),
        ({"negativity_budget": {"min_fail_rate": 0}}, ("OUT_OF_RANGE", "/negativity_budget/min_fail_rate")),
        ({"random_events": [event(weight=0.9)]}, ("OUT_OF_RANGE", "/random_events/0/weight")),
        ({"actions": [action(effects=[{"op": "run", "path": "state.a"}])]},
         ("UNKNOWN_OP", "/actions/0/effects/0")),
        ({"actions": [action(effects=[{"op": "inc", "path": "state.a"}])]},
         ("MISSING_KEY", "/actions/0/effects/0")),
        ({"actions": [action("a"), action("a")]}, ("DUPLICATE_ID", "/actions/1/id")),
        ({"loss_conditions": [never("a"), never("b")], "win_conditions": [never("a")]},
         ("DUPLICATE_ID", "/win_conditions/0/id")),
        ({"state": {"__proto__": 1}}, ("FORBIDDEN_KEY", "/state/__proto__")),
        ({"state": {"a": list(range(10_000)), "b": 1}}, ("LIMIT_EXCEEDED", "/state")),
        ({"clock": {"turn": "soon"}}, ("BAD_DURATION", "/clock/turn")),
        ({"clock": {"turn": "0h"}}, ("BAD_DURATION", "/clock/turn")),
        ({"random_events": [event(duration="3 days")]}, ("BAD_DURATION", "/random_events/0/duration")),
        ({"negativity_budget": {"min_fail_rate": 0.5, "max_fail_rate": 0.4}},
         ("BUDGET_CONTRADICTION", "/negativity_budget/max_fail_rate")),
        ({"negativity_budget": {"min_fail_rate": 0.5, "decay_per_turn": {"state.zz": 1}}},
         ("UNKNOWN_PATH", "/negativity_budget/decay_per_turn/state.zz")),
        ({"negativity_budget": {"min_fail_rate": 0.5, "decay_per_turn": {"state.note": 1}}},
         ("TYPE_MISMATCH", "/negativity_budget/decay_per_turn/state.note")),
        ({"visibility": [{"path": "state.a", "to": ["ghost"]}]}, ("UNKNOWN_ENTITY", "/visibility/0/to")),
        ({"visibility": [{"path": "state.zz", "to": "hidden"}]}, ("UNKNOWN_PATH", "/visibility/0/path")),
        ({"state": {"a": 1, "b": 1, "private": {"ghost": {}}}}, ("UNKNOWN_ENTITY", "/state/private/ghost")),
        ({"narrator_scope": [{"path": "state.zz", "ops": ["inc"]}]},
         ("UNKNOWN_PATH", "/narrator_scope/0/path")),
    ],
)  # fmt: skip
def test_documents_are_checked(parts: dict[str, Any], expected: tuple[str, str]) -> None:
    assert expected in findings(**parts)


@pytest.mark.parametrize(
    ("effect", "code"),
    [
        ({"op": "inc", "path": "a", "value": 1}, "BAD_PATH"),
        ({"op": "inc", "path": "state..a", "value": 1}, "BAD_PATH"),
        ({"op": "inc", "path": "state.a[-1]", "value": 1}, "BAD_PATH"),
        ({"op": "set", "path": "state", "value": 1}, "BAD_PATH"),
        ({"op": "set", "path": "state.constructor", "value": 1}, "FORBIDDEN_KEY"),
        ({"op": "inc", "path": "state.zz", "value": 1}, "UNKNOWN_PATH"),
        ({"op": "set", "path": "state.zz.y", "value": 1}, "UNKNOWN_PATH"),
        ({"op": "inc", "path": "state.list.x", "value": 1}, "UNKNOWN_PATH"),
        ({"op": "inc", "path": "state.note", "value": 1}, "TYPE_MISMATCH"),
        ({"op": "push", "path": "state.a", "value": 1}, "TYPE_MISMATCH"),
        ({"op": "inc", "path": "state.a", "value": "x"}, "UNKNOWN_DERIVE"),
        ({"op": "set", "path": "state.a", "value": {"+": [1, 2]}}, "CODE_IN_VALUE"),
        ({"op": "set", "path": "state.a", "value": ["{{a}}"]}, "CODE_IN_VALUE"),
        ({"op": "set", "path": "state.a", "value": "${a}"}, "CODE_IN_VALUE"),
        ({"op": "schedule", "id": "s", "effects": [{"op": "pop", "path": "state.list"}]}, "BAD_SCHEDULE"),
        ({"op": "schedule", "id": "s", "after": 1, "at": 2, "effects": [{"op": "pop", "path": "state.list"}]},
         "BAD_SCHEDULE"),
        ({"op": "schedule", "id": "s", "after": "soon", "effects": [{"op": "pop", "path": "state.list"}]},
         "BAD_DURATION"),
        ({"op": "schedule", "id": "s", "after": 1, "effects": [{"op": "pop", "path": "state.zz"}]},
         "UNKNOWN_PATH"),
    ],
)  # fmt: skip
def test_effects_are_checked(effect: dict[str, Any], code: str) -> None:
    (finding,) = engine.validate(document(actions=[action(effects=[effect])]))
    assert finding.code == code
    assert finding.path.startswith("/actions/0/effects/0")


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ({"nope": [1]}, "UNKNOWN_OPERATOR"),
        ({"log": ["a"]}, "UNKNOWN_OPERATOR"),
        ({"+": [1], "-": [1]}, "UNKNOWN_OPERATOR"),
        ({"<": [1]}, "WRONG_ARITY"),
        ({"and": []}, "WRONG_ARITY"),
        ({"/": [1]}, "WRONG_ARITY"),
        ({"reduce": [[1], {"var": "current"}]}, "WRONG_ARITY"),
        ({"var": "state.zz"}, "UNKNOWN_PATH"),
        ({"var": "a"}, "UNKNOWN_PATH"),
        ({"var": "params.n"}, "UNKNOWN_PATH"),
        ({"var": "derives.n"}, "UNKNOWN_PATH"),
        ({"missing": ["state.zz"]}, "UNKNOWN_PATH"),
        ({"var": "state.list.length"}, "UNKNOWN_PATH"),
        ({"var": "state.list.x.y"}, "UNKNOWN_PATH"),
        ({"var": ""}, "DYNAMIC_PATH"),
        ({"missing": [""]}, "DYNAMIC_PATH"),
        ({"var": {"cat": ["state.", "a"]}}, "DYNAMIC_PATH"),
    ],
)
def test_conditions_are_checked(condition: dict[str, Any], code: str) -> None:
    (finding,) = engine.validate(document(random_events=[event(when=condition)]))
    assert finding.code == code


def test_conditions_are_not_nested_without_end() -> None:
    condition: Any = {"var": "state.flag"}
    for _ in range(40):
        condition = {"!": [condition]}
    assert findings(random_events=[event(when=condition)]) == [("TOO_DEEP", "")]


@pytest.mark.parametrize(
    "condition",
    [
        {"some": [{"var": "state.list"}, {">": [{"var": ""}, 1]}]},
        {"==": [{"var": "state.list.5"}, 1]},
        {"==": [{"var": "state.list[0]"}, 1]},
        {"==": [{"var": ["state.a", 0]}, 1]},
        {">": [{"var": "turn"}, 3]},
    ],
)
def test_conditions_that_can_be_known_to_be_right_are_accepted(condition: dict[str, Any]) -> None:
    assert findings(random_events=[event(when=condition)]) == []


def test_a_path_that_some_effect_creates_may_be_read() -> None:
    creates = action(effects=[{"op": "set", "path": "state.zz", "value": {"y": 1}}])
    assert findings(actions=[creates], random_events=[event(when={"var": "state.zz.y"})]) == []


def test_derived_values_may_not_go_in_circles() -> None:
    derives = {"x": {"+": [{"var": "derives.y"}, 1]}, "y": {"+": [{"var": "derives.x"}, 1]}, "z": 1}
    assert findings(actions=[action(derives=derives)]) == [
        ("DERIVE_CYCLE", "/actions/0/derives/x"),
        ("DERIVE_CYCLE", "/actions/0/derives/y"),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"},
        {"type": "integer", "minimum": 3, "maximum": 1},
        {"type": "integer", "minimum": 0.5, "maximum": 2},
        {"type": "integer", "minimum": 0, "maximum": 1e300},
        {"type": "number", "minimum": -1.7e308, "maximum": 1.7e308},
        {"type": "integer", "enum": [1, 9], "minimum": 0, "maximum": 3},
        {"type": "string", "enum": ["long"], "maxLength": 2},
        {"type": "number", "minimum": 1},
        {"type": "string"},
        {"type": "boolean", "maximum": 1},
        {"type": "integer", "enum": [1, "x"]},
    ],
)
def test_every_parameter_can_be_drawn(schema: dict[str, Any]) -> None:
    assert ("BAD_PARAM", "/actions/0/params/n") in findings(actions=[action(params={"n": schema})])


def test_the_state_as_a_whole_may_be_patched() -> None:
    assert findings(actions=[action(effects=[{"op": "patch", "path": "state", "value": {"zz": 1}}])]) == []


def test_findings_are_capped() -> None:
    assert len(engine.validate(document(actions=[action(f"a{n}", [{"op": "x"}]) for n in range(200)]))) == 50


def test_a_document_that_is_not_json_is_one_finding() -> None:
    (finding,) = engine.validate(b"spec_version: 1.0")
    assert (finding.code, finding.severity) == ("INVALID_JSON", Severity.ERROR)
    assert "line 1, column 1" in finding.message


def test_compile_raises_with_the_findings_of_validate() -> None:
    text = json.dumps(spec(seed=-1))
    with pytest.raises(SpecError) as caught:
        engine.compile(text)
    assert list(caught.value.findings) == engine.validate(text)


@pytest.mark.parametrize("value", [None, 1, "x", [], True])
def test_a_document_that_is_no_object_is_a_finding(value: Any) -> None:
    (finding,) = engine.validate(json.dumps(value))
    assert finding.code == "WRONG_TYPE"


def test_an_unknown_key_suggests_the_one_that_was_meant() -> None:
    (finding,) = engine.validate(document(horzon=3))
    assert "did you mean 'horizon'?" in finding.message

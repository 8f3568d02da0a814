"""Slips with only one possible meaning are corrected, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.scenario.generation.slip_correction import correct_slips
from support.engine.specs import action, event, spec

ENUM = {"type": "string", "enum": ["p", "q"]}


def corrected(**parts: Any) -> dict[str, Any]:
    return correct_slips(spec(**parts), {})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"op": "inc", "path": "state.a", "by": 2}, {"op": "inc", "path": "state.a", "value": 2}),
        ({"op": "subtract", "path": "state.a", "amount": 2}, {"op": "dec", "path": "state.a", "value": 2}),
        ({"op": "addlog", "text": "x"}, {"op": "addlog", "message": "x"}),
        ({"op": "reveal", "id": "c"}, {"op": "reveal", "clue": "c"}),
        ({"op": "move", "who": "m", "place": "p"}, {"op": "move", "entity": "m", "to": "p"}),
        ({"op": "set", "path": "state.ok", "value": 1}, {"op": "set", "path": "state.ok", "value": True}),
        ({"op": "set", "path": "state.n", "value": True}, {"op": "set", "path": "state.n", "value": 1}),
        (
            {"op": "schedule", "id": "s", "in": 2, "once": 1, "effects": {"op": "log", "message": "x"}},
            {
                "op": "schedule",
                "id": "s",
                "after": 2,
                "once": True,
                "effects": [{"op": "addlog", "message": "x"}],
            },
        ),
    ],
)
def test_an_effect_in_a_neighbouring_spelling_is_corrected(written: Any, meant: Any) -> None:
    state = {"a": 5, "ok": False, "n": 0}
    for effects in ([written], written):
        rule = corrected(state=state, actions=[{"id": "a", "effects": effects}])["actions"][0]
        assert rule == action("a", [meant], preconditions={}, params={})


@pytest.mark.parametrize(
    "effect",
    [
        {"op": "inc", "path": "state.a", "by": 2, "amount": 3},
        {"op": "inc", "path": "state.a", "value": 1, "by": 2},
        {"op": "set", "path": "state.a", "value": 1},
        {"op": "set", "path": "state.ok", "value": 2},
        {"op": "unheard", "value": 1},
        {"path": "state.a"},
        "inc",
    ],
)
def test_what_has_several_meanings_or_none_stays(effect: Any) -> None:
    rules = [action("a", [effect], params={}, preconditions={})]
    assert corrected(state={"a": 5, "ok": False}, actions=rules)["actions"] == rules


def test_empty_conditions_and_neighbouring_keys_of_rules_are_corrected() -> None:
    holds = {"==": [{"var": "state.ok"}, 1]}
    meant = {"==": [{"var": "state.ok"}, True]}
    document = corrected(
        state={"a": 5, "ok": False},
        actions=[
            {"id": "a", "when": holds, "effects": [], "params": {"x": ["p", "q"], "n": {"type": "int"}}}
        ],
        random_events=[{"id": "e", "weight": 0.1, "effects": []}, {**event("f"), "once": 1}],
        win_conditions=[{"id": "w", "preconditions": {"and": [holds, {"!==": [0, {"var": "state.ok"}]}]}}],
    )
    assert document["actions"] == [
        {"id": "a", "preconditions": meant, "effects": [], "params": {"x": ENUM, "n": {"type": "integer"}}},
    ]
    assert document["random_events"][0]["when"] == {}
    assert document["random_events"][1]["once"] is True
    assert document["win_conditions"] == [
        {"id": "w", "when": {"and": [meant, {"!==": [False, {"var": "state.ok"}]}]}}
    ]


def test_bare_texts_truths_bounds_and_dealt_values_are_corrected() -> None:
    document = corrected(
        state={"a": 5},
        clues={"c": "x"},
        places={"p": "Near"},
        labels={"state.a": "Alpha"},
        statements={"s": {"by": "e", "text": "x", "true": 0}, "t": {"true": {"==": [1, 1]}}},
        bounds={"state.a": [0, 9], "state.b": {"min": 1}},
        entities=[{"id": "e", "playable": 1}],
        deal=[{"id": "k", "path": "state.hidden.k", "values": ["x", "y"]}],
    )
    assert document["clues"] == {"c": {"text": "x"}}
    assert document["places"] == {"p": {"name": "Near"}}
    assert document["labels"] == {"state.a": {"name": "Alpha"}}
    assert document["statements"]["s"]["true"] is False
    assert document["statements"]["t"] == {"true": {"==": [1, 1]}}
    assert document["bounds"] == {"state.a": {"min": 0, "max": 9}, "state.b": {"min": 1}}
    assert document["entities"] == [{"id": "e", "playable": True}]
    assert document["state"] == {"a": 5, "hidden": {"k": "x"}}


def test_a_rule_without_effects_stays() -> None:
    stub = {"id": "a", "power": 1}
    assert corrected(actions=[stub])["actions"] == [stub]


def test_a_parameter_as_a_value_is_derived() -> None:
    gives = action("a", [{"op": "inc", "path": "state.a", "value": "n"}], params={"n": {"type": "integer"}})
    assert corrected(actions=[gives])["actions"][0]["derives"] == {"n": {"var": "params.n"}}


def test_parts_of_the_document_before_stay_as_they_are() -> None:
    before = spec(actions=[{"id": "a", "effects": []}], random_events=[{"id": "e", "effects": []}])
    assert correct_slips(before, before) == before
    added = {**before, "actions": [*before["actions"], {"id": "b", "effects": []}]}
    assert correct_slips(added, before)["actions"][0] == {"id": "a", "effects": []}


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, [[1]], {"a": [{}]}, [{"path": 1, "values": 2}]])
@pytest.mark.parametrize(
    "key", ["state", "actions", "deal", "statements", "clues", "random_events", "bounds"]
)
def test_any_json_is_taken(key: str, value: Any) -> None:
    correct_slips({**spec(), key: value}, {})

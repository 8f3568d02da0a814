"""Differences between two drafts.

Rules in words.

Changes in a part, in words.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.engine.rule_text import (
    RuleEdit,
    RuleEditKind,
    describe_condition,
    describe_effect,
    describe_expression,
    diff_specs,
)
from support.engine.specs import action, at_most, event, spec

ADDED, REMOVED, CHANGED = RuleEditKind.ADDED, RuleEditKind.REMOVED, RuleEditKind.CHANGED


def seen(before: Any, after: Any) -> list[tuple[RuleEditKind, str]]:
    return [(edit.kind, edit.path) for edit in diff_specs(before, after)]


def test_equal_documents_do_not_differ() -> None:
    assert diff_specs(spec(), spec()) == ()


def test_rules_are_matched_by_their_ids_wherever_they_stand() -> None:
    before = spec(actions=[action("one"), action("two")])
    after = spec(actions=[action("two"), {**action("one"), "name": "One"}, action("three")])
    assert seen(before, after) == [(CHANGED, "/actions/1"), (ADDED, "/actions/2")]


def test_removals_name_the_place_in_the_old_document() -> None:
    before, after = spec(random_events=[event("one"), event("two")]), spec(random_events=[event("one")])
    assert seen(before, after) == [(REMOVED, "/random_events/1")]


def test_other_parts_are_matched_by_their_keys() -> None:
    assert seen(spec(), spec(name="Beta", horizon=9)) == [(CHANGED, "/name"), (ADDED, "/horizon")]


def test_an_edit_holds_both_sides_and_a_sentence() -> None:
    (edit,) = diff_specs({"a": [1]}, {"a": ["é", None]})
    assert edit == RuleEdit(CHANGED, "/a", b"[1]", '["é", null]'.encode(), 'a [1] → ["é", null]')
    (added,) = diff_specs({}, {"b": None})
    assert (added.before, json.loads(added.after or b"0")) == (None, None)


@pytest.mark.parametrize("junk", [None, 3, "text", [1, 2], {"actions": "none"}, {"actions": [{"id": 1}]}])
def test_documents_need_not_be_scenarios(junk: Any) -> None:
    assert all(edit.kind is not CHANGED or edit.path == "/actions" for edit in diff_specs(junk, spec()))
    assert diff_specs(spec(), junk) != ()


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


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        ({"op": "reveal", "clue": "c"}, 'reveals the clue "c"'),
        (
            {"op": "reveal", "clue": {"param": "x"}, "when": {"known": "d"}},
            'reveals the clue "x" if d is known',
        ),
        ({"op": "reveal", "clue": "{0}", "when": {}}, 'reveals the clue "{0}"'),
        (
            {"op": "say", "statement": "s", "when": {">": [{"var": "state.a"}, 2]}},
            'the statement "s" is made if a > 2',
        ),
    ],
)
def test_an_effect_with_a_condition_names_it(effect: Any, words: str) -> None:
    assert describe_effect(effect, {}) == words


def told(section: str, before: Any, after: Any) -> list[str]:
    edits = diff_specs({**spec(), section: before}, {**spec(), section: after})
    return [edit.summary for edit in edits]


def moves(*amounts: tuple[str, str, float]) -> list[dict[str, Any]]:
    return [{"op": op, "path": f"state.{name}", "value": value} for op, name, value in amounts]


def test_numbers_and_durations_of_an_event() -> None:
    before = event("a", moves(("dec", "x", 3)), weight=0.1, duration="2h")
    after = event("a", moves(("dec", "x", 5)), weight=0.15, duration="4h")
    (line,) = told("random_events", [before], [after])
    assert line == "event 'a': weight 0.1 → 0.15; duration 2h → 4h; x -3 → x -5"


def test_effects_that_come_go_and_turn_around() -> None:
    before = action("a", moves(("inc", "x", 1), ("dec", "y", 2)))
    after = action("a", moves(("dec", "x", 1), ("inc", "z", 4)))
    assert told("actions", [before], [after]) == ["action 'a': x +1 → x -1; z +4 added; y -2 removed"]


def test_effects_in_another_order_are_no_other_effects() -> None:
    before = action("a", moves(("inc", "x", 1), ("dec", "y", 2)))
    after = {**before, "effects": before["effects"][::-1]}
    assert told("actions", [before], [after]) == ["action 'a': put in another order"]


def test_conditions_parameters_and_derived_values() -> None:
    param = {"type": "integer", "minimum": 1, "maximum": 3}
    before = action("a", params={"n": param, "sure": {"type": "boolean"}}, derives={"d": {"*": [2, 3]}})
    after = before | {
        "params": {"n": param | {"maximum": 5}},
        "preconditions": {">": [{"var": "state.x"}, 2]},
        "derives": {"d": {"*": [2, 4]}},
    }
    (line,) = told("actions", [before], [after])
    assert line.split("; ") == [
        "action 'a': when always → x > 2",
        "n integer from 1 to 3 → integer from 1 to 5",
        "d = 2 * 3 → 2 * 4",
        "sure yes or no removed",
    ]


def test_what_comes_says_what_it_is_and_what_goes_its_name() -> None:
    new = event("b", moves(("dec", "x", 2)), weight=0.2, when={"<": [{"var": "turn"}, 5]}, duration="7d")
    assert told("random_events", [event("a")], [new]) == [
        "event 'b' added: weight 0.2; when turn < 5; duration 7d; x -2",
        "event 'a' removed",
    ]


def test_endings_quantities_and_figures() -> None:
    before, after = at_most("low", "state.a", 0), at_most("low", "state.a", 2)
    assert told("loss_conditions", [before], [after]) == ["loss 'low': when a ≤ 0 → a ≤ 2"]
    assert told("state", {"a": 1, "b": {"c": 2, "d": 0}}, {"a": 3, "b": {"c": 4, "d": 0}}) == [
        "initial a 1 → 3",
        "initial b: c 2 → 4",
    ]
    one, other = ({"decay_per_turn": {"state.a": amount}} for amount in (1, 2))
    assert told("negativity_budget", one, other) == ["decay: a 1 → 2"]
    assert told("horizon", 20, 40) == ["horizon 20 → 40"]
    assert told("clock", {"turn": "1h"}, {"turn": "1d"}) == ["clock: turn 1h → 1d"]
    label = {"path": "state.a", "to": "public"}
    assert told("visibility", [label], [label | {"to": "hidden"}]) == ['who sees a: to "public" → "hidden"']


def test_long_texts_are_cut_and_those_that_begin_alike_are_reworded() -> None:
    before, after = ({"id": "e", "description": "x" * 200 + end} for end in "ab")
    assert told("entities", [before], [after]) == ["entity 'e': description reworded"]


@pytest.mark.parametrize("junk", [None, 3, [], {"effects": 3}, {"effects": [7], "when": [1]}, {"params": []}])
def test_a_draft_may_hold_anything(junk: Any) -> None:
    rule = {"id": "a", **junk} if isinstance(junk, dict) else junk
    assert all(told("actions", [rule], [action("a")]))
    assert all(told("actions", [action("a")], [rule]))


def test_the_content_of_solutions_is_in_no_difference() -> None:
    one = [{"id": "planted", "steps": [{"action": "planted"}]}]
    other = [{"id": "planted", "steps": [{"action": "planted", "otherwise": "skip"}]}]
    cases = [({}, {"solutions": one}), ({"solutions": one}, {"solutions": other}), ({"solutions": one}, {})]
    for (before, after), kind in zip(cases, (ADDED, CHANGED, REMOVED), strict=True):
        (edit,) = diff_specs(before, after)
        assert edit.kind is kind
        assert edit.summary == f"solutions {kind.value}"
        assert "planted" not in repr(edit)

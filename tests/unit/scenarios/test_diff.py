"""What differs between two drafts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.scenario.rule_text import diff_specs
from peripety.scenario.types import RuleEdit, RuleEditKind
from support.engine.specs import action, event, spec

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

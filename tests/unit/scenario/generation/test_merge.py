"""Merging of partial documents: given values replace, missing values stay, removed values are deleted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.engine.schema_validation import validate_against_schema
from peripety.engine.spec_sections import split_parts
from peripety.errors import Finding
from peripety.scenario.generation import merge as generation_merge
from peripety.scenario.generation.merge import (
    EVERYTHING,
    EditScope,
    answer_schema,
    merge,
    restore_parts,
    scope_of_findings,
)
from support.engine.specs import action, event, spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.engine.spec_sections import SpecPart


NOTHING = EditScope(frozenset())
TWO = spec(state={"a": 1, "b": 2}, actions=[action("one"), action("two")], horizon=9)


def ids(document: dict[str, Any], section: str = "actions") -> list[str]:
    return [entry["id"] for entry in document[section]]


def test_the_first_answer_is_the_document() -> None:
    assert merge({}, TWO).document == TWO


def test_what_is_said_of_a_part_replaces_it_where_it_stood_and_all_else_stays() -> None:
    better = {**action("one"), "name": "Better"}
    merged = merge(TWO, {"actions": [better, action("three")], "state": {"b": 5}, "horizon": 3})
    assert merged.document == {
        **TWO,
        "actions": [better, action("two"), action("three")],
        "state": {"a": 1, "b": 5},
        "horizon": 3,
    }
    assert (merged.left_out, merged.findings) == ((), ())


def test_figures_of_the_budget_are_said_one_by_one() -> None:
    merged = merge(TWO, {"negativity_budget": {"max_fail_rate": 0.9}})
    assert merged.document["negativity_budget"] == {**TWO["negativity_budget"], "max_fail_rate": 0.9}


@pytest.mark.parametrize("path", ["/actions/one", "/actions/0"])
def test_what_is_removed_is_named_by_its_id_or_its_place(path: str) -> None:
    assert ids(merge(TWO, {"removed": [path]}).document) == ["two"]


def test_places_are_those_before_anything_was_removed() -> None:
    assert merge(TWO, {"removed": ["/actions/0", "/actions/1"]}).document["actions"] == []


def test_a_document_is_not_gone_through_again_for_each_part_that_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    def counted(document: Any) -> Iterator[SpecPart]:
        looked[-1] += 1
        return split_parts(document)

    monkeypatch.setattr(generation_merge, "split_parts", counted)
    many = spec(actions=[action(f"a{number}") for number in range(50)])
    for paths in (["/actions/0"], [f"/actions/{place}" for place in range(50)]):
        looked.append(0)
        merge(many, {"removed": paths})
    assert looked[0] == looked[1]


def test_keys_and_sections_are_removed_whole() -> None:
    merged = merge(TWO, {"removed": ["/state/a", "/horizon", "/actions"], "actions": [action("new")]})
    assert merged.document["state"] == {"b": 2}
    assert "horizon" not in merged.document
    assert ids(merged.document) == ["new"]


def test_a_section_whose_last_part_goes_is_empty_and_not_missing() -> None:
    merged = merge({"random_events": [event("a", [])]}, {"removed": ["/random_events/a"]})
    assert merged.document == {"random_events": []}


def test_outside_of_the_scope_only_new_parts_are_taken() -> None:
    changed = {**action("one"), "name": "Other"}
    answer = {
        "actions": [changed, action("two"), action("three")],
        "state": {"c": 1},
        "removed": ["/horizon", "/state/z"],
    }
    merged = merge(TWO, answer, NOTHING)
    assert merged.document == {
        **TWO,
        "actions": [*TWO["actions"], action("three")],
        "state": {**TWO["state"], "c": 1},
    }
    assert merged.left_out == ("/horizon", "/state/z", "/actions/one")


def test_a_scope_holds_the_parts_that_findings_are_about() -> None:
    scope = scope_of_findings(
        TWO,
        [
            Finding("UNKNOWN_PATH", "/actions/1/effects/0/path", ""),
            Finding("OUT_OF_RANGE", "/negativity_budget/max_fail_rate", ""),
            Finding("MISSING_KEY", "", ""),
        ],
    )
    assert scope.allows(("actions", "two"))
    assert scope.allows(("negativity_budget", "min_fail_rate"))
    assert not scope.allows(("actions", "one"))
    assert not scope.allows(("name",))


@pytest.mark.parametrize("path", ["", "/"])
def test_what_is_wrong_with_the_whole_document_opens_all_of_it(path: str) -> None:
    assert scope_of_findings(TWO, [Finding("LIMIT_EXCEEDED", path.removesuffix("/"), "")]) == EVERYTHING


def test_a_finding_about_a_section_opens_its_parts() -> None:
    assert scope_of_findings(TWO, [Finding("CHOICES_DO_NOT_MATTER", "/actions", "")]).allows(
        ("actions", "one"),
    )


@pytest.mark.parametrize(
    ("answer", "code", "path"),
    [
        ([], "WRONG_TYPE", ""),
        ({"rules": []}, "UNKNOWN_KEY", "/rules"),
        ({"actions": {"one": {}}}, "WRONG_TYPE", "/actions"),
        ({"actions": [{"name": "One"}]}, "MISSING_KEY", "/actions"),
        ({"actions": [{"id": 1}]}, "WRONG_TYPE", "/actions"),
        ({"state": 3}, "WRONG_TYPE", "/state"),
        ({"negativity_budget": {"rate": 1}}, "UNKNOWN_KEY", "/negativity_budget/rate"),
        ({"removed": "/actions"}, "WRONG_TYPE", "/removed"),
    ],
)
def test_what_is_no_part_is_left_out_and_told(answer: Any, code: str, path: str) -> None:
    merged = merge(TWO, answer)
    assert merged.document == TWO
    assert [(finding.code, finding.path) for finding in merged.findings] == [(code, path)]


def test_a_part_that_is_wrong_in_itself_is_for_the_checks_of_the_document_to_find() -> None:
    merged = merge(TWO, {"actions": [{"id": "one", "effects": "none"}]})
    assert merged.findings == ()
    assert {finding.path for finding in engine.validate(json.dumps(merged.document))} >= {"/actions/0"}


def test_a_whole_answer_takes_the_place_of_what_may_be_changed() -> None:
    other = spec(state={"c": 3}, actions=[action("three")])
    assert merge(TWO, other).document == other
    assert merge(TWO, {**other, "notes": "none"}).document == other
    merged = merge(TWO, other, EditScope(frozenset({("actions", "two")})))
    assert ids(merged.document) == ["one", "three"]
    assert merged.document["state"] == {"a": 1, "b": 2, "c": 3}


def test_a_whole_answer_that_cannot_be_read_everywhere_takes_the_place_of_nothing_it_does_not_name() -> None:
    assert ids(merge(TWO, {**TWO, "actions": {"one": {}}}).document) == ["one", "two"]


def test_a_null_where_none_may_be_says_nothing() -> None:
    answer = {"horizon": None, "actions": [{**action("one"), "description": None}], "state": {"a": None}}
    merged = merge(TWO, answer)
    assert merged.document == {**TWO, "state": {"a": None, "b": 2}}


def test_ids_that_are_there_twice_stay_so_that_they_are_found() -> None:
    merged = merge({}, spec(actions=[action("one"), action("one")]))
    assert ids(merged.document) == ["one", "one"]


def test_neither_the_document_nor_the_answer_is_changed() -> None:
    document: dict[str, Any] = {"actions": [], "state": {}}
    answer = {"actions": [action("one")], "state": {"a": 1}}
    before = json.dumps([document, answer])
    merge(document, answer)
    assert json.dumps([document, answer]) == before


def test_parts_are_restored_as_they_were_or_not_at_all() -> None:
    changed = merge(TWO, {"actions": [{**action("one"), "name": "Other"}, action("new")]}).document
    assert restore_parts(changed, TWO, [("actions", "one"), ("actions", "new")]) == TWO


def test_answers_need_say_little_and_may_say_everything() -> None:
    assert validate_against_schema(answer_schema(), {"horizon": 3}) == []
    assert validate_against_schema(answer_schema(), {**TWO, "removed": ["/actions/one"]}) == []
    assert (
        validate_against_schema(
            answer_schema(),
            {"loss_conditions": TWO["loss_conditions"][:1], "actions": []},
        )
        == []
    )
    assert [finding.code for finding in validate_against_schema(answer_schema(), {"horizon": "x"})] == [
        "WRONG_TYPE",
    ]

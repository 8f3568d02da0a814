"""The parts of a document: what they are known by, and that nothing is lost between them."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.engine.spec_sections import join_parts, part_name_at, split_parts
from support.engine.specs import action, spec

MANY = spec(
    state={"a": 1, "b": {"c": 2}},
    actions=[action("one"), action("two")],
    visibility=[{"path": "state.a", "to": "hidden"}],
    random_events=[],
)


def test_rules_are_known_by_ids_labels_by_paths_and_the_rest_by_keys() -> None:
    names = {part.name: part.path for part in split_parts(MANY)}
    assert names["actions", "two"] == "/actions/1"
    assert names["visibility", "state.a"] == "/visibility/0"
    assert names["state", "b"] == "/state/b"
    assert names["negativity_budget", "min_fail_rate"] == "/negativity_budget/min_fail_rate"
    assert names["random_events",] == "/random_events"
    assert names["name",] == "/name"


@pytest.mark.parametrize(
    "document",
    [
        MANY,
        {},
        {"actions": [{"id": 1}, 3, {"id": "a"}, {"id": "a"}], "state": [], "unknown": {"a": 1}},
        {"visibility": [{"path": "state.a"}, {"path": "state.a"}], "entities": "none", "state": {}},
    ],
)
def test_parts_put_together_are_the_document(document: Any) -> None:
    contents = {part.name: part.value for part in split_parts(document)}
    assert join_parts(contents) == document


@pytest.mark.parametrize("junk", [None, 3, "text", [1, 2]])
def test_what_is_no_object_has_no_parts(junk: Any) -> None:
    assert list(split_parts(junk)) == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/actions/1/effects/0/path", ("actions", "two")),
        ("/actions/1", ("actions", "two")),
        ("/actions", ("actions",)),
        ("/actions/7", ("actions",)),
        ("/state/b/c", ("state", "b")),
        ("/negativity_budget/decay_per_turn/state.a", ("negativity_budget",)),
        ("/name", ("name",)),
        ("/horizon", ("horizon",)),
        ("", ()),
    ],
)
def test_a_pointer_leads_to_the_part_that_holds_its_place(path: str, name: tuple[str, ...]) -> None:
    assert part_name_at(MANY, path) == name

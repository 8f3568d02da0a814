"""Whatever an answer is, it can be put into a document, and touches nothing that it may not."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from peripety.engine.schemas import SCENARIO_SPEC_1_1, schema_document
from peripety.engine.spec_sections import DIVIDED, SECTIONS, join_parts, split_parts
from peripety.scenario.generation.merge import EVERYTHING, EditScope, merge
from support.engine.specs import action, event, spec

DOCUMENT = spec(
    state={"a": 1, "b": 2},
    actions=[action("one"), action("two")],
    random_events=[event("one", [])],
    horizon=9,
)
NAMES = [part.name for part in split_parts(DOCUMENT)]

junk = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "one", "state.a", "/actions/one"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "path", "a", "effects", "min_fail_rate"]), inner, max_size=3)
    ),
    max_leaves=6,
)
entries = st.builds(
    lambda name, value: {**action(name), "name": value},
    st.sampled_from(["one", "two", "x"]),
    junk,
)
pointers = st.sampled_from(
    ["/actions/one", "/actions/0", "/actions", "/state/a", "/horizon", "", "a", "/z/0", "/-"],
)
keys = st.sampled_from([*SECTIONS, *DIVIDED, "horizon", "name", "notes"])
answers = st.builds(
    lambda said, removed: {**said, "removed": removed},
    st.dictionaries(keys, junk | st.lists(entries, max_size=3), max_size=5),
    st.lists(pointers, max_size=3) | junk,
)
scopes = st.frozensets(st.sampled_from([*NAMES, *(name[:1] for name in NAMES)])).map(EditScope)


def contents(document: Any) -> dict[tuple[str, ...], Any]:
    return {part.name: part.value for part in split_parts(document)}


@given(answer=answers | junk, scope=scopes | st.just(EVERYTHING))
def test_what_an_answer_may_not_change_is_as_it_was(answer: Any, scope: EditScope) -> None:
    before = json.dumps([DOCUMENT, answer])
    merged = merge(DOCUMENT, answer, scope)
    assert json.dumps([DOCUMENT, answer]) == before
    now = contents(merged.document)
    assert join_parts(now) == merged.document
    for name, value in contents(DOCUMENT).items():
        if not scope.allows(name):
            assert now[name] == value


@given(answer=answers | junk)
def test_an_answer_that_was_taken_changes_nothing_when_it_comes_again(answer: Any) -> None:
    once = merge({}, answer).document
    again = merge(once, answer).document
    if not (isinstance(answer, dict) and answer.get("removed")):
        assert again == once


@given(answer=answers | junk)
def test_a_document_has_nothing_but_keys_that_it_may_have(answer: Any) -> None:
    merged = merge({}, answer)
    assert merged.document.keys() <= schema_document(SCENARIO_SPEC_1_1)["properties"].keys()
    for section in SECTIONS:
        entries_now = merged.document.get(section, [])
        assert all(isinstance(entry[SECTIONS[section]], str) for entry in entries_now)

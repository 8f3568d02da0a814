"""Repair of a truncated object: retains complete members and elements, and adds nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.gateway.structured_output.json_repair import complete_members

DIVISIBLE = {"list", "map"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": 2', {"a": 1}),
        ('{"a": 1, "b": "half', {"a": 1}),
        ('{"a": 1, "b', {"a": 1}),
        ('{"a": {"x": 1}, "b": {"x": 1', {"a": {"x": 1}}),
        ('{"list": [{"x": 1}, {"x": 2, "y": [3', {"list": [{"x": 1}]}),
        ('{"list": [{"x": 1}, {"x": 2}', {"list": [{"x": 1}, {"x": 2}]}),
        ('{"list": [{"x": 1', {"list": []}),
        ('{"map": {"x": 1, "y": {"z": 1', {"map": {"x": 1}}),
        ('{"map": {"x": 1, "y": 2', {"map": {"x": 1}}),
        ('{"a": {"list": [1, 2', None),
        (
            'Here it is:\n```json\n{"a": 1, // one\n "list": [{"x": True}, {\'x',
            {"a": 1, "list": [{"x": True}]},
        ),
        ('{"old": 1} is wrong, rather {"a": 1, "b"', {"a": 1}),
        ('{"a": 1, "a": 2, "b"', None),
        ('{"a": 1}', {"a": 1}),
        ('[{"a": 1}, {"b"', None),
        ("{", None),
        ("nothing of the kind", None),
    ],
)
def test_only_what_was_finished_is_kept(text: str, value: Any) -> None:
    assert complete_members(text, DIVISIBLE) == value


values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow(reason="cuts an answer at every place")
@given(st.dictionaries(st.sampled_from(["a", "b", "list", "map"]), values, min_size=1), st.data())
def test_whatever_is_cut_off_nothing_is_kept_that_the_whole_does_not_say(
    whole: dict[str, Any],
    data: st.DataObject,
) -> None:
    text = json.dumps(whole, ensure_ascii=False)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    for key, value in (complete_members(cut, DIVISIBLE) or {}).items():
        if isinstance(value, list) and key in DIVISIBLE:
            assert value == whole[key][: len(value)]
        elif isinstance(value, dict) and key in DIVISIBLE:
            assert value.items() <= whole[key].items()
        else:
            assert value == whole[key]

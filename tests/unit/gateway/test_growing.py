from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from peripety.gateway.growing import GrowingValue


def shown(text: str, size: int) -> list[object]:
    growing = GrowingValue()
    looks = (growing.feed(text[start : start + size]) for start in range(0, len(text), size))
    return [look for look in looks if look is not None]


@given(st.lists(st.integers(-(10**9), 10**9), min_size=20), st.integers(1, 40))
def test_what_is_shown_is_complete(numbers: list[int], size: int) -> None:
    for value in shown(json.dumps({"a": numbers}), size):
        assert isinstance(value, dict)
        seen = value.get("a", [])
        assert seen == numbers[: len(seen)]


def test_long_values_are_shown_more_than_once_and_growing() -> None:
    looks = shown(json.dumps({"a": [f"item {number}" for number in range(200)]}), 10)
    lengths = [len(look["a"]) for look in looks if isinstance(look, dict)]
    assert lengths == sorted(set(lengths))
    assert 5 < len(lengths) < 60


def test_prose_shows_nothing() -> None:
    assert shown("no value here, " * 50, 10) == []

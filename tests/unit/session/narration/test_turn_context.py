from __future__ import annotations

import json
from typing import Any

from peripety.session.narration.turn_context import json_size, to_json_text, truncate_json, truncate_text


def test_a_small_value_is_shown_whole() -> None:
    value = {"a": [1, {"b": "text"}], "c": None}
    assert truncate_json(value, 1_000) == value


def test_a_large_value_is_cut_fairly_until_it_fits() -> None:
    value = {f"key {n}": {"list": list(range(1_000)), "text": "é" * 5_000} for n in range(10)}
    shown = truncate_json(value, 3_000)
    assert json_size(shown) <= 3_000
    assert json_size(shown) == len(json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode())
    assert set(value) & set(shown)


def test_of_a_long_list_the_beginning_and_the_end_are_shown() -> None:
    assert truncate_json(list(range(1_000)), 40) == [0, 1, 2, 3, "…", 996, 997, 998, 999]


def test_a_value_that_can_not_be_cut_to_fit_is_left_out() -> None:
    deep: Any = ["x" * 40]
    for _ in range(8):
        deep = [deep] * 2
    assert truncate_json({str(n): deep for n in range(4)}, 20) is None


def test_a_text_is_cut_with_a_mark() -> None:
    assert truncate_text("x" * 10, 10) == "x" * 10
    assert truncate_text("x" * 11, 10) == "x" * 9 + "…"


def test_fractions_are_short_and_integers_exact() -> None:
    told = to_json_text({"a": [34.10000000000001, 0.1 + 0.2], "b": 9007199254740991, "c": -2.5})
    assert told == '{"a":[34.1,0.3],"b":9007199254740991,"c":-2.5}'

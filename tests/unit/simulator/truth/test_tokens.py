"""Tokens: how many there are, and where they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.llmsim.provider_rules import models


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 1), ("four", 1), ("fives", 2), ("ééé", 2), ("日本語", 3), ("🙂", 1), ("\ud800", 1)],
)
def test_a_token_is_four_bytes_of_utf_8(text: str, expected: int) -> None:
    assert models.count_tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, you", ("Hell", "o, y", "ou")),
        ("日本語を", ("日", "本", "語を")),
        ("a🙂b🙂", ("a", "🙂b", "🙂")),
    ],
)
def test_no_character_is_cut(text: str, expected: tuple[str, ...]) -> None:
    assert models.split_tokens(text) == expected


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=60))
def test_pieces_are_the_text_and_as_many_as_are_counted(text: str) -> None:
    cut = models.split_tokens(text)
    assert "".join(cut) == text
    assert len(cut) == models.count_tokens(text)
    assert all(cut)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9)))
def test_shares_add_up_to_the_whole_however_it_is_divided(parts: list[str]) -> None:
    assert sum(models.token_shares(parts)) == models.count_tokens("".join(parts))


def test_each_token_brings_one() -> None:
    assert list(models.token_shares(models.split_tokens("日本語を話す a🙂b🙂"))) == [1] * models.count_tokens(
        "日本語を話す a🙂b🙂",
    )

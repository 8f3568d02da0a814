from __future__ import annotations

import re

import pytest

from peripety.author.spec_builder.quantities import assign_identifiers, slugify

SAFE = re.compile(r"[a-z][a-z0-9_]*")


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("Alpha beta", "alpha_beta"),
        ("\u00c9ta: \u00fcber", "eta_uber"),
        ("\u7532", ""),
        ("\u0416", ""),
        ("\U0001f600", ""),
        ("a" * 50, "a" * 40),
        ("alpha " * 9, "alpha_alpha_alpha_alpha_alpha_alpha"),
    ],
)
def test_a_name_is_spelled_in_plain_letters_or_not_at_all(name: str, word: str) -> None:
    assert slugify(name) == word


def test_identifiers_are_safe_and_unlike_any_other() -> None:
    names = ["Alpha", "alpha", "ALPHA!", "\u7532", "\u4e59", "3 alphas", "_", "a0", "player"]
    ids = assign_identifiers("a", names, ["player", "a3"])
    assert list(ids) == names
    assert len(set(ids.values())) == len(names)
    assert all(SAFE.fullmatch(one) for one in ids.values())
    assert not {"player", "a3"} & set(ids.values())

from __future__ import annotations

import pytest

from peripety.author.text_analysis.terms import fit_name, make_unique_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("alpha", "Alpha"),
        ("  alpha\n b ", "Alpha b"),
        ('al"pha\\', "Al pha"),
        ("{{alpha}}", "Alpha"),
        ("\u202ealpha\u0000", "Alpha"),
        ("alpha.", "Alpha"),
        ("\u7532", "\u7532"),
        ("...", ""),
        ("", ""),
        ("alphabets", "Alphabets"),
        ("alphabetic", "Alphabeti"),
    ],
)
def test_a_name_holds_nothing_that_machines_read(text: str, name: str) -> None:
    assert fit_name(text, 9) == name


def test_a_name_that_is_taken_gets_a_number() -> None:
    assert make_unique_name("Alpha", []) == "Alpha"
    assert make_unique_name("Alpha", ["alpha", "Alpha 2"]) == "Alpha 3"
    assert make_unique_name("", ["1"]) == "2"

from __future__ import annotations

import pytest

from peripety.engine.patterns.predicates import required_literals
from peripety.engine.patterns.syntax import TextKind, TextPattern, parse_pattern


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("Order", {"order"}),
        (r"order \d+ is late", {" is late"}),
        ("^(login|sign in)$", {"login", "sign in"}),
        ("(?i)LOGIN", {"login"}),
        ("colou?r", {"color", "colour"}),
        ("(ab){2,}", {"abab"}),
        ("(ab)*xyz", {"xyz"}),
        ("(ab|)xyz", {"abxyz", "xyz"}),
        (r"\d-\d", {f"{one}-{two}" for one in range(10) for two in range(10)}),
        (r"\w+@\w+", {"@"}),
        ("[^a]bcd", {"bcd"}),
        (r"^\w+ \w+$", None),
        ("(abc|b*)", None),
        (r"\w+", None),
        (".*", None),
        ("", None),
        ("^$", None),
        (r"[^\s\S]", set()),
        ("(été)+", {"été"}),
    ],
)
def test_a_match_needs_one_of_these(text: str, literals: set[str] | None) -> None:
    found = required_literals(parse_pattern(TextPattern(TextKind.REGEX, text)))
    assert found[:1] == (() if literals is None else (frozenset(literals),))


def test_a_long_literal_is_cut() -> None:
    literals = required_literals(parse_pattern(TextPattern(TextKind.REGEX, "ab" * 200)))
    assert {len(text) for each in literals for text in each} == {64, 16}


def test_what_is_required_besides_follows_the_rarest() -> None:
    literals = required_literals(
        parse_pattern(TextPattern(TextKind.REGEX, r"(order|ticket) \w+ (is )?late[.,]+ please")),
    )
    assert {*literals} == {
        frozenset(["order ", "ticket "]),
        frozenset([" is late", " late"]),
        frozenset([" please"]),
    }

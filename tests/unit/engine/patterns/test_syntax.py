from __future__ import annotations

import pytest

from peripety.engine.patterns.syntax import (
    Alternation,
    Assertion,
    Characters,
    Concatenation,
    Node,
    PatternError,
    Repeat,
    TextKind,
    TextPattern,
    parse_pattern,
)
from peripety.errors import InvalidArgumentError


def regex(text: str, *, ignore_case: bool = False) -> Node:
    return parse_pattern(TextPattern(TextKind.REGEX, text, ignore_case))


def glob(text: str) -> Node:
    return parse_pattern(TextPattern(TextKind.GLOB, text))


def one(text: str) -> Characters:
    return Characters(tuple((ord(character), ord(character)) for character in text))


def test_alternatives_bind_less_than_what_stands_in_order_and_that_less_than_repetition() -> None:
    assert regex("ab|c*") == Alternation((Concatenation((one("a"), one("b"))), Repeat(one("c"), 0, None)))


@pytest.mark.parametrize(
    ("quantifier", "least", "most"),
    [
        ("*", 0, None),
        ("+", 1, None),
        ("?", 0, 1),
        ("{3}", 3, 3),
        ("{3,}", 3, None),
        ("{0,3}", 0, 3),
        ("{03}", 3, 3),
    ],
)
def test_quantifiers_are_the_same_greedy_and_lazy(quantifier: str, least: int, most: int | None) -> None:
    assert regex("a" + quantifier) == Repeat(one("a"), least, most)
    assert regex("a" + quantifier + "?") == Repeat(one("a"), least, most)


@pytest.mark.parametrize("group", ["(ab)", "(?:ab)", "(?P<name>ab)", "(?<name>ab)"])
def test_every_sort_of_group_only_groups(group: str) -> None:
    assert regex(f"{group}+") == Repeat(Concatenation((one("a"), one("b"))), 1, None)


def test_assertions_are_ends_of_the_text_and_edges_of_words() -> None:
    assert regex(r"^\b\B$") == Concatenation(
        (Assertion.START, Assertion.BOUNDARY, Assertion.NO_BOUNDARY, Assertion.END),
    )


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("[a-c]", [("a", "c")]),
        ("[ca-b]", [("a", "c")]),
        ("[]a]", [("]", "]"), ("a", "a")]),
        ("[a-]", [("-", "-"), ("a", "a")]),
        (r"[\]\\]", [("\\", "]")]),
        (r"\d", [("0", "9")]),
        (r"\w", [("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")]),
        (r"\s", [("\t", "\r"), (" ", " ")]),
        (r"[\d_]", [("0", "9"), ("_", "_")]),
        (r"\x41", [("A", "A")]),
        (r"\u00e9", [("é", "é")]),
        (r"[\n\t]", [("\t", "\n")]),
        (r"\.", [(".", ".")]),
        ("[^b-\uffff]", [("\0", "a"), ("\U00010000", "\U0010ffff")]),
        (".", [("\0", "\t"), ("\v", "\U0010ffff")]),
        (r"[^\d\D]", []),
    ],
)
def test_sets_are_ranges_of_code_points(text: str, ranges: list[tuple[str, str]]) -> None:
    assert regex(text) == Characters(tuple((ord(first), ord(last)) for first, last in ranges))


def test_no_set_ends_within_the_surrogates() -> None:
    assert regex("[^\ue000]") == Characters(((0, 0xD7FF), (0xE001, 0x10FFFF)))


def test_case_is_folded_for_the_letters_of_ascii_only() -> None:
    assert regex("(?i)k") == regex("k", ignore_case=True) == one("Kk")
    assert regex("(?i)é") == one("é")
    assert regex("(?i)[^a]") == regex("[^aA]")


def test_a_brace_that_counts_nothing_is_a_character() -> None:
    assert regex('{"a": {}}') == Concatenation(tuple(map(one, '{"a": {}}')))


def test_a_glob_is_about_the_whole_text() -> None:
    anything = Characters(((0, 0x10FFFF),))
    assert glob("a?[!b]") == Concatenation(
        (Assertion.START, one("a"), anything, regex("[^b]"), Assertion.END),
    )
    assert glob("a*b") == Concatenation(
        (Assertion.START, one("a"), Repeat(anything, 0, None), one("b"), Assertion.END),
    )
    assert glob("a*") == Concatenation((Assertion.START, one("a")))
    assert glob("*a") == Concatenation((one("a"), Assertion.END))


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("a(?=b)", 2, "lookahead"),
        ("a(?!b)", 2, "lookahead"),
        ("(?<=a)b", 1, "lookbehind"),
        ("(?<!a)b", 1, "lookbehind"),
        ("(?>a)", 1, "atomic"),
        (r"(a)\1", 4, "backreference"),
        (r"(?P<n>a)(?P=n)", 9, "backreference"),
        (r"\k<n>", 1, "backreference"),
        ("a*+", 3, "possessive"),
    ],
)
def test_what_is_not_linear_is_refused_by_name(text: str, column: int, says: str) -> None:
    with pytest.raises(PatternError, match=f"{says}.*not linear-time") as refused:
        regex(text)
    assert refused.value.column == column
    assert isinstance(refused.value, InvalidArgumentError)


@pytest.mark.parametrize(
    ("text", "column", "way_out"),
    [
        ("ab(c", 3, r"write \\\( for"),
        ("ab)c", 3, r"write \\\) for"),
        ("a[bc", 2, r"write \\\[ for"),
        ("a|*", 3, r"write \\ before"),
        ("^*", 1, r"write \\ before"),
        ("a**", 3, "into a group"),
        ("a{2}{3}", 5, "into a group"),
        ("a{,3}", 2, "write {0,"),
        ("a{3,2}", 2, "smaller number first"),
        ("a{1001}", 2, "count less"),
        ("a{" + "9" * 5000 + "}", 2, "count less"),
        ("[z-a]", 2, "turn it round"),
        (r"[\d-z]", 2, r"write \\- for"),
        ("[[:alpha:]]", 2, "write the range"),
        (r"\q", 1, r"use \\d"),
        (r"\Aa\Z", 1, r"are \^ and \$"),
        ("a\\", 2, r"write \\\\ for"),
        (r"\x4", 1, "2 hexadecimal digits"),
        (r"\ud800", 1, "write the character itself"),
        ("(?s)a", 1, "are supported"),
        ("a(?i)b", 2, "are supported"),
        ("\ud800", 1, "leave it out"),
        ("(" * 200 + ")" * 200, 102, "nest less"),
        ("((a{100}){100}){100}", 1, "repeat less"),
        ("a" * 20_001, 20_001, "split it"),
    ],
)
def test_what_is_wrong_is_said_with_the_column_and_the_way_out(text: str, column: int, way_out: str) -> None:
    with pytest.raises(PatternError, match=way_out) as refused:
        regex(text)
    assert refused.value.column == column
    assert f"(column {column})" in refused.value.message


@pytest.mark.parametrize(
    ("text", "way_out"),
    [("a[b", r"\[\[\]"), ("[", r"\[\[\]"), ("[]", r"\[\[\]"), ("[z-a]", "write a-z")],
)
def test_a_bad_glob_is_refused(text: str, way_out: str) -> None:
    with pytest.raises(PatternError, match=way_out):
        glob(text)

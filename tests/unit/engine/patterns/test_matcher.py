from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.engine.patterns.matcher import PatternMatcher
from peripety.engine.patterns.syntax import MatchSubject, Pattern, PatternError, TextKind, TextPattern

if TYPE_CHECKING:
    from peripety.engine.backend_protocol import Backend


def exact(text: str, *, ignore_case: bool = False) -> TextPattern:
    return TextPattern(TextKind.EXACT, text, ignore_case)


def contains(text: str, *, ignore_case: bool = False) -> TextPattern:
    return TextPattern(TextKind.CONTAINS, text, ignore_case)


def regex(text: str) -> TextPattern:
    return TextPattern(TextKind.REGEX, text)


def glob(text: str) -> TextPattern:
    return TextPattern(TextKind.GLOB, text)


ANY = TextPattern(TextKind.ANY)


def test_the_first_pattern_that_matches_is_found(core: Backend) -> None:
    matcher = PatternMatcher([Pattern(contains("log")), Pattern(exact("login")), Pattern(ANY)], backend=core)
    assert matcher.first(MatchSubject("login")) == 0
    assert matcher.first(MatchSubject("hello")) == 2
    assert len(matcher) == 3


def test_patterns_to_skip_are_passed_over(core: Backend) -> None:
    matcher = PatternMatcher(
        [Pattern(contains("log")), Pattern(exact("login")), Pattern(glob("*in"))],
        backend=core,
    )
    assert matcher.first(MatchSubject("login"), {0}) == 1
    assert matcher.first(MatchSubject("login"), [0, 1]) == 2
    assert matcher.first(MatchSubject("login"), {0, 1, 2}) is None


def test_nothing_matches_where_there_are_no_patterns(core: Backend) -> None:
    assert PatternMatcher([], backend=core).first(MatchSubject("login")) is None


@pytest.mark.parametrize(
    ("pattern", "like", "unlike"),
    [
        (exact("Login"), ["Login"], ["login", "Login ", ""]),
        (exact(""), [""], [" "]),
        (exact("STRASSE", ignore_case=True), ["strasse", "StrasSe"], ["straße", "\u017ftrasse"]),
        (contains("log"), ["login", "a log"], ["Log", "lo g"]),
        (contains(""), ["", "x"], []),
        (contains("Kelvin", ignore_case=True), ["KELVIN!", "a kelvin"], ["\u212aelvin"]),
        (contains("ÉTÉ", ignore_case=True), ["ÉtÉ"], ["été"]),
        (regex("b+"), ["abc", "b"], ["ac", ""]),
        (regex("^b+$"), ["bb"], ["abb", "bb\n"]),
        (regex("a.b"), ["a\U0001f600b", "a\rb"], ["a\nb", "ab"]),
        (regex(r"\bin\b"), ["log in!", "in", "éin"], ["login"]),
        (regex(r"\B"), ["", "aéa\U0001f600", "ab"], ["a", "aéa"]),
        (regex(r"^\w\D\S$"), ["aé漢"], ["éaa", "a1a"]),
        (regex("(?i)[k-l]"), ["K"], ["\u212a"]),
        (glob("log*"), ["log", "login\nnow"], ["a log"]),
        (glob("*[!0-9]"), ["x", "1x"], ["", "x1"]),
        (glob("?"), ["é", "\U0001f600", "\n"], ["", "ab"]),
    ],
)
def test_texts_are_compared_as_the_pattern_says(
    core: Backend,
    pattern: TextPattern,
    like: list[str],
    unlike: list[str],
) -> None:
    matcher = PatternMatcher([Pattern(pattern)], backend=core)
    assert [text for text in like if matcher.first(MatchSubject(text)) != 0] == []
    assert [text for text in unlike if matcher.first(MatchSubject(text)) is not None] == []
    assert all(matcher.matches(0, MatchSubject(text)) for text in like)
    assert not any(matcher.matches(0, MatchSubject(text)) for text in unlike)


def test_every_predicate_has_to_hold(core: Backend) -> None:
    pattern = Pattern(contains("a"), glob("large-*"), contains("done"), (1, 2))
    matcher = PatternMatcher([pattern], backend=core)
    whole = MatchSubject("a", "large-1", "it is done", 1)
    assert matcher.first(whole) == 0
    for other in (
        MatchSubject("b", "large-1", "it is done", 1),
        MatchSubject("a", "small-1", "it is done", 1),
        MatchSubject("a", "large-1", "it is", 1),
        MatchSubject("a", "large-1", None, 1),
        MatchSubject("a", "large-1", "it is done", 0),
        MatchSubject("a", "large-1", "it is done", 3),
    ):
        assert matcher.first(other) is None
        assert not matcher.matches(0, other)


def test_a_predicate_on_tool_results_never_holds_where_there_are_none(core: Backend) -> None:
    matcher = PatternMatcher([Pattern(tool_result=ANY), Pattern(tool_result=exact(""))], backend=core)
    assert matcher.first(MatchSubject("a")) is None
    assert matcher.first(MatchSubject("a", tool_result="")) == 0
    assert matcher.first(MatchSubject("a", tool_result=""), {0}) == 1


def test_a_text_that_is_not_unicode_is_read_with_replacement_characters(core: Backend) -> None:
    matcher = PatternMatcher([Pattern(exact("a\ufffdb")), Pattern(exact("\U0001f600"))], backend=core)
    assert matcher.first(MatchSubject("a\ud83db")) == 0
    assert matcher.first(MatchSubject("\ud83d\ude00", model="\udc00")) == 1
    assert matcher.matches(0, MatchSubject("a\udc00b"))


def test_a_pattern_that_cannot_be_taken_is_refused(core: Backend) -> None:
    with pytest.raises(PatternError, match="lookahead"):
        PatternMatcher([Pattern(ANY), Pattern(ANY, regex("(?=a)"))], backend=core)


@pytest.mark.parametrize("index", [-1, 1])
def test_only_patterns_that_are_there_can_be_asked_for(core: Backend, index: int) -> None:
    with pytest.raises(IndexError):
        PatternMatcher([Pattern(ANY)], backend=core).matches(index, MatchSubject("a"))


def test_one_of_many_literals_is_found_whatever_its_length(core: Backend) -> None:
    texts = [f"{'x' * (number % 23)}{number}" for number in range(2000)]
    matcher = PatternMatcher([Pattern(contains(text + "!")) for text in texts], backend=core)
    for number in range(0, 2000, 37):
        expected = next(i for i, text in enumerate(texts) if f"{text}!" in f"a {texts[number]}! b")
        assert matcher.first(MatchSubject(f"a {texts[number]}! b")) == expected


@pytest.mark.parametrize(
    "text",
    ["(a+)+$", "((a{1,9}){1,9}){1,9}$", "^(a|a)*$", "^(a*)*$", "(.*){1,30}[bc]$", r"(\w+\s?)+:$"],
)
def test_a_hostile_pattern_costs_no_more_than_the_text_is_long(core: Backend, text: str) -> None:
    matcher = PatternMatcher([Pattern(regex(text)), Pattern(ANY)], backend=core)
    assert matcher.first(MatchSubject("a" * 20_000 + "!")) == 1


def test_a_pattern_as_large_as_they_may_be_is_taken_by_every_core(core: Backend) -> None:
    for text in (r"\w{1000}x", "(.{30}){30}x", "(?:" * 100 + "a" + ")+" * 100, "(é|[^a]{3}){150}x"):
        matcher = PatternMatcher([Pattern(regex(text))], backend=core)
        assert matcher.first(MatchSubject("é" * 1000)) is None

"""Predicates on one text, prepared for both backends.

A pattern tree is converted to a regular expression that is independent of flags and Unicode tables. The
literals that every match requires are the prefilter of a pattern index.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from peripety.engine.patterns.automaton import Automaton
from peripety.engine.patterns.syntax import (
    Alternation,
    Assertion,
    Characters,
    Concatenation,
    Repeat,
    TextKind,
    fold,
    parse_pattern,
    require_unicode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.engine.patterns.syntax import Node, TextPattern


Literals = frozenset[str]
"""Folded texts of which a folded match contains at least one; the empty set never matches."""

MAX_LITERALS = 128
"""Maximum literals of one set."""
MAX_LITERAL_SETS = 3
"""Maximum sets of a pattern; a match contains a literal of each."""
MAX_LITERAL_LENGTH = 64
"""Maximum length of a literal, in characters."""

# Rough frequencies of characters in texts. In a word, only the first few letters are selective.
_LETTER, _SELECTIVE_LETTERS, _RARE = 1 / 20, 4, 1 / 1000
_BETWEEN_WORDS = {" ": 1 / 6} | dict.fromkeys(".,-'\"\n", 1 / 50)

_EMPTY_TEXT: Literals = frozenset([""])
_MAX_LIKELIHOOD = 0.005  # a literal that occurs in almost every text is useless as a filter

# The finite language of a tree (None if it is large), and the required sets of literals.
_LiteralFacts = tuple[Literals | None, tuple[Literals, ...]]


def estimate_likelihood(literals: Literals) -> float:
    """Return the estimated share of positions in a text at which one of the literals begins."""
    return sum(map(_estimate_share, literals))


def _estimate_share(text: str) -> float:
    share, letters = 1.0, 0
    for character in text:
        letters = letters + 1 if character.isalnum() else 0
        if letters == 0:
            share *= _BETWEEN_WORDS.get(character, _RARE)
        elif letters <= _SELECTIVE_LETTERS:
            share *= _LETTER
    return share


def required_literals(tree: Node) -> tuple[Literals, ...]:
    """Return the sets of literals that a tree requires, the most selective first.

    Sets that occur in almost every text are left out.
    """
    useful = {each for each in _analyze(tree)[1] if estimate_likelihood(each) <= _MAX_LIKELIHOOD}
    return tuple(
        sorted(useful, key=lambda each: (estimate_likelihood(each), sorted(each)))[:MAX_LITERAL_SETS],
    )


def _analyze(tree: Node) -> _LiteralFacts:
    match tree:
        case Characters(ranges):
            if sum(last - first + 1 for first, last in ranges) > MAX_LITERALS:
                return None, ()
            whole = frozenset(fold(chr(code)) for first, last in ranges for code in range(first, last + 1))
            return whole, (whole,)
        case Assertion():
            return _EMPTY_TEXT, ()
        case Concatenation(parts):
            return _analyze_sequence(map(_analyze, parts))
        case Alternation(options):
            return _analyze_alternatives([*map(_analyze, options)])
        case Repeat(node, least, most):
            return _analyze_repeat(_analyze(node), least, most)


def _analyze_repeat(findings: _LiteralFacts, least: int, most: int | None) -> _LiteralFacts:
    if least == 0:
        return _analyze_alternatives([findings, (_EMPTY_TEXT, ())]) if most == 1 else (None, ())
    whole, sets = _analyze_sequence([findings] * min(least, MAX_LITERAL_LENGTH))
    return (whole if most == least <= MAX_LITERAL_LENGTH else None), sets


def _analyze_sequence(findings: Iterable[_LiteralFacts]) -> _LiteralFacts:
    run, is_whole = _EMPTY_TEXT, True
    sets: list[Literals] = []
    for whole, required_here in findings:
        longer = None if whole is None else _concatenate(run, whole)
        if longer is not None:
            run = longer
            continue
        is_whole = False
        sets += [run, *(required_here if whole is None else ())]
        run = _EMPTY_TEXT if whole is None else whole
    return (run if is_whole else None), tuple(each for each in (*sets, run) if "" not in each)


def _analyze_alternatives(findings: list[_LiteralFacts]) -> _LiteralFacts:
    best = _unite([min(sets, key=estimate_likelihood, default=None) for _, sets in findings])
    return _unite([whole for whole, _ in findings]), () if best is None else (best,)


def _concatenate(heads: Literals, tails: Literals) -> Literals | None:
    if len(heads) * len(tails) > MAX_LITERALS:
        return None
    joined = frozenset(head + tail for head in heads for tail in tails)
    return joined if max(map(len, joined), default=0) <= MAX_LITERAL_LENGTH else None


def _unite(sets: list[Literals | None]) -> Literals | None:
    union: set[str] = set()
    for literals in sets:
        if literals is None:
            return None
        union |= literals
    return frozenset(union) if len(union) <= MAX_LITERALS else None


_ASSERTIONS = {
    Assertion.START: r"\A",
    Assertion.END: r"\z",
    Assertion.BOUNDARY: r"(?-u:\b)",
    Assertion.NO_BOUNDARY: r"(?-u:\B)",
}
_NO_CHARACTER = r"[^\x{0}-\x{10FFFF}]"


def to_regex(tree: Node) -> str:
    """Return the tree in the syntax of Rust's crate `regex`."""
    match tree:
        case Characters(ranges):
            members = "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in ranges)
            return f"[{members}]" if members else _NO_CHARACTER
        case Assertion():
            return _ASSERTIONS[tree]
        case Concatenation(parts):
            return f"(?:{''.join(map(to_regex, parts))})"
        case Alternation(options):
            return f"(?:{'|'.join(map(to_regex, options))})"
        case Repeat(node, least, most):
            return f"(?:{to_regex(node)}){{{least},{'' if most is None else most}}}"


class TextComparison:
    """Equality or substring test.

    Attributes:
        text: the text to find; folded if `is_folded`.
        is_whole: test for equality instead of a substring.
        is_folded: compare ASCII letters without case.
        regex: always None: not a regular expression.
        other_literals: always empty.
        literals: literals of which a folded match contains one; None if nothing is required.
        likelihood: rough probability of a match, for ordering tests.
    """

    regex = None
    other_literals: tuple[Literals, ...] = ()

    def __init__(self, text: str, *, whole: bool, folds: bool) -> None:
        folded = fold(text)
        self.text = folded if folds else text
        self.is_whole = whole
        self.is_folded = folds
        self.literals: Literals | None = frozenset([folded]) if text else None
        self.likelihood = 0.0 if whole else estimate_likelihood(self.literals) if self.literals else 1.0

    def matches(self, text: str, folded: str) -> bool:
        """Return True if a text matches; `folded` is the same text, folded."""
        given = folded if self.is_folded else text
        return given == self.text if self.is_whole else self.text in given


class PatternSearch:
    """Search for a regular expression.

    Attributes:
        text: always empty.
        is_whole: always False.
        is_folded: always False; the expression itself contains both cases.
        literals: literals of which a folded match contains one; None if nothing is known.
        other_literals: further sets; a match contains a literal of each.
        likelihood: as for comparisons.
    """

    text = ""
    is_whole = False
    is_folded = False

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        sets = required_literals(tree)
        self.literals = sets[0] if sets else None
        self.other_literals = sets[1:]
        self.likelihood = estimate_likelihood(sets[0]) if sets else 1.0

    @property
    def regex(self) -> str:
        """The expression in the syntax of Rust's crate `regex`."""
        return to_regex(self._tree)

    @cached_property
    def automaton(self) -> Automaton:
        """The automaton of the Python backend, built on first use."""
        return Automaton(self._tree)

    def matches(self, text: str, folded: str) -> bool:
        """Return True if a text contains a match; `folded` is the same text, folded."""
        return all(
            any(literal in folded for literal in literals) for literals in self.other_literals
        ) and self.automaton.matches(text)


Predicate = TextComparison | PatternSearch


def compile_predicate(pattern: TextPattern) -> Predicate:
    """Prepare a pattern; one that consists of plain characters becomes a comparison.

    Raises:
        PatternError: invalid syntax, over a limit, or not valid Unicode.
    """
    match pattern.kind:
        case TextKind.ANY:
            return TextComparison("", whole=False, folds=False)
        case TextKind.EXACT | TextKind.CONTAINS:
            require_unicode(pattern.text)
            return TextComparison(
                pattern.text,
                whole=pattern.kind is TextKind.EXACT,
                folds=pattern.ignore_case,
            )
    found = parse_pattern(pattern)
    return _to_comparison(found) or PatternSearch(found)


def _to_comparison(tree: Node) -> TextComparison | None:
    parts = tree.parts if isinstance(tree, Concatenation) else (tree,)
    whole = len(parts) > 1 and parts[0] is Assertion.START and parts[-1] is Assertion.END
    characters = [_to_single_character(part) for part in (parts[1:-1] if whole else parts)]
    text = "".join(character for character, _ in characters if character is not None)
    cases = {folds for _, folds in characters if folds is not None}
    if len(text) < len(characters) or len(cases) > 1:
        return None
    return TextComparison(text, whole=whole, folds=cases == {True})


def _to_single_character(node: Node) -> tuple[str | None, bool | None]:
    """Return the single character of a node and its case folding; None for a character without case."""
    if isinstance(node, Characters):
        codes = [code for span in node.ranges for code in span]
        letter = chr(codes[0]) if codes else ""
        has_case = letter.isascii() and letter.isalpha()
        if codes == [ord(letter)] * 2:
            return letter, False if has_case else None
        if has_case and codes == [ord(letter)] * 2 + [ord(letter.lower())] * 2:
            return letter.lower(), True
    return None, None

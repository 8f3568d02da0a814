"""Random patterns, subjects for them, and the naive scan that every index has to agree with.

Each regular expression is made twice, in our syntax and in Python's, and with a text that it may match.
"""

from __future__ import annotations

import fnmatch
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from peripety.engine.patterns.syntax import MatchSubject, Pattern, TextKind, TextPattern

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from random import Random


# Letters whose case ASCII folds, and those that only Unicode would fold to them; one to four bytes each.
CHARACTERS = "aAbBkKsS1_ -\n\u00e9\u00df\u212a\u017f\u6f22\U0001f600"
WORDS = ("a", "ab", "login", "Login", "review it", "order 17", "order 18", "\u00e9t\u00e9", "international")
MODELS = ("alpha-1", "alpha-2", "Beta", "beta-large")
_SETS = (
    "[ab]",
    "[^a]",
    "[a-k1]",
    "[^\\n]",
    "[\\s_]",
    "[^\\W1]",
    "[\u00e9-\u6f22]",
    "[-a]",
    "[]a]",
    "\\d",
    "\\w",
    "\\s",
    "\\D",
    "\\W",
    "\\S",
    ".",
    "[^]a]",
    "[^\u00e9]",
)


@cache
def _python(pattern: str, *, folds: bool = False) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII | re.IGNORECASE if folds else re.ASCII)


class Spelled(ABC):
    """A random regular expression.

    Attributes:
        ours: it in our syntax.
        pythons: it in Python's.
        sample: a text that is often like it.
        repeats: how deep repetitions are nested in it; Python's own engine is not linear.
    """

    ours: str
    pythons: str
    sample: str
    repeats = 0

    @abstractmethod
    def ends(self, text: str, start: int, *, folds: bool) -> set[int]:
        """All the places where a match that starts there can end."""

    def is_in(self, text: str, *, folds: bool) -> bool:
        """Return True if it occurs in a text."""
        found = any(self.ends(text, start, folds=folds) for start in range(len(text) + 1))
        if self.repeats <= 1:
            assert found == (_python(self.pythons, folds=folds).search(text) is not None)
        return found


class _Atom(Spelled):
    """A literal, a set of characters or an assertion, for all of which Python has the word."""

    def __init__(self, ours: str, pythons: str, sample: str) -> None:
        self.ours, self.pythons, self.sample = ours, pythons, sample

    def ends(self, text: str, start: int, *, folds: bool) -> set[int]:
        match = _python(self.pythons, folds=folds).match(text, start)
        return {match.end()} if match else set()


class _Sequence(Spelled):
    def __init__(self, parts: list[Spelled]) -> None:
        self.parts = parts
        self.ours = "".join(part.ours for part in parts)
        self.pythons = "".join(part.pythons for part in parts)
        self.sample = "".join(part.sample for part in parts)
        self.repeats = max((part.repeats for part in parts), default=0)

    def ends(self, text: str, start: int, *, folds: bool) -> set[int]:
        ends = {start}
        for part in self.parts:
            ends = {end for place in ends for end in part.ends(text, place, folds=folds)}
        return ends


class _Choice(Spelled):
    def __init__(self, options: list[Spelled], group: str, sample: str) -> None:
        self.options = options
        self.ours = group.format("|".join(option.ours for option in options))
        self.pythons = group.format("|".join(option.pythons for option in options))
        self.sample = sample
        self.repeats = max(option.repeats for option in options)

    def ends(self, text: str, start: int, *, folds: bool) -> set[int]:
        return {end for option in self.options for end in option.ends(text, start, folds=folds)}


class _Repeated(Spelled):
    def __init__(self, node: Spelled, quantifier: str, least: int, most: int | None) -> None:
        self.node, self.least, self.most = node, least, most
        self.ours = f"(?:{node.ours}){quantifier}"
        self.pythons = f"(?:{node.pythons}){quantifier}"
        self.sample = node.sample * (least + (most is None))
        self.repeats = node.repeats + 1

    def ends(self, text: str, start: int, *, folds: bool) -> set[int]:
        ends = {start}
        for _ in range(self.least):
            ends = self._once(text, ends, folds=folds)
        found = ends
        for _ in range(len(text) + 1 if self.most is None else self.most - self.least):
            ends = self._once(text, ends, folds=folds)
            if ends <= found:
                break
            found = found | ends
        return found

    def _once(self, text: str, starts: set[int], *, folds: bool) -> set[int]:
        return {end for start in starts for end in self.node.ends(text, start, folds=folds)}


# Until 3.14 Python's \B did not hold in the empty text.
_ASSERTIONS = (("(?:\\b)", "(?:\\b)"), ("(?:\\B)", "(?!\\b)"), ("(?:^)", "(?:^)"), ("(?:$)", "(?:\\Z)"))
_QUANTIFIERS: tuple[tuple[str, int, int | None], ...] = (
    ("*", 0, None),
    ("+", 1, None),
    ("?", 0, 1),
    ("{2}", 2, 2),
    ("{0}", 0, 0),
    ("{1,3}", 1, 3),
    ("{2,}", 2, None),
    ("*?", 0, None),
    ("??", 0, 1),
)


def random_regex(random: Random, depth: int = 3) -> Spelled:
    """A regular expression of nested groups, choices and repetitions, anchored now and then."""
    parts: list[Spelled] = [_choice(random, depth, "(?:{})")]
    if random.random() < 0.15:
        parts.insert(0, _Atom("^", "^", ""))
    if random.random() < 0.15:
        parts.append(_Atom("$", "\\Z", ""))
    return _Sequence(parts)


def _choice(random: Random, depth: int, group: str) -> Spelled:
    options: list[Spelled] = [_sequence(random, depth) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    return _Choice(options, group, random.choice(options).sample)


def _sequence(random: Random, depth: int) -> Spelled:
    return _Sequence([_repeated(random, depth) for _ in range(random.choice((0, 1, 1, 2, 3)))])


def _repeated(random: Random, depth: int) -> Spelled:
    atom = _atom(random, depth)
    return atom if random.random() < 0.6 else _Repeated(atom, *random.choice(_QUANTIFIERS))


def _atom(random: Random, depth: int) -> Spelled:
    if depth and random.random() < 0.3:
        return _choice(random, depth - 1, "({})")
    sort = random.random()
    if sort < 0.1:
        return _Atom(*random.choice(_ASSERTIONS), "")
    if sort < 0.35:
        spelled = random.choice(_SETS)
        return _Atom(spelled, spelled, random.choice(CHARACTERS))
    text = random.choice(WORDS) if sort < 0.6 else random.choice(CHARACTERS)
    escaped = re.escape(text).replace("\\\n", "\\n")
    return _Atom(escaped, escaped, text)


def _random_glob(random: Random) -> tuple[str, str]:
    """A glob, and a text that is often like it."""
    glob, sample = "", ""
    for _ in range(random.randint(0, 4)):
        character = random.choice(CHARACTERS)
        part, like = random.choice(
            (("*", character), ("?", character), ("[ab]", "a"), ("[!ab]", character), ("[b-k1]", "k")),
        )
        if random.random() < 0.5:
            part = like = random.choice(WORDS)
        glob += part
        sample += like
    return glob, sample


@dataclass(frozen=True)
class RandomRules:
    """Patterns, what a naive scan would do for each of them, and texts that are often like them."""

    patterns: tuple[Pattern, ...]
    naive: NaiveScan
    samples: tuple[str, ...]


class NaiveScan:
    """All patterns in order, each part of them with what Python's own library has for it."""

    def __init__(self) -> None:
        self._tests: list[tuple[list[Callable[[str], bool] | None], tuple[int, int] | None]] = []

    def add(self, tests: list[Callable[[str], bool] | None], indices: tuple[int, int] | None) -> None:
        """One more pattern: a test for each text, or None where anything goes."""
        self._tests.append((tests, indices))

    def matches(self, index: int, subject: MatchSubject) -> bool:
        """Return True if one pattern matches."""
        tests, indices = self._tests[index]
        texts = subject.text, subject.model, subject.tool_result
        return (indices is None or indices[0] <= subject.message_index <= indices[1]) and all(
            test is None or (text is not None and test(text)) for test, text in zip(tests, texts, strict=True)
        )

    def first(self, subject: MatchSubject, skip: Container[int]) -> int | None:
        """The first pattern that matches."""
        return next(
            (
                index
                for index in range(len(self._tests))
                if index not in skip and self.matches(index, subject)
            ),
            None,
        )


def random_rules(random: Random, most: int = 20) -> RandomRules:
    """Up to so many random patterns."""
    patterns, naive, samples = [], NaiveScan(), []
    for _ in range(random.randint(1, most)):
        text, text_test, sample = _random_text(random)
        samples.append(sample)
        model = result = None
        tests: list[Callable[[str], bool] | None] = [text_test, None, None]
        if random.random() < 0.2:
            model, tests[1], _ = _random_text(random, MODELS)
        if random.random() < 0.15:
            result, tests[2], sample = _random_text(random)
            samples.append(sample)
        indices = None
        if random.random() < 0.1:
            first = random.randint(0, 2)
            indices = first, first + random.randint(0, 2)
        patterns.append(Pattern(text, model, result, indices))
        naive.add(tests, indices)
    return RandomRules(tuple(patterns), naive, tuple(samples))


def _random_text(
    random: Random,
    words: Sequence[str] = WORDS,
) -> tuple[TextPattern, Callable[[str], bool], str]:
    kind = random.choice((TextKind.EXACT, TextKind.CONTAINS, TextKind.REGEX, TextKind.GLOB, TextKind.REGEX))
    if random.random() < 0.04:
        kind = TextKind.ANY
    folds = random.random() < 0.3
    flags = re.ASCII | (re.IGNORECASE if folds else 0)
    if kind is TextKind.ANY:
        return TextPattern(kind), lambda _: True, ""
    if kind is TextKind.REGEX:
        spelled = random_regex(random)
        ours = "(?i)" + spelled.ours if folds and random.random() < 0.5 else spelled.ours
        pattern = TextPattern(kind, ours, ignore_case=folds and ours == spelled.ours)
        return pattern, lambda text: spelled.is_in(text, folds=folds), spelled.sample
    if kind is TextKind.GLOB:
        glob, sample = _random_glob(random)
        whole = re.compile(fnmatch.translate(glob), flags)
        return TextPattern(kind, glob, folds), lambda text: whole.match(text) is not None, sample
    given = random.choice(words) + (random.choice(CHARACTERS) if random.random() < 0.4 else "")
    escaped = re.compile(re.escape(given), flags)
    if kind is TextKind.EXACT:
        return TextPattern(kind, given, folds), lambda text: escaped.fullmatch(text) is not None, given
    return TextPattern(kind, given, folds), lambda text: escaped.search(text) is not None, given


def random_subject(random: Random, rules: RandomRules) -> MatchSubject:
    """A subject made of what the patterns are made of."""
    return MatchSubject(
        _random_prompt(random, rules.samples),
        random.choice(MODELS),
        _random_prompt(random, rules.samples) if random.random() < 0.3 else None,
        random.choice((0, 0, 1, 2, 3)),
    )


def _random_prompt(random: Random, samples: Sequence[str]) -> str:
    pieces = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        sort = random.random()
        piece = random.choice(samples) if sort < 0.6 else random.choice(WORDS)
        pieces.append(piece if sort < 0.8 else "".join(random.choices(CHARACTERS, k=random.randint(1, 4))))
    text = "".join(pieces)[:24]
    return text.swapcase() if random.random() < 0.15 and text.isascii() else text or "a"

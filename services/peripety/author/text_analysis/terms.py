"""Term extraction: the terms of a text with their amounts, durations and hints, as usable names.

A hint is a word beside a term that suggests its role: scarce, mounting, dear or wanted. Unknown words are
ignored, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.author.blueprint import Role
from peripety.author.text_analysis import languages
from peripety.author.text_analysis.keywords import analyze_text
from peripety.author.text_analysis.languages import HINTS, clean_text, truncate_graphemes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.author.text_analysis.languages import Language


_READ_LIMIT = 12_000
_CLAUSE_END = re.compile(r"[;!?\u2026\u3001\u3002\uff0c\uff01\uff1f\u061f\u06d4\u0964\n]|[.,:](?!\d)")
_HAN = "\u3400-\u9fff"
_WORD = re.compile(rf"\d+(?:[.,:\u00a0\u202f]\d+)*|[{_HAN}]|[^\W\d_{_HAN}]+|%")
_COUNT = re.compile(r"\d{1,7}|\d{1,3}(?:[.,\u00a0\u202f]\d{3})+")
_GROUPING = re.compile(r"\D")
_GAP = " -\u2010\u2011\u00a0"
_WORDS_BETWEEN = 2
_NEAR = 4
"""The maximum distance in words between a term and a hint."""
_MAX_AMOUNT = 1_000_000


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a text.

    Attributes:
        spans: future time spans in hours, longest first, without duplicates.
        amounts: the amount of each counted term.
        hints: the hint of each term: one of `HINTS`.
    """

    spans: tuple[float, ...] = ()
    amounts: Mapping[str, float] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)


def extract_facts(text: str, terms: Sequence[str], language: Language) -> Facts:
    """Return the time spans, amounts and hints of a text."""
    spans: set[float] = set()
    amounts: dict[str, float] = {}
    hints: dict[str, str] = {}
    for part in _CLAUSE_END.split(languages.clean_text(text[:_READ_LIMIT]).casefold()):
        clause = _Clause(part, language)
        spans.update(clause.find_spans())
        for term in terms:
            place = clause.find_term(term)
            if place is None:
                continue
            if (amount := clause.find_amount(*place)) and term not in amounts:
                amounts[term] = amount
            if (hint := clause.find_hint(*place)) and term not in hints:
                hints[term] = hint
    return Facts(tuple(sorted(spans, reverse=True)), amounts, hints)


class _Clause:
    """Clause as a list of words."""

    def __init__(self, text: str, language: Language) -> None:
        self._text = text
        self._language = language
        matches = list(_WORD.finditer(text))
        self._words = [match.group() for match in matches]
        self._ends = [match.end() for match in matches]
        self._units = [self._find_unit(place) for place in range(len(matches))]

    def find_spans(self) -> Iterator[float]:
        """Yield the future time spans, in hours."""
        if not self._language.past.isdisjoint(self._words):
            return
        for place, word in enumerate(self._words):
            if word in self._language.moments:
                yield self._language.moments[word]
            number = self._parse_number(place)
            if number and self._units[place]:
                yield number * self._language.units[self._units[place]]

    def find_term(self, term: str) -> tuple[int, int] | None:
        """Return the positions of the first and last word of a term."""
        wanted = _WORD.findall(term.casefold())
        for start in range(len(self._words) - len(wanted) + 1 if wanted else 0):
            if self._words[start : start + len(wanted)] == wanted:
                return start, start + len(wanted) - 1
        return None

    def find_amount(self, first: int, last: int) -> float | None:
        """Return the amount of a term: a number shortly before or after it, or a percentage."""
        for place in range(first - 1, max(first - 2 - _WORDS_BETWEEN, -1), -1):
            number = self._parse_number(place)
            if number and number > 1 and not self._units[place]:
                is_share = self._words[place + 1] in self._find_percentage()
                return None if is_share else number
        for place in range(last + 1, min(last + 1 + _NEAR, len(self._words) - 1)):
            if self._words[place + 1] in self._find_percentage():
                return self._parse_number(place)
        # "a thing of 3,000": a number at the end of a clause counts the term before it.
        final = len(self._words) - 1
        is_close = last < final <= last + _WORDS_BETWEEN
        return self._parse_number(final) if is_close and self._words[final][0].isdigit() else None

    def find_hint(self, first: int, last: int) -> str | None:
        """Return the hint nearest to the term."""
        near = [
            (min(abs(place - first), abs(place - last)), hint)
            for place, word in enumerate(self._words)
            for hint in HINTS
            if word in self._language.hints[hint]
        ]
        distance, hint = min(near, key=lambda found: found[0], default=(_NEAR + 1, None))
        return hint if distance <= _NEAR else None

    def _find_percentage(self) -> frozenset[str]:
        return self._language.percent | {"%"}

    def _parse_number(self, place: int) -> float | None:
        word = self._words[place]
        if word in self._language.numbers:
            return self._language.numbers[word]
        return min(int(_GROUPING.sub("", word)), _MAX_AMOUNT) if _COUNT.fullmatch(word) else None

    def _find_unit(self, place: int) -> str:
        """Return the longest time unit that follows a word; empty without one."""
        rest = self._text[self._ends[place] :].lstrip(_GAP)
        fitting = (unit for unit in self._language.units if rest.startswith(unit))
        whole = (unit for unit in fitting if _ends_at_word_boundary(unit, rest[len(unit) :]))
        return max(whole, key=len, default="")


def _ends_at_word_boundary(unit: str, rest: str) -> bool:
    """Return True if a word ends where the unit ends, in scripts with word boundaries."""
    return (
        languages.classify_characters(unit[-1]) not in (languages.LETTER, languages.COMBINING_MARK)
        or not rest[:1].isalpha()
    )


TERM_LIMIT = 32
"""The maximum length of the name of a thing."""

NAME_LIMIT = 64
"""The maximum length of the name of a rule or scenario."""

# Characters with a meaning in paths, templates and identifiers.
_SPECIAL_CHARACTERS = re.compile(r"[\"\\{}\[\]<>$%_\s]+")
_EDGES = " .,:;!?-"


def fit_name(text: str, limit: int) -> str:
    """Return the text as a name: one line, without special characters; empty if nothing remains."""
    name = truncate_graphemes(" ".join(_SPECIAL_CHARACTERS.sub(" ", clean_text(text)).split()), limit).strip(
        _EDGES,
    )
    return name[:1].upper() + name[1:] if any(char.isalnum() for char in name) or not name.isascii() else ""


def make_unique_name(name: str, used_names: Iterable[str]) -> str:
    """Return the name, with the first number that makes it unique among the used names, ignoring case."""
    used = {one.casefold() for one in used_names}
    number = 1
    unlike = name or "1"
    while unlike.casefold() in used:
        number += 1
        unlike = f"{name} {number}".strip()
    return unlike


_MIN_COUNTED = 8
"""The minimum amount that is counted down in steps."""
_PARTS = {"scarce": Role.SUPPLY, "mounting": Role.THREAT, "dear": Role.WARD, "wanted": Role.GOAL}


@dataclass(frozen=True, slots=True)
class Term:
    """Term of a text.

    Attributes:
        text: the term.
        part: the role that the text hints at, if any.
        amount: the amount in the text, if any.
    """

    text: str
    part: Role | None = None
    amount: float | None = None

    @property
    def countable_amount(self) -> float | None:
        """Return the amount if it is large enough to count down."""
        return self.amount if self.amount is not None and self.amount >= _MIN_COUNTED else None


@dataclass(frozen=True, slots=True)
class TermSet:
    """Analysis of a text with terms and facts.

    Attributes:
        title: its first sentence, shortened; empty for a text without words.
        language: the language of its phrases.
        terms: its terms, by descending salience.
        people: the persons it seems to name.
        spans: future time spans in hours, longest first.
        player: the role of the player; empty if unspecified.
    """

    title: str
    language: Language
    terms: tuple[Term, ...]
    people: tuple[str, ...]
    spans: tuple[float, ...]
    player: str = ""


def extract_terms(text: str, *, min_terms: int, max_terms: int) -> TermSet:
    """Analyse a text; a text with too few words reuses them, each time with a letter."""
    reading = analyze_text(text, min_terms=min_terms, max_terms=max_terms)
    known = extract_facts(text, reading.terms, reading.language)
    terms = tuple(
        Term(term, _PARTS.get(known.hints.get(term, "")), known.amounts.get(term)) for term in reading.terms
    )
    return TermSet(reading.title, reading.language, terms, reading.people, known.spans, reading.player)

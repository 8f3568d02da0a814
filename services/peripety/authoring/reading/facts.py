"""What a text says besides its words: how much time there is, how many there are of a thing, and hints.

A hint is a word beside a thing that tells which part it may play: that it runs out, gets worse, is dear, or
is wanted. What is not understood is left out, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.authoring.reading import scripts
from peripety.authoring.reading.languages import HINTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.authoring.reading.languages import Language

__all__ = ["Facts", "facts"]

_READ_LIMIT = 12_000
_CLAUSE_END = re.compile(r"[;!?\u2026\u3001\u3002\uff0c\uff01\uff1f\u061f\u06d4\u0964\n]|[.,:](?!\d)")
_HAN = "\u3400-\u9fff"
_WORD = re.compile(rf"\d+(?:[.,:\u00a0\u202f]\d+)*|[{_HAN}]|[^\W\d_{_HAN}]+|%")
_COUNT = re.compile(r"\d{1,7}|\d{1,3}(?:[.,\u00a0\u202f]\d{3})+")
_GROUPING = re.compile(r"\D")
_GAP = " -\u2010\u2011\u00a0"
_WORDS_BETWEEN = 2
_NEAR = 4
"""Words between a thing and one that still hints at its part."""
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Facts:
    """What else a text says.

    Attributes:
        spans: spans of time that lie ahead, in hours, longest first, each once.
        amounts: how many there are of a term, by the term.
        hints: what hints at the part of a term, by the term: one of `HINTS`.
    """

    spans: tuple[float, ...] = ()
    amounts: Mapping[str, float] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)


def facts(text: str, terms: Sequence[str], language: Language) -> Facts:
    """What a text says about time, and about its terms."""
    spans: set[float] = set()
    amounts: dict[str, float] = {}
    hints: dict[str, str] = {}
    for part in _CLAUSE_END.split(scripts.cleaned(text[:_READ_LIMIT]).casefold()):
        clause = _Clause(part, language)
        spans.update(clause.spans())
        for term in terms:
            place = clause.place(term)
            if place is None:
                continue
            if (amount := clause.amount(*place)) and term not in amounts:
                amounts[term] = amount
            if (hint := clause.hint(*place)) and term not in hints:
                hints[term] = hint
    return Facts(tuple(sorted(spans, reverse=True)), amounts, hints)


class _Clause:
    """One clause, word by word."""

    def __init__(self, text: str, language: Language) -> None:
        self._text = text
        self._language = language
        matches = list(_WORD.finditer(text))
        self._words = [match.group() for match in matches]
        self._ends = [match.end() for match in matches]
        self._units = [self._unit(place) for place in range(len(matches))]

    def spans(self) -> Iterator[float]:
        """Spans of time ahead, in hours."""
        if not self._language.past.isdisjoint(self._words):
            return
        for place, word in enumerate(self._words):
            if word in self._language.moments:
                yield self._language.moments[word]
            number = self._number(place)
            if number and self._units[place]:
                yield number * self._language.units[self._units[place]]

    def place(self, term: str) -> tuple[int, int] | None:
        """The places of the first and the last word of a term."""
        wanted = _WORD.findall(term.casefold())
        for start in range(len(self._words) - len(wanted) + 1 if wanted else 0):
            if self._words[start : start + len(wanted)] == wanted:
                return start, start + len(wanted) - 1
        return None

    def amount(self, first: int, last: int) -> float | None:
        """How many there are: a number shortly before the term or after it, or a share."""
        for place in range(first - 1, max(first - 2 - _WORDS_BETWEEN, -1), -1):
            number = self._number(place)
            if number and number > 1 and not self._units[place]:
                is_share = self._words[place + 1] in self._percent()
                return None if is_share else number
        for place in range(last + 1, min(last + 1 + _NEAR, len(self._words) - 1)):
            if self._words[place + 1] in self._percent():
                return self._number(place)
        # "a thing of 3,000": a number that ends the clause counts what it follows.
        final = len(self._words) - 1
        is_close = last < final <= last + _WORDS_BETWEEN
        return self._number(final) if is_close and self._words[final][0].isdigit() else None

    def hint(self, first: int, last: int) -> str | None:
        """The hint that is nearest to the term."""
        near = [
            (min(abs(place - first), abs(place - last)), hint)
            for place, word in enumerate(self._words)
            for hint in HINTS
            if word in self._language.hints[hint]
        ]
        distance, hint = min(near, key=lambda found: found[0], default=(_NEAR + 1, None))
        return hint if distance <= _NEAR else None

    def _percent(self) -> frozenset[str]:
        return self._language.percent | {"%"}

    def _number(self, place: int) -> float | None:
        word = self._words[place]
        if word in self._language.numbers:
            return self._language.numbers[word]
        return min(int(_GROUPING.sub("", word)), _MOST) if _COUNT.fullmatch(word) else None

    def _unit(self, place: int) -> str:
        """The unit of time that follows a word, the longest there is; empty for none."""
        rest = self._text[self._ends[place] :].lstrip(_GAP)
        fitting = (unit for unit in self._language.units if rest.startswith(unit))
        whole = (unit for unit in fitting if _is_whole(unit, rest[len(unit) :]))
        return max(whole, key=len, default="")


def _is_whole(unit: str, rest: str) -> bool:
    """Whether a word ends where the unit does, in scripts that show it."""
    return scripts.classes(unit[-1]) not in (scripts.LETTER, scripts.MARK) or not rest[:1].isalpha()

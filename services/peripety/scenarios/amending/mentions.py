"""Name matching: the named things that a text mentions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import TYPE_CHECKING, Generic, TypeVar

from peripety.scenarios.amending.hearing import UNSPACED, folded

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

__all__ = ["mentioned"]

_WORD = re.compile(r"[^\W\d_]+")
_STEM = 4
_LONGEST_ENDING = 3
_LEAST_LETTERS = 2
_NOTHING = (0, 0, 0.0)
# In a text without spaces, the maximum of unrecognized letters for each recognized one.
_LOOSE_LETTERS = 2

T = TypeVar("T", bound="Hashable")


def mentioned(text: str, *groups: Iterable[tuple[str, T]]) -> list[T]:
    """Return the things that a text mentions, by best match of their words.

    Args:
        text: normalized text without filler words.
        groups: things by name; one thing may have several names. For equal matches, the earlier group wins.

    Returns:
        Every thing that matches some words better than any other; empty if most words match nothing, because
        then the text is about something else.
    """
    named = [
        _Named(_WORD.findall(folded(name)), thing, place)
        for place, things in enumerate(groups)
        for name, thing in things
    ]
    left, found = _Text(text), dict[T, None]()
    while left.words:
        ranked = [(left.matched(one.words), one) for one in named]
        best = max((_rank(words, one) for words, one in ranked), default=_NOTHING)
        if not best[0]:
            break
        chosen = [(words, one) for words, one in ranked if _rank(words, one) == best]
        found |= dict.fromkeys(one.thing for _, one in chosen)
        left = left.without({word for words, _ in chosen for word in words})
    return list(found) if left.is_small_beside(text) else []


@dataclass(frozen=True, slots=True)
class _Named(Generic[T]):
    words: list[str]
    thing: T
    group: int


class _Text:
    """Unmatched rest of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.words = _WORD.findall(text)

    def matched(self, name: Iterable[str]) -> set[str]:
        """Return the words of a name, as they occur in the text."""
        found = set()
        for sought in name:
            if UNSPACED.search(sought):
                found |= _shared(sought, self._text)
            else:
                found |= {word for word in self.words if _is_same(sought, word)}
        return found

    def without(self, words: Iterable[str]) -> _Text:
        """Return the text without some words."""
        gone = [re.escape(word) if UNSPACED.search(word) else rf"\b{re.escape(word)}\b" for word in words]
        return _Text(re.sub("|".join(gone), " ", self._text))

    def is_small_beside(self, whole: str) -> bool:
        """Return True if the rest is a negligible part of the whole text."""
        if UNSPACED.search(whole):
            letters, rest = (len("".join(_WORD.findall(text))) for text in (whole, self._text))
            return rest <= _LOOSE_LETTERS * (letters - rest)
        return 2 * len(self.words) <= len(_WORD.findall(whole))


def _rank(words: set[str], named: _Named[T]) -> tuple[int, int, float]:
    return (len(words), -named.group, len(words) / len(named.words)) if words else _NOTHING


def _shared(word: str, text: str) -> set[str]:
    """Return the part of a word that occurs in a text without spaces, if it is most of the word."""
    match = SequenceMatcher(None, word, text, autojunk=False).find_longest_match()
    is_most = match.size >= max(_LEAST_LETTERS, len(word) / 2)
    return {word[match.a : match.a + match.size]} if is_most else set()


def _is_same(one: str, other: str) -> bool:
    """Return True if two words differ only in their endings."""
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return one == other or (stem >= _STEM and max(len(one), len(other)) - stem <= _LONGEST_ENDING)

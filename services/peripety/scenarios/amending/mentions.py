"""Which of many named things a text is about."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar

from peripety.scenarios.amending.hearing import UNSPACED, folded

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

__all__ = ["mentioned"]

_WORD = re.compile(r"[^\W\d_]+")
_LEAST_SHARE = 0.5
_STEM = 4
_LONGEST_ENDING = 3

T = TypeVar("T", bound="Hashable")


def mentioned(text: str, things: Iterable[tuple[str, T]]) -> list[T]:
    """The things whose names the text has most of; none when it has less than half of any name.

    Args:
        text: folded.
        things: by their names; one thing may have several.
    """
    words = _WORD.findall(text)
    ranked = [(_share(name, text, words), thing) for name, thing in things]
    best = max((share for share, _ in ranked), default=0.0)
    return list(dict.fromkeys(thing for share, thing in ranked if share == best >= _LEAST_SHARE))


def _share(name: str, text: str, words: Iterable[str]) -> float:
    """How much of a name stands in the text, 0 … 1."""
    if UNSPACED.search(name):
        return float(folded(name) in text)
    sought = _WORD.findall(folded(name))
    found = sum(any(_is_same(one, word) for word in words) for one in sought)
    return found / len(sought) if sought else 0.0


def _is_same(one: str, other: str) -> bool:
    """Whether two words are the same but for their endings."""
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return one == other or (stem >= _STEM and max(len(one), len(other)) - stem <= _LONGEST_ENDING)

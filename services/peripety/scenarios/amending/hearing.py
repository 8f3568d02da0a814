"""Instruction parser: edit requests from a text, by a few words of each language.

A request has a kind, a factor and a target.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["UNSPACED", "USUAL", "Way", "Wish", "folded", "wishes"]

USUAL = 1.5
"""The factor of a change without an explicit degree."""
_FARTHEST = 1_000.0
"""The maximum factor of a number."""
_STEPS = {"slightly": (1.2, 1 / 1.2), "half": (1.5, 0.5), "much": (2.0, 0.5), "twice": (2.0, 0.5)}
"""The factors of words for a degree, for an increase and for a decrease."""
_PERCENT = re.compile(r"(\d+(?:[.,]\d+)?)\s*(?:%|per ?cent\w*|pro[cz]ent\w*|por ?cien?to)")
_LETTER = re.compile(r"[^\W\d_]")
_SENTENCE_END = re.compile(r"[,;.!?\u3001\uff0c\u3002\uff1b\uff01\n]+(?!\d)")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Scripts without spaces between words; a word may begin and end anywhere."""


class Way(Enum):
    """Kind of an edit."""

    LONGER = "longer"
    SHORTER = "shorter"
    LIKELIER = "likelier"
    RARER = "rarer"
    FASTER = "faster"
    SLOWER = "slower"
    HARDER = "harder"
    EASIER = "easier"
    MORE = "more"
    LESS = "less"
    REMOVED = "removed"

    @property
    def grows(self) -> bool:
        """Return True for an increase."""
        return self in {Way.LONGER, Way.LIKELIER, Way.FASTER, Way.HARDER, Way.MORE}


@dataclass(frozen=True, slots=True)
class Wish:
    """Edit request from one clause.

    Attributes:
        way: the kind of the edit.
        factor: the factor of the number.
        about: the clause without the recognized words; it names the target.
        is_general: True if nothing remains, so that the target is the scenario as a whole.
    """

    way: Way
    factor: float
    about: str
    said: str
    is_general: bool


def wishes(text: str) -> list[Wish | str]:
    """Parse a text into edit requests, clause by clause; a clause without a request is returned as text.

    The language with the most recognized clauses is used.
    """
    heard = [list(_heard(text, language)) for language in _words()["longer"]]
    return min(heard, key=lambda found: (not found, sum(isinstance(one, str) for one in found)))


def folded(text: str) -> str:
    """Normalize a text: compatibility forms, case and apostrophes."""
    return unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")


def _heard(text: str, language: str) -> Iterator[Wish | str]:
    for sentence in _SENTENCE_END.split(folded(text)):
        unheard, before = "", None
        for clause in _phrases("and", language).sub("\n", sentence).split("\n"):
            # A clause without a kind may be the first of several targets of the next clause.
            unheard = f"{unheard} {clause}".strip()
            wish = _wish(unheard, language)
            if wish is not None:
                if wish.is_general and before is not None:
                    # "longer and harder": the target is in the earlier clause.
                    wish = replace(wish, about=before.about, is_general=before.is_general)
                yield wish
                unheard, before = "", wish
        if unheard:
            yield unheard


def _wish(clause: str, language: str) -> Wish | None:
    if _phrases("denied", language).search(clause):
        return None
    left, ways = clause, []
    for way in Way:
        left, found = _phrases(way.value, language).subn(" ", left)
        ways += [way] * bool(found)
    if not ways:
        # "to double" is an increase, even in languages with one word for it.
        means = {"twice": Way.MORE, "half": Way.LESS}
        ways = [way for word, way in means.items() if _phrases(word, language).search(left)]
    if len(ways) != 1:
        return None
    (way,) = ways
    factor, left = _factor(left, way, language)
    if _phrases("half_as", language).search(clause):
        factor = 0.5  # "half as long" is shorter, although it contains "long"
    if not 0 < factor <= _FARTHEST or any(map(str.isdigit, left)):
        return None  # out of range, or a number with an unknown unit
    named = _phrases("filler", language).sub(" ", left)
    # In scripts without spaces, a filler word may be part of a name.
    about = left if UNSPACED.search(left) else named
    return Wish(way, factor, about, clause, is_general=not _LETTER.search(named))


def _factor(text: str, way: Way, language: str) -> tuple[float, str]:
    """Return the factor of a change, and the text without the words for it."""
    percent = _PERCENT.search(text)
    if percent is not None:
        share = float(percent[1].replace(",", ".")) / 100
        return 1 + share if way.grows else 1 - share, text.replace(percent[0], " ")
    step = (USUAL, 1 / USUAL)
    for word, told in _STEPS.items():
        text, found = _phrases(word, language).subn(" ", text)
        step = told if found else step
    more, less = step
    return more if way.grows else less, text


@cache
def _phrases(kind: str, language: str) -> re.Pattern[str]:
    """Return a pattern for the phrases of a kind, longest first."""
    longest_first = sorted(_words()[kind][language], key=len, reverse=True)
    return re.compile("|".join(map(_pattern, longest_first)))


def _pattern(phrase: str) -> str:
    words = re.escape(folded(phrase).removesuffix("*"))
    if UNSPACED.search(phrase):
        return words
    return rf"(?<!\w){words}\w*" if phrase.endswith("*") else rf"(?<!\w){words}(?!\w)"


@cache
def _words() -> dict[str, dict[str, list[str]]]:
    text = files("peripety.scenarios.amending").joinpath("words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)

"""Character classes for word segmentation in any script.

A text is mapped to a string of class letters of the same length. One regular expression over the classes then
finds words in every script, and its spans are spans of the text.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WORD", "classes", "cleaned", "clipped"]

LETTER = "w"
MARK = "m"
DIGIT = "d"
HAN = "h"
KATAKANA = "k"
UNSPACED = "u"  # letters of scripts without spaces between words
EMOJI = "e"
TONE = "t"  # emoji modifier
FLAG = "r"  # half of a flag
JOINER = "j"
HYPHEN = "-"
SPACE = " "
CLAUSE = ","
SENTENCE = "."

WORD = re.compile(r"d(?:[wmd]|-(?=[wd]))*|w(?:[wmd]|j(?=w))*|h{2,8}|k{2,12}|u[um]+|rr|e[mt]*(?:je[mt]*)*")
"""A word, in classes: a number with its suffix, letters, a run of one script, a flag, a whole emoji."""

_RANGES = (
    (0x0E00, 0x0EFF, UNSPACED),
    (0x1000, 0x109F, UNSPACED),
    (0x1780, 0x17FF, UNSPACED),
    (0x3005, 0x3007, HAN),
    (0x3040, 0x309F, SPACE),  # hiragana is mostly between words, as suffixes and particles
    (0x30A0, 0x30FF, KATAKANA),
    (0x3400, 0x9FFF, HAN),
    (0xF900, 0xFAFF, HAN),
    (0x1F1E6, 0x1F1FF, FLAG),
    (0x1F3FB, 0x1F3FF, TONE),
    (0x20000, 0x3FFFF, HAN),
)
_FIRST_EMOJI = 0x2600
_LAST_REMEMBERED = 0x1FFFF  # bounds the memory for texts of rare characters
_NON_JOINER, _ZERO_WIDTH_JOINER = "\u200c", "\u200d"
_APOSTROPHES = "'\u2019"
_HYPHENS = "-\u2010\u2011"
_SENTENCE_ENDS = ".!?\n\u2026\u3002\uff01\uff1f\u061f\u06d4\u0964"


class _Table(dict[int, str]):
    """Translation table for `str.translate`, filled on first use of each character."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, point: int) -> str:
        becomes = self._rule(chr(point))
        if point <= _LAST_REMEMBERED:
            self[point] = becomes
        return becomes


def _kept_as(char: str) -> str:
    """Remove controls, bidi marks and unassigned code points; replace white space with plain spaces."""
    if char in "\n\r\u2028\u2029":
        return "\n"
    if char.isspace():
        return " "
    if char in (_NON_JOINER, _ZERO_WIDTH_JOINER):
        return char
    return "" if unicodedata.category(char).startswith("C") else char


def _class_of(char: str) -> str:
    category = unicodedata.category(char)
    if category.startswith("M"):
        return MARK
    if char in (_NON_JOINER, _ZERO_WIDTH_JOINER):
        return JOINER
    for first, last, name in _RANGES:
        if first <= ord(char) <= last:
            return name
    return _class_by_category(char, category)


def _class_by_category(char: str, category: str) -> str:
    if category.startswith(("L", "N")):
        return LETTER if category.startswith("L") else DIGIT
    if category == "So" and ord(char) >= _FIRST_EMOJI:
        return EMOJI
    if char in _SENTENCE_ENDS:
        return SENTENCE
    if char in _HYPHENS:
        return HYPHEN
    return SPACE if char.isspace() or char in _APOSTROPHES else CLAUSE


_CLASSES = _Table(_class_of)
_CLEANING = _Table(_kept_as)


def cleaned(text: str) -> str:
    """Return the text in composed form, without invisible characters and display controls."""
    return unicodedata.normalize("NFC", text).translate(_CLEANING)


def classes(text: str) -> str:
    """Return one class letter for each character of a cleaned text."""
    return text.translate(_CLASSES)


def clipped(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, without splitting a grapheme cluster."""
    if len(text) <= limit:
        return text
    drawn = classes(text[: limit + 1])
    end = limit
    while end > 0 and (drawn[end] in MARK + JOINER + TONE + FLAG or drawn[end - 1] == JOINER):
        end -= 1
    return text[: end or limit].rstrip()

"""Line wrapping of labels without font metrics: most characters have one cell, wide ones two."""

from __future__ import annotations

import re
from itertools import pairwise
from unicodedata import combining, east_asian_width

__all__ = ["cells", "wrapped"]

_COMPARISONS = "=≠<≤>≥"
_BREAKS = re.compile(rf"(?<=[\s._:/\-])(?<![{_COMPARISONS}]\s)(?![{_COMPARISONS}]\s)")
"""Break points between words; a comparison is not broken before its operand."""


def cells(text: str) -> int:
    """Return the width of a text in cells."""
    return sum(_width(character) for character in text)


def wrapped(text: str, most_cells: int, most_lines: int) -> list[str]:
    """Wrap a text into lines, between words where possible; excess text is truncated with an ellipsis.

    Args:
        text: the text.
        most_cells: the maximum width of a line.
        most_lines: the maximum number of lines.
    """
    lines = [""]
    for word in _words(" ".join(text.split()), most_cells):
        if cells((lines[-1] + word).rstrip()) <= most_cells:
            lines[-1] += word
        else:
            lines.append(word)
    told = [line.strip() for line in lines]
    if len(told) <= most_lines:
        return told
    return [*told[: most_lines - 1], _cut(" ".join(told[most_lines - 1 :]), most_cells - 1) + "…"]


def _words(text: str, most_cells: int) -> list[str]:
    """Split a text into words with their separators; a word longer than a line is split, too."""
    starts = [0, *(match.start() for match in _BREAKS.finditer(text)), len(text)]
    words = []
    for start, end in pairwise(starts):
        word = text[start:end]
        while cells(word) > most_cells:
            piece = _cut(word, most_cells)
            words.append(piece)
            word = word[len(piece) :]
        words.append(word)
    return words


def _cut(text: str, most_cells: int) -> str:
    """Truncate a text to a width."""
    room = most_cells
    for index, character in enumerate(text):
        room -= _width(character)
        if room < 0:
            return text[:index]
    return text


def _width(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in {"W", "F"} else 1

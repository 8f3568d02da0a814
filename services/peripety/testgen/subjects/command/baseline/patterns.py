"""Texts that a regular expression matches, and near misses, from its syntax tree.

Two texts follow the first alternative: one with the smallest repetitions, one with all optional parts. Each
further text differs from one of them in one choice: another alternative, one repetition more, another member
of a class. Near misses differ in one place
that the expression does not allow: a part is missing, doubled or foreign, or stands in another place.
"""

from __future__ import annotations

import re
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from re import _parser as parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_TEXTS = 32
_MAX_NEAR_MISSES = 48
_MAX_CHOICES = 64
_READABLE = "ba1 X0z9-_.:/@é"
_CATEGORY_CHARACTERS = {
    "CATEGORY_DIGIT": "1079",
    "CATEGORY_SPACE": " \t",
    "CATEGORY_WORD": "ab_1",
    "CATEGORY_NOT_DIGIT": "a-",
    "CATEGORY_NOT_SPACE": "a1",
    "CATEGORY_NOT_WORD": "- ",
}
_FOREIGN = "é~0 A-"
_REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}
_MAX_REPETITIONS = 3


def iterate_matches(pattern: str) -> Iterator[str]:
    """Yield different texts that a regular expression matches, as a search, in a stable order.

    Args:
        pattern: the expression; nothing is yielded for an invalid one.
    """
    compiled = _compile(pattern)
    if compiled is None:
        return
    seen: dict[str, None] = {}
    for text in _iterate_texts(compiled):
        if text and text not in seen and compiled.search(text) is not None:
            seen[text] = None
            yield text
            if len(seen) >= _MAX_TEXTS:
                return


def iterate_near_misses(pattern: str) -> Iterator[str]:
    """Yield texts that differ from a matching one in a place, in a stable order.

    They include texts that still match, in another place: an expression without anchors allows it.
    """
    compiled = _compile(pattern)
    if compiled is None:
        return
    matches = [*islice(iterate_matches(pattern), 4)]
    seen = dict.fromkeys(matches)
    for text in chain.from_iterable(map(_iterate_edits, matches)):
        if text not in seen:
            seen[text] = None
            yield text
            if len(seen) >= _MAX_NEAR_MISSES:
                return


def _compile(pattern: str) -> re.Pattern[str] | None:
    with suppress(re.error, RecursionError, OverflowError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(pattern)
    return None


def _iterate_texts(compiled: re.Pattern[str]) -> Iterator[str]:
    tree = parser.parse(compiled.pattern, compiled.flags & ~re.UNICODE)
    first = ""
    for is_full in (False, True):
        base = _Writer(is_full=is_full)
        text = base.write(tree)
        first = first or text
        yield text
        for place, count in enumerate(base.counts[:_MAX_CHOICES]):
            for choice in range(count):
                yield _Writer({place: choice}, is_full=is_full).write(tree)
    if compiled.flags & re.IGNORECASE:
        yield first.upper()


def _iterate_edits(text: str) -> Iterator[str]:
    """Yield a text with one place changed."""
    yield from (f"{text}x", f"x{text}", f"x{text}x", f"{text} ", f"{text}{text}", text.swapcase())
    yield f"{text}\n"
    for place, letter in enumerate(text):
        before, after = text[:place], text[place + 1 :]
        if letter.isdecimal():
            yield f"{before}0{letter}{after}"
        if not letter.isalnum():
            yield f"{before}{letter}{letter}{after}"
        yield before + after
        foreign = next((one for one in _FOREIGN if one != letter and not letter.isdecimal()), "a")
        yield before + foreign + after


@dataclass
class _Writer:
    """Writer of one text: the choice at each place, the first one by default; all optional parts if full."""

    choices: dict[int, int] = field(default_factory=dict)
    is_full: bool = False
    counts: list[int] = field(default_factory=list)
    groups: dict[int, str] = field(default_factory=dict)

    def write(self, tree: Any) -> str:
        """Return the text of a syntax tree."""
        return "".join(self._write_node(str(code), value) for code, value in tree)

    def _choose(self, count: int, default: int = 0) -> int:
        self.counts.append(count)
        return min(self.choices.get(len(self.counts) - 1, default), count - 1)

    def _write_node(self, code: str, value: Any) -> str:
        text = ""  # of places, and of conditions on the text around
        match code:
            case "LITERAL":
                text = chr(value)
            case "NOT_LITERAL":
                text = next(one for one in _READABLE if ord(one) != value)
            case "ANY":
                text = "a"
            case "IN":
                text = self._write_class(value)
            case "BRANCH":
                branches = value[1]
                text = self.write(branches[self._choose(len(branches))])
            case "SUBPATTERN":
                text = self.write(value[-1])
                self.groups[value[0]] = text
            case "ATOMIC_GROUP":
                text = self.write(value)
            case "GROUPREF":
                text = self.groups.get(value, "")
            case _ if code in _REPEATS:
                text = self._write_repeat(*value)
        return text

    def _write_repeat(self, least: int, most: Any, tree: Any) -> str:
        most = min(int(most), least + _MAX_REPETITIONS - 1)
        counts = [*range(least, most + 1)]
        count = counts[self._choose(len(counts), int(self.is_full and not least))]
        return "".join(self.write(tree) for _ in range(count))

    def _write_class(self, members: Any) -> str:
        if members and str(members[0][0]) == "NEGATE":
            excluded = "".join(map(_characters_of, members[1:]))
            allowed = [one for one in _READABLE if one not in excluded] or ["\N{BULLET}"]
            return allowed[self._choose(min(len(allowed), 3))]
        characters = [*dict.fromkeys("".join(map(_characters_of, members)))] or [""]
        return characters[self._choose(min(len(characters), 6))]


def _characters_of(member: Any) -> str:
    """Return the first characters of a member of a class, and the last one."""
    code, value = str(member[0]), member[1]
    if code == "LITERAL":
        return chr(value)
    if code == "RANGE":
        low, high = value
        return "".join(map(chr, dict.fromkeys((low, min(low + 1, high), min(high, sys.maxunicode)))))
    return _CATEGORY_CHARACTERS.get(str(value), "a")

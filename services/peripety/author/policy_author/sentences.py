"""Sentences of a written policy, and stems of words."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


_HEADING = re.compile(r"\s*#")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
_END = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<=[.!?])[ \t]+|(?<=[\u3002\uff01\uff1f])")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a Markdown text, without its headings.

    A list item below a line that ends with a colon is appended to that line: "It may: read files".
    """
    found: list[str] = []
    opening = ""
    for paragraph, is_item in _iter_paragraphs(text):
        if paragraph.endswith(":"):
            opening = paragraph
            continue
        if not is_item:
            opening = ""
        found += filter(None, _END.split(f"{opening} {paragraph}".strip()))
    return found


def _iter_paragraphs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield paragraphs and list items, each on one line, and whether it is an item."""
    lines: list[str] = []
    is_item = False
    for line in [*text.splitlines(), ""]:
        item = _ITEM.match(line)
        if lines and (item or not line.strip() or _HEADING.match(line)):
            yield " ".join(lines), is_item
            lines, is_item = [], False
        if item:
            is_item = True
        if line.strip() and not _HEADING.match(line):
            lines.append(line[item.end() :].strip() if item else line.strip())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_ENDINGS = ("ings", "ing", "ions", "ion", "ies", "ied", "ens", "es", "ed", "en", "s", "e", "y")
_IRREGULAR = {
    "sent": "send",
    "wrote": "write",
    "ran": "run",
    "made": "make",
    "got": "get",
    "sold": "sell",
    "bought": "buy",
    "paid": "pay",
    "told": "tell",
    "shown": "show",
    "given": "give",
    "taken": "take",
    "held": "hold",
    "kept": "keep",
    "found": "find",
    "built": "build",
    "drawn": "draw",
    "withdrawn": "withdraw",
    "seen": "see",
    "lent": "lend",
    "spent": "spend",
    "froze": "freeze",
    "frozen": "freeze",
    "chosen": "choose",
    "broken": "break",
    "hidden": "hide",
    "forgotten": "forget",
    "begun": "begin",
    "left": "leave",
    "lost": "lose",
    "thrown": "throw",
    "sale": "sell",
    "sales": "sell",
}
_NOMINAL_ENDINGS = ("ments", "ment", "als", "al", "ations", "ation", "lations", "lation")
_SHORTEST = 3


@cache
def stem(word: str) -> str:
    """Return the approximate stem of a word: "written" equals "writes"."""
    word = _IRREGULAR.get(word.casefold(), word.casefold())
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            word = word.removesuffix(ending)
            break
    if len(word) > _SHORTEST and word[-1] in {"y", word[-2]}:
        return word[:-1]
    return word


@cache
def verb_stems(word: str) -> frozenset[str]:
    """Return the stems of the verbs that a word may be a form of: "deployment" is one of "deploy"."""
    lower = word.casefold()
    roots = {
        lower.removesuffix(ending)
        for ending in _NOMINAL_ENDINGS
        if lower.endswith(ending) and len(lower) - len(ending) >= _SHORTEST
    }
    return frozenset({stem(word), *map(stem, roots)})


def singular(word: str) -> str:
    """Return a lower-case noun without the ending of its plural."""
    if word.endswith("ies") and len(word) > _SHORTEST + 1:
        return f"{word.removesuffix('ies')}y"
    return word.removesuffix("s") if word.endswith("s") and not word.endswith("ss") else word


def stems(text: str) -> frozenset[str]:
    """Return the stems of all words of a text; the parts of `snake_case` and `camelCase` are words too."""
    return frozenset(map(stem, _WORD.findall(text)))


def name_parts(name: str) -> tuple[str, ...]:
    """Return the stems of the parts of a name, in order."""
    return tuple(map(stem, _WORD.findall(name)))

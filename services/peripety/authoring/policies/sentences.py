"""Sentences of a written policy, and their clauses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["clauses_of", "sentences_of"]

_HEADING = re.compile(r"\s*#")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
_END = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<=[.!?])[ \t]+|(?<=[\u3002\uff01\uff1f])")
_CLAUSE = re.compile(r";\s*|,?\s+but\s+|,\s+and\s+(?=(?:must|may|can|never)\b)", re.IGNORECASE)
_BARE_NOT = re.compile(r"not\b", re.IGNORECASE)


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a Markdown text, without its headings.

    A list item below a line that ends with a colon is appended to that line: "It may: read files".
    """
    found: list[str] = []
    opening = ""
    for paragraph, is_item in _paragraphs(text):
        if paragraph.endswith(":"):
            opening = paragraph
            continue
        if not is_item:
            opening = ""
        found += filter(None, _END.split(f"{opening} {paragraph}".strip()))
    return found


def clauses_of(sentence: str) -> list[str]:
    """Split a sentence into clauses that each decide something: "a; b", "a, but not b", "a, and never b"."""
    first, *others = (part.strip() for part in _CLAUSE.split(sentence))
    return [
        first,
        *(_BARE_NOT.sub("never", part, count=1) if _BARE_NOT.match(part) else part for part in others),
    ]


def _paragraphs(text: str) -> Iterator[tuple[str, bool]]:
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

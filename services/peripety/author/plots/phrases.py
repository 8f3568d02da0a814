"""Phrases: the user's words, or abstract ones, with correct grammar in the lines of a plot.

A line contains slots. `{supply}` is the definite form ("the alpha", or a name), `{supply.bare}` the words
alone, `{supply.a}` the indefinite form, `{supply's}` the owner, and `{supply:runs/run}` chooses by number.
German has `{supply.acc}` and `{supply.dat}`, Spanish `{supply.of}` and `{supply.to}` with a preposition.
A line with a slot that has no words is left out by `fill_line`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.author.plots.noun_phrases import NounPhrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SLOT = re.compile(r"\{(\w+)(?:\.(\w+)|(\u2019s|'s)|:([^/{}]*)/([^{}]*))?\}")
_PREPOSITIONS = {"of": "de", "to": "a"}
_SENTENCE = re.compile(r"((?:^|[.!?\u2026]\s+)[\u201c\u201e\u00bf\u00a1]*)(\w)")


def join_list(items: Iterable[str], common: Mapping[str, Any]) -> str:
    """Join words as a list of the language.

    Args:
        items: the words.
        common: the texts that all plots of the language share.
    """
    *first, last = [*items] or [""]
    return f"{common['comma'].join(first)}{common['and']}{last}" if first else last


Slots: TypeAlias = "Mapping[str, NounPhrase | str]"
"""The words of the user by slot: noun phrases and plain texts."""


def fill_line(line: str, slots: Slots) -> str | None:
    """Return a line as sentences, with its slots filled and capitals; None if a slot has no words.

    Args:
        line: the line.
        slots: phrases and plain texts by slot.
    """
    text = fill_phrase(line, slots)
    return text and capitalize_sentences(text)


def fill_phrase(line: str, slots: Slots) -> str | None:
    """Return a part of a sentence with its slots filled; None if a slot has no words.

    Args:
        line: the line.
        slots: phrases and plain texts by slot.
    """
    is_complete = True

    def fill(found: re.Match[str]) -> str:
        nonlocal is_complete
        name, form, owner, one, many = found.groups()
        value = slots.get(name)
        if not value:
            is_complete = False
            return ""
        if isinstance(value, str):
            return value
        if one is not None:
            return many if value.is_plural else one
        if owner:
            return value.owner
        forms = {"bare": value.bare, "a": value.indefinite}
        return forms[form] if form in forms else value.inflect(_PREPOSITIONS.get(form, form or ""))

    text = _SLOT.sub(fill, line)
    return text if is_complete else None


def find_fillers(slots: Slots, texts: Mapping[str, Any]) -> frozenset[str]:
    """Return the slots that have no words of the user, but the default ones.

    Args:
        slots: phrases and plain texts by slot.
        texts: the texts of the plot, with the default words.
    """
    defaults = {**texts["common"]["defaults"], **texts.get("defaults", {})}
    return frozenset(
        name
        for table in (defaults, texts["common"]["alone"])
        for name, words in table.items()
        if isinstance(value := slots.get(name), NounPhrase) and value.bare == words["bare"]
    )


def has_filler(line: str, fillers: frozenset[str]) -> bool:
    """Return True if a line uses one of the slots that have no words of the user."""
    return any(found[1] in fillers for found in _SLOT.finditer(line))


def count_slots(line: str, names: frozenset[str]) -> int:
    """Return the number of some slots that a line uses."""
    return len({found[1] for found in _SLOT.finditer(line)} & names)


def capitalize_sentences(text: str) -> str:
    """Return a text with a capital at the start of each sentence."""
    return _SENTENCE.sub(lambda found: found[1] + found[2].upper(), text)


def strip_slots(line: str) -> str:
    """Return the words of a line besides its slots."""
    return _SLOT.sub(" ", line)


def longest_literal(line: str) -> str:
    """Return the longest part of a line between its slots."""
    return max(_SLOT.sub("\n", line).split("\n"), key=len)


def compile_line(line: str) -> re.Pattern[str]:
    """Return a pattern that reads the definite forms of slots back from a filled line."""
    parts, last, seen = [], 0, set()
    for found in _SLOT.finditer(line):
        parts.append(re.escape(line[last : found.start()]))
        name, form, owner, one, many = found.groups()
        if one is not None:
            parts.append(f"(?:{re.escape(one)}|{re.escape(many)})")
        elif owner or form or name in seen:
            parts.append(".+?")
        else:
            seen.add(name)
            parts.append(f"(?P<{name}>.+?)")
        last = found.end()
    return re.compile(f"{''.join(parts)}{re.escape(line[last:])}$", re.IGNORECASE)

"""Phrases: the user's words with correct grammar in the lines of a plot.

A line contains slots. `{supply}` is the definite form ("the alpha", or a name), `{supply.bare}` the words
alone, `{supply.a}` the indefinite form, `{supply's}` the owner, and `{supply:runs/run}` chooses by number.
A line with a slot that has no words is left out by `fill_line`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SLOT = re.compile(r"\{(\w+)(?:\.(\w+)|(\u2019s|'s)|:([^/{}]*)/([^{}]*))?\}")
_SENTENCE = re.compile(r"((?:^|[.!?\u2026]\s+)\u201c?)(\w)")
_VOWEL = re.compile(r"(?i)[aeio]|u(?!ni|s[aeiu]|ti)|h(?=our|onest|eir)")
_IRREGULAR = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "person": "people",
    "foot": "feet",
    "tooth": "teeth",
    "mouse": "mice",
    "goose": "geese",
    "ox": "oxen",
    "life": "lives",
    "wife": "wives",
    "knife": "knives",
    "leaf": "leaves",
    "loaf": "loaves",
    "half": "halves",
    "shelf": "shelves",
    "thief": "thieves",
    "wolf": "wolves",
    "calf": "calves",
    "hoof": "hooves",
    "crisis": "crises",
    "sheep": "sheep",
    "fish": "fish",
    "deer": "deer",
    "series": "series",
    "hero": "heroes",
    "potato": "potatoes",
    "tomato": "tomatoes",
    "echo": "echoes",
}
_PLURALS = frozenset(_IRREGULAR.values()) | {"police", "cattle", "people"}
_SINGULAR_ENDINGS = ("ss", "us", "is", "news", "ics")


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Noun phrase in the forms that lines use.

    Attributes:
        bare: its words without an article, in its number.
        is_plural: True if verbs with it are in the plural.
        is_mass: True if it has no indefinite article.
        is_name: True if it has no article at all.
    """

    bare: str
    is_plural: bool = False
    is_mass: bool = False
    is_name: bool = False

    @property
    def definite(self) -> str:
        """The phrase with the definite article."""
        return self.bare if self.is_name else f"the {self.bare}"

    @property
    def indefinite(self) -> str:
        """The phrase with the indefinite article, where it can have one."""
        if self.is_name or self.is_plural or self.is_mass:
            return self.bare
        return f"{'an' if _VOWEL.match(self.bare) else 'a'} {self.bare}"

    @property
    def owner(self) -> str:
        """The definite phrase as an owner."""
        ends = self.definite.endswith("s")
        return f"{self.definite}\u2019" if ends and self.is_plural else f"{self.definite}\u2019s"


def pluralize(word: str) -> str:
    """Return the plural of an English noun."""
    lowered = word.casefold()
    if lowered in _IRREGULAR:
        return word[:1] + _IRREGULAR[lowered][1:]
    if re.search(r"[^aeiou]y$", lowered):
        return f"{word[:-1]}ies"
    return f"{word}es" if re.search(r"(s|x|z|ch|sh)$", lowered) else f"{word}s"


def is_plural_noun(word: str) -> bool:
    """Return True if an English noun looks like a plural."""
    lowered = word.casefold()
    return lowered in _PLURALS or (lowered.endswith("s") and not lowered.endswith(_SINGULAR_ENDINGS))


def parse_definite(text: str) -> NounPhrase:
    """Return the phrase of a definite form, as a filled line contains it."""
    words = text.split()
    is_name = words[:1] not in (["the"], ["The"])
    bare = text if is_name else " ".join(words[1:])
    # The head is before a preposition: "sacks of grain".
    head = re.split(r" (?:of|for|in|on|at|with|from|to|that|who) ", bare)[0].split()[-1:]
    return NounPhrase(bare, is_plural=not is_name and is_plural_noun("".join(head)), is_name=is_name)


def join_list(items: Iterable[str], common: Mapping[str, Any]) -> str:
    """Join words as a list of the language.

    Args:
        items: the words.
        common: the texts that all plots of the language share.
    """
    *first, last = [*items] or [""]
    return f"{common['comma'].join(first)}{common['and']}{last}" if first else last


_ADDRESS = {
    "i'm": "you are",
    "i am": "you are",
    "i was": "you were",
    "i've": "you have",
    "i'd": "you would",
    "i'll": "you will",
    "am i": "are you",
    "i": "you",
    "we're": "you are",
    "we've": "you have",
    "we'd": "you would",
    "we'll": "you will",
    "we": "you",
    "me": "you",
    "us": "you",
    "my": "your",
    "our": "your",
    "mine": "yours",
    "ours": "yours",
    "myself": "yourself",
    "ourselves": "yourselves",
}
_ADDRESS_WORD = re.compile(rf"\b({'|'.join(sorted(_ADDRESS, key=len, reverse=True))})\b", re.IGNORECASE)
_CAPITAL_WORD = re.compile(r"\b(?:US|I{2,}|IV)\b")
_REQUEST = re.compile(
    r"(?i)(?:please|let me|let us|write|make me|create|give me|i want an? (?:game|story|scenario))\b"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def address_player(text: str) -> str:
    """Return an English text about its writer as one about "you", without requests for a text or a game."""

    def turn(found: re.Match[str]) -> str:
        return found[0] if _CAPITAL_WORD.fullmatch(found[0]) else _ADDRESS[found[0].casefold()]

    plain = " ".join(text.replace("\u2019", "'").split())
    kept = [one for one in _SENTENCE_END.split(plain) if one and not _REQUEST.match(one)]
    turned = capitalize_sentences(_ADDRESS_WORD.sub(turn, " ".join(kept))).replace("'", "\u2019")
    return turned if not turned or turned.endswith((".", "!", "?")) else f"{turned}."


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
        forms = {None: value.definite, "bare": value.bare, "a": value.indefinite}
        return forms[form]

    text = _SLOT.sub(fill, line)
    return text if is_complete else None


def capitalize_sentences(text: str) -> str:
    """Return a text with a capital at the start of each sentence."""
    return _SENTENCE.sub(lambda found: found[1] + found[2].upper(), text)


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

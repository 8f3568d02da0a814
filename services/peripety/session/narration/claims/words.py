"""Tokens of a sentence, and the names of what the record knows, which are single tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import NUMERAL, SPOKEN, number_forms, parse_numeral
from peripety.session.narration.claims.verbs import is_function_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.session.narration.claims.verbs import VerbReading


Ref = tuple[str, str]
"""Kind (`entity`, `place`, `thing`, `quantity`, `unit`, `bearer` or `object`) and id of what the record knows."""

_TOKEN = re.compile(
    rf"{SPOKEN}|n['\u2019]t\b|['\u2019](?:s|re|ve|ll|d|m)\b|[^\W\d_]+?(?=n['\u2019]t\b)"
    r"|[^\W\d_]+(?:-[^\W\d_]+)*|-?\d[\d,]*(?:\.\d+)?|\S",
)
_NUMERAL = re.compile(NUMERAL, re.IGNORECASE)
_SHORT = {"ca": "can", "wo": "will", "sha": "shall"}


@dataclass(slots=True)
class Token:
    """A word of a sentence.

    Attributes:
        text: as it is written.
        word: in lower case.
        start: its position.
        end: its end.
        tag: its part of speech.
        refs: what it names.
        number: its value, if it is a numeral.
        reading: its reading, if it is a verb.
    """

    text: str
    word: str
    start: int
    end: int
    tag: str = ""
    refs: tuple[Ref, ...] = ()
    number: float | None = None
    reading: VerbReading | None = None


class NameTable:
    """Names of what the record knows, which are single tokens of a sentence."""

    def __init__(self) -> None:
        self._names: dict[str, list[tuple[tuple[str, ...], bool, Ref]]] = {}

    @property
    def words(self) -> frozenset[str]:
        """The words of the names, in lower case."""
        return frozenset(word for names in self._names.values() for words, _, _ in names for word in words)

    def add(self, kind: str, key: str, names: Iterable[str], *, has_plural: bool = False) -> None:
        """Add names of one thing.

        Args:
            kind: the kind.
            key: the id.
            names: its names.
            has_plural: True to add the plural and the singular of each name.
        """
        for name in names:
            for form in number_forms(name.lower()) if has_plural else (name.lower(),):
                words = tuple(token.word for token in split_words(form))
                if not words or (len(words) == 1 and is_function_word(words[0])):
                    continue
                is_proper = kind == "entity" and name[:1].isupper() and len(words) == 1
                entry = (words, is_proper, (kind, key))
                known = self._names.setdefault(words[0], [])
                if entry not in known:
                    known.append(entry)

    def find(self, tokens: Sequence[Token], place: int) -> tuple[int, tuple[Ref, ...]]:
        """Return the number of tokens of the longest name at a place, and what it names."""
        best, refs = 0, []
        for words, is_proper, ref in self._names.get(tokens[place].word, ()):
            size = len(words)
            if size < best or any(
                place + n >= len(tokens) or tokens[place + n].word != word for n, word in enumerate(words)
            ):
                continue
            if is_proper and not tokens[place].text[:1].isupper() and tokens[place - 1].word != "the":
                continue
            if size > best:
                best, refs = size, []
            refs.append(ref)
        return best, tuple(dict.fromkeys(refs))


def split_words(text: str) -> list[Token]:
    """Return the words of a text as tokens without tags."""
    tokens = []
    for found in _TOKEN.finditer(text):
        word = found[0].lower().replace("\u2019", "'")
        tokens.append(Token(found[0], _SHORT.get(word, word), found.start(), found.end()))
    return tokens


def read_tokens(text: str, names: NameTable) -> list[Token]:
    """Return the tokens of a sentence without speech: names and numerals are joined."""
    plain = split_words(text)
    numerals = {found.start(): found for found in _NUMERAL.finditer(text)}
    tokens: list[Token] = []
    place = 0
    while place < len(plain):
        token = plain[place]
        size, refs = names.find(plain, place)
        numeral = numerals.get(token.start)
        if size:
            last = plain[place + size - 1]
            tokens.append(
                Token(
                    text[token.start : last.end],
                    text[token.start : last.end].lower(),
                    token.start,
                    last.end,
                    "name",
                    refs,
                )
            )
            place += size
        elif numeral is not None and numeral.end() >= token.end and not (tokens and tokens[-1].word == "no"):
            tokens.append(
                Token(
                    numeral[0],
                    numeral[0].lower(),
                    token.start,
                    numeral.end(),
                    "num",
                    number=parse_numeral(numeral[0]),
                )
            )
            while place < len(plain) and plain[place].start < numeral.end():
                place += 1
        else:
            tokens.append(token)
            place += 1
    return tokens

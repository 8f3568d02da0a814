"""Words of English: verbs with their forms and senses, words of the grammar, and names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import (
    NUMERAL,
    SPOKEN,
    load_toml,
    number_forms,
    parse_numeral,
    verb_forms,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


BASE, THIRD, PAST, PARTICIPLE, GERUND = "base", "third", "past", "participle", "gerund"


@cache
def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


@cache
def words_of(section: str, name: str) -> frozenset[str]:
    """Return a class of words of `vocabulary.toml`."""
    return words(load_toml("vocabulary.toml")[section][name])


@dataclass(frozen=True, slots=True)
class VerbReading:
    """A form of a verb.

    Attributes:
        lemma: the base of the verb.
        form: `base`, `third`, `past`, `participle` or `gerund`.
        senses: the classes of its most frequent senses.
        is_rare: True if the word is more often a noun or an adjective.
    """

    lemma: str
    form: str
    senses: frozenset[str]
    is_rare: bool


@cache
def verb_table() -> Mapping[str, Sequence[VerbReading]]:
    """Return the readings of each form of each verb."""
    text = resources.files(__package__).joinpath("verbs.txt").read_text(encoding="utf-8")
    table: dict[str, list[VerbReading]] = {}
    for line in text.splitlines():
        if line[0] == "#":
            continue
        lemma, classes, often, irregular = line.split()
        senses, is_rare = frozenset(classes.split(",")), often != "-"
        for word, form in sorted(_forms(lemma, [] if irregular == "-" else irregular.split(","))):
            table.setdefault(word, []).append(VerbReading(lemma, form, senses, is_rare))
    return table


def _forms(lemma: str, irregular: Sequence[str]) -> set[tuple[str, str]]:
    """Return the forms of a verb with their names.

    A regular form beside an irregular one does no harm: as both are in use.
    """
    base, third, past, participle, gerund = verb_forms(lemma)
    forms = {(base, BASE), (third, THIRD), (past, PAST), (participle, PARTICIPLE), (gerund, GERUND)}
    forms |= {(one, GERUND) for one in irregular if one.endswith("ing")}
    pasts = [one for one in irregular if not one.endswith("ing")]
    for one in pasts:
        is_participle_only = len(pasts) > 1 and one.endswith("n")
        forms |= {(one, PARTICIPLE)} if is_participle_only else {(one, PAST), (one, PARTICIPLE)}
    if lemma in words_of("verbs", "unchanging"):
        forms |= {(lemma, PAST), (lemma, PARTICIPLE)}
    return forms


_TAGS = {"adjective": "adj", "subject": "pron", "object": "pron"}
# A word of several kinds has the last one.
_KINDS = (
    *("adv", "adjective", "prep", "object", "subject", "det", "poss"),
    *("conj", "sub", "neg", "modal", "be", "have", "do"),
)


@cache
def function_tags() -> Mapping[str, str]:
    """Return the part of speech of each word of the grammar."""
    section = load_toml("vocabulary.toml")["function"]
    return {word: _TAGS.get(kind, kind) for kind in _KINDS for word in section[kind].split()}


def is_function_word(word: str) -> bool:
    """Return True if a word belongs to the grammar."""
    return word in function_tags()


Ref = tuple[str, str]
"""Kind and id of what is known: `entity`, `place`, `thing`, `quantity`, `unit`, `bearer`, `object`."""

_TOKEN = re.compile(
    rf"{SPOKEN}|n['\u2019]t\b|['\u2019](?:s|re|ve|ll|d|m)\b|[^\W\d_]+?(?=n['\u2019]t\b)"
    r"|[^\W\d_]+(?:-[^\W\d_]+)*|-?\d[\d,]*(?:\.\d+)?|\S",
)
_NUMERAL = re.compile(NUMERAL, re.IGNORECASE)
_SHORT = {"ca": "can", "wo": "will", "sha": "shall"}


@dataclass(slots=True)
class Word:
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

    def find(self, tokens: Sequence[Word], place: int) -> tuple[int, tuple[Ref, ...]]:
        """Return the number of tokens of the longest name at a place, and what it names."""
        best = 0
        refs: list[Ref] = []
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


def split_words(text: str) -> list[Word]:
    """Return the words of a text as tokens without tags."""
    tokens = []
    for found in _TOKEN.finditer(text):
        word = found[0].lower().replace("\u2019", "'")
        tokens.append(Word(found[0], _SHORT.get(word, word), found.start(), found.end()))
    return tokens


def read_tokens(text: str, names: NameTable) -> list[Word]:
    """Return the tokens of a sentence without speech: names and numerals are joined."""
    plain = split_words(text)
    numerals = {found.start(): found for found in _NUMERAL.finditer(text)}
    tokens: list[Word] = []
    place = 0
    while place < len(plain):
        token = plain[place]
        size, refs = names.find(plain, place)
        numeral = numerals.get(token.start)
        if size:
            last = plain[place + size - 1]
            tokens.append(
                Word(
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
                Word(
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

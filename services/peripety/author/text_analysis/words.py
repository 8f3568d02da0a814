"""Words of a text, the tables of a language, and the senses of English words."""

from __future__ import annotations

import lzma
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

import simplemma

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_WORD = re.compile(
    r"\d+(?:st|nd|rd|th)\b|[$\u20ac\u00a3\u00a5]?\d+(?:[.,:]\d+)*%?|[^\W\d_]+(?:[-'\u2019][^\W\d_]+|-\d+)*|[.!?\u2026]+|\n+|[,;:()\u2013\u2014\"%&/]|[^\w\s]"
)
_CLITIC = re.compile(r"(n't|'(?:s|m|re|ve|ll|d))$")
_CURRENCIES = {"$": "dollar", "\u20ac": "euro", "\u00a3": "pound", "\u00a5": "yen"}
_TEN, _MYRIAD = 10, 10_000
_SENTENCE_END = re.compile(r"[.!?\u2026\n]+")

_NOUNS = (
    "Tops act animal artifact attribute body cognition communication event feeling food group location "
    "motive object person phenomenon plant possession process quantity relation shape state substance time "
    "group.people artifact.place artifact.vehicle phenomenon.weather event.harm state.harm act.harm "
    "possession.money quantity.money"
)
_VERBS = (
    "body change cognition communication competition consumption contact creation emotion motion perception "
    "possession social stative weather"
)
CLASSES = (
    *(f"noun.{name}" for name in _NOUNS.split()),
    *(f"verb.{name}" for name in _VERBS.split()),
    "adjective",
    "adverb",
    "noun.person.foe",
)
"""All classes of senses: kind, lexicographer class of WordNet, and for some nouns a narrower class.

A new class goes to the end, because the letters of the others are in the tables.
"""

LETTERS = {name: chr(ord("A") + number) for number, name in enumerate(CLASSES)}
"""Letter of each class in the packed table of senses."""

_CLASS_OF_LETTER = {letter: name for name, letter in LETTERS.items()}


@cache
def _load_senses(code: str) -> Mapping[str, str]:
    packed = resources.files(__package__).joinpath(f"senses_{code}.txt.xz").read_bytes()
    return dict(line.split("\t") for line in lzma.decompress(packed).decode().split("\n"))


@cache
def find_classes(word: str, code: str = "en") -> tuple[str, ...]:
    """Return the classes of a lemma of a language, the most frequent first; none for an unknown word.

    English names of places and German nouns have a capital in the table; other words do not.
    """
    return tuple(_CLASS_OF_LETTER[letter] for letter in _load_senses(code).get(word, ""))


@cache
def find_lemmas(low: str, code: str) -> tuple[str, ...]:
    """Return the possible base forms of a word, the word itself first."""
    base = simplemma.lemmatize(low, lang=code)
    return (low,) if base == low else (low, base)


NOUNS = ("noun", "name")
"""Tags of words that name something."""


@dataclass(slots=True)
class Word:
    """Word of a text.

    Attributes:
        text: as written.
        low: in lower case.
        tag: its kind, such as "noun" or "det"; "end" closes a sentence, "mark" is other punctuation.
        lemma: the base form in its tag.
        start: its place in the text.
        end: the place after it.
        first: True at the start of a sentence.
        classes: the classes of its lemma in its tag, such as "artifact.place".
    """

    text: str
    low: str
    tag: str = ""
    lemma: str = ""
    start: int = 0
    end: int = 0
    first: bool = False
    classes: tuple[str, ...] = ()

    @property
    def is_noun(self) -> bool:
        """Return True for a noun or a name."""
        return self.tag in NOUNS

    @property
    def is_capitalized(self) -> bool:
        """Return True if it starts with a capital."""
        return self.text[:1].isupper()


@dataclass(frozen=True)
class Grammar:
    """Tables of a language in `reading.toml`.

    Attributes:
        code: the language as a BCP 47 tag.
        tags: the tag of each function word.
        numbers: the value of each number word.
        adjectives_after: True if adjectives follow their noun.
        verbs_last: True if an infinitive ends its clause.
        tables: the sections of the language; a value is a set of words, a mapping of words, or a list.
    """

    code: str
    tags: Mapping[str, str]
    numbers: Mapping[str, float]
    adjectives_after: bool = False
    verbs_last: bool = False
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def goal_verbs(self) -> frozenset[str]:
        """Return the verbs of the goals of all patterns."""
        return frozenset(row[0] for rows in self.rows("patterns").values() for row in rows)

    def words(self, section: str, name: str) -> frozenset[str]:
        """Return a set of words of a section."""
        found: frozenset[str] = self.tables.get(section, {}).get(name, frozenset())
        return found

    def pairs(self, section: str, name: str) -> Mapping[str, str]:
        """Return a mapping of words of a section."""
        found: Mapping[str, str] = self.tables.get(section, {}).get(name, {})
        return found

    def rows(self, section: str) -> Mapping[str, Sequence[tuple[str, ...]]]:
        """Return the lists of word sequences of a section."""
        return self.tables.get(section, {})


@cache
def load_grammars() -> Mapping[str, Grammar]:
    """Return the tables of all languages, by code."""
    document = tomllib.loads(
        resources.files(__package__).joinpath("reading.toml").read_text(encoding="utf-8")
    )
    return {code: _parse_grammar(code, table) for code, table in document.items()}


def _parse_grammar(code: str, document: Mapping[str, Any]) -> Grammar:
    tags: dict[str, str] = {}
    for tag, words in document.get("tags", {}).items():
        for entry in words.split():
            tags.setdefault(entry.partition("=")[0].replace("_", " "), tag)
    numbers = dict(_parse_pairs(document.get("tags", {}).get("num", "")))
    tables = {
        name: {key: _parse_value(value) for key, value in section.items()}
        for name, section in document.items()
        if isinstance(section, dict) and name != "tags"
    }
    return Grammar(
        code,
        tags,
        {word: float(value) for word, value in numbers.items()},
        bool(document.get("adjectives_after")),
        bool(document.get("verbs_last")),
        tables,
    )


def _parse_value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(tuple(entry.split()) for entry in value)
    if "=" in value:
        return dict(_parse_pairs(value))
    return frozenset(value.replace("_", " ") if "_" in value else value for value in value.split())


def _parse_pairs(text: str) -> Iterator[tuple[str, str]]:
    for entry in text.split():
        word, _, value = entry.partition("=")
        yield word, value


def split_words(text: str) -> list[Word]:
    """Return the words and marks of a text, without tags; English short forms are split."""
    words: list[Word] = []
    first = True
    for match in _WORD.finditer(text):
        for piece, start in _split_clitic(match.group(), match.start()):
            low = piece.lower().replace("\u2019", "'")
            word = Word(piece, low, start=start, end=start + len(piece), first=first)
            if _SENTENCE_END.fullmatch(piece):
                word.tag, first = "end", True
            elif not any(char.isalnum() for char in piece):
                word.tag = "mark"
                first = first or piece in ":;"
            else:
                first = False
            words.append(word)
    return words


def _split_clitic(text: str, start: int) -> Iterator[tuple[str, int]]:
    match = _CLITIC.search(text.lower().replace("\u2019", "'"))
    if match and match.start():
        yield text[: match.start()], start
        yield text[match.start() :], start + match.start()
    else:
        yield text, start


def parse_number(word: Word, grammar: Grammar) -> float | None:
    """Return the value of a number in digits or words; None for other words."""
    if word.low in grammar.numbers:
        return grammar.numbers[word.low]
    if word.low and all(char in grammar.numbers for char in word.low):
        return _read_characters(word.low, grammar)
    digits = word.text.strip("$\u20ac\u00a3\u00a5%")
    if not digits[:1].isdigit() or ":" in digits:
        return None
    grouped = re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", digits)
    return (
        float(re.sub(r"[.,]", "", digits))
        if grouped
        else float(re.sub(r"[^\d.]", "", digits.replace(",", ".")) or 0)
    )


def _read_characters(text: str, grammar: Grammar) -> float:
    """Return the value of a number whose characters are digits and powers of ten."""
    total, digit = 0.0, 0.0
    for char in text:
        value = grammar.numbers[char]
        if value < _TEN:
            digit = value
        elif value < _MYRIAD:
            total, digit = total + (digit or 1) * value, 0.0
        else:
            total, digit = (total + digit) * value, 0.0
    return total + digit


def find_currency(word: Word) -> str:
    """Return the lemma of the currency of a number such as "$40"; empty without one."""
    return _CURRENCIES.get(word.text[:1], "")

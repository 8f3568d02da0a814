"""Language data and tokenizer: supported languages, their detection, and words of any script.

A text is mapped to a string of character-class letters of the same length. One regular expression over the
classes then finds words in every script, and its spans are spans of the text.

Phrases of each language detect texts that request a scenario without risk.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet


OFFLINE_MARK = "(offline, no model)"
"""Marker of offline text, to distinguish it from the output of a model."""

HINTS = ("scarce", "mounting", "dear", "wanted")
"""All hints that a word beside a term can give."""

_DEFAULT, _UNKNOWN = "en", "symbols"
_WORD = re.compile(r"[^\W\d_]+")
_SLOT = re.compile(r"\{\w+\}")
_FEW_WORDS = 8
_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class PersonWords:
    """Words of a language that distinguish persons from things, case-folded.

    Attributes:
        who: relative pronouns of persons only.
        relatives: relative pronouns of any subject.
        acts: verbs of persons only.
        wishes: verbs of persons only, unless negated.
        sayings: verbs mostly of persons, sometimes of things.
        be: forms of to be.
        states: predicates of persons only, after a form of to be.
        negations: words that negate.
        between: other words between a subject and its verb.
        links: words before a thing that is not a subject.
        joins: words before a subject that do not open a clause.
        inverted: words after a verb whose subject follows later.
        owning: words between an owner and a possession.
        articles: words before a single thing.
        sole: words between an article and an occupation.
        parties: words before a group of persons, with the size of the group.
        am: word sequences before the role of the player.
    """

    who: frozenset[str]
    relatives: frozenset[str]
    acts: frozenset[str]
    wishes: frozenset[str]
    sayings: frozenset[str]
    be: frozenset[str]
    states: frozenset[str]
    negations: frozenset[str]
    between: frozenset[str]
    links: frozenset[str]
    joins: frozenset[str]
    inverted: frozenset[str]
    owning: frozenset[str]
    articles: frozenset[str]
    sole: frozenset[str]
    parties: Mapping[str, int]
    am: Sequence[Sequence[str]]

    @property
    def non_noun_words(self) -> AbstractSet[str]:
        """Return the words that do not name a thing."""
        return self.predicate_words | self.parties.keys()

    @property
    def predicate_words(self) -> AbstractSet[str]:
        """Return the words for actions and states of persons."""
        return self.acts | self.wishes | self.sayings | self.states


@dataclass(frozen=True, slots=True)
class Language:
    """Language data: stop words, grammar, and phrases around the terms of the user.

    The words that identify a language are its stop words and the words of its phrases.

    Attributes:
        code: the key in `languages.toml`.
        capitals: the meaning of a capital inside a sentence: "names" or "nouns".
        head: the end of a row of words that names the thing: "first", "last", or "none".
        stop: stop words, case-folded.
        determiners: stop words that announce a thing.
        auxiliaries: verbs between a thing and its action.
        weak: suffixes of words that rarely name a thing.
        numbers: number words.
        units: time units, in hours.
        moments: words for future moments, in hours ahead.
        past: words beside a time span in the past.
        percent: words for per cent.
        hints: words that hint at the role of a term, by hint.
        rules: phrases of a scenario's rules, by key.
        prose: sentence patterns of the narration, by key.
        people: words that distinguish persons from things.
    """

    code: str
    capitals: str
    head: str
    stop: frozenset[str]
    identifying: frozenset[str]
    determiners: frozenset[str]
    auxiliaries: frozenset[str]
    weak: tuple[str, ...]
    numbers: Mapping[str, int]
    units: Mapping[str, float]
    moments: Mapping[str, float]
    past: frozenset[str]
    percent: frozenset[str]
    hints: Mapping[str, frozenset[str]]
    rules: Mapping[str, str]
    prose: Mapping[str, Sequence[str]]
    people: PersonWords

    @property
    def counting_words(self) -> AbstractSet[str]:
        """Return the words for amounts and times, which do not name a thing."""
        return self.numbers.keys() | self.moments.keys() | self.percent


@cache
def _load_document() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("languages.toml").read_text(encoding="utf-8"))


@cache
def load_languages() -> tuple[Language, ...]:
    """Return all languages, including the one of symbols."""
    return tuple(
        _parse_language(code, table) for code, table in _load_document().items() if isinstance(table, dict)
    )


def _parse_language(code: str, table: dict[str, Any]) -> Language:
    stop = frozenset(table["stop"].split())
    connecting = " ".join([*table["rules"].values(), *chain.from_iterable(table["prose"].values())])
    return Language(
        code=code,
        capitals=table["capitals"],
        head=table["head"],
        stop=stop,
        identifying=stop | frozenset(_WORD.findall(_SLOT.sub("", connecting.casefold()))),
        determiners=frozenset(table["determiners"].split()),
        auxiliaries=frozenset(table["auxiliaries"].split()),
        weak=tuple(table["weak"].split()),
        numbers={word: int(number) for word, number in _parse_pairs(table["numbers"])},
        units={word: float(number) for word, number in _parse_pairs(table["units"])},
        moments={word: float(number) for word, number in _parse_pairs(table["moments"])},
        past=frozenset(table["past"].split()),
        percent=frozenset(table["percent"].split()),
        hints={hint: frozenset(table[hint].split()) for hint in HINTS},
        rules=table["rules"],
        prose=table["prose"],
        people=_parse_person_words(table.get("people", {})),
    )


def _parse_person_words(table: Mapping[str, Any]) -> PersonWords:
    said = {name: table.get(name, "") for name in PersonWords.__annotations__}
    parties = {word: int(number) for word, number in _parse_pairs(said.pop("parties"))}
    am = tuple(tuple(words.split()) for words in said.pop("am"))
    return PersonWords(
        parties=parties,
        am=am,
        **{name: frozenset(words.casefold().split()) for name, words in said.items()},
    )


def _parse_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the entries of "word=number word=number"."""
    for entry in text.casefold().split():
        word, _, number = entry.partition("=")
        yield word, number


def load_particles() -> frozenset[str]:
    """Return the characters that separate words in scripts without spaces."""
    return frozenset(_load_document()["particles"])


def detect_language(words: Sequence[str]) -> Language:
    """Return the most likely language of case-folded words, or the one of symbols.

    A short text without a known word counts as English if it is plain ASCII, because most plain ASCII is
    English. A long text without known words is in an unsupported language.
    """
    hits = {
        language.code: sum(word in language.identifying for word in words) for language in load_languages()
    }
    best = max(hits, key=lambda code: hits[code])
    if hits[best] <= (0 if len(words) <= _FEW_WORDS else _SHARE * len(words)):
        plain = len(words) <= _FEW_WORDS and all(word.isascii() for word in words)
        best = _DEFAULT if plain else _UNKNOWN
    return next(language for language in load_languages() if language.code == best)


LETTER = "w"
COMBINING_MARK = "m"
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
_LAST_CACHED = 0x1FFFF  # bounds the memory for texts of rare characters
_NON_JOINER, _ZERO_WIDTH_JOINER = "\u200c", "\u200d"
_APOSTROPHES = "'\u2019"
_HYPHENS = "-\u2010\u2011"
_SENTENCE_ENDS = ".!?\n\u2026\u3002\uff01\uff1f\u061f\u06d4\u0964"


class _LazyTable(dict[int, str]):
    """Translation table for `str.translate`, filled on first use of each character."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, point: int) -> str:
        becomes = self._rule(chr(point))
        if point <= _LAST_CACHED:
            self[point] = becomes
        return becomes


def _normalize_character(char: str) -> str:
    """Remove controls, bidi marks and unassigned code points; replace white space with plain spaces."""
    if char in "\n\r\u2028\u2029":
        return "\n"
    if char.isspace():
        return " "
    if char in (_NON_JOINER, _ZERO_WIDTH_JOINER):
        return char
    return "" if unicodedata.category(char).startswith("C") else char


def _classify(char: str) -> str:
    category = unicodedata.category(char)
    if category.startswith("M"):
        return COMBINING_MARK
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


_CLASSES = _LazyTable(_classify)
_CLEANING = _LazyTable(_normalize_character)


def clean_text(text: str) -> str:
    """Return the text in composed form, without invisible characters and display controls."""
    return unicodedata.normalize("NFC", text).translate(_CLEANING)


def classify_characters(text: str) -> str:
    """Return one class letter for each character of a cleaned text."""
    return text.translate(_CLASSES)


def truncate_graphemes(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, without splitting a grapheme cluster."""
    if len(text) <= limit:
        return text
    drawn = classify_characters(text[: limit + 1])
    end = limit
    while end > 0 and (drawn[end] in COMBINING_MARK + JOINER + TONE + FLAG or drawn[end - 1] == JOINER):
        end -= 1
    return text[: end or limit].rstrip()


_APOSTROPHE_PATTERN = str.maketrans({"\u2019": "'", "\u02bc": "'"})


def find_no_risk_phrase(text: str) -> str:
    """Return the first phrase that excludes every risk, in lower case; empty without one.

    Phrases of the languages in `no_risk_phrases.toml` are recognized. Other wordings and languages are not.
    """
    said = " ".join(clean_text(text).casefold().translate(_APOSTROPHE_PATTERN).split())
    found = [match for pattern in _load_no_risk_patterns() if (match := pattern.search(said))]
    return min(found, key=re.Match.start).group().strip() if found else ""


@cache
def _load_no_risk_patterns() -> tuple[re.Pattern[str], ...]:
    document = resources.files(__package__).joinpath("no_risk_phrases.toml").read_text(encoding="utf-8")
    return tuple(re.compile(pattern) for each in tomllib.loads(document).values() for pattern in each)


_MAX_TOKENS = 1_500


@dataclass(frozen=True, slots=True)
class Token:
    """Word of a text.

    Attributes:
        text: the word.
        casefolded: the word in lower case.
        kind: the class of its first character.
        gap: the classes of the characters before it.
    """

    text: str
    casefolded: str
    kind: str
    gap: str

    @property
    def opens_clause(self) -> bool:
        """Return True if more than a space or a hyphen precedes it."""
        return bool(self.gap.strip(SPACE + HYPHEN))

    @property
    def opens_sentence(self) -> bool:
        """Return True if it is the first word of a sentence."""
        return SENTENCE in self.gap

    @property
    def is_capitalized(self) -> bool:
        """Return True if only its first letter is a capital."""
        return self.text[0].isupper() and self.text[1:2].islower()


def tokenize(text: str) -> list[Token]:
    """Return the first words of a cleaned text, up to a limit."""
    small = load_particles()
    kinds = classify_characters("".join(SPACE if char in small else char for char in text))
    tokens: list[Token] = []
    end = 0
    for match in islice(WORD.finditer(kinds), _MAX_TOKENS):
        word = text[match.start() : match.end()]
        gap = kinds[end : match.start()] if tokens else SENTENCE
        tokens.append(Token(word, word.casefold(), match.group()[0], gap))
        end = match.end()
    return tokens

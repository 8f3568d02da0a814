"""Supported languages with their phrases, and language detection."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

__all__ = ["HINTS", "MARK", "Language", "detect", "languages", "particles"]

MARK = "(offline, no model)"
"""Marker of offline text, to distinguish it from the output of a model."""

HINTS = ("scarce", "mounting", "dear", "wanted")
"""All hints that a word beside a term can give."""

_DEFAULT, _UNKNOWN = "en", "symbols"
_WORD = re.compile(r"[^\W\d_]+")
_SLOT = re.compile(r"\{\w+\}")
_FEW_WORDS = 8
_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class PeopleWords:
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
    def no_things(self) -> AbstractSet[str]:
        """Return the words that do not name a thing."""
        return self.verbs | self.parties.keys()

    @property
    def verbs(self) -> AbstractSet[str]:
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
    telling: frozenset[str]
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
    people: PeopleWords

    @property
    def counting(self) -> AbstractSet[str]:
        """Return the words for amounts and times, which do not name a thing."""
        return self.numbers.keys() | self.moments.keys() | self.percent


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("languages.toml").read_text(encoding="utf-8"))


@cache
def languages() -> tuple[Language, ...]:
    """Return all languages, including the one of symbols."""
    return tuple(_language(code, table) for code, table in _document().items() if isinstance(table, dict))


def _language(code: str, table: dict[str, Any]) -> Language:
    stop = frozenset(table["stop"].split())
    connecting = " ".join([*table["rules"].values(), *chain.from_iterable(table["prose"].values())])
    return Language(
        code=code,
        capitals=table["capitals"],
        head=table["head"],
        stop=stop,
        telling=stop | frozenset(_WORD.findall(_SLOT.sub("", connecting.casefold()))),
        determiners=frozenset(table["determiners"].split()),
        auxiliaries=frozenset(table["auxiliaries"].split()),
        weak=tuple(table["weak"].split()),
        numbers={word: int(number) for word, number in _pairs(table["numbers"])},
        units={word: float(number) for word, number in _pairs(table["units"])},
        moments={word: float(number) for word, number in _pairs(table["moments"])},
        past=frozenset(table["past"].split()),
        percent=frozenset(table["percent"].split()),
        hints={hint: frozenset(table[hint].split()) for hint in HINTS},
        rules=table["rules"],
        prose=table["prose"],
        people=_people(table.get("people", {})),
    )


def _people(table: Mapping[str, Any]) -> PeopleWords:
    said = {name: table.get(name, "") for name in PeopleWords.__annotations__}
    parties = {word: int(number) for word, number in _pairs(said.pop("parties"))}
    am = tuple(tuple(words.split()) for words in said.pop("am"))
    return PeopleWords(
        parties=parties, am=am, **{name: frozenset(words.casefold().split()) for name, words in said.items()}
    )


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the entries of "word=number word=number"."""
    for entry in text.casefold().split():
        word, _, number = entry.partition("=")
        yield word, number


def particles() -> frozenset[str]:
    """Return the characters that separate words in scripts without spaces."""
    return frozenset(_document()["particles"])


def detect(words: Sequence[str]) -> Language:
    """Return the most likely language of case-folded words, or the one of symbols.

    A short text without a known word counts as English if it is plain ASCII, because most plain ASCII is
    English. A long text without known words is in an unsupported language.
    """
    hits = {language.code: sum(word in language.telling for word in words) for language in languages()}
    best = max(hits, key=lambda code: hits[code])
    if hits[best] <= (0 if len(words) <= _FEW_WORDS else _SHARE * len(words)):
        plain = len(words) <= _FEW_WORDS and all(word.isascii() for word in words)
        best = _DEFAULT if plain else _UNKNOWN
    return next(language for language in languages() if language.code == best)

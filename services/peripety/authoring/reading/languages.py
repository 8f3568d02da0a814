"""The languages there is connecting text for, and how they are told apart."""

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
"""Stands in what is written here, so that nobody takes it for a model's work."""

HINTS = ("scarce", "mounting", "dear", "wanted")
"""What words beside a thing can hint at."""

_DEFAULT, _UNKNOWN = "en", "symbols"
_WORD = re.compile(r"[^\W\d_]+")
_SLOT = re.compile(r"\{\w+\}")
_FEW_WORDS = 8
_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class PeopleWords:
    """The words of a language that tell people from things, case-folded.

    Attributes:
        who: words that follow people only.
        relatives: words that follow any subject and make what it does part of its name.
        acts: verbs only people do.
        wishes: the same, unless negated.
        sayings: verbs people do mostly, and things now and then.
        be: forms of to be.
        states: what only people are, behind a form of to be.
        negations: words that negate.
        between: other words between a subject and what it does.
        links: words before a thing that is no subject.
        joins: words before a subject that opens no clause.
        inverted: words behind a verb that tell that its subject is still to come.
        owning: words between an owner and what is owned.
        articles: words before one thing.
        sole: words between an article and what somebody is.
        parties: words before several people who are alike, and how many are meant.
        am: what comes before what the player is, word by word.
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
        """Words that name no thing."""
        return self.verbs | self.parties.keys()

    @property
    def verbs(self) -> AbstractSet[str]:
        """All that tells what people do or are."""
        return self.acts | self.wishes | self.sayings | self.states


@dataclass(frozen=True, slots=True)
class Language:
    """What is known of one language: words without a subject, and connecting text around the user's words.

    Attributes:
        code: the language's name in `languages.toml`.
        capitals: what a capital inside a sentence tells: "names" or "nouns".
        head: which end of a row of words names the thing: "first", "last", or "none" when rows tell nothing.
        stop: words that carry no subject, case-folded.
        telling: words that tell the language: those, and the words of its own connecting text.
        determiners: stop words that announce a thing.
        auxiliaries: verbs that stand between a thing and what it does.
        weak: endings of words that rarely name a thing.
        numbers: words for numbers.
        units: words for units of time, each in hours.
        moments: words for moments to come, each in hours ahead.
        past: words beside a span that is over.
        percent: words for per cent.
        hints: words beside a thing that hint at the part it plays, by that hint.
        rules: connecting text of a scenario's rules, by use.
        prose: sentence patterns of the narration, by use.
        people: the words that tell people from things.
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
        """Words that tell how many or when, and name no thing."""
        return self.numbers.keys() | self.moments.keys() | self.percent


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("languages.toml").read_text(encoding="utf-8"))


@cache
def languages() -> tuple[Language, ...]:
    """All languages, the one of symbols among them."""
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
    """The entries of "word=number word=number"."""
    for entry in text.casefold().split():
        word, _, number = entry.partition("=")
        yield word, number


def particles() -> frozenset[str]:
    """Characters that separate words where a script writes no spaces."""
    return frozenset(_document()["particles"])


def detect(words: Sequence[str]) -> Language:
    """The language most of these case-folded words speak for, or the one of symbols.

    A short text with no telling word counts as English when it is plain ASCII, because that is what plain
    ASCII mostly is; a long one without telling words is in a language not known here.
    """
    hits = {language.code: sum(word in language.telling for word in words) for language in languages()}
    best = max(hits, key=lambda code: hits[code])
    if hits[best] <= (0 if len(words) <= _FEW_WORDS else _SHARE * len(words)):
        plain = len(words) <= _FEW_WORDS and all(word.isascii() for word in words)
        best = _DEFAULT if plain else _UNKNOWN
    return next(language for language in languages() if language.code == best)

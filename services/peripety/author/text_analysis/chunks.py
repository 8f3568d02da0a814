"""Noun phrases of a tagged text, each with its number, its possessor and the words around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peripety.author.text_analysis.phrases import Phrase
from peripety.author.text_analysis.words import find_currency, parse_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.author.text_analysis.words import Grammar, Word

_MASS = ("substance", "food", "feeling", "phenomenon.weather", "possession", "possession.money", "attribute", "Tops")


@dataclass(slots=True)
class Chunk:
    """Noun phrase between two places of a list of words.

    Attributes:
        start: the place of its first word, an article or a number included.
        end: the place after its last word.
        nouns: its nouns, without the name.
        names: its capitalized names.
        adjectives: its other words.
        before: the word before it; None at the start of a text.
        after: the word after it; None at the end of a text.
        count: its number; None without one.
        definite: the tag of its first word: "det", "poss", "num" or empty.
        currency: the lemma of the currency of its number; empty without one.
        owner: the phrase that owns it: "the town's" mill.
        of: the phrase that follows after "of".
    """

    start: int
    end: int
    nouns: list[Word] = field(default_factory=list)
    names: list[Word] = field(default_factory=list)
    adjectives: list[Word] = field(default_factory=list)
    before: Word | None = None
    after: Word | None = None
    count: float | None = None
    definite: str = ""
    article: str = ""
    currency: str = ""
    owner: Chunk | None = None
    of: Chunk | None = None

    @property
    def head(self) -> Word:
        """Return the word that names the thing or person."""
        return self.nouns[-1] if self.nouns else self.names[-1]

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the classes of its head."""
        return self.head.classes

    @property
    def sense(self) -> str:
        """Return the most frequent class of its head; empty if unknown."""
        return self.head.classes[0] if self.head.classes else ""

    @property
    def is_plural(self) -> bool:
        """Return True if its head is in the plural."""
        head = self.head
        return head.tag == "noun" and head.low != head.lemma.lower() and not head.low.endswith("ing")

    @property
    def name(self) -> str:
        """Return the proper name; empty without one."""
        return " ".join(word.text for word in self.names)

    def has_class(self, *names: str) -> bool:
        """Return True if a class of the head is one of the names or narrower."""
        return any(each == name or each.startswith(f"{name}.") for each in self.classes for name in names)

    def is_first_class(self, *names: str) -> bool:
        """Return True if the most frequent class of the head is one of the names or narrower."""
        return any(self.sense == name or self.sense.startswith(f"{name}.") for name in names)

    def to_phrase(self) -> Phrase:
        """Return the phrase without article and number; its head is singular."""
        if not self.nouns:
            return Phrase(self.name, self.name, is_proper=True, sense=self.sense.partition(".")[0])
        inner = sorted(
            [*self.adjectives, *self.nouns[:-1]],
            key=lambda word: word.start,
        )
        first = [word for word in inner if word.start < self.head.start]
        last = [word for word in inner if word.start > self.head.start]
        text = " ".join([*(word.low if word.tag != "name" else word.text for word in first), self.head.lemma])
        text = " ".join([text, *(word.low for word in last)])
        return Phrase(
            text,
            self.head.lemma,
            is_plural=self.is_plural,
            is_mass=not self.is_plural
            and self.definite in ("", "poss")
            and self.count is None
            and self.is_first_class(*_MASS),
            sense=self.sense.partition(".")[0],
        )


def find_chunks(words: Sequence[Word], grammar: Grammar) -> list[Chunk]:
    """Return the noun phrases of tagged words, in order."""
    chunks: list[Chunk] = []
    place = 0
    while place < len(words):
        chunk = _read_chunk(words, place, grammar)
        if chunk is None:
            place += 1
            continue
        before = words[place - 1] if place else None
        previous = chunks[-1] if chunks else None
        if previous is not None and before is not None and previous.end == place - 1:
            if before.tag == "owner":
                chunk.owner = previous
            elif before.low in grammar.words("things", "of"):
                previous.of = chunk
        chunk.before = before
        chunk.after = words[chunk.end] if chunk.end < len(words) else None
        chunks.append(chunk)
        place = chunk.end
    return chunks


def _read_chunk(words: Sequence[Word], start: int, grammar: Grammar) -> Chunk | None:
    """Return the noun phrase that starts at a place; None without one."""
    chunk = Chunk(start, start)
    place = start
    while place < len(words) and words[place].tag in ("det", "poss", "num"):
        word = words[place]
        chunk.definite = chunk.definite or word.tag
        chunk.article = chunk.article or word.low
        if word.tag == "num" and not word.text.endswith("%"):
            value = parse_number(word, grammar)
            chunk.count = value if chunk.count is None or value is None else chunk.count * value
            chunk.currency = chunk.currency or find_currency(word)
        place += 1
    while place < len(words) and _may_modify(words, place):
        if words[place].tag == "adj":
            chunk.adjectives.append(words[place])
        place += 1
    head = place
    while place < len(words) and words[place].is_noun:
        word = words[place]
        if word.low in grammar.pairs("times", "points") and chunk.nouns:
            break
        if word.tag == "noun" and chunk.names:
            break
        if (
            word.tag == "noun"
            and chunk.nouns
            and grammar.adjectives_after
        ):
            break
        (chunk.names if word.tag == "name" else chunk.nouns).append(word)
        place += 1
    if grammar.adjectives_after:
        while place < len(words) and words[place].tag == "adj":
            chunk.adjectives.append(words[place])
            place += 1
    if place == head and chunk.currency:
        chunk.end = place
        money = words[place - 1]
        chunk.nouns = [type(money)(money.text, money.low, "noun", chunk.currency, money.start, money.end)]
        chunk.nouns[0].classes = ("quantity.money",)
        return chunk
    if place == head:
        return None
    chunk.end = place
    return chunk


def _may_modify(words: Sequence[Word], place: int) -> bool:
    """Return True for an adjective, or an adverb before one, that a noun follows."""
    if words[place].tag not in ("adj", "adv"):
        return False
    while place < len(words) and words[place].tag in ("adj", "adv", "mark"):
        if words[place].tag == "mark" and words[place].text != ",":
            return False
        place += 1
    return place < len(words) and words[place].is_noun and words[place - 1].tag != "mark" and words[place - 1].tag == "adj"


def find_chunk_at(chunks: Sequence[Chunk], place: int) -> Chunk | None:
    """Return the noun phrase that covers a place."""
    return next((chunk for chunk in chunks if chunk.start <= place < chunk.end), None)


def iter_after(chunks: Sequence[Chunk], place: int) -> Iterator[Chunk]:
    """Yield the noun phrases that start at a place or later."""
    return (chunk for chunk in chunks if chunk.start >= place)

"""Parts of a reading, and the noun phrases of a tagged text that they come from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from peripety.author.text_analysis.words import find_currency, parse_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.author.text_analysis.words import Grammar, Word


_FIRST_UNSPACED = "\u3400"
_MASS = (
    "substance",
    "food",
    "feeling",
    "phenomenon.weather",
    "possession",
    "possession.money",
    "attribute",
    "Tops",
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """Noun phrase of the user.

    Attributes:
        text: its words without an article; the head is singular if it can be counted.
        head: the lemma of its head noun.
        is_plural: True if the text has it in the plural.
        is_mass: True if its head cannot be counted.
        is_proper: True if it is a name.
        sense: the lexicographer class of its head, such as "artifact"; empty if unknown.
        belongs: "player" or "other", by the possessive before it; empty without one.
        gender: "m", "f" or "n" by its article in a German text; empty where the text does not show it.
    """

    text: str
    head: str
    is_plural: bool = False
    is_mass: bool = False
    is_proper: bool = False
    sense: str = ""
    belongs: str = ""
    gender: str = ""


@dataclass(frozen=True, slots=True)
class Person:
    """Person or group of persons.

    Attributes:
        name: the name; empty if only a role is known.
        role: the role; empty if only a name is known.
        is_group: True if it is a group.
        count: the number of persons.
        side: "against" the player, "absent", or "unable" to help; empty for one that may help.
        is_plural: True if the text has it in the plural.
        wish: the verb phrase of what the person wants to do or to be done, such as "turn back".
        refusal: the verb phrase of what the person refuses to do.
        doubts: True if the person contradicts the player, or has another wish.
        leaves: True if the person may leave the player.
        owner: the words before the role that name whose person it is: "the head's", without its article.
    """

    name: str
    role: str
    is_group: bool = False
    count: int = 1
    side: str = ""
    is_plural: bool = False
    wish: str = ""
    doubts: bool = False
    refusal: str = ""
    leaves: bool = False
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """Act that the player wants to do.

    Attributes:
        verb: the lemma of the verb.
        object: what the verb acts on; None without an object.
        text: the verb phrase, as an infinitive without "to". The player is in the second person.
        particle: the word that belongs to the verb, such as "out" in "hold out"; empty without one.
        is_implied: True if it follows from the situation, without words of the text.
        stopped: the person, group or animal whose act is to be prevented; None without one.
    """

    verb: str
    object: Phrase | None
    text: str
    particle: str = ""
    is_implied: bool = False
    stopped: Phrase | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """Time that the player has.

    Attributes:
        amount: the number of units; 0 if the time ends with an event or on a date.
        unit: the English lemma of the unit, such as "day"; empty for an event.
        text: the words of the user.
    """

    amount: float
    unit: str
    text: str


@dataclass(frozen=True, slots=True)
class Amount:
    """Number in the text.

    Attributes:
        value: the number.
        unit: the lemma of the unit; empty for a count.
        of: what is counted or measured; None if unknown.
        text: the words of the user.
    """

    value: float
    unit: str
    of: Phrase | None
    text: str


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
        belongs: "player" or "other", by the possessive before it; empty without one.
        gender: "m", "f" or "n" by its German article; empty where the text does not show it.
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
    currency: str = ""
    owner: Chunk | None = None
    of: Chunk | None = None
    belongs: str = ""
    gender: str = ""

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

    def is_after(self, *tags: str) -> bool:
        """Return True if the word before it has one of the tags."""
        return self.before is not None and self.before.tag in tags

    def has_class(self, *names: str) -> bool:
        """Return True if a class of the head is one of the names or narrower."""
        return any(each == name or each.startswith(f"{name}.") for each in self.classes for name in names)

    def is_first_class(self, *names: str) -> bool:
        """Return True if the most frequent class of the head is one of the names or narrower."""
        return any(self.sense == name or self.sense.startswith(f"{name}.") for name in names)

    def to_phrase(self) -> Phrase:
        """Return the phrase without article and number; its head is singular."""
        if not self.nouns:
            # A name with an article is one of a region or a thing.
            return Phrase(
                self.name,
                self.name,
                is_proper=self.definite != "det",
                sense=self.sense.partition(".")[0],
                belongs=self.belongs,
            )
        # The ending of a German adjective depends on the article, which is not part of the phrase.
        adjectives = [word for word in self.adjectives if not self.head.text.istitle()]
        inner = sorted([*adjectives, *self.nouns[:-1]], key=lambda word: word.start)
        first = [word for word in inner if word.start < self.head.start]
        last = [word for word in inner if word.start > self.head.start]
        gap = "" if self.head.text >= _FIRST_UNSPACED else " "
        text = gap.join(
            [
                *(word.text if word.tag == "name" or _is_origin(word) else word.low for word in first),
                self.head.lemma,
            ]
        )
        text = gap.join([text, *(word.lemma for word in last)])
        return Phrase(
            text,
            self.head.lemma,
            is_plural=self.is_plural,
            is_mass=not self.is_plural
            and self.definite in ("", "poss")
            and self.count is None
            and self.is_first_class(*_MASS),
            sense=self.sense.partition(".")[0],
            belongs=self.belongs,
            gender=self.gender,
        )


def _is_origin(word: Word) -> bool:
    """Return True for an adjective with a capital, such as one of a country."""
    return word.tag == "adj" and word.is_capitalized and not word.first and not word.text.isupper()


def find_chunks(words: Sequence[Word], grammar: Grammar) -> list[Chunk]:
    """Return the noun phrases of tagged words, in order."""
    chunks: list[Chunk] = []
    place = 0
    while place < len(words):
        chunk = _ChunkReader(words, place, grammar).read()
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
        chunk.belongs = _find_possessor(chunk, words, grammar)
        chunk.gender = grammar.pairs("things", "genders").get(words[place].low, "")
        chunks.append(chunk)
        place = chunk.end
    return chunks


def _find_possessor(chunk: Chunk, words: Sequence[Word], grammar: Grammar) -> str:
    """Return "player" or "other" for a phrase with a possessive; empty for another phrase."""
    if words[chunk.start].tag == "poss":
        own = grammar.pairs("perspective", "words")
        low = words[chunk.start].low
        return "player" if low in own or low in own.values() else "other"
    bad = grammar.words("things", "bad") if not chunk.has_class("person", "group.people") else frozenset()
    if any(word.low in bad for word in (*chunk.adjectives, *chunk.nouns[:-1])):
        return "other"
    if chunk.before is None or chunk.before.tag != "owner":
        return ""
    if chunk.owner is None:
        is_player = chunk.start > 1 and words[chunk.start - 2].tag == "player"
        return "player" if is_player else "other"
    # A thing of the player's persons is the player's.
    return "player" if _is_of_player(chunk.owner, words) else "other"


def _is_of_player(chunk: Chunk, words: Sequence[Word]) -> bool:
    before = words[chunk.start - 1] if chunk.start else None
    return chunk.belongs == "player" or (before is not None and before.tag == "player")


class _ChunkReader:
    """Reader of the noun phrase that may start at a place."""

    def __init__(self, words: Sequence[Word], start: int, grammar: Grammar) -> None:
        self._words, self._grammar = words, grammar
        self._place = start
        self._chunk = Chunk(start, start)

    def read(self) -> Chunk | None:
        """Return the noun phrase; None without one."""
        self._read_articles()
        while self._may_modify(self._place):
            self._read_adjective()
        head = self._place
        while self._continues() or self._names_a_family():
            word = self._words[self._place]
            if word.tag == "noun" and self._chunk.names:
                # The name is that of a family: "the Gamma sisters".
                self._chunk.nouns, self._chunk.names = [*self._chunk.names], []
            (self._chunk.names if word.tag == "name" else self._chunk.nouns).append(word)
            self._place += 1
        if self._place == head:
            return self._read_money()
        while self._grammar.adjectives_after and self._has_tag("adj") and not self._has_object(self._place):
            self._read_adjective()
        self._chunk.end = self._place
        return self._chunk

    def _has_tag(self, *tags: str) -> bool:
        return self._place < len(self._words) and self._words[self._place].tag in tags

    def _read_articles(self) -> None:
        chunk = self._chunk
        while self._has_tag("det", "poss", "num", "measure"):
            word = self._words[self._place]
            chunk.definite = chunk.definite or word.tag.replace("measure", "num")
            if word.tag == "num" and not word.text.endswith("%"):
                value = parse_number(word, self._grammar)
                chunk.count = value if chunk.count is None or value is None else chunk.count * value
                chunk.currency = chunk.currency or find_currency(word)
            self._place += 1

    def _has_object(self, place: int) -> bool:
        """Return True for a word before an article, which is the verb of an object."""
        return place + 1 < len(self._words) and self._words[place + 1].tag in ("det", "poss")

    def _read_adjective(self) -> None:
        word = self._words[self._place]
        if word.tag == "adj" and word.low not in self._grammar.words("things", "pointing"):
            self._chunk.adjectives.append(word)
        self._place += 1

    def _continues(self) -> bool:
        """Return True if the word at the place is a further noun of the phrase."""
        if not self._has_tag("noun", "name"):
            return False
        word, nouns = self._words[self._place], self._chunk.nouns
        moment = word.low in self._grammar.pairs("times", "points") and bool(nouns)
        noun_after = word.tag == "noun" and (self._chunk.names or (nouns and self._grammar.adjectives_after))
        harms = self._grammar.words("things", "harm") if self._grammar.code == "zh" else frozenset()
        # The time of a sentence is before its subject: "this year Gamma has one".
        timed = word.tag == "name" and bool(nouns) and nouns[-1].classes[:1] == ("time",)
        harm = bool(nouns) and (word.low in harms or nouns[-1].low in harms)
        return not moment and not noun_after and not timed and not harm

    def _names_a_family(self) -> bool:
        """Return True for a plural of persons, or one thing, right after a name with an article."""
        is_marked = self._chunk.definite == "det" or bool(self._chunk.adjectives)
        if self._grammar.code != "en" or not self._has_tag("noun") or not is_marked:
            return False
        word, (name, *others) = self._words[self._place], [*self._chunk.names, None]
        is_plural = word.low != word.lemma and word.classes[:1] == ("person",)
        # A name right after "a" belongs to a thing: "a Gamma pump".
        is_kind = self._words[self._chunk.start].low in ("a", "an") and word.classes[:1] != ("person",)
        is_plural = is_plural or is_kind
        return name is not None and others == [None] and not self._chunk.nouns and is_plural

    def _may_modify(self, place: int) -> bool:
        """Return True for an adjective, or an adverb before one, that a noun follows."""
        row: list[Word] = []
        for word in self._words[place:]:
            if word.tag not in ("adj", "adv") and word.text != ",":
                return word.is_noun and bool(row) and row[-1].tag == "adj" and row[0].text != ","
            row.append(word)
        return False

    def _read_money(self) -> Chunk | None:
        """Return an amount of money without a noun, such as "$40"; None without one."""
        chunk = self._chunk
        if not chunk.currency:
            return None
        number = self._words[self._place - 1]
        unit = replace(number, low=chunk.currency, tag="noun", lemma=chunk.currency)
        unit.classes = ("quantity.money",)
        chunk.nouns, chunk.end = [unit], self._place
        return chunk


def find_chunk_at(chunks: Sequence[Chunk], place: int) -> Chunk | None:
    """Return the noun phrase that covers a place."""
    return next((chunk for chunk in chunks if chunk.start <= place < chunk.end), None)

"""Words of a text with their tags: function words by a table, other words by their senses and their neighbours."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import simplemma

from peripety.author.text_analysis.senses import find_classes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_WORD = re.compile(
    r"[$\u20ac\u00a3\u00a5]?\d+(?:[.,:]\d+)*%?|[^\W\d_]+(?:[-'\u2019][^\W\d_]+)*|[.!?\u2026]+|\n+|[,;:()\u2013\u2014\"%&/]|[^\w\s]"
)
_CLITIC = re.compile(r"(n't|'(?:s|m|re|ve|ll|d))$")
_CURRENCIES = {"$": "dollar", "\u20ac": "euro", "\u00a3": "pound", "\u00a5": "yen"}
_SENTENCE_END = re.compile(r"[.!?\u2026\n]+")

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
        tables: the sections of the language; a value is a set of words, a mapping of words, or a list.
    """

    code: str
    tags: Mapping[str, str]
    numbers: Mapping[str, float]
    adjectives_after: bool = False
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def words(self, section: str, name: str) -> frozenset[str]:
        """Return a set of words of a section."""
        return self.tables.get(section, {}).get(name, frozenset())

    def pairs(self, section: str, name: str) -> Mapping[str, str]:
        """Return a mapping of words of a section."""
        return self.tables.get(section, {}).get(name, {})

    def rows(self, section: str) -> Mapping[str, Sequence[tuple[str, ...]]]:
        """Return the lists of word sequences of a section."""
        return self.tables.get(section, {})


@cache
def load_grammars() -> Mapping[str, Grammar]:
    """Return the tables of all languages, by code."""
    document = tomllib.loads(resources.files(__package__).joinpath("reading.toml").read_text(encoding="utf-8"))
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
    digits = word.text.strip("$\u20ac\u00a3\u00a5%")
    if not digits[:1].isdigit() or ":" in digits:
        return None
    grouped = re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", digits)
    return float(re.sub(r"[.,]", "", digits)) if grouped else float(re.sub(r"[^\d.]", "", digits.replace(",", ".")) or 0)


def find_currency(word: Word) -> str:
    """Return the lemma of the currency of a number such as "$40"; empty without one."""
    return _CURRENCIES.get(word.text[:1], "")


@cache
def find_lemmas(low: str, code: str) -> tuple[str, ...]:
    """Return the possible base forms of a word, the word itself first."""
    base = simplemma.lemmatize(low, lang=code)
    return (low,) if base.lower() == low else (low, base)


def tag_words(text: str, grammar: Grammar) -> list[Word]:
    """Return the words of a text with tags and lemmas."""
    words = split_words(text)
    if grammar.code == "en":
        for left, word in zip([None, *words], words, strict=False):
            if not word.tag:
                word.tag = _find_fixed_tag(word, left, grammar)
        for place in range(len(words)):
            if not words[place].tag:
                _EnglishTagger(words, place, grammar).tag()
        _mark_short_forms(words)
    return words


def _find_fixed_tag(word: Word, left: Word | None, grammar: Grammar) -> str:
    word.lemma = word.low
    if word.text[0].isdigit() or (word.text[0] in _CURRENCIES and len(word.text) > 1):
        return "num"
    if word.low == "only" and left is not None and left.tag in ("det", "poss"):
        return "adj"
    if word.low in ("n't", "'ll", "'d", "'ve"):
        return {"n't": "neg", "'ve": "have"}.get(word.low, "modal")
    return grammar.tags.get(word.low, "")


def _mark_short_forms(words: Sequence[Word]) -> None:
    """Decide whether each "'s" is a verb or marks an owner."""
    for place, word in enumerate(words):
        if word.low == "'s" and place:
            before, after = words[place - 1], words[place + 1] if place + 1 < len(words) else None
            owner = before.is_noun and after is not None and (after.is_noun or after.tag in ("adj", "num"))
            word.tag, word.lemma = ("owner", "'s") if owner else ("be", "be")


_AFTER_VERB = ("det", "poss", "player", "pron", "num")
_BEFORE_NOUN = ("det", "poss", "num", "adj", "prep", "owner")


class _EnglishTagger:
    """Choice of a tag for one word between tagged words on its left and untagged ones on its right."""

    def __init__(self, words: Sequence[Word], place: int, grammar: Grammar) -> None:
        self._words, self._place, self._grammar = words, place, grammar
        self._word = words[place]
        self._left = words[place - 1] if place else None
        self._right = words[place + 1] if place + 1 < len(words) else None
        self._lemmas = find_lemmas(self._word.low, "en")
        self._noun = self._find_lemma("noun")
        self._verb = self._find_lemma("verb")
        self._adjective = self._find_lemma("adjective") if self._lemmas[0] == self._word.low else ""

    def tag(self) -> None:
        """Set the tag, the lemma and the classes of the word."""
        word = self._word
        kind = self._choose()
        lemma = {"noun": self._noun, "verb": self._verb}.get(kind, word.low) or word.low
        if kind == "name":
            lemma = word.text
            word.classes = tuple(each.partition(".")[2] for each in find_classes(word.text))
        elif kind in ("noun", "verb"):
            word.classes = tuple(
                name.partition(".")[2] for name in find_classes(lemma) if name.startswith(kind)
            )
        word.tag, word.lemma = kind, lemma

    def _find_lemma(self, kind: str) -> str:
        """Return the lemma that the word can have in a kind; empty if it cannot have it."""
        for lemma in self._lemmas:
            if any(name.startswith(kind) for name in find_classes(lemma)):
                return lemma
        return self._strip_ending() if kind == "noun" else ""

    def _strip_ending(self) -> str:
        low = self._word.low
        for ending, other in (("ies", "y"), ("es", ""), ("s", "")):
            lemma = low.removesuffix(ending) + other
            if low.endswith(ending) and any(name.startswith("noun") for name in find_classes(lemma)):
                return lemma
        return ""

    def _rank(self, kind: str, lemma: str) -> int:
        """Return the rank of a kind among those of its lemma; a large one if the word cannot have it."""
        kinds = [name.partition(".")[0] for name in find_classes(lemma)] if lemma else []
        return kinds.index(kind) if kind in kinds else 9

    def _choose(self) -> str:
        word, left = self._word, self._left
        if self._is_name():
            return "name"
        if not (self._noun or self._verb or self._adjective):
            return self._guess_unknown()
        form = self._verb_form()
        if left is not None and left.tag in ("to", "modal") and self._verb:
            return "verb"
        if left is not None and left.tag in ("player", "pron", "neg", "adv", "wh") and self._is_verb_after_subject():
            return "verb"
        if word.first or self._opens_fragment():
            return self._choose_first(form)
        if left is not None and left.tag in _BEFORE_NOUN:
            return self._choose_in_phrase(form)
        if left is not None and left.tag in ("be", "have"):
            return self._choose_after_be(form)
        if left is not None and left.is_noun:
            return self._choose_after_noun(form)
        return self._choose_alone(form)

    def _is_name(self) -> bool:
        word = self._word
        if not word.is_capitalized or word.text == "I":
            return False
        known = self._noun or self._verb or self._adjective
        if word.first or (self._left is not None and self._left.text in '"'):
            return not known
        return not word.text.isupper() or len(word.text) > 1

    def _guess_unknown(self) -> str:
        low = self._word.low
        if "-" in low:
            last = low.rpartition("-")[2]
            classes = find_classes(find_lemmas(last, "en")[-1])
            if classes and classes[0].startswith("noun") and not low.endswith(("ed", "ing")):
                self._noun = low
                return "noun" if not self._noun_follows() else "adj"
            return "adj"
        if low.endswith("ly"):
            return "adv"
        if low.endswith("ing"):
            return "adj" if self._noun_follows() else "verb"
        if low.endswith("ed"):
            return "adj" if self._noun_follows() else "verb"
        self._noun = self._lemmas[-1]
        return "noun"

    def _verb_form(self) -> str:
        """Return "base", "s", "ing", "ed", or empty for a word that is no verb."""
        low = self._word.low
        if not self._verb:
            return ""
        if low == self._verb:
            return "base"
        return "ing" if low.endswith("ing") else "s" if low.endswith("s") else "ed"

    def _noun_follows(self) -> bool:
        """Return True if the next word can be a noun or an adjective of the same phrase."""
        right = self._right
        if right is None or right.tag in ("mark", "end"):
            return False
        if right.tag:
            return False
        if right.is_capitalized:
            return True
        return any(
            name.startswith(("noun", "adjective"))
            for lemma in find_lemmas(right.low, "en")
            for name in find_classes(lemma)[:1]
        ) or right.low.endswith(("s",))

    def _is_verb_after_subject(self) -> bool:
        if not self._verb:
            return False
        left = self._left
        assert left is not None
        if left.tag in ("player", "pron"):
            if left.low in ("us", "me", "him", "them", "her", "one", "ones"):
                return self._rank("verb", self._verb) == 0
            return self._rank("adjective", self._word.low) > 0 or self._verb_form() != "base"
        return self._rank("verb", self._verb) == 0 and self._verb_form() != "ing"

    def _opens_fragment(self) -> bool:
        left = self._left
        opener = left is not None and left.low in self._grammar.words("goals", "openers")
        return opener and (self._words[self._place - 1].first or left is not None and left.low != "and")

    def _choose_first(self, form: str) -> str:
        right = self._right
        if form == "base":
            takes = right is not None and (
                right.tag in (*_AFTER_VERB, "prep", "adv", "neg", "wh") or right.is_capitalized
            )
            if right is not None and right.tag in _AFTER_VERB and right.low != "one":
                return "verb"
            if self._rank("verb", self._verb) == 0 or (takes and self._rank("verb", self._verb) <= 2):
                if not (self._rank("noun", self._noun) == 0 and right is not None and right.tag == "prep"):
                    return "verb"
        if form == "ing":
            return "adj" if self._noun_follows() and self._rank("noun", self._word.low) == 9 and False else "verb"
        if self._adjective and self._noun_follows():
            return "adj"
        if form == "ed" and self._noun_follows():
            return "adj"
        return self._best(form)

    def _choose_in_phrase(self, form: str) -> str:
        right = self._right
        if form == "s" and self._left is not None and self._left.tag == "num" and right is not None and right.low == "to":
            return "verb"
        follows = self._noun_follows()
        adjective = self._rank("adjective", self._word.low)
        noun = self._rank("noun", self._noun)
        left = self._left
        if form in ("ing", "ed") and self._word.low != self._noun:
            if left is not None and left.tag == "prep" and not follows:
                return "verb"
            return "adj" if follows or noun == 9 else "noun"
        if form == "ing" and left is not None and left.tag == "prep" and self._right is not None and self._right.tag in _AFTER_VERB:
            return "verb"
        if follows and adjective < noun:
            return "adj"
        if noun < 9:
            return "noun"
        if adjective < 9:
            return "adj"
        return "adj" if form in ("ing", "ed") else self._best(form)

    def _choose_after_be(self, form: str) -> str:
        if self._noun_follows() and self._rank("adjective", self._word.low) < 9:
            return "adj"
        if form in ("ing", "ed"):
            return "adj" if self._noun_follows() and form == "ed" else "verb"
        if self._rank("adjective", self._word.low) < self._rank("noun", self._noun):
            return "adj"
        return "noun" if self._noun else self._best(form)

    def _choose_after_noun(self, form: str) -> str:
        left, right = self._left, self._right
        assert left is not None
        plural_left = left.low != left.lemma and left.tag == "noun"
        verb, noun = self._rank("verb", self._verb), self._rank("noun", self._noun)
        if form == "s" and not plural_left:
            taking = right is not None and (right.tag in (*_AFTER_VERB, "to", "mark", "end", "prep", "poss"))
            if verb == 0 or (taking and right is not None and right.tag in (*_AFTER_VERB, "to") and verb < 9):
                return "verb"
        if form == "base" and plural_left and verb < 9 and (verb <= noun or (right is not None and right.tag in (*_AFTER_VERB, "prep"))):
            return "verb"
        if form == "ed":
            return "verb" if verb <= noun else "noun"
        if form == "ing":
            return "verb" if noun > 0 or self._word.low != self._noun else "noun"
        if form == "base" and left.tag == "name" and verb < noun:
            return "verb"
        if form == "base" and verb < noun and right is not None and right.tag in (*_AFTER_VERB, "prep", "adv"):
            return "verb"
        if form == "base" and verb == 0 and right is not None and right.low.endswith("ing"):
            return "verb"
        if self._rank("adjective", self._word.low) < noun and not self._noun_follows():
            return "adj"
        return "noun" if noun < 9 else self._best(form)

    def _choose_alone(self, form: str) -> str:
        if self._adjective and self._noun_follows() and self._rank("adjective", self._word.low) <= min(
            self._rank("noun", self._noun), 8
        ):
            return "adj"
        if form in ("ing", "ed") and self._noun_follows() and self._rank("noun", self._word.low) == 9:
            return "adj"
        return self._best(form)

    def _best(self, form: str) -> str:
        ranks = {
            "verb": self._rank("verb", self._verb),
            "noun": self._rank("noun", self._noun),
            "adj": self._rank("adjective", self._word.low),
            "adv": self._rank("adverb", self._word.low),
        }
        if form in ("ing", "ed") and self._word.low != self._noun:
            ranks["verb"] = min(ranks["verb"], 0)
        best = min(ranks, key=lambda kind: ranks[kind])
        return best if ranks[best] < 9 else "noun"

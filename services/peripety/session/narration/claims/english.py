"""English of narrations: phrases, sentences, numerals, verbs, words of the grammar, and names.

Only plain statements in the present of the story are claims. Questions, quoted and reported speech,
conditions, wishes, plans, memories and comparisons are not: they may be false in a true story.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


SPOKEN = "\u201c\u201d"
"""Replacement of quoted speech."""

_CACHED_PATTERNS = 4_096
_SLOT = re.compile(r"@(\w+)")
_OPENING = {'"': '"', "\u201c": "\u201d", "\u00ab": "\u00bb"}
# A single mark closes a speech behind punctuation, and a quotation of a few words anywhere.
_SINGLE = r"(?<!\w)[\u2018'](?!(?i:tis|twas|em|til|cause|round|n)\b)(?=\w)"
_PLAIN = r"[^\s'\u2018\u2019.!?\u2026]"
_FEW_WORDS = re.compile(rf"{_SINGLE}{_PLAIN}+(?: {_PLAIN}+){{0,2}}['\u2019](?!\w)")
_FEW_OPEN = re.compile(rf"(?<!\w)[\u2018'](?:\w{_PLAIN}*(?: {_PLAIN}*){{0,2}}['\u2019]?)?$")
_QUOTED = (
    r'"[^"]*(?:"|$)',
    "\u201c[^\u201d]*(?:\u201d|$)",
    "\u00ab[^\u00bb]*(?:\u00bb|$)",
    _FEW_WORDS.pattern,
    rf"{_SINGLE}[^\n]*?(?:(?<=[.,!?;:\u2026\u2013\u2014-])['\u2019](?!\w)|$|(?=\n))",
)
_QUOTES = re.compile("|".join(_QUOTED))
_SINGLE_OPENING = re.compile(_SINGLE)
_SINGLE_CLOSING = re.compile(r"(?<=[.,!?;:\u2026\u2013\u2014-])['\u2019](?!\w)|\n")
_SENTENCE_END = re.compile(r"[.!?\u2026]+[\"\u201d\u00bb\u2019')]*|(?=\n)")
_ENDS = ".!?\u2026\n"
_CLOSERS = "\"\u201d\u00bb\u2019')"


@cache
def load_toml(name: str) -> Mapping[str, Any]:
    """Return the content of a TOML file of this package."""
    return tomllib.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))


@lru_cache(maxsize=_CACHED_PATTERNS)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


class Phrases:
    """Phrases of one section of `phrases.toml`, with the slots that all of them share.

    Args:
        section: name of the section.
        slots: patterns of slots.
    """

    def __init__(self, section: str, slots: Mapping[str, str] | None = None) -> None:
        self._entries: Mapping[str, Any] = load_toml("phrases.toml")[section]
        self._slots = dict(slots or {})

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list of words."""
        return tuple(self._entries[name])

    def add_slots(self, **slots: str) -> None:
        """Add slots that all phrases share."""
        self._slots |= slots

    def search(self, name: str, text: str, **slots: str) -> re.Match[str] | None:
        """Return the first match of any phrase of a name in a text."""
        return next(self.find_all(name, text, **slots), None)

    def find_all(self, name: str, text: str, **slots: str) -> Iterator[re.Match[str]]:
        """Yield the matches of all phrases of a name in a text."""
        phrases = self._entries[name]
        for phrase in [phrases] if isinstance(phrases, str) else phrases:
            yield from _compile(self._fill(phrase, slots)).finditer(text)

    def _fill(self, phrase: str, slots: Mapping[str, str]) -> str:
        if "@" not in phrase:
            return phrase

        def value(found: re.Match[str]) -> str:
            name = found[1]
            known = slots.get(name, self._slots.get(name))
            return self._fill(self._entries[name], slots) if known is None else known

        return _SLOT.sub(value, phrase)


_PHRASES = Phrases("english")


class SentenceBuffer:
    """Splitter of streamed prose into sentences; a sentence never ends inside quoted speech."""

    def __init__(self) -> None:
        self._text = ""
        self._scanned = 0
        self._closing = ""

    @property
    def rest(self) -> str:
        """The beginning of the sentence that is not complete."""
        return self._text

    @property
    def may_have_ended(self) -> bool:
        """True if the sentence is complete unless its last characters belong to a word or a numeral."""
        return self._text.rstrip(_CLOSERS).endswith(tuple(_ENDS))

    def feed(self, text: str) -> Iterator[str]:
        """Add text; yield the sentences that are complete now, with the space behind them."""
        self._text += text
        while (end := self._find_end()) is not None:
            sentence, self._text = self._text[:end], self._text[end:]
            self._scanned, self._closing = 0, ""
            yield sentence

    def finish(self) -> str:
        """Return the last sentence; empty if there is none."""
        sentence, self._text = self._text, ""
        self._scanned, self._closing = 0, ""
        return sentence

    def _find_end(self) -> int | None:
        """Return the end of the first sentence, or None if more text could belong to it."""
        text = self._text
        while self._scanned < len(text):
            place = self._scanned
            character = text[place]
            if self._closing == "'":
                closed = _SINGLE_CLOSING.match(text, place)
                if closed and character != "\n" and place + 1 == len(text):
                    return None  # the next character decides
                start = place + 1 + len(text[place + 1 :]) - len(text[place + 1 :].lstrip())
                if closed and character != "\n" and text[place - 1] in _ENDS and start > place + 1:
                    return start if start < len(text) else None
                self._closing = "" if closed else self._closing
            elif self._closing:
                self._closing = "" if character in {self._closing, "\n"} else self._closing
            elif character in _OPENING:
                self._closing = _OPENING[character]
            elif character in "'\u2018" and _FEW_OPEN.match(text, place):
                return None  # the next words decide
            elif character in "'\u2018" and _SINGLE_OPENING.match(text, place):
                few = _FEW_WORDS.match(text, place)
                self._closing = "" if few else "'"
                self._scanned = few.end() - 1 if few else place
            elif found := _SENTENCE_END.match(text, place):
                end = found.end()
                start = end + len(text[end:]) - len(text[end:].lstrip())
                if start == len(text):
                    return None
                if start > end:
                    return start
            self._scanned += 1
        return None


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    buffer = SentenceBuffer()
    return [*buffer.feed(text), *filter(None, [buffer.finish()])]


def remove_speech(sentence: str) -> str:
    """Replace quoted speech with empty quotes."""
    return _QUOTES.sub(SPOKEN, sentence)


def is_question(sentence: str) -> bool:
    """Return True if a sentence without its quoted speech is a question."""
    return sentence.rstrip(" \n\u2019')").endswith("?")


def is_unreal(sentence: str) -> bool:
    """Return True if a sentence describes conditions, wishes, dreams or memories."""
    return _PHRASES.search("unreal", sentence) is not None


def is_unsure(clause: str) -> bool:
    """Return True if a clause describes a possibility, the future or an earlier past."""
    return _PHRASES.search("unsure", clause) is not None


def is_negative(clause: str) -> bool:
    """Return True if a clause has a negation."""
    plain = clause
    for found in _PHRASES.find_all("not_negative", clause):
        plain = plain.replace(found[0], "")
    return _PHRASES.search("negative", plain) is not None


def drop_reported(sentence: str) -> str:
    """Return a sentence up to its first verb that reports the words or thoughts of a person."""
    found = _PHRASES.search("reported", sentence)
    return sentence if found is None else sentence[: found.end()]


def split_clauses(sentence: str) -> list[str]:
    """Return the main parts of a sentence."""
    ends = [(found.start(), found.end()) for found in _PHRASES.find_all("clause", sentence)]
    starts = [0, *(end for _, end in ends)]
    stops = [*(start for start, _ in ends), len(sentence)]
    parts = (sentence[start:stop] for start, stop in zip(starts, stops, strict=True))
    return [clause for clause in (part.strip(" ,.!\u2026\n") for part in parts) if clause]


# --- numerals ---

_UNITS = _PHRASES.words("units")
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SMALL = {word: number for number, word in enumerate(_UNITS)}
_SMALL |= {word: 10 * number for number, word in enumerate(_TENS, start=2)}
_WORD_NUMBER = "|".join(sorted(_SMALL, key=len, reverse=True))
_DIGITS = r"-?\d+(?:,\d{3})*(?:\.\d+)?(?![\d.]*\d)"
_WORDS = rf"(?:{_WORD_NUMBER})(?:[- ](?:{'|'.join(_UNITS[1:10])}))?"
_HUNDRED = rf"(?:(?:a|{'|'.join(reversed(_UNITS[1:20]))}) )?hundred(?: and)?(?: {_WORDS})?"
_REVERSED = rf"(?:{'|'.join(_UNITS[1:10])})-and-(?:{'|'.join(_TENS)})"
_DOZENS = rf"(?:half a |a |(?:{_WORD_NUMBER}) )?dozen"
NUMERAL = rf"(?<![\w.,])(?:{_DIGITS}|{_HUNDRED}|{_DOZENS}|{_REVERSED}|{_WORDS})(?!\w)"
"""Pattern of a numeral."""


def parse_numeral(text: str) -> float:
    """Return the value of a text that matches `NUMERAL`."""
    text = text.lower().strip()
    if text[-1].isdigit():
        return float(text.replace(",", ""))
    if "dozen" in text:
        return 6.0 if text.startswith("half") else 12.0 * _SMALL.get(text.split()[0], 1)
    total = 0
    before, has_hundred, after = text.partition("hundred")
    if has_hundred:
        total, before = 100 * _SMALL.get(before.strip(), 1), after
    return float(total + sum(_SMALL.get(word, 0) for word in re.findall(r"[a-z]+", before)))


# --- forms of words ---

_AMBIGUOUS_PASTS = frozenset({"left", "lit", "bent", "lost", "found", "burnt", "fell", "built"})
"""Past forms that are often adjectives or other verbs."""


@lru_cache(maxsize=_CACHED_PATTERNS)
def verb_forms(verb: str) -> tuple[str, str, str, str, str]:
    """Return the base, the form with s, the past, the participle and the form with ing of a verb."""
    verb, space, rest = verb.partition(" ")
    if space:
        base, third, past, participle, gerund = (f"{form} {rest}" for form in verb_forms(verb))
        return base, third, past, participle, gerund
    ends_in_y = verb.endswith("y") and verb[-2:-1] not in set("aeiou")
    doubled = verb + verb[-1] if re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", verb) else verb
    stem = verb[:-1] if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")) else doubled
    hisses = verb.endswith(("s", "sh", "ch", "x", "z", "o"))
    third = f"{verb[:-1]}ies" if ends_in_y else f"{verb}es" if hisses else f"{verb}s"
    third = {"have": "has", "be": "is"}.get(verb, third)
    regular = f"{verb[:-1]}ied" if ends_in_y else f"{verb}d" if verb.endswith("e") else f"{doubled}ed"
    irregular: Mapping[str, list[str]] = load_toml("phrases.toml")["english"]["irregular"]
    past, participle = irregular.get(verb, (regular, regular))
    return verb, third, past, participle, f"{stem}ing"


def irregular_pasts() -> list[str]:
    """Return the past forms of irregular verbs that differ from their present."""
    irregular: Mapping[str, list[str]] = load_toml("phrases.toml")["english"]["irregular"]
    return [past for verb, (past, _) in irregular.items() if past != verb and past not in _AMBIGUOUS_PASTS]


def tense_forms(verbs: Iterable[str], *, is_past: bool = False) -> str:
    """Return a pattern of the forms of verbs in the present or in the past."""
    chosen = slice(2, 3) if is_past else slice(0, 2)
    return alternatives(form for verb in verbs for form in verb_forms(verb)[chosen])


@lru_cache(maxsize=_CACHED_PATTERNS)
def number_forms(noun: str) -> tuple[str, ...]:
    """Return a noun, or a group of words that ends in one, in the singular and the plural."""
    singular = noun
    if noun.endswith("ies") and len(noun) > len("ties"):
        singular = f"{noun[:-3]}y"
    elif noun.endswith(("ches", "shes", "xes", "sses")):
        singular = noun[:-2]
    elif noun.endswith("s") and not noun.endswith(("ss", "us", "is")):
        singular = noun[:-1]
    plural = f"{singular}s"
    if singular.endswith("y") and singular[-2:-1] not in set("aeiou"):
        plural = f"{singular[:-1]}ies"
    elif singular.endswith(("ch", "sh", "x", "ss")):
        plural = f"{singular}es"
    return tuple(dict.fromkeys([noun, singular, plural]))


def alternatives(words: Iterable[str]) -> str:
    """Return a pattern that matches any of some words, the longest first."""
    ordered = sorted(set(words), key=len, reverse=True)
    return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in ordered) or r"(?!)"


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
    if past != base and past.endswith("t"):
        # `burned` beside `burnt`
        forms |= {(f"{base}ed", PAST), (f"{base}ed", PARTICIPLE)}
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
class ProseWord:
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


@lru_cache(maxsize=_CACHED_PATTERNS)
def _words_of_name(name: str) -> tuple[str, ...]:
    return tuple(token.word for token in split_words(name))


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
                words = _words_of_name(form)
                if not words or (len(words) == 1 and is_function_word(words[0])):
                    continue
                is_proper = kind == "entity" and name[:1].isupper() and len(words) == 1
                entry = (words, is_proper, (kind, key))
                known = self._names.setdefault(words[0], [])
                if entry not in known:
                    known.append(entry)

    def find(self, tokens: Sequence[ProseWord], place: int) -> tuple[int, tuple[Ref, ...]]:
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


def split_words(text: str) -> list[ProseWord]:
    """Return the words of a text as tokens without tags."""
    tokens = []
    for found in _TOKEN.finditer(text):
        word = found[0].lower().replace("\u2019", "'")
        tokens.append(ProseWord(found[0], _SHORT.get(word, word), found.start(), found.end()))
    return tokens


def read_tokens(text: str, names: NameTable) -> list[ProseWord]:
    """Return the tokens of a sentence without speech: names and numerals are joined."""
    plain = split_words(text)
    numerals = {found.start(): found for found in _NUMERAL.finditer(text)}
    tokens: list[ProseWord] = []
    place = 0
    while place < len(plain):
        token = plain[place]
        size, refs = names.find(plain, place)
        numeral = numerals.get(token.start)
        if size:
            last = plain[place + size - 1]
            tokens.append(
                ProseWord(
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
                ProseWord(
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

"""Keyword extraction: the salient terms and the named persons of a text, in any language and script."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.author.text_analysis import languages
from peripety.author.text_analysis.languages import Language, Token, detect_language, tokenize
from peripety.author.text_analysis.person_names import find_people, find_player

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_READ_LIMIT = 12_000
_TERM_LIMIT = 32
_UNSPACED_LIMIT = 12
_TITLE_LIMIT = 64
_MAX_PEOPLE = 3
_PHRASE_WORDS = 2
_MAX_PHRASE = 3  # a longer row is a list of separate words
_SHORT_WORD = 2
_STEM = 4
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SENTENCE_END = re.compile(r"(?<=[.!?\u2026\u061f\u06d4\u0964])\s|(?<=[\u3002\uff01\uff1f])|\n")

_SALIENT, _WEAK, _STOP = 0.0, -1.0, -2.0


@dataclass(frozen=True, slots=True)
class TextAnalysis:
    """Keywords of a text.

    Attributes:
        title: its first sentence, shortened; empty for a text without words.
        language: the language of its phrases.
        terms: its terms, by descending salience.
        people: the persons it seems to name.
        player: the role of the player; empty if unspecified.
    """

    title: str
    language: Language
    terms: tuple[str, ...]
    people: tuple[str, ...]
    player: str


@dataclass(frozen=True, slots=True)
class _Phrase:
    tokens: tuple[Token, ...]
    salience: float
    people: int = 0  # the number of persons it names
    is_player: bool = False

    @property
    def text(self) -> str:
        text = " ".join(token.text for token in self.tokens)
        limit = _UNSPACED_LIMIT if self.tokens[0].kind == languages.UNSPACED else _TERM_LIMIT
        return languages.truncate_graphemes(text[0].upper() + text[1:], limit)

    @property
    def words(self) -> set[str]:
        """Return the words that no other phrase may share: its words, and its shortened text."""
        return {token.casefolded for token in self.tokens} | {self.text}


def analyze_text(text: str, *, min_terms: int, max_terms: int) -> TextAnalysis:
    """Extract the keywords of a text; a text with too few words reuses them, each time with a letter."""
    visible = languages.clean_text(text[:_READ_LIMIT])
    tokens = tokenize(visible)
    language = detect_language([token.casefolded for token in tokens])
    phrases = list(_PhraseExtractor(tokens, language).phrases())
    player = _choose_phrases((phrase for phrase in phrases if phrase.is_player), 0, 1)
    others = _without_shared_words((phrase for phrase in phrases if phrase.people), player)
    people = _choose_phrases(others, 0, _MAX_PEOPLE)
    things = _without_shared_words(
        (phrase for phrase in phrases if not phrase.people and not phrase.is_player),
        [*player, *people],
    )
    terms = [phrase.text for phrase in _choose_phrases(things, min_terms, max_terms)]
    names = tuple(_name_people(people))
    roles = tuple(role.text for role in player)
    return TextAnalysis(
        title=_extract_title(visible),
        language=language,
        terms=(*terms, *_lettered_terms(terms or names or roles, min_terms - len(terms))),
        people=names,
        player="".join(roles),
    )


def _without_shared_words(phrases: Iterable[_Phrase], others: Iterable[_Phrase]) -> Iterator[_Phrase]:
    """Return the phrases that share no word with the others."""
    taken = {word for other in others for word in other.words}
    return (phrase for phrase in phrases if taken.isdisjoint(phrase.words))


def _name_people(people: Sequence[_Phrase]) -> Iterator[str]:
    """Yield a name for each person; one name for a whole group if the limit is reached."""
    room = _MAX_PEOPLE - len(people)
    for phrase in people:
        more = phrase.people - 1
        if 0 < more <= room:
            room -= more
            yield from _lettered_terms([phrase.text], phrase.people)
        else:
            yield phrase.text


class _PhraseExtractor:
    """Grouping of the tokens of a text into phrases, with a salience for each."""

    def __init__(self, tokens: Sequence[Token], language: Language) -> None:
        self._tokens = tokens
        self._language = language
        self._counts = Counter(token.casefolded for token in tokens)
        kinds = {token.casefolded: token.kind for token in tokens}
        self._measures = set(self._find_measures())
        self._carrying = {word for word, kind in kinds.items() if self._may_name_word(word, kind)}
        inner = [token for token in tokens if not token.opens_sentence and self._may_name_thing(token)]
        capitals = sum(token.is_capitalized for token in inner)
        # A capital does not mark a name if every noun, or most words, have one.
        self._capitals_tell = language.capitals == "names" and 2 * capitals < len(inner)

    def phrases(self) -> Iterator[_Phrase]:
        """Yield all phrases of the text, in order; words that rarely name a thing have a low salience."""
        found = list(self._iter_rows())
        naming = [self._may_name_thing(row[0]) for row in found]
        people = find_people(found, naming, self._language)
        player = find_player(found, naming, self._language)
        rows: list[list[Token]] = [[], *found, []]
        subject_seen = False
        for place, (before, row, after) in enumerate(zip(rows, rows[1:], rows[2:], strict=False)):
            subject_seen = subject_seen and not row[0].opens_clause
            if place == player or place in people:
                kept = self._noun_part(row)
                salience = self._salience(kept, announced=True)
                yield _Phrase(tuple(kept), salience, people.get(place, 0), place == player)
                subject_seen = True
            elif len(row) > _MAX_PHRASE:
                yield from (_Phrase((token,), self._salience([token], announced=False)) for token in row)
            elif self._may_name_thing(row[0]):
                yield self._build_phrase(row, before[-1:], after[:1], subject=not subject_seen)
                subject_seen = True
            elif row[0].kind != languages.DIGIT:
                word = row[0].casefolded
                stop = (
                    word in self._language.stop | self._language.people.non_noun_words | self._measures
                    or _is_short(word, row[0].kind)
                )
                yield _Phrase(tuple(row), _STOP if stop else _WEAK)

    def _iter_rows(self) -> Iterator[list[Token]]:
        row: list[Token] = []
        for token in self._tokens:
            if row and not self._belong_together(row[-1], token):
                yield row
                row = []
            row.append(token)
        if row:
            yield row

    def _belong_together(self, left: Token, right: Token) -> bool:
        spelled = left.kind == right.kind == languages.LETTER and self._language.head != "none"
        together = (
            spelled and not right.opens_clause and self._may_name_thing(left) and self._may_name_thing(right)
        )
        return together and self._is_proper_name(left) == self._is_proper_name(right)

    def _may_name_thing(self, token: Token) -> bool:
        """Return True if the word may name a thing."""
        return token.casefolded in self._carrying

    def _may_name_word(self, word: str, kind: str) -> bool:
        no_thing = self._language.stop | self._language.people.non_noun_words | self._measures
        if kind == languages.DIGIT or word in no_thing:
            return False
        return not (_is_short(word, kind) or self._is_weak(word))

    def _find_measures(self) -> Iterator[str]:
        """Yield words for amounts and times, which do not name a thing; time units only after a number."""
        language, before = self._language, ""
        for token in self._tokens:
            word = token.casefolded
            if word in language.counting_words or (
                word in language.units and (before in language.numbers or before[:1].isdigit())
            ):
                yield word
            before = word

    def _is_weak(self, word: str) -> bool:
        return any(word.endswith(end) and len(word) >= len(end) + _STEM for end in self._language.weak)

    def _is_proper_name(self, token: Token) -> bool:
        return self._capitals_tell and token.is_capitalized and not token.opens_sentence

    def _build_phrase(
        self,
        row: list[Token],
        before: list[Token],
        after: list[Token],
        *,
        subject: bool,
    ) -> _Phrase:
        follows = "" if not after or after[0].opens_clause else after[0].casefolded
        announced = bool(before) and before[0].casefolded in self._language.determiners
        named = self._is_proper_name(row[0])
        if subject and not named and follows not in self._language.auxiliaries:
            # "the a b." and "a b the c": the row at the start of a clause mostly ends with the verb of its
            # subject.
            whole_clause = row[0].opens_clause and not follows
            row = row if whole_clause else row[:-1] or row
        kept = self._noun_part(row)
        return _Phrase(tuple(kept), self._salience(kept, announced=announced), int(named))

    def _noun_part(self, row: list[Token]) -> list[Token]:
        """Return the part of a row that names the thing."""
        if self._language.capitals == "nouns":
            row = [token for token in row if token.is_capitalized] or row
        return row[-_PHRASE_WORDS:] if self._language.head == "last" else row[:_PHRASE_WORDS]

    def _salience(self, row: list[Token], *, announced: bool) -> float:
        repeated = sum(min(self._counts[token.casefolded], 4) - 1 for token in row) * 0.5
        if self._language.head == "none":
            # Without a list of stop words, length is the only sign of a term.
            return repeated + min(len(row[0].text), 10) / 5
        noun = self._language.capitals == "nouns" and row[-1].is_capitalized
        return repeated + announced * 0.5 + (len(row) > 1) * 0.4 + noun * 1.0


def _is_short(word: str, kind: str) -> bool:
    cased = word != word.upper()
    return kind == languages.LETTER and len(word) <= (_SHORT_WORD if cased else 1)


def _choose_phrases(phrases: Iterable[_Phrase], at_least: int, at_most: int) -> list[_Phrase]:
    """Return the most salient phrases without a shared word; others only if there are too few."""
    used: set[str] = set()
    kept: list[_Phrase] = []
    for phrase in sorted(phrases, key=lambda phrase: -phrase.salience):
        wanted = at_most if phrase.salience >= _SALIENT else at_least if phrase.salience > _STOP else 1
        if len(kept) < wanted and used.isdisjoint(words := phrase.words):
            kept.append(phrase)
            used |= words
    return kept


def _lettered_terms(terms: Sequence[str], missing: int) -> list[str]:
    """Return additional terms for a text with too few: its own terms with a letter each, or bare letters."""
    again = terms or [""]
    return [f"{again[i % len(again)]} {_LETTERS[i // len(again)]}".strip() for i in range(missing)]


def _extract_title(text: str) -> str:
    """Return the first sentence with a word in it, shortened between words."""
    sentences = _SENTENCE_END.split(text)
    worded = (line for line in sentences if languages.WORD.search(languages.classify_characters(line)))
    plain = " ".join(next(worded, "").split())
    if len(plain) <= _TITLE_LIMIT:
        return plain
    short = plain[: _TITLE_LIMIT + 1].rpartition(" ")[0] or plain
    return languages.truncate_graphemes(short, _TITLE_LIMIT) + "\u2026"

"""Patterns of questions about a session, and words of their answers, in the language of the game."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from peripety.author.text_analysis.reading import find_story_language
from peripety.author.text_analysis.words import find_lemmas, load_grammars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


DEFAULT = "en"
OWN = "i"
"""Value of a row for questions about the player."""
_LETTERS = "letters"
"""The table of letters."""
_PAIR = 2


@dataclass(frozen=True, slots=True)
class QuestionPattern:
    """Pattern of a question.

    Attributes:
        method: the name of the method that answers it.
        pattern: the pattern of the whole question.
        value: a constant for the group `how`, or `i` for a question about the player.
    """

    method: str
    pattern: re.Pattern[str]
    value: str

    def match(self, text: str) -> dict[str, str] | None:
        """Return the parts of a question; None if the question has another pattern."""
        found = self.pattern.fullmatch(text)
        if found is None:
            return None
        # Alternatives of one group end with underscores.
        parts = {name.rstrip("_"): part for name, part in found.groupdict().items() if part is not None}
        if self.value == OWN:
            return {"who": OWN, "what": OWN, **parts}
        return {"how": self.value, **parts} if self.value else parts


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """Questions and answers of one language.

    Attributes:
        language: its code.
        patterns: the patterns of questions, in order.
        turn: the pattern of a turn that a question names.
        last_turn: the pattern of the last turn.
        polite: the pattern of words before a question.
        own: the pattern of words of the player.
        action_lead: the pattern of words before the name of an action.
        has_spaces: True if spaces part the words.
        texts: the texts of answers.
    """

    language: str
    patterns: Sequence[QuestionPattern]
    turn: re.Pattern[str]
    last_turn: re.Pattern[str]
    polite: re.Pattern[str]
    own: re.Pattern[str]
    action_lead: re.Pattern[str]
    has_spaces: bool
    texts: Mapping[str, Any]

    def say(self, key: str, **values: object) -> str:
        """Return a text with its values."""
        return str(self.texts[key]).format_map(values)

    def count(self, key: str, number: int, **values: object) -> str:
        """Return a text in the form for a number."""
        forms = self.texts[key]
        return str(forms[0 if number == 1 else 1]).format_map({"count": number, **values})

    def name_kind(self, kind: str) -> str:
        """Return the word for the status of a run."""
        return str(self.texts["kinds"].get(kind, kind))

    def bound(self, alternatives: str) -> str:
        """Return a pattern of whole names; a language without spaces has no bounds."""
        return rf"(?<![\w-])(?:{alternatives})(?![\w-])" if self.has_spaces else f"(?:{alternatives})"

    def find_content(self, text: str) -> frozenset[str]:
        """Return the base forms of the words of a text that are not words of the grammar."""
        if not self.has_spaces:
            chars = re.sub(r"\W", "", text)
            return frozenset(chars[place : place + _PAIR] for place in range(len(chars) - 1))
        tags = load_grammars()[self.language].tags
        words = (word for word in re.findall(r"[^\W\d_]+", text.casefold()) if word not in tags)
        return frozenset(base.casefold() for word in words for base in self._find_bases(word))

    def _find_bases(self, word: str) -> Iterator[str]:
        yield find_lemmas(word, self.language)[-1]
        if self.language == "de":
            # A noun is in lower case in a question.
            yield find_lemmas(word.capitalize(), self.language)[-1]


def find_words(spec: Mapping[str, Any]) -> tuple[QuestionWords, ...]:
    """Return the words of the language of a game, and the English ones.

    A game in a language without words has English ones alone.
    """
    language = find_story_language(spec)
    codes = dict.fromkeys([language if language in list_question_languages() else DEFAULT, DEFAULT])
    return tuple(load_words(code) for code in codes)


def list_question_languages() -> frozenset[str]:
    """Return the codes of the languages of questions."""
    return frozenset(_load_tables().keys() - {_LETTERS})


@cache
def _load_tables() -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath("question_words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def load_words(language: str) -> QuestionWords:
    """Return the words of a language."""
    table = _load_tables()[language]
    names = ("turn", "last_turn", "polite", "own", "action_lead")
    patterns = {name: re.compile(_allow_plain_letters(table[name])) for name in names}
    return QuestionWords(
        language=language,
        patterns=tuple(_read_rows(table["patterns"])),
        has_spaces=bool(table["gap"]),
        texts=table["texts"],
        **patterns,
    )


def _read_rows(rows: Iterable[Sequence[str]]) -> Iterator[QuestionPattern]:
    for method, pattern, *value in rows:
        yield QuestionPattern(method, re.compile(_allow_plain_letters(pattern)), "".join(value))


def _allow_plain_letters(pattern: str) -> str:
    """Return a pattern that also matches words without accents, such as "que" for "qué"."""
    letters = _load_tables()[_LETTERS]
    return "".join(letters.get(char, char) for char in pattern)

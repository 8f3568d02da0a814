"""Tokenizer for any script; each token knows the gap before it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from peripety.authoring.reading import scripts
from peripety.authoring.reading.languages import particles

__all__ = ["Token", "tokens_of"]

_MOST_WORDS = 1_500


@dataclass(frozen=True, slots=True)
class Token:
    """Word of a text.

    Attributes:
        text: the word.
        folded: the word in lower case.
        kind: the class of its first character.
        gap: the classes of the characters before it.
    """

    text: str
    folded: str
    kind: str
    gap: str

    @property
    def opens_clause(self) -> bool:
        """Return True if more than a space or a hyphen precedes it."""
        return bool(self.gap.strip(scripts.SPACE + scripts.HYPHEN))

    @property
    def opens_sentence(self) -> bool:
        """Return True if it is the first word of a sentence."""
        return scripts.SENTENCE in self.gap

    @property
    def capitalised(self) -> bool:
        """Return True if only its first letter is a capital."""
        return self.text[0].isupper() and self.text[1:2].islower()


def tokens_of(text: str) -> list[Token]:
    """Return the first words of a cleaned text, up to a limit."""
    small = particles()
    kinds = scripts.classes("".join(scripts.SPACE if char in small else char for char in text))
    tokens: list[Token] = []
    end = 0
    for match in islice(scripts.WORD.finditer(kinds), _MOST_WORDS):
        word = text[match.start() : match.end()]
        gap = kinds[end : match.start()] if tokens else scripts.SENTENCE
        tokens.append(Token(word, word.casefold(), match.group()[0], gap))
        end = match.end()
    return tokens

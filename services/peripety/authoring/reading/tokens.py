"""The words of a text in any script, each with what stands before it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from peripety.authoring.reading import scripts
from peripety.authoring.reading.languages import particles

__all__ = ["Token", "tokens_of"]

_MOST_WORDS = 1_500


@dataclass(frozen=True, slots=True)
class Token:
    """One word.

    Attributes:
        text: as it is written.
        folded: in lower case.
        kind: the class of its first character.
        gap: the classes of what stands before it.
    """

    text: str
    folded: str
    kind: str
    gap: str

    @property
    def opens_clause(self) -> bool:
        """Whether more than a space or a hyphen stands before it."""
        return bool(self.gap.strip(scripts.SPACE + scripts.HYPHEN))

    @property
    def opens_sentence(self) -> bool:
        """Whether a sentence ends before it, or the text begins."""
        return scripts.SENTENCE in self.gap

    @property
    def capitalised(self) -> bool:
        """Whether it has a capital in front, and in front only."""
        return self.text[0].isupper() and self.text[1:2].islower()


def tokens_of(text: str) -> list[Token]:
    """The words of a cleaned text, as many as are looked at."""
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

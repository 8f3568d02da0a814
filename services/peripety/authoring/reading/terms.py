"""Terms of a text, each with its facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.authoring.blueprint import Role
from peripety.authoring.reading.facts import facts
from peripety.authoring.reading.words import read

if TYPE_CHECKING:
    from peripety.authoring.reading.languages import Language

__all__ = ["Matter", "Term", "matter"]

_LEAST_COUNTED = 8
"""The minimum amount that is counted down in steps."""
_PARTS = {"scarce": Role.SUPPLY, "mounting": Role.THREAT, "dear": Role.WARD, "wanted": Role.GOAL}


@dataclass(frozen=True, slots=True)
class Term:
    """Term of a text.

    Attributes:
        text: the term.
        part: the role that the text hints at, if any.
        amount: the amount in the text, if any.
    """

    text: str
    part: Role | None = None
    amount: float | None = None

    @property
    def counted(self) -> float | None:
        """Return the amount if it is large enough to count down."""
        return self.amount if self.amount is not None and self.amount >= _LEAST_COUNTED else None


@dataclass(frozen=True, slots=True)
class Matter:
    """Analysis of a text with terms and facts.

    Attributes:
        title: its first sentence, shortened; empty for a text without words.
        language: the language of its phrases.
        terms: its terms, by descending salience.
        people: the persons it seems to name.
        spans: future time spans in hours, longest first.
        player: the role of the player; empty if unspecified.
    """

    title: str
    language: Language
    terms: tuple[Term, ...]
    people: tuple[str, ...]
    spans: tuple[float, ...]
    player: str = ""


def matter(text: str, *, at_least: int, at_most: int) -> Matter:
    """Analyse a text; a text with too few words reuses them, each time with a letter."""
    reading = read(text, at_least=at_least, at_most=at_most)
    known = facts(text, reading.terms, reading.language)
    terms = tuple(
        Term(term, _PARTS.get(known.hints.get(term, "")), known.amounts.get(term)) for term in reading.terms
    )
    return Matter(reading.title, reading.language, terms, reading.people, known.spans, reading.player)

"""The things a text is about, each with all that the text says of it."""

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
"""Fewer of something are not counted down in steps."""
_PARTS = {"scarce": Role.SUPPLY, "mounting": Role.THREAT, "dear": Role.WARD, "wanted": Role.GOAL}


@dataclass(frozen=True, slots=True)
class Term:
    """A thing.

    Attributes:
        text: what it is called.
        part: the part it plays, where the text hints at one.
        amount: how many there are, where the text says so.
    """

    text: str
    part: Role | None = None
    amount: float | None = None

    @property
    def counted(self) -> float | None:
        """The amount, where there are enough to count down."""
        return self.amount if self.amount is not None and self.amount >= _LEAST_COUNTED else None


@dataclass(frozen=True, slots=True)
class Matter:
    """All that was understood of a text.

    Attributes:
        title: its first sentence, shortened; empty when it has no words.
        language: whose connecting text suits it.
        terms: what it is about, most salient first.
        people: whom it seems to name.
        spans: spans of time that lie ahead, in hours, longest first.
        player: what the player is said to be; empty when nothing is said.
    """

    title: str
    language: Language
    terms: tuple[Term, ...]
    people: tuple[str, ...]
    spans: tuple[float, ...]
    player: str = ""


def matter(text: str, *, at_least: int, at_most: int) -> Matter:
    """Read a text for its things; one with too few words lends them again, each time with a letter."""
    reading = read(text, at_least=at_least, at_most=at_most)
    known = facts(text, reading.terms, reading.language)
    terms = tuple(
        Term(term, _PARTS.get(known.hints.get(term, "")), known.amounts.get(term)) for term in reading.terms
    )
    return Matter(reading.title, reading.language, terms, reading.people, known.spans, reading.player)

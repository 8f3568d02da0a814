"""Composition of a blueprint: the terms of a text fill the roles of a fixed template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.authoring.blueprint import Blueprint
from peripety.authoring.composing.cast import FEWEST, MOST, cast
from peripety.authoring.composing.plot import actions, events
from peripety.authoring.composing.quantities import stage
from peripety.authoring.reading.terms import matter

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.authoring.reading.terms import Matter

__all__ = ["compose", "composed"]


def compose(text: str, number: Callable[[str, int], int]) -> Blueprint:
    """Return the blueprint of a text.

    Args:
        text: text in any language; may be empty.
        number: seeded number for a tag, below a bound; decides what the text does not specify.
    """
    return composed(matter(text, at_least=FEWEST, at_most=MOST), number)


def composed(read: Matter, number: Callable[[str, int], int]) -> Blueprint:
    """Return the blueprint of an analysed text.

    Args:
        read: the analysis, with at least `FEWEST` terms by descending salience.
        number: seeded number for a tag, below a bound; decides what the text does not specify.
    """
    phrases = read.language.rules

    def say(use: str, first: str, second: str = "") -> str:
        return phrases[use].format(a=first, b=second)

    parts = cast(read.terms, number)
    played = stage(parts, read.people, phrases)
    texts = [term.text for term in read.terms]
    spare = (texts[number("surprise", len(texts))], texts[number("comfort", len(texts))])
    whole, due = (*read.spans[:1], *read.spans[-1:][: len(read.spans) > 1], 0.0, 0.0)[:2]
    return Blueprint(
        title=read.title,
        phrases=phrases,
        quantities=played.quantities(),
        actions=tuple(actions(played, say)),
        events=tuple(events(played, spare, say)),
        people=read.people,
        player=read.player,
        has_deadline=bool(due) or number("deadline", 2) == 0,
        hours=whole,
        due_hours=due,
    )

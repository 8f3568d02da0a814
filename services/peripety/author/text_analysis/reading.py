"""Reading of a free text without a model: role, goal, people, places, supplies and dangers.

A part of the text that is not understood is listed as unread and never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PATTERNS = (
    "hold_out",
    "reach",
    "win_over",
    "find_out",
    "keep_together",
    "outdo",
    "take",
    "save",
    "make_ready",
    "decide",
)
"""Ids of the dramatic patterns, each named by what the player has to do."""


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
    """

    text: str
    head: str
    is_plural: bool = False
    is_mass: bool = False
    is_proper: bool = False
    sense: str = ""


@dataclass(frozen=True, slots=True)
class Person:
    """Person or group of persons.

    Attributes:
        name: the name; empty if only a role is known.
        role: the role; empty if only a name is known.
        is_group: True if it is a group.
        count: the number of persons.
    """

    name: str
    role: str
    is_group: bool = False
    count: int = 1


@dataclass(frozen=True, slots=True)
class Goal:
    """Act that the player wants to do.

    Attributes:
        verb: the lemma of the verb.
        object: what the verb acts on; None without an object.
        text: the verb phrase, as an infinitive without "to".
    """

    verb: str
    object: Phrase | None
    text: str


@dataclass(frozen=True, slots=True)
class Deadline:
    """Time that the player has.

    Attributes:
        amount: the number of units.
        unit: the English lemma of the unit, such as "day".
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


@dataclass(frozen=True, slots=True)
class Reading:
    """Meaning of a text.

    Attributes:
        text: the text.
        language: its language as a BCP 47 tag; empty if unknown.
        role: who the player is; None if unknown.
        goal: what the player wants to do; None if unknown.
        people: the other persons, in order of the text.
        places: the places.
        supplies: things that can be spent or run out.
        dangers: what threatens the goal.
        deadline: the time that the player has; None if unknown.
        amounts: the numbers other than the deadline.
        difficulty: "easy", "normal" or "hard"; empty if unknown.
        pattern: the best of `PATTERNS`; empty if the text is not understood.
        pattern_scores: the score of each pattern with one, rounded.
        unread: the phrases that are not understood.
    """

    text: str
    language: str
    role: Person | None = None
    goal: Goal | None = None
    people: tuple[Person, ...] = ()
    places: tuple[Phrase, ...] = ()
    supplies: tuple[Phrase, ...] = ()
    dangers: tuple[Phrase, ...] = ()
    deadline: Deadline | None = None
    amounts: tuple[Amount, ...] = ()
    difficulty: str = ""
    pattern: str = ""
    pattern_scores: Mapping[str, float] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


def read_text(text: str) -> Reading:
    """Return the meaning of a text."""
    return Reading(text=text, language="", unread=(text,) if text.strip() else ())

"""Parts of a reading: phrases of the user, persons, the goal, times and amounts."""

from __future__ import annotations

from dataclasses import dataclass


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
        text: the verb phrase, as an infinitive without "to". The player is in the second person.
        particle: the word that belongs to the verb, such as "out" in "hold out"; empty without one.
    """

    verb: str
    object: Phrase | None
    text: str
    particle: str = ""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Time that the player has.

    Attributes:
        amount: the number of units; 0 if the time ends with an event or on a date.
        unit: the English lemma of the unit, such as "day"; empty for an event.
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

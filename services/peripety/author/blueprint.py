"""Blueprint of a scenario: quantities, actions and events in words and sizes, and seeded choices.

A blueprint contains no number, path or condition. The offline author writes one from a text; a small model
writes one section by section. Code derives rules and numbers from it, so every blueprint, from any author,
results in a valid specification.

`SeededChoice` draws from a hash of the text, the seed and the variation, so equal inputs give equal
blueprints.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Role(Enum):
    """Role of a quantity for the player."""

    SUPPLY = "supply"
    """A resource that is spent; the run is lost when it runs out."""
    WARD = "ward"
    """A protected value; the run is lost when it is ruined."""
    THREAT = "threat"
    """A danger that grows; the run is lost when there is too much of it."""
    GOAL = "goal"
    """A target to reach; enough of it wins."""


class Size(IntEnum):
    """Size of an amount; calibration converts it to numbers."""

    SMALL = 1
    MEDIUM = 2
    LARGE = 3


class Chance(IntEnum):
    """Frequency of an event."""

    RARE = 1
    OCCASIONAL = 2
    FREQUENT = 3


@dataclass(frozen=True, slots=True)
class Quantity:
    """Countable value of a scenario.

    Attributes:
        name: unique name, in the words of the user.
        role: its role for the player.
        start: the amount at the start, as distance from a loss.
        fades: True if it moves towards a loss each turn.
        holder: the only person who knows it; empty if it is public. A quantity that is not public loses no
            run: it triggers events, or can be obtained from its holder.
        is_hidden: True if it is hidden from all, including the player.
        amount: the known number at the start, or for a goal the number required; None if unknown.
        term: its name in sentences; the name if empty.
    """

    name: str
    role: Role
    start: Size = Size.MEDIUM
    fades: bool = False
    holder: str = ""
    is_hidden: bool = False
    amount: float | None = None
    term: str = ""

    @property
    def is_unseen(self) -> bool:
        """Return True if it is not public."""
        return self.is_hidden or bool(self.holder)


@dataclass(frozen=True, slots=True)
class Flow:
    """Change of a quantity, referenced by name."""

    quantity: str
    rises: bool
    size: Size = Size.MEDIUM


@dataclass(frozen=True, slots=True)
class Trigger:
    """Condition that a quantity is high or low."""

    quantity: str
    is_high: bool


@dataclass(frozen=True, slots=True)
class Action:
    """Action of the player.

    Attributes:
        name: unique name.
        flows: its gains and its price; a missing price is added.
        is_delayed: True if its gain arrives some turns later.
        is_scaled: True if the player chooses the amount; gain and price are proportional to it.
        is_final: True if it can be done only once and cannot be undone.
    """

    name: str
    flows: tuple[Flow, ...]
    is_delayed: bool = False
    is_scaled: bool = False
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Random event.

    Attributes:
        name: unique name.
        flows: its effects.
        chance: its frequency while `when` holds.
        when: its condition; None for always.
        lasts: True if it continues for some turns.
    """

    name: str
    flows: tuple[Flow, ...]
    chance: Chance = Chance.OCCASIONAL
    when: Trigger | None = None
    lasts: bool = False


@dataclass(frozen=True, slots=True)
class Blueprint:
    """Scenario in words and sizes.

    Attributes:
        title: its title.
        phrases: phrases by key, in the language of the text.
        quantities: its quantities.
        actions: the player's actions.
        events: its random events.
        people: the named persons, besides the player.
        player: the name of the player; empty for the default of the language.
        has_deadline: True if too little of a goal at the deadline loses.
        hours: the total duration in hours; 0 if unspecified.
        due_hours: the deadline in hours; 0 if unspecified.
    """

    title: str
    phrases: Mapping[str, str]
    quantities: tuple[Quantity, ...]
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    people: tuple[str, ...] = ()
    player: str = ""
    has_deadline: bool = False
    hours: float = 0
    due_hours: float = 0


class SeededChoice:
    """Seeded choices for one text, seed and variation.

    Attributes:
        name: twelve digits that identify the choices.
    """

    def __init__(self, text: str, seed: int, variation: int = 0) -> None:
        self._base = f"{text}:{seed}"
        self._variation = variation
        self.name = hashlib.sha256(f"{self._base}:{variation}".encode("utf-8", "replace")).hexdigest()[:12]

    def choose_number(self, tag: str, below: int) -> int:
        """Return a number for a tag, at least 0 and below a bound; each variation shifts it by one."""
        digest = hashlib.sha256(f"{self._base}:{tag}".encode("utf-8", "replace")).digest()
        return (int.from_bytes(digest[:8], "big") + self._variation) % below

"""What a scenario is made of, in words and sizes: no number, no path and no condition yet.

Whoever has words writes a blueprint: the offline author from a text, a small model section by section. The
rules and numbers that follow from it are the engine's matter, so that every blueprint becomes a valid
specification, whoever wrote it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Action", "Blueprint", "Chance", "Event", "Flow", "Quantity", "Role", "Size", "Trigger"]


class Role(Enum):
    """What a quantity is to the player."""

    SUPPLY = "supply"
    """It is spent; a run is lost when it is gone."""
    WARD = "ward"
    """It is looked after; a run is lost when it is ruined."""
    THREAT = "threat"
    """It grows; a run is lost when there is too much of it."""
    GOAL = "goal"
    """It is worked for; enough of it wins."""


class Size(IntEnum):
    """How much of something; what that is in numbers is worked out by playing."""

    SMALL = 1
    MEDIUM = 2
    LARGE = 3


class Chance(IntEnum):
    """How often something happens."""

    RARE = 1
    OCCASIONAL = 2
    FREQUENT = 3


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that can be counted.

    Attributes:
        name: what it is called, in the user's words; unlike any other's.
        role: what it is to the player.
        start: how much of it there is at the start, as far from losing as that.
        fades: whether it moves towards losing by itself, turn by turn.
        holder: the person who alone knows it; empty where everybody does. What not everybody knows loses no
            run: it is what events wait for, or what can be had from that person.
        is_hidden: whether nobody knows it, not even the player.
        amount: how many there are at the start, or of a goal how many are wanted, where that is known.
        term: what sentences about it call it; its name when empty.
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
        """Whether not everybody knows it."""
        return self.is_hidden or bool(self.holder)


@dataclass(frozen=True, slots=True)
class Flow:
    """A change of a quantity, by its name."""

    quantity: str
    rises: bool
    size: Size = Size.MEDIUM


@dataclass(frozen=True, slots=True)
class Trigger:
    """That there is much, or little, of a quantity."""

    quantity: str
    is_high: bool


@dataclass(frozen=True, slots=True)
class Action:
    """Something the player can do.

    Attributes:
        name: what it is called, unlike any other action.
        flows: what it gives and takes; one without a price is given one.
        is_delayed: whether what it gives comes some turns later.
        is_scaled: whether the player says how much of it; then it gives and takes in proportion.
        is_final: whether it can be done once only, and not be undone.
    """

    name: str
    flows: tuple[Flow, ...]
    is_delayed: bool = False
    is_scaled: bool = False
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Something that may happen.

    Attributes:
        name: what it is called, unlike any other event.
        flows: what it does.
        chance: how often it happens while `when` holds.
        when: what it waits for; None for nothing.
        lasts: whether it goes on for some turns.
    """

    name: str
    flows: tuple[Flow, ...]
    chance: Chance = Chance.OCCASIONAL
    when: Trigger | None = None
    lasts: bool = False


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A whole scenario.

    Attributes:
        title: its name.
        phrases: connecting text by use, in the language of the words.
        quantities: what there is.
        actions: what can be done.
        events: what may happen.
        people: who is named, besides the player.
        player: what the player is called; empty for whatever the language calls them.
        has_deadline: whether too little of a goal, too late, loses.
        hours: how long all of it takes; 0 where that is open.
        due_hours: when the deadline is; 0 where that is open.
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

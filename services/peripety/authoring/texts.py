"""Writes a scenario from a text without any model: the words are the user's, the design is `plot`'s.

The same text, seed and variation give the same document, byte for byte.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from peripety.authoring import plot as design
from peripety.authoring.actions import actions
from peripety.authoring.events import events
from peripety.authoring.reading.languages import MARK
from peripety.authoring.reading.words import Reading, read, slug
from peripety.authoring.rules import PUBLIC, Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Casting", "author", "compose", "identifiers"]

_ROLES = ("stock", "ward", "threat", "goal")
_MOST_TERMS = 8
_UNITS = (1, 1, 2, 5, 10)
_SEEDS = 2**53
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*")


def author(text: str, seed: int | None = None, variation: int = 0) -> dict[str, Any]:
    """A ScenarioSpec 1.0 about `text`.

    Args:
        text: anything in any language, or nothing.
        seed: seed of the scenario and of the choices made here; without one the text decides.
        variation: 0 for the first answer; another number changes numbers and roles, for a second try.
    """
    digest = hashlib.sha256(text.encode("utf-8", "replace"))
    if seed is None:
        seed = int.from_bytes(digest.digest()[:6], "big")
    choices = _Choices(digest.hexdigest(), seed, variation)
    reading = read(text, at_least=len(_ROLES), at_most=_MOST_TERMS)
    return compose(
        _casting(reading, choices),
        spec_id=f"offline_{choices.name}",
        name=f"{reading.title} {MARK}".strip(),
        seed=seed % _SEEDS,
    )


@dataclass(frozen=True, slots=True)
class Casting:
    """What the design leaves open: who plays which role, in which words, at which tempo.

    Attributes:
        roles: the terms that are stock, ward, threat and goal.
        surprise: the term under which wear strikes.
        comfort: the term under which relief comes.
        people: who is named; the first of them holds the reserve.
        ids: an identifier for each term and person.
        phrases: connecting text by use.
        has_deadline: whether too little of the goal loses halfway.
        tempo: the numbers.
        units: how much one step of each role is.
        player: what the player is called; nothing in particular when empty.
    """

    roles: Sequence[str]
    surprise: str
    comfort: str
    people: Sequence[str]
    ids: Mapping[str, str]
    phrases: Mapping[str, str]
    has_deadline: bool
    tempo: design.Tempo
    units: Sequence[int] = (1, 1, 1, 1)
    player: str = ""


def compose(casting: Casting, *, spec_id: str, name: str, seed: int) -> dict[str, Any]:
    """The ScenarioSpec 1.0 of a casting.

    Args:
        casting: what the design leaves open.
        spec_id: the id of the document.
        name: its name.
        seed: its seed.
    """
    plot = _plot(casting)
    return {
        "spec_version": "1.0",
        "id": spec_id,
        "name": name,
        "seed": seed,
        "horizon": plot.tempo.horizon,
        "entities": _entities(casting, plot),
        "state": design.state(plot),
        "actions": actions(plot),
        "random_events": events(plot),
        "loss_conditions": design.specified(plot, design.losses(plot)),
        "win_conditions": design.specified(plot, design.wins(plot)),
        "negativity_budget": {
            "min_fail_rate": 0.25,
            "max_fail_rate": 0.75,
            "decay_per_turn": {plot.stock.path: plot.stock.unit},
        },
    }


def identifiers(**names: Iterable[str]) -> dict[str, str]:
    """An identifier for each name, unlike any other and unlike the player's.

    Args:
        names: names by the prefix that those get which cannot be identifiers themselves.
    """
    ids = {"": design.PLAYER}
    for prefix, group in names.items():
        for index, name in enumerate(group):
            wanted = chain([slug(name)], (f"{prefix}{number}" for number in count(index)))
            taken = ids.values()
            ids.setdefault(
                name, next(id_ for id_ in wanted if _IDENTIFIER.fullmatch(id_) and id_ not in taken)
            )
    return ids


class _Choices:
    """Choices that look free and are fixed by text, seed and variation."""

    def __init__(self, text: str, seed: int, variation: int) -> None:
        self._base = f"{text}:{seed}"
        self._variation = variation
        self.name = hashlib.sha256(f"{self._base}:{variation}".encode()).hexdigest()[:12]

    def number(self, tag: str, below: int) -> int:
        """A number below a bound; the next variation takes the next one."""
        digest = hashlib.sha256(f"{self._base}:{tag}".encode()).digest()
        return (int.from_bytes(digest[:8], "big") + self._variation) % below


def _casting(reading: Reading, choices: _Choices) -> Casting:
    terms, phrases = reading.terms, reading.language.rules
    turned = choices.number("roles", len(_ROLES))
    spare = terms[len(_ROLES) :] or terms
    return Casting(
        roles=(*terms[turned : len(_ROLES)], *terms[:turned]),
        surprise=spare[choices.number("surprise", len(spare))],
        comfort=spare[choices.number("comfort", len(spare))],
        people=reading.people,
        ids=identifiers(q=terms, p=reading.people),
        phrases=phrases,
        has_deadline=choices.number("deadline", 2) == 0,
        tempo=design.TEMPOS[choices.number("tempo", len(design.TEMPOS))],
        units=[_UNITS[choices.number(role, len(_UNITS))] for role in _ROLES],
        player=phrases["you"],
    )


def _plot(casting: Casting) -> design.Plot:
    def quantity(aspect: str, term: str, unit: int = 1, parent: str = PUBLIC) -> Quantity:
        return Quantity(term, casting.phrases[aspect].format(a=term), unit, parent)

    stock, ward, threat, goal = map(quantity, _ROLES, casting.roles, casting.units)
    confidant = next(iter(casting.people), "")
    held_by = f"state.private.{casting.ids[confidant]}"
    return design.Plot(
        stock=stock,
        ward=ward,
        threat=threat,
        goal=goal,
        wear=quantity("wear", ward.term, parent="state.hidden"),
        plan=quantity("plan", threat.term, parent=f"state.private.{design.PLAYER}"),
        reserve=quantity("reserve", stock.term, parent=held_by) if confidant else None,
        confidant=confidant,
        surprise=casting.surprise,
        comfort=casting.comfort,
        has_deadline=casting.has_deadline,
        tempo=casting.tempo,
        ids=casting.ids,
        phrases=casting.phrases,
    )


def _entities(casting: Casting, plot: design.Plot) -> list[dict[str, Any]]:
    player = {"id": design.PLAYER, "description": design.stakes(plot), "playable": True}
    if casting.player:
        player["name"] = casting.player
    return [player, *({"id": casting.ids[person], "name": person} for person in casting.people)]

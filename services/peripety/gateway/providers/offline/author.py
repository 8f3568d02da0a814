"""Writes a scenario from a text without any model: the words are the user's, the design is `plot`'s.

The same text, seed and variation give the same document, byte for byte.
"""

from __future__ import annotations

import hashlib
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from peripety.gateway.providers.offline import plot as design
from peripety.gateway.providers.offline.actions import actions
from peripety.gateway.providers.offline.events import events
from peripety.gateway.providers.offline.languages import MARK
from peripety.gateway.providers.offline.rules import Quantity
from peripety.gateway.providers.offline.words import Reading, read, slug

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["author"]

_ROLES = 4
_MOST_TERMS = 8
_UNITS = (1, 1, 2, 5, 10)
_SEEDS = 2**53


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
    reading = read(text, at_least=_ROLES, at_most=_MOST_TERMS)
    return _document(reading, _plot(reading, choices), choices.name, seed % _SEEDS)


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


def _plot(reading: Reading, choices: _Choices) -> design.Plot:
    terms, phrases, ids = reading.terms, reading.language.rules, _ids(reading)
    turned = choices.number("roles", _ROLES)
    stock, ward, threat, goal = (
        Quantity(term, phrases[role].format(a=term), _UNITS[choices.number(role, len(_UNITS))])
        for role, term in zip(
            ("stock", "ward", "threat", "goal"), (*terms[turned:_ROLES], *terms[:turned]), strict=True
        )
    )
    spare = terms[_ROLES:] or terms
    confidant = reading.people[0] if reading.people else ""
    return design.Plot(
        stock=stock,
        ward=ward,
        threat=threat,
        goal=goal,
        wear=_unseen("wear", ward, "state.hidden", reading),
        plan=_unseen("plan", threat, f"state.private.{design.PLAYER}", reading),
        reserve=_unseen("reserve", stock, f"state.private.{ids[confidant]}", reading) if confidant else None,
        confidant=confidant,
        surprise=spare[choices.number("surprise", len(spare))],
        comfort=spare[choices.number("comfort", len(spare))],
        has_deadline=choices.number("deadline", 2) == 0,
        tempo=design.TEMPOS[choices.number("tempo", len(design.TEMPOS))],
        ids=ids,
        phrases=phrases,
    )


def _unseen(aspect: str, quantity: Quantity, parent: str, reading: Reading) -> Quantity:
    """A side of a quantity that not everybody may see."""
    return Quantity(quantity.term, reading.language.rules[aspect].format(a=quantity.term), parent=parent)


def _ids(reading: Reading) -> dict[str, str]:
    """An identifier for each term and person, unlike any other and unlike the player's."""
    ids = {"": design.PLAYER}
    for names, prefix in ((reading.terms, "q"), (reading.people, "p")):
        for index, name in enumerate(names):
            numbered = (f"{prefix}{number}" for number in count(index))
            wanted = chain([slug(name)], numbered)
            ids[name] = next(id_ for id_ in wanted if id_ and id_ not in ids.values())
    return ids


def _document(reading: Reading, plot: design.Plot, name: str, seed: int) -> dict[str, Any]:
    return {
        "spec_version": "1.0",
        "id": f"offline_{name}",
        "name": f"{reading.title} {MARK}".strip(),
        "seed": seed,
        "horizon": plot.tempo.horizon,
        "entities": _entities(reading.people, plot),
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


def _entities(people: Sequence[str], plot: design.Plot) -> list[dict[str, Any]]:
    player = {"id": design.PLAYER, "description": design.stakes(plot), "playable": True}
    if plot.phrases["you"]:
        player["name"] = plot.phrases["you"]
    return [player, *({"id": plot.ids[person], "name": person} for person in people)]

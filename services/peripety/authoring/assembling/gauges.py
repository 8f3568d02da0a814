"""Quantities as numbers of the state: where they stand, how large one step is, and what moves them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.authoring.assembling.conditions import Condition, comparison
from peripety.authoring.blueprint import Role, Size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.authoring.blueprint import Quantity

__all__ = ["HIDDEN", "PRIVATE", "PUBLIC", "STEPS", "Gauge", "Move", "Scale", "helps", "tree", "whole"]

PUBLIC, HIDDEN, PRIVATE = "state", "state.hidden", "state.private"

STEPS = {Size.SMALL: 1, Size.MEDIUM: 2, Size.LARGE: 4}
"""How many steps a change of some size is."""

_BEST = 1.5
"""What runs out gets no better than so many times what there is at the start."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Scale:
    """The numbers of one quantity.

    Attributes:
        unit: how much one step is.
        start: how much there is at the start.
        end: how much loses, or of a goal wins; of what nobody loses by, how much counts as much.
    """

    unit: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Gauge:
    """A quantity as a number of the state.

    Attributes:
        quantity: what it is.
        scale: its numbers.
        parent: the path of the object it stands in.
    """

    quantity: Quantity
    scale: Scale
    parent: str = PUBLIC

    @property
    def name(self) -> str:
        """What it is called, which is the key it stands under."""
        return self.quantity.name

    @property
    def role(self) -> Role:
        """What it is to the player."""
        return self.quantity.role

    @property
    def term(self) -> str:
        """What sentences call it."""
        return self.quantity.term or self.quantity.name

    @property
    def is_public(self) -> bool:
        """Whether everybody may see it."""
        return self.parent == PUBLIC

    @property
    def path(self) -> str:
        """Where it stands; names hold neither quotes nor backslashes."""
        return (
            f"{self.parent}.{self.name}"
            if _IDENTIFIER.fullmatch(self.name)
            else f'{self.parent}["{self.name}"]'
        )

    def amount(self, steps: float) -> float:
        """So many steps, as an amount."""
        return whole(steps * self.scale.unit)

    def compared(self, operator: str, amount: float) -> Condition:
        """That it compares like this with an amount."""
        return comparison(self.path, self.name, operator, whole(amount))

    def part(self, share: float) -> float:
        """The amount that is this share of the way from nothing, or from the start, to where it ends.

        Of what runs out the way leads from nothing to the start.
        """
        if self.role in (Role.SUPPLY, Role.WARD):
            return self._in_units(share * self.scale.start)
        return self._in_units(self.scale.start + share * (self.scale.end - self.scale.start))

    def has_room(self, amount: float) -> Condition:
        """That a change for the better leads neither past the best there is nor below nothing.

        Otherwise it would only ever get better for whoever is lucky, and be no danger.
        """
        if self.role is Role.THREAT:
            return self.compared(">=", amount)
        return self.compared("<=", max(self._in_units(_BEST * self.scale.start) - amount, self.scale.start))

    def _in_units(self, amount: float) -> float:
        return whole(round(amount / self.scale.unit) * self.scale.unit)


@dataclass(frozen=True, slots=True)
class Move:
    """A change of a gauge.

    Attributes:
        gauge: what changes.
        steps: by how much; where the amount is derived, only the sign counts.
        derived: name of the derived value that is the amount, if one is.
        shown_as: how a derived amount reads.
    """

    gauge: Gauge
    steps: float
    derived: str = ""
    shown_as: str = ""

    def effect(self) -> dict[str, Any]:
        """The effect of the specification."""
        value = self.derived or self.gauge.amount(abs(self.steps))
        return {"op": "inc" if self.steps > 0 else "dec", "path": self.gauge.path, "value": value}

    @property
    def gives(self) -> bool:
        """Whether it is a gain, of something that everybody knows of."""
        return self.gauge.is_public and helps(self.gauge.role, rises=self.steps > 0)

    @property
    def shown(self) -> str:
        """How it reads without any language."""
        sign = "+" if self.steps > 0 else "\u2212"
        return f"{self.gauge.name} {sign}{self.shown_as or self.gauge.amount(abs(self.steps))}"


def helps(role: Role, *, rises: bool) -> bool:
    """Whether a change leads away from losing, or towards winning."""
    return rises is not (role is Role.THREAT)


def whole(number: float) -> float:
    """The number, as an integer where it is one, since that is how people write it."""
    return int(number) if float(number).is_integer() else number


def tree(gauges: Iterable[Gauge]) -> dict[str, Any]:
    """The state at the start."""
    root: dict[str, Any] = {}
    for gauge in gauges:
        node = root
        for key in gauge.parent.split(".")[1:]:
            node = node.setdefault(key, {})
        node[gauge.name] = whole(gauge.scale.start)
    return root

"""Quantities as numbers of the state: path, step size, start, limit, and their changes."""

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
"""The number of steps of a change, by size."""

_BEST = 1.5
"""The maximum of a supply or ward, as a multiple of its start."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers of one quantity.

    Attributes:
        unit: the size of one step.
        start: the value at the start.
        end: the value that loses, or for a goal wins; for a quantity without a loss condition, the value that
            counts as high.
    """

    unit: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Gauge:
    """Quantity as a number of the state.

    Attributes:
        quantity: the quantity of the blueprint.
        scale: its numbers.
        parent: the path of the object that contains it.
    """

    quantity: Quantity
    scale: Scale
    parent: str = PUBLIC

    @property
    def name(self) -> str:
        """Return its name, which is its key in the parent object."""
        return self.quantity.name

    @property
    def role(self) -> Role:
        """Return its role for the player."""
        return self.quantity.role

    @property
    def term(self) -> str:
        """Return its name in sentences."""
        return self.quantity.term or self.quantity.name

    @property
    def is_public(self) -> bool:
        """Return True if it is visible to all."""
        return self.parent == PUBLIC

    @property
    def path(self) -> str:
        """Return its path; names contain neither quotes nor backslashes."""
        return (
            f"{self.parent}.{self.name}"
            if _IDENTIFIER.fullmatch(self.name)
            else f'{self.parent}["{self.name}"]'
        )

    def amount(self, steps: float) -> float:
        """Return a number of steps as an amount."""
        return whole(steps * self.scale.unit)

    def compared(self, operator: str, amount: float) -> Condition:
        """Return the condition that compares it with an amount."""
        return comparison(self.path, self.name, operator, whole(amount))

    def part(self, share: float) -> float:
        """Return the value at a share of the way from nothing, or from the start, to the limit.

        For a supply or ward, the way leads from nothing to the start.
        """
        if self.role in (Role.SUPPLY, Role.WARD):
            return self._in_units(share * self.scale.start)
        return self._in_units(self.scale.start + share * (self.scale.end - self.scale.start))

    def has_room(self, amount: float) -> Condition:
        """Return the condition that a gain stays within the best value and does not go below zero.

        Without it, a lucky run would gain without limit and lose its risk.
        """
        if self.role is Role.THREAT:
            return self.compared(">=", amount)
        return self.compared("<=", max(self._in_units(_BEST * self.scale.start) - amount, self.scale.start))

    def _in_units(self, amount: float) -> float:
        return whole(round(amount / self.scale.unit) * self.scale.unit)


@dataclass(frozen=True, slots=True)
class Move:
    """Change of a gauge.

    Attributes:
        gauge: the gauge.
        steps: the number of steps; for a derived amount only the sign counts.
        derived: name of the derived value that is the amount; empty if the amount is fixed.
        shown_as: the label of a derived amount.
    """

    gauge: Gauge
    steps: float
    derived: str = ""
    shown_as: str = ""

    def effect(self) -> dict[str, Any]:
        """Return the effect, as the specification writes it."""
        value = self.derived or self.gauge.amount(abs(self.steps))
        return {"op": "inc" if self.steps > 0 else "dec", "path": self.gauge.path, "value": value}

    @property
    def gives(self) -> bool:
        """Return True if it improves a public quantity."""
        return self.gauge.is_public and helps(self.gauge.role, rises=self.steps > 0)

    @property
    def shown(self) -> str:
        """Return its label in symbols."""
        sign = "+" if self.steps > 0 else "\u2212"
        return f"{self.gauge.name} {sign}{self.shown_as or self.gauge.amount(abs(self.steps))}"


def helps(role: Role, *, rises: bool) -> bool:
    """Return True if the change leads away from a loss or towards a win."""
    return rises is not (role is Role.THREAT)


def whole(number: float) -> float:
    """Return the number, as an integer if it is whole."""
    return int(number) if float(number).is_integer() else number


def tree(gauges: Iterable[Gauge]) -> dict[str, Any]:
    """Return the initial state as nested objects."""
    root: dict[str, Any] = {}
    for gauge in gauges:
        node = root
        for key in gauge.parent.split(".")[1:]:
            node = node.setdefault(key, {})
        node[gauge.name] = whole(gauge.scale.start)
    return root

"""The building blocks of an authored scenario: quantities under the user's words, and what moves them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "PUBLIC",
    "Condition",
    "Flow",
    "Logic",
    "Quantity",
    "all_of",
    "effects_of",
    "summary",
    "tree",
    "variable",
]

Logic = dict[str, Any]

PUBLIC = "state"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIGNS = {">=": "\u2265", "<=": "\u2264", ">": ">", "<": "<"}


def variable(path: str) -> Logic:
    """The value at a path."""
    return {"var": path}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, and how it reads without any language."""

    logic: Logic
    shown: str


def all_of(*conditions: Condition) -> Condition:
    """That every one of the conditions holds."""
    if len(conditions) == 1:
        return conditions[0]
    return Condition(
        {"and": [condition.logic for condition in conditions]},
        ", ".join(condition.shown for condition in conditions),
    )


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of the state.

    Attributes:
        term: the user's word that it belongs to.
        name: the key it stands under: the term and which side of it is counted.
        unit: how much one step of the design is; a scale changes the numbers and not the odds.
        parent: the path of the object it stands in.
    """

    term: str
    name: str
    unit: int = 1
    parent: str = PUBLIC

    @property
    def path(self) -> str:
        """Where it stands; names hold neither quotes nor backslashes."""
        return (
            f"{self.parent}.{self.name}"
            if _IDENTIFIER.fullmatch(self.name)
            else f'{self.parent}["{self.name}"]'
        )

    def at_least(self, steps: int) -> Condition:
        """That it is this many steps or more."""
        return self._compared(">=", steps)

    def at_most(self, steps: int) -> Condition:
        """That it is this many steps or fewer."""
        return self._compared("<=", steps)

    def above(self, steps: int) -> Condition:
        """That it is more than this many steps."""
        return self._compared(">", steps)

    def below(self, steps: int) -> Condition:
        """That it is less than this many steps."""
        return self._compared("<", steps)

    def _compared(self, operator: str, steps: int) -> Condition:
        amount = steps * self.unit
        return Condition(
            {operator: [variable(self.path), amount]}, f"{self.name} {_SIGNS[operator]} {amount}"
        )


@dataclass(frozen=True, slots=True)
class Flow:
    """A change of a quantity.

    Attributes:
        quantity: what changes.
        steps: by how much; where the amount is derived, only the sign counts.
        derived: name of the derived value that is the amount, if one is.
        shown_as: how a derived amount reads.
    """

    quantity: Quantity
    steps: int
    derived: str = ""
    shown_as: str = ""

    def effect(self) -> dict[str, Any]:
        """The effect of the specification."""
        value = self.derived or abs(self.steps) * self.quantity.unit
        return {"op": "inc" if self.steps > 0 else "dec", "path": self.quantity.path, "value": value}

    def __str__(self) -> str:
        sign = "+" if self.steps > 0 else "\u2212"
        return f"{self.quantity.name} {sign}{self.shown_as or abs(self.steps) * self.quantity.unit}"


def effects_of(flows: Iterable[Flow]) -> list[dict[str, Any]]:
    """The effects of several flows."""
    return [flow.effect() for flow in flows]


def summary(flows: Iterable[Flow]) -> str:
    """What flows do to the quantities everybody may see, in signs that need no language."""
    return ", ".join(str(flow) for flow in flows if flow.quantity.parent == PUBLIC)


def tree(at_start: Mapping[Quantity, int]) -> dict[str, Any]:
    """The state in which each quantity has so many steps."""
    root: dict[str, Any] = {}
    for quantity, steps in at_start.items():
        node = root
        for key in quantity.parent.split(".")[1:]:
            node = node.setdefault(key, {})
        node[quantity.name] = steps * quantity.unit
    return root

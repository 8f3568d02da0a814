"""Tunable numbers of a specification.

No number moves by more than half, weights stay within their bounds, and a moved number has few digits. The
selection of numbers depends on the purpose.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.scenarios.balancing.wording import sentence
from peripety.scenarios.model import NumberEdit
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["DIGITS", "LARGEST_MOVE", "Kind", "Knob", "Segments", "Spec", "turned", "with_values"]

LARGEST_MOVE = 0.5
"""The maximum move of a number, as a share of it."""

WEIGHT_BOUNDS = (0.05, 0.30)

DIGITS = 4
"""The maximum number of significant digits of a moved number."""

Segments: TypeAlias = "tuple[str | int, ...]"
Spec: TypeAlias = "dict[str, Any]"


class Kind(Enum):
    """Meaning of a number: weight of an event, amount of a change, or factor."""

    WEIGHT = "weight"
    AMOUNT = "amount"
    MULTIPLIER = "multiplier"


@dataclass(frozen=True, slots=True)
class Knob:
    """Tunable number.

    Attributes:
        segments: its path in the specification.
        value: its value; not 0.
        kind: its meaning.
        harder: the direction that makes the scenario harder, from its conditions: 1 for up, -1 for down, 0 if
            unknown.
    """

    segments: Segments
    value: float
    kind: Kind
    harder: int = 0

    def turned(self, factor: float) -> float:
        """Return the number times a factor, with few digits and within bounds."""
        return tidy(self._scaled(factor), toward=self.value)

    def near(self, value: float) -> float:
        """Return a number with few digits near a value, rounded towards the original."""
        return tidy(value, toward=self.value)

    def rounded(self, value: float, digits: int) -> float:
        """Return the value rounded to a number of digits; unchanged if the result is out of bounds."""
        low, high = self.bounds
        nearest = float(f"{value:.{digits}g}")
        return nearest if low <= nearest <= high else value

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the minimum and maximum of the number."""
        low, high = sorted((self._scaled(1 - LARGEST_MOVE), self._scaled(1 + LARGEST_MOVE)))
        return low, high

    def _scaled(self, factor: float) -> float:
        if self.kind is Kind.AMOUNT:
            return self.value * factor
        if self.kind is Kind.WEIGHT:
            low, high = WEIGHT_BOUNDS
            return min(max(self.value * factor, low), high)
        low, high = sorted((self.value * (1 - LARGEST_MOVE), self.value * (1 + LARGEST_MOVE)))
        return min(max(1 + (self.value - 1) * factor, low), high)


def turned(spec: Spec, turnable: Iterable[Knob], factor: float) -> tuple[Spec, tuple[NumberEdit, ...]]:
    """Return a copy of a specification with all given numbers times a factor, and the changes."""
    return with_values(spec, {knob: knob.turned(factor) for knob in turnable})


def with_values(spec: Spec, values: Mapping[Knob, float]) -> tuple[Spec, tuple[NumberEdit, ...]]:
    """Return a copy of a specification with other numbers, and the changes."""
    copy = deepcopy(spec)
    edits = []
    for knob, value in values.items():
        if value != knob.value:
            *parents, last = knob.segments
            node: Any = copy
            for segment in parents:
                node = node[segment]
            node[last] = value
            said = sentence(spec, knob.segments, knob.value, value)
            edits.append(NumberEdit(pointer(knob.segments), knob.value, value, said))
    return copy, tuple(edits)


_TOO_SMALL = 1e-290
"""Numbers below this are not rounded, because the power of ten beside them is not representable."""


def tidy(value: float, *, toward: float, digits: int = DIGITS) -> float:
    """Round to few digits, towards another number, so that no bound between the two is crossed."""
    if abs(value) < _TOO_SMALL:
        return value
    scale = 10.0 ** (digits - 1 - math.floor(math.log10(abs(value))))
    # Rounding to a billionth first removes the error of binary fractions.
    scaled = round(value * scale, 9)
    return (math.floor(scaled) if value > toward else math.ceil(scaled)) / scale

"""The numbers of a specification that say how hard it is, and how to turn them.

No number moves by more than half, weights stay within their bounds, and what comes of a move is tidy: few
digits. Which numbers are turned is for `choosing` to say.
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
"""No number moves by more than this share of itself."""

WEIGHT_BOUNDS = (0.05, 0.30)

DIGITS = 4
"""Most digits of a number that was moved."""

Segments: TypeAlias = "tuple[str | int, ...]"
Spec: TypeAlias = "dict[str, Any]"


class Kind(Enum):
    """What a number is: how likely an event, by how much something changes, by which factor."""

    WEIGHT = "weight"
    AMOUNT = "amount"
    MULTIPLIER = "multiplier"


@dataclass(frozen=True, slots=True)
class Knob:
    """One number.

    Attributes:
        segments: where it stands in the specification.
        value: what it is; not 0.
        kind: what it says.
        harder: which way it goes to make the scenario harder, as far as conditions tell: 1 is up, -1 is down.
    """

    segments: Segments
    value: float
    kind: Kind
    harder: int = 0

    def turned(self, factor: float) -> float:
        """The number under a factor: tidy, and never moved further than is allowed."""
        return tidy(self._scaled(factor), toward=self.value)

    def near(self, value: float) -> float:
        """A tidy number near another one, no further away from what it is."""
        return tidy(value, toward=self.value)

    def rounded(self, value: float, digits: int) -> float:
        """The nearest number of so many digits; the same one where that is out of bounds."""
        low, high = self.bounds
        nearest = float(f"{value:.{digits}g}")
        return nearest if low <= nearest <= high else value

    @property
    def bounds(self) -> tuple[float, float]:
        """How low and how high the number may become."""
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
    """A copy of a specification with its knobs turned by one factor, and the numbers that changed."""
    return with_values(spec, {knob: knob.turned(factor) for knob in turnable})


def with_values(spec: Spec, values: Mapping[Knob, float]) -> tuple[Spec, tuple[NumberEdit, ...]]:
    """A copy of a specification with other numbers, and those that changed."""
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
"""So small that the powers of ten beside it are no doubles."""


def tidy(value: float, *, toward: float, digits: int = DIGITS) -> float:
    """Few digits, rounded toward another number so that no bound between the two is passed."""
    if abs(value) < _TOO_SMALL:
        return value
    scale = 10.0 ** (digits - 1 - math.floor(math.log10(abs(value))))
    # Rounding to a billionth first takes back what binary fractions added.
    scaled = round(value * scale, 9)
    return (math.floor(scaled) if value > toward else math.ceil(scaled)) / scale

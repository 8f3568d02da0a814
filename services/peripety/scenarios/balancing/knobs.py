"""The numbers of a specification that say how hard it is, and how to turn all of them by one factor.

Turned are the weights and the effects of random events, and decay, as far as they do not help the player: an
event that only helps stays as it is. Which way a quantity hurts is read from the comparisons in loss and win
conditions; what cannot be told counts as harm.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety import sim
from peripety.scenarios.model import NumberEdit
from peripety.scenarios.reading import FALLING, RISING, directions, readings
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LARGEST_MOVE", "Knob", "knobs", "turned"]

LARGEST_MOVE = 0.5
"""No number moves by more than this share of itself."""

WEIGHT_BOUNDS = (0.05, 0.30)

_DIGITS = 4

_Segments: TypeAlias = "tuple[str | int, ...]"
_Spec: TypeAlias = "dict[str, Any]"


class _Kind(Enum):
    WEIGHT = "weight"
    AMOUNT = "amount"
    MULTIPLIER = "multiplier"


@dataclass(frozen=True, slots=True)
class Knob:
    """One number: where it stands, and what it is."""

    segments: _Segments
    value: float
    kind: _Kind

    def turned(self, factor: float) -> float:
        """The number under a factor: tidy, and never moved further than is allowed."""
        if self.kind is _Kind.WEIGHT:
            low, high = WEIGHT_BOUNDS
            wanted = min(max(self.value * factor, low), high)
        elif self.kind is _Kind.AMOUNT:
            wanted = self.value * factor
        else:
            low, high = sorted((self.value * (1 - LARGEST_MOVE), self.value * (1 + LARGEST_MOVE)))
            wanted = min(max(1 + (self.value - 1) * factor, low), high)
        return _tidy(wanted, toward=self.value)


def knobs(spec: _Spec) -> list[Knob]:
    """The numbers to turn, in document order of the events, then decay."""
    hurts = _directions(spec)
    found = [
        knob
        for index, event in enumerate(spec["random_events"])
        for knob in _event_knobs(event, ("random_events", index), hurts)
    ]
    for path, amount in spec["negativity_budget"].get("decay_per_turn", {}).items():
        if amount and _harm("dec", path, amount, hurts) >= 0:
            found.append(Knob(("negativity_budget", "decay_per_turn", path), amount, _Kind.AMOUNT))
    return found


def turned(spec: _Spec, turnable: list[Knob], factor: float) -> tuple[_Spec, tuple[NumberEdit, ...]]:
    """A copy of a specification with its knobs turned, and the numbers that changed."""
    copy = deepcopy(spec)
    edits = []
    for knob in turnable:
        value = knob.turned(factor)
        if value != knob.value:
            *parents, last = knob.segments
            node: Any = copy
            for segment in parents:
                node = node[segment]
            node[last] = value
            edits.append(NumberEdit(pointer(knob.segments), knob.value, value))
    return copy, tuple(edits)


def _tidy(value: float, *, toward: float) -> float:
    """Few digits, rounded toward another number so that no bound between the two is passed."""
    if value == 0:
        return 0.0
    scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(abs(value))))
    # Rounding to a billionth first takes back what binary fractions added.
    scaled = round(value * scale, 9)
    return (math.floor(scaled) if value > toward else math.ceil(scaled)) / scale


def _event_knobs(event: dict[str, Any], place: _Segments, hurts: dict[str, int]) -> Iterator[Knob]:
    effects = list(_amounts(event["effects"], (*place, "effects")))
    harms = [_harm(effect["op"], effect["path"], effect["value"], hurts) for _, effect in effects]
    if not harms or max(harms) > 0 or min(harms) == 0:
        yield Knob((*place, "weight"), event["weight"], _Kind.WEIGHT)
    for (segments, effect), harm in zip(effects, harms, strict=True):
        if harm >= 0 and effect["value"]:
            kind = _Kind.MULTIPLIER if effect["op"] == "mul" else _Kind.AMOUNT
            yield Knob((*segments, "value"), effect["value"], kind)


def _amounts(effects: list[dict[str, Any]], place: _Segments) -> Iterator[tuple[_Segments, dict[str, Any]]]:
    """The effects that change a number by a number, those scheduled for later included."""
    for index, effect in enumerate(effects):
        if effect["op"] == "schedule":
            yield from _amounts(effect["effects"], (*place, index, "effects"))
        elif effect["op"] in {"inc", "dec", "mul"} and not isinstance(effect["value"], str):
            yield (*place, index), effect


def _harm(op: str, path: str, value: float, hurts: dict[str, int]) -> int:
    """1 for an effect that hurts, -1 for one that helps, 0 where nothing tells."""
    change = value - 1 if op == "mul" else -value if op == "dec" else value
    return hurts.get(sim.format_path(sim.parse_path(path)), 0) * (RISING if change > 0 else FALLING)


def _directions(spec: _Spec) -> dict[str, int]:
    """For each path that conditions compare: whether its rising or its falling hurts, 0 when both do."""
    endings = [(ending, RISING) for ending in spec["loss_conditions"]]
    endings += [(ending, FALLING) for ending in spec.get("win_conditions", [])]
    return directions(reading for ending, sign in endings for reading in readings(ending["when"], sign))

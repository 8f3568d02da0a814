"""Tunable numbers of a specification, their selection, and descriptions of moves.

No number moves by more than half, weights and initial values stay within their bounds, and a moved number
has few digits. A whole number can be limited to whole steps.

A repair moves the weights and effects of random events, and decay, unless they help the player. Balancing
also moves helpful events, the effects of actions, and initial values. The harmful direction of a quantity
follows from the comparisons in loss and win conditions.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety import engine
from peripety.certification.drift import (
    FALLING,
    RISING,
    find_compared_values,
    find_matched_paths,
    harmful_directions,
    list_numbers,
)
from peripety.engine.rule_text import format_path
from peripety.engine.schema_validation import format_pointer
from peripety.errors import InvalidArgumentError
from peripety.scenario.types import NumberEdit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_RULES = {"random_events": "event", "actions": "action"}


def describe_number_change(
    spec: dict[str, Any],
    segments: Sequence[str | int],
    before: float,
    after: float,
) -> str:
    """Describe a change, such as `event 'a': weight 0.2 → 0.25 (+25%)`.

    Args:
        spec: the specification, before or after the change.
        segments: the path of the number.
        before: the number before; not 0.
        after: the number after.
    """
    change = 100 * (after / before - 1)
    return f"{_describe_owner(spec, segments)} {before:.15g} → {after:.15g} ({round(change, 1):+g}%)"


def _describe_owner(spec: dict[str, Any], segments: Sequence[str | int]) -> str:
    section = segments[0]
    if section == "state":
        return f"initial {format_path(engine.format_path(tuple(segments)))}"
    if section == "negativity_budget":
        return f"decay of {format_path(str(segments[-1]))}"
    rule = spec[str(section)][segments[1]]
    name = f"{_RULES[str(section)]} '{rule['id']}':"
    if segments[2] == "weight":
        return f"{name} weight"
    effect: Any = rule
    for segment in segments[2:-1]:
        effect = effect[segment]
    return f"{name} {effect['op']} {format_path(effect['path'])} by"


MAX_MOVE = 0.5
"""The maximum move of a number, as a share of it."""

WEIGHT_BOUNDS = (0.05, 0.30)

DIGITS = 4
"""The maximum number of significant digits of a moved number."""

Segments: TypeAlias = "tuple[str | int, ...]"
Spec: TypeAlias = "dict[str, Any]"


class NumberKind(Enum):
    """Meaning of a number: weight of an event, amount of a change, or factor."""

    WEIGHT = "weight"
    AMOUNT = "amount"
    MULTIPLIER = "multiplier"


@dataclass(frozen=True, slots=True)
class TunableNumber:
    """Tunable number.

    Attributes:
        segments: its path in the specification.
        value: its value; not 0.
        kind: its meaning.
        harder_direction: the direction that makes the scenario harder, from its conditions: 1 for up, -1
            for down, 0 if unknown.
        stays_whole: True if it moves in whole steps.
        limits: the minimum and maximum that the specification declares for it.
    """

    segments: Segments
    value: float
    kind: NumberKind
    harder_direction: int = 0
    stays_whole: bool = False
    limits: tuple[float, float] = (-math.inf, math.inf)

    def with_factor(self, factor: float) -> float:
        """Return the number times a factor, with few digits and within bounds."""
        return self.with_value(self._clamped_product(factor))

    def with_value(self, value: float) -> float:
        """Return a number with few digits near a value, rounded towards the original."""
        if self.stays_whole:
            value = float(math.floor(value) if value > self.value else math.ceil(value))
        return round_toward(value, toward=self.value) if value else value

    def with_digits(self, value: float, digits: int) -> float:
        """Return the value rounded to a number of digits; unchanged if the result is out of bounds."""
        low, high = self.bounds
        nearest = float(f"{value:.{digits}g}")
        return nearest if low <= nearest <= high else value

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the minimum and maximum of the number."""
        low, high = sorted((self._clamped_product(1 - MAX_MOVE), self._clamped_product(1 + MAX_MOVE)))
        if self.stays_whole:
            return math.ceil(low), math.floor(high)
        return round_toward(low, toward=self.value), round_toward(high, toward=self.value)

    def keep_whole(self) -> TunableNumber:
        """Return the number so that it stays whole, if it is."""
        return replace(self, stays_whole=self.value == math.floor(self.value))

    def _clamped_product(self, factor: float) -> float:
        if self.kind is NumberKind.AMOUNT:
            low, high = self.limits
            return min(max(self.value * factor, low), high)
        if self.kind is NumberKind.WEIGHT:
            low, high = WEIGHT_BOUNDS
            return min(max(self.value * factor, low), high)
        low, high = sorted((self.value * (1 - MAX_MOVE), self.value * (1 + MAX_MOVE)))
        return min(max(1 + (self.value - 1) * factor, low), high)


def scale_numbers(
    spec: Spec,
    numbers: Iterable[TunableNumber],
    factor: float,
) -> tuple[Spec, tuple[NumberEdit, ...]]:
    """Return a copy of a specification with all given numbers times a factor, and the changes."""
    return set_numbers(spec, {knob: knob.with_factor(factor) for knob in numbers})


def set_numbers(spec: Spec, values: Mapping[TunableNumber, float]) -> tuple[Spec, tuple[NumberEdit, ...]]:
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
            said = describe_number_change(spec, knob.segments, knob.value, value)
            edits.append(NumberEdit(format_pointer(knob.segments), knob.value, value, said))
    return copy, tuple(edits)


_MIN_ROUNDED = 1e-290
"""Numbers below this are not rounded, because the power of ten beside them is not representable."""


def round_toward(value: float, *, toward: float, digits: int = DIGITS) -> float:
    """Round to few digits, towards another number, so that no bound between the two is crossed."""
    if abs(value) < _MIN_ROUNDED:
        return value
    scale = 10.0 ** (digits - 1 - math.floor(math.log10(abs(value))))
    # Rounding to a billionth first removes the error of binary fractions.
    scaled = round(value * scale, 9)
    return (math.floor(scaled) if value > toward else math.ceil(scaled)) / scale


def select_for_repair(spec: Spec) -> list[TunableNumber]:
    """Return the numbers for a repair: events, then decay; an unknown direction counts as harmful."""
    hurts = _harmful_directions(spec)
    found = [
        knob
        for index, event in enumerate(spec["random_events"])
        for knob in _harmful_numbers(event, ("random_events", index), hurts)
    ]
    found += [knob for knob in _decay_numbers(spec, hurts) if knob.harder_direction * knob.value >= 0]
    return found


def select_for_balance(spec: Spec) -> list[TunableNumber]:
    """Return the numbers for balancing: events, decay, actions, initial values.

    Quantities in an equality are excluded, with everything that changes them: with other steps, the equality
    might never hold.
    """
    hurts = _harmful_directions(spec)
    stepped = find_matched_paths(spec)
    found: list[TunableNumber] = []
    for section in ("random_events", "actions"):
        for index, rule in enumerate(spec[section]):
            place: Segments = (section, index)
            if section == "random_events":
                found.append(
                    TunableNumber(
                        (*place, "weight"),
                        rule["weight"],
                        NumberKind.WEIGHT,
                        _event_direction(rule, place, hurts),
                    ),
                )
            amounts = _iter_amounts(rule["effects"], (*place, "effects"))
            found += [
                _to_tunable(at, effect, hurts)
                for at, effect in amounts
                if _effect_path(effect) not in stepped
            ]
    found += [
        knob for knob in _decay_numbers(spec, hurts) if _normalize_path(str(knob.segments[-1])) not in stepped
    ]
    found += [knob for path, knob in _initial_numbers(spec, hurts) if path not in stepped]
    return [knob for knob in found if knob.value]


def _harmful_directions(spec: Spec) -> dict[str, int]:
    """Return the harmful direction of each compared path; 0 if both directions are harmful."""
    endings = [(ending, RISING) for ending in spec["loss_conditions"]]
    endings += [(ending, FALLING) for ending in spec.get("win_conditions", [])]
    return harmful_directions(
        chain.from_iterable(find_compared_values(ending["when"], sign) for ending, sign in endings),
    )


def _harmful_numbers(
    event: dict[str, Any],
    place: Segments,
    directions: dict[str, int],
) -> Iterator[TunableNumber]:
    effects = list(_iter_amounts(event["effects"], (*place, "effects")))
    harms = [_effect_direction(effect, directions) for _, effect in effects]
    if not harms or max(harms) > 0 or min(harms) == 0:
        yield TunableNumber((*place, "weight"), event["weight"], NumberKind.WEIGHT, RISING)
    for (segments, effect), harm in zip(effects, harms, strict=True):
        if harm >= 0 and effect["value"]:
            yield _to_tunable(segments, effect, directions)


def _decay_numbers(spec: Spec, directions: dict[str, int]) -> Iterator[TunableNumber]:
    for path, amount in spec["negativity_budget"].get("decay_per_turn", {}).items():
        segments = ("negativity_budget", "decay_per_turn", path)
        if amount:
            yield TunableNumber(
                segments,
                amount,
                NumberKind.AMOUNT,
                -directions.get(_normalize_path(path), 0),
            )


def _initial_numbers(spec: Spec, directions: dict[str, int]) -> Iterator[tuple[str, TunableNumber]]:
    declared = {_normalize_path(path): limit for path, limit in spec.get("bounds", {}).items()}
    for path, value in list_numbers(spec["state"]).items():
        limit = declared.get(path, {})
        yield (
            path,
            TunableNumber(
                engine.parse_path(path),
                value,
                NumberKind.AMOUNT,
                directions.get(path, 0),
                limits=(limit.get("min", -math.inf), limit.get("max", math.inf)),
            ),
        )


def _iter_amounts(
    effects: list[dict[str, Any]],
    place: Segments,
) -> Iterator[tuple[Segments, dict[str, Any]]]:
    """Yield the effects that change a number by a constant, including scheduled ones."""
    for index, effect in enumerate(effects):
        if effect["op"] == "schedule":
            yield from _iter_amounts(effect["effects"], (*place, index, "effects"))
        elif effect["op"] in {"inc", "dec", "mul"} and not isinstance(effect["value"], str):
            yield (*place, index), effect


def _to_tunable(place: Segments, effect: dict[str, Any], directions: dict[str, int]) -> TunableNumber:
    kind = NumberKind.MULTIPLIER if effect["op"] == "mul" else NumberKind.AMOUNT
    harder = directions.get(_effect_path(effect), 0) * (FALLING if effect["op"] == "dec" else RISING)
    return TunableNumber((*place, "value"), effect["value"], kind, harder)


def _event_direction(event: dict[str, Any], place: Segments, directions: dict[str, int]) -> int:
    """Return 1 for an event that only harms, -1 for one that only helps, else 0."""
    harms = {
        _effect_direction(effect, directions) for _, effect in _iter_amounts(event["effects"], place)
    } - {0}
    return harms.pop() if len(harms) == 1 else 0


def _effect_direction(effect: dict[str, Any], directions: dict[str, int]) -> int:
    """Return 1 for a harmful effect, -1 for a helpful one, 0 if unknown."""
    value = effect["value"]
    change = value - 1 if effect["op"] == "mul" else -value if effect["op"] == "dec" else value
    return directions.get(_effect_path(effect), 0) * (RISING if change > 0 else FALLING)


def _effect_path(effect: dict[str, Any]) -> str:
    """Return the path of an effect; one with a parameter is not the path of a quantity."""
    try:
        return _normalize_path(effect["path"])
    except InvalidArgumentError:
        return str(effect["path"])


def _normalize_path(path: str) -> str:
    return engine.format_path(engine.parse_path(path))

"""Selection of tunable numbers.

A repair moves the weights and effects of random events, and decay, unless they help the player. Balancing
also moves helpful events, the effects of actions, and initial values. The harmful direction of a quantity
follows from the comparisons in loss and win conditions.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.scenarios.balancing.knobs import Kind, Knob, Segments, Spec
from peripety.scenarios.reading import FALLING, RISING, directions, matched, numbers, readings

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["balanceable", "repairable"]


def repairable(spec: Spec) -> list[Knob]:
    """Return the numbers for a repair: events, then decay; an unknown direction counts as harmful."""
    hurts = _hurts(spec)
    found = [
        knob
        for index, event in enumerate(spec["random_events"])
        for knob in _harms(event, ("random_events", index), hurts)
    ]
    found += [knob for knob in _decays(spec, hurts) if knob.harder * knob.value >= 0]
    return found


def balanceable(spec: Spec) -> list[Knob]:
    """Return the numbers for balancing: events, decay, actions, initial values.

    Quantities in an equality are excluded, with everything that changes them: with other steps, the equality
    might never hold.
    """
    hurts = _hurts(spec)
    stepped = matched(spec)
    found: list[Knob] = []
    for section in ("random_events", "actions"):
        for index, rule in enumerate(spec[section]):
            place: Segments = (section, index)
            if section == "random_events":
                found.append(
                    Knob((*place, "weight"), rule["weight"], Kind.WEIGHT, _leaning(rule, place, hurts))
                )
            amounts = _amounts(rule["effects"], (*place, "effects"))
            found += [_amount(at, effect, hurts) for at, effect in amounts if _path(effect) not in stepped]
    found += [knob for knob in _decays(spec, hurts) if _normal(str(knob.segments[-1])) not in stepped]
    found += [knob for path, knob in _initial(spec, hurts) if path not in stepped]
    return [knob for knob in found if knob.value]


def _hurts(spec: Spec) -> dict[str, int]:
    """Return the harmful direction of each compared path; 0 if both directions are harmful."""
    endings = [(ending, RISING) for ending in spec["loss_conditions"]]
    endings += [(ending, FALLING) for ending in spec.get("win_conditions", [])]
    return directions(chain.from_iterable(readings(ending["when"], sign) for ending, sign in endings))


def _harms(event: dict[str, Any], place: Segments, hurts: dict[str, int]) -> Iterator[Knob]:
    effects = list(_amounts(event["effects"], (*place, "effects")))
    harms = [_harm(effect, hurts) for _, effect in effects]
    if not harms or max(harms) > 0 or min(harms) == 0:
        yield Knob((*place, "weight"), event["weight"], Kind.WEIGHT, RISING)
    for (segments, effect), harm in zip(effects, harms, strict=True):
        if harm >= 0 and effect["value"]:
            yield _amount(segments, effect, hurts)


def _decays(spec: Spec, hurts: dict[str, int]) -> Iterator[Knob]:
    for path, amount in spec["negativity_budget"].get("decay_per_turn", {}).items():
        segments = ("negativity_budget", "decay_per_turn", path)
        if amount:
            yield Knob(segments, amount, Kind.AMOUNT, -hurts.get(_normal(path), 0))


def _initial(spec: Spec, hurts: dict[str, int]) -> Iterator[tuple[str, Knob]]:
    for path, value in numbers(spec["state"]).items():
        yield path, Knob(sim.parse_path(path), value, Kind.AMOUNT, hurts.get(path, 0))


def _amounts(effects: list[dict[str, Any]], place: Segments) -> Iterator[tuple[Segments, dict[str, Any]]]:
    """Yield the effects that change a number by a constant, including scheduled ones."""
    for index, effect in enumerate(effects):
        if effect["op"] == "schedule":
            yield from _amounts(effect["effects"], (*place, index, "effects"))
        elif effect["op"] in {"inc", "dec", "mul"} and not isinstance(effect["value"], str):
            yield (*place, index), effect


def _amount(place: Segments, effect: dict[str, Any], hurts: dict[str, int]) -> Knob:
    kind = Kind.MULTIPLIER if effect["op"] == "mul" else Kind.AMOUNT
    harder = hurts.get(_path(effect), 0) * (FALLING if effect["op"] == "dec" else RISING)
    return Knob((*place, "value"), effect["value"], kind, harder)


def _leaning(event: dict[str, Any], place: Segments, hurts: dict[str, int]) -> int:
    """Return 1 for an event that only harms, -1 for one that only helps, else 0."""
    harms = {_harm(effect, hurts) for _, effect in _amounts(event["effects"], place)} - {0}
    return harms.pop() if len(harms) == 1 else 0


def _harm(effect: dict[str, Any], hurts: dict[str, int]) -> int:
    """Return 1 for a harmful effect, -1 for a helpful one, 0 if unknown."""
    value = effect["value"]
    change = value - 1 if effect["op"] == "mul" else -value if effect["op"] == "dec" else value
    return hurts.get(_path(effect), 0) * (RISING if change > 0 else FALLING)


def _path(effect: dict[str, Any]) -> str:
    return _normal(effect["path"])


def _normal(path: str) -> str:
    return sim.format_path(sim.parse_path(path))

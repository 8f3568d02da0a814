"""Which numbers of a specification may be turned.

A repair turns the weights and the effects of random events, and decay, as far as they do not help the player:
an event that only helps stays as it is. Balancing may also turn what helps, the effects of actions, and what
there is at the start. Which way a quantity hurts is read from the comparisons in loss and win conditions.
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
    """What a repair turns, the events in document order, then decay; what cannot be told is harm."""
    hurts = _hurts(spec)
    found = [
        knob
        for index, event in enumerate(spec["random_events"])
        for knob in _harms(event, ("random_events", index), hurts)
    ]
    found += [knob for knob in _decays(spec, hurts) if knob.harder * knob.value >= 0]
    return found


def balanceable(spec: Spec) -> list[Knob]:
    """What balancing turns: events, decay, actions, initial numbers.

    A quantity that some rule compares for being equal to another is left alone, with all that changes it:
    between its steps such a rule would never hold.
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
    """For each path that endings compare: whether its rising or its falling hurts, 0 when both do."""
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
    """The effects that change a number by a number, those scheduled for later included."""
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
    """1 for an event that only hurts, -1 for one that only helps, else 0."""
    harms = {_harm(effect, hurts) for _, effect in _amounts(event["effects"], place)} - {0}
    return harms.pop() if len(harms) == 1 else 0


def _harm(effect: dict[str, Any], hurts: dict[str, int]) -> int:
    """1 for an effect that hurts, -1 for one that helps, 0 where nothing tells."""
    value = effect["value"]
    change = value - 1 if effect["op"] == "mul" else -value if effect["op"] == "dec" else value
    return hurts.get(_path(effect), 0) * (RISING if change > 0 else FALLING)


def _path(effect: dict[str, Any]) -> str:
    return _normal(effect["path"])


def _normal(path: str) -> str:
    return sim.format_path(sim.parse_path(path))

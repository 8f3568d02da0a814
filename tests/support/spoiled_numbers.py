"""Specifications whose numbers somebody got wrong, and which are otherwise as they were."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

__all__ = ["with_spoiled_numbers"]

# A container, and the key or index of a number in it.
_Place = tuple[Any, Any]

_FACTORS = (-1, 0, 0.1, 0.3, 0.5, 0.8, 1.25, 2, 3, 10, 1_000)
_WEIGHTS = (*([0.05, 0.15, 0.3] * 10), 0.31)
_LEAST_RATES = (0.01, 1, 0, 1.5)
_WIDTHS = (0.04, 0.1, 0.2, 0.4)
_DRIFTS = (0, 0.01, 0.2, 1)
_HORIZONS = (1, 2, 5, 10, 30, 100, 0)


def with_spoiled_numbers(random: Random, document: bytes) -> bytes:
    """A copy in which some numbers are others; what comes of it may be no worse."""
    spec = json.loads(document)
    for change in random.choices(_CHANGES, k=random.choice((1, 2, 2, 3, 5))):
        change(random, spec)
    return json.dumps(spec).encode()


def _any_number(random: Random, spec: Any) -> None:
    container, key = random.choice(list(_numbers(spec)))
    container[key] = _tidy(container[key] * random.choice(_FACTORS))


def _all_of_a_section(random: Random, spec: Any) -> None:
    """As if an author had misjudged a whole kind of rule."""
    factor = random.choice(_FACTORS)
    section = random.choice(["state", "actions", "random_events", "loss_conditions"])
    for container, key in list(_numbers(spec[section])):
        if key != "weight":
            container[key] = _tidy(container[key] * factor)


def _weights(random: Random, spec: Any) -> None:
    for event in spec["random_events"]:
        event["weight"] = random.choice(_WEIGHTS)


def _decay(random: Random, spec: Any) -> None:
    decay = spec["negativity_budget"].setdefault("decay_per_turn", {})
    factor = random.choice(_FACTORS)
    for path in decay:
        decay[path] = _tidy(decay[path] * factor)


def _band(random: Random, spec: Any) -> None:
    least = round(random.random(), 2) if random.random() < 0.8 else random.choice(_LEAST_RATES)
    spec["negativity_budget"]["min_fail_rate"] = least
    if random.random() < 0.6:
        spec["negativity_budget"]["max_fail_rate"] = _tidy(least + random.choice(_WIDTHS))


def _drift(random: Random, spec: Any) -> None:
    spec["negativity_budget"]["max_positive_drift"] = random.choice(_DRIFTS)


def _horizon(random: Random, spec: Any) -> None:
    spec["horizon"] = random.choice(_HORIZONS)


_CHANGES: tuple[Callable[[Random, Any], None], ...] = (
    _any_number,
    _any_number,
    _all_of_a_section,
    _all_of_a_section,
    _weights,
    _decay,
    _band,
    _band,
    _drift,
    _horizon,
)


def _numbers(value: Any) -> Iterator[_Place]:
    for key in value if isinstance(value, dict) else range(len(value)):
        item = value[key]
        if isinstance(item, dict | list):
            yield from _numbers(item)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield value, key


def _tidy(number: float) -> float:
    rounded = round(number, 4)
    return int(rounded) if rounded == int(rounded) else rounded

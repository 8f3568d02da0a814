"""Mutation operators of scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.mutations import logic
from peripety.mutations.changes import GONE, Change
from peripety.mutations.steps import shifted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from peripety.mutations.changes import Place

__all__ = ["OPERATORS"]

_OPPOSITES = {"inc": "dec", "dec": "inc", "mul": "set", "push": "pop"}
_RULES = ("actions", "random_events")
_CONDITIONS = {
    "actions": "preconditions",
    "random_events": "when",
    "loss_conditions": "when",
    "win_conditions": "when",
}
_NEGLIGIBLE = 1e-9


def _conditions(spec: Mapping[str, Any]) -> Iterator[tuple[Place, Any]]:
    """Yield every condition that is not empty."""
    for section, name in _CONDITIONS.items():
        for index, rule in enumerate(spec.get(section) or ()):
            if rule.get(name):
                yield (section, index, name), rule[name]


def _expressions(spec: Mapping[str, Any]) -> Iterator[tuple[Place, Any]]:
    """Yield every expression: conditions, and derived values."""
    yield from _conditions(spec)
    for section in _RULES:
        for index, rule in enumerate(spec.get(section) or ()):
            for name, derived in (rule.get("derives") or {}).items():
                yield (section, index, "derives", name), derived


def _effects(spec: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield every effect; scheduled effects follow the effect that schedules them."""
    for section in _RULES:
        for index, rule in enumerate(spec.get(section) or ()):
            yield from _nested(rule["effects"], (section, index, "effects"))


def _nested(effects: Iterable[Mapping[str, Any]], place: Place) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    for index, effect in enumerate(effects):
        yield (*place, index), effect
        if effect["op"] == "schedule":
            yield from _nested(effect["effects"], (*place, index, "effects"))


def _in_expressions(operator: Callable[[Any], Iterable[Change]]) -> Callable[[Any], Iterator[Change]]:
    def changes(spec: Mapping[str, Any]) -> Iterator[Change]:
        for place, expression in _expressions(spec):
            for change in operator(expression):
                yield Change((*place, *change.place), change.before, change.after)

    return changes


def _drop_condition(spec: Mapping[str, Any]) -> Iterator[Change]:
    for place, condition in _conditions(spec):
        yield Change(place, condition, {})


def _drop_effect(spec: Mapping[str, Any]) -> Iterator[Change]:
    for place, effect in _effects(spec):
        yield Change(place, effect, GONE)


def _swap_operation(spec: Mapping[str, Any]) -> Iterator[Change]:
    for place, effect in _effects(spec):
        other = _OPPOSITES.get(effect["op"])
        if other == "pop":
            yield Change(place, effect, {"op": "pop", "path": effect["path"]})
        elif other is not None:
            yield Change((*place, "op"), effect["op"], other)


def _change_value(spec: Mapping[str, Any]) -> Iterator[Change]:
    for place, effect in _effects(spec):
        value = effect.get("value")
        if isinstance(value, bool):
            yield Change((*place, "value"), value, not value)
        elif isinstance(value, int | float):
            yield from (Change((*place, "value"), value, other) for other in shifted(value))
        elif isinstance(value, str) and effect["op"] in {"set", "push"}:
            yield Change((*place, "value"), value, f"{value}x")


def _change_path(spec: Mapping[str, Any]) -> Iterator[Change]:
    """Replace the path of an effect by that of the previous effect."""
    for section in _RULES:
        for index, rule in enumerate(spec.get(section) or ()):
            for number, effect in enumerate(rule["effects"]):
                before = rule["effects"][number - 1].get("path") if number else None
                if before is not None and effect.get("path") not in {None, before}:
                    place = (section, index, "effects", number, "path")
                    yield Change(place, effect["path"], before)


def _change_time(spec: Mapping[str, Any]) -> Iterator[Change]:
    """Delay a scheduled effect by a turn, or extend a duration by a turn."""
    for place, effect in _effects(spec):
        for name in ("at", "after"):
            if isinstance(effect.get(name), int):
                yield Change((*place, name), effect[name], effect[name] + 1)


def _change_weight(spec: Mapping[str, Any]) -> Iterator[Change]:
    for index, event in enumerate(spec.get("random_events") or ()):
        weight = event["weight"]
        if isinstance(weight, int | float) and weight:
            yield Change(("random_events", index, "weight"), weight, weight / 2)


def _drop_event(spec: Mapping[str, Any]) -> Iterator[Change]:
    for index, event in enumerate(spec.get("random_events") or ()):
        yield Change(("random_events", index), event, GONE)


def _drop_ending(spec: Mapping[str, Any]) -> Iterator[Change]:
    for section in ("loss_conditions", "win_conditions"):
        for index, ending in enumerate(spec.get(section) or ()):
            yield Change((section, index), ending, GONE)


def _drop_duration(spec: Mapping[str, Any]) -> Iterator[Change]:
    for index, event in enumerate(spec.get("random_events") or ()):
        if event.get("duration") is not None:
            yield Change(("random_events", index, "duration"), event["duration"], GONE)


def _change_decay(spec: Mapping[str, Any]) -> Iterator[Change]:
    decay = spec["negativity_budget"].get("decay_per_turn") or {}
    for path, rate in decay.items():
        place = ("negativity_budget", "decay_per_turn", path)
        if abs(rate) > _NEGLIGIBLE:
            yield Change(place, rate, 0)
            yield Change(place, rate, -rate)


def _change_start(spec: Mapping[str, Any]) -> Iterator[Change]:
    """Change an initial value to the next one."""
    pending: list[tuple[Place, Any]] = [(("state",), spec["state"])]
    while pending:
        place, value = pending.pop()
        if isinstance(value, dict):
            pending += [((*place, key), inner) for key, inner in reversed(value.items())]
        elif isinstance(value, bool):
            yield Change(place, value, not value)
        elif isinstance(value, int | float):
            yield from (Change(place, value, other) for other in [*shifted(value)][-1:])


def _shift_bound(spec: Mapping[str, Any]) -> Iterator[Change]:
    for index, action in enumerate(spec["actions"]):
        for name, param in action["params"].items():
            for bound, by in (("minimum", 1), ("maximum", -1)):
                if isinstance(param.get(bound), int | float):
                    place = ("actions", index, "params", name, bound)
                    yield Change(place, param[bound], param[bound] + by)
                    yield Change(place, param[bound], param[bound] - by)


OPERATORS: dict[str, Callable[[Mapping[str, Any]], Iterable[Change]]] = {
    **{name: _in_expressions(operator) for name, operator in logic.OPERATORS.items()},
    "drop_condition": _drop_condition,
    "drop_effect": _drop_effect,
    "swap_operation": _swap_operation,
    "change_value": _change_value,
    "change_path": _change_path,
    "change_time": _change_time,
    "change_weight": _change_weight,
    "drop_event": _drop_event,
    "drop_duration": _drop_duration,
    "drop_ending": _drop_ending,
    "change_decay": _change_decay,
    "change_start": _change_start,
    "shift_bound": _shift_bound,
}
"""The operators by name."""

"""Effects over abstract states: the resulting states, and the possible errors."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.engine._reference import limits
from peripety.engine.paths import Path, parse_path
from peripety.engine.static_analysis.abstract_domain import (
    ABSENT,
    ARRAY,
    BOTTOM,
    NUMBER,
    OBJECT,
    AbstractObject,
    AbstractValue,
    array_range,
    from_literal,
    get_item,
    get_member,
    join,
    number_range,
    replace_member,
)
from peripety.engine.static_analysis.arithmetic import FAILS, add, multiply, subtract

if TYPE_CHECKING:
    from peripety.engine._reference.bounds import NumberBounds
    from peripety.engine.static_analysis.abstract_domain import StepBudget


_Write = Callable[[AbstractValue], tuple[AbstractValue, int]]
"""Write to the values at a path: the new values (`BOTTOM` if it always fails), and the possible errors."""
_NOT_AN_AMOUNT = 255 & ~NUMBER


class ScheduledEffects(NamedTuple):
    """Scheduled effects that may be due in a turn, with the values of derived names.

    Attributes:
        place: JSON Pointer of the scheduling effect.
        id: id of the schedule.
    """

    place: str
    id: str
    effects: list[Any]
    derives: dict[str, AbstractValue]


class EffectsResult(NamedTuple):
    """Result of a list of effects.

    Attributes:
        tree: the states afterwards; `BOTTOM` if it always fails.
        errors: possible errors, as bits.
        failing_index: index of the first effect that may fail.
        scheduled: scheduled effects, with their due turns.
    """

    tree: AbstractValue
    errors: int
    failing_index: int | None
    scheduled: list[tuple[int, ScheduledEffects]]


class EffectTime(NamedTuple):
    """Time of effects: the turn, and the length of a turn in minutes."""

    turn: int
    minutes: int


def apply_effects(
    tree: AbstractValue,
    effects: list[Any],
    derives: dict[str, AbstractValue],
    moment: EffectTime,
    place: str,
    budget: StepBudget,
    bounds: NumberBounds,
) -> EffectsResult:
    """Apply a list of effects to all states of a set at once.

    Args:
        tree: the states.
        effects: the effects of the document.
        derives: values of derived names.
        moment: the time.
        place: JSON Pointer of the list.
        budget: pays for the work.
        bounds: bounds of numbers.
    """
    fails = 0
    failing: int | None = None
    later: list[tuple[int, ScheduledEffects]] = []
    for index, effect in enumerate(effects):
        budget.spend()
        operation = effect["op"]
        if operation == "schedule":
            due = _due_turn(effect, moment)
            later.append(
                (due, ScheduledEffects(f"{place}/{index}", effect["id"], effect["effects"], derives)),
            )
        elif operation != "addlog":
            path = parse_path(effect["path"])
            write = _OPERATIONS[operation](_resolve(effect.get("value"), derives))
            if bounds.limits:
                write = _clamped(write, path, operation, bounds)
            tree, why = _write_at(tree, path[1:], write)
            fails |= why
            failing = index if why and failing is None else failing
            if not tree.kinds:
                return EffectsResult(BOTTOM, fails, index, [])
    return EffectsResult(tree, fails, failing, later)


def _due_turn(effect: dict[str, Any], moment: EffectTime) -> int:
    if "at" in effect:
        return max(limits.duration_in_turns(effect["at"], moment.minutes), moment.turn + 1)
    return moment.turn + limits.duration_in_turns(effect["after"], moment.minutes)


def _resolve(value: Any, derives: dict[str, AbstractValue]) -> AbstractValue:
    """Return a literal, or the derived value that a string refers to."""
    if isinstance(value, str) and value in derives:
        return derives[value]
    return from_literal(value)


# --- paths ---


def _write_at(value: AbstractValue, path: Path, write: _Write) -> tuple[AbstractValue, int]:
    """Write at a path; values without that path fail and are dropped."""
    if not path:
        return write(value)
    key, *below = path
    if isinstance(key, str):
        holder = value.object
        if holder is None:
            return BOTTOM, FAILS
        item, fails = _write_at(get_member(holder, key), tuple(below), write)
        fails |= FAILS if value.kinds != OBJECT else 0
        return (replace_member(holder, key, item) if item.kinds else BOTTOM), fails
    array = value.array
    if array is None or key >= array.maximum:
        return BOTTOM, FAILS
    item, fails = _write_at(get_item(array), tuple(below), write)
    fails |= FAILS if value.kinds != ARRAY or key >= array.minimum else 0
    if not item.kinds:
        return BOTTOM, fails
    items = item if array.minimum == array.maximum == 1 else join(get_item(array), item)
    return array_range(max(array.minimum, key + 1), array.maximum, items), fails


# --- bounds ---


def _clamped(write: _Write, path: Path, operation: str, bounds: NumberBounds) -> _Write:
    """Return a write that stores bounded numbers within their bounds."""
    limits = bounds.limits.get(path)
    if operation == "patch":
        members = {own[-1]: limits for own, limits in bounds.limits.items() if own[:-1] == path}
        return lambda before: _clamp_members(write(before), members, may_fail=path in bounds.holders)
    return write if limits is None else lambda before: _clamp_result(write(before), limits)


def _clamp_members(
    result: tuple[AbstractValue, int],
    members: dict[str | int, tuple[float, float]],
    *,
    may_fail: bool,
) -> tuple[AbstractValue, int]:
    after, fails = result
    if after.object is None:
        return result
    fields = dict(after.object.fields)
    for key, limit in members.items():
        fields[str(key)], why = _clamp_result((get_member(after.object, str(key)), 0), limit)
        fails |= why
        if not fields[str(key)].kinds:
            return BOTTOM, fails
    # A patch with a derived value may replace an object that holds bounded numbers, and then fails.
    fails |= FAILS if may_fail and after.object.rest is None else 0
    return after._replace(object=AbstractObject(fields, after.object.rest)), fails


def _clamp_result(
    result: tuple[AbstractValue, int], limits: tuple[float, float]
) -> tuple[AbstractValue, int]:
    after, fails = result
    if not after.kinds & NUMBER:
        return BOTTOM, fails | FAILS
    fails |= FAILS if after.kinds != NUMBER else 0
    low, high = (min(max(number, limits[0]), limits[1]) for number in (after.low, after.high))
    whole = after.whole and all(limit.is_integer() for limit in limits if isfinite(limit))
    return number_range(low, high, whole=whole), fails


# --- operations ---


def _write_value(value: AbstractValue) -> _Write:
    return lambda _before: (value, 0)


def _write_calculated(
    step: Callable[[AbstractValue, AbstractValue], tuple[AbstractValue, int]],
) -> Callable[[AbstractValue], _Write]:
    def operation(amount: AbstractValue) -> _Write:
        def write(before: AbstractValue) -> tuple[AbstractValue, int]:
            if not before.kinds & NUMBER or not amount.kinds & NUMBER:
                return BOTTOM, FAILS
            fails = FAILS if (before.kinds | amount.kinds) & _NOT_AN_AMOUNT else 0
            after, outgrows = step(before, amount)
            return after, fails | outgrows

        return write

    return operation


def _write_patch(value: AbstractValue) -> _Write:
    def write(before: AbstractValue) -> tuple[AbstractValue, int]:
        target, patch = before.object, value.object
        if target is None or patch is None:
            return BOTTOM, FAILS
        fails = FAILS if before.kinds != OBJECT or value.kinds != OBJECT else 0
        if patch.rest is None or patch.rest.kinds:
            return AbstractValue(OBJECT, object=AbstractObject({}, None)), fails
        fields = dict(target.fields)
        for key, item in patch.fields.items():
            there = item._replace(kinds=item.kinds & ~ABSENT)
            fields[key] = join(get_member(target, key), there) if item.kinds & ABSENT else item
        return AbstractValue(OBJECT, object=AbstractObject(fields, target.rest)), fails

    return write


def _write_push(value: AbstractValue) -> _Write:
    def write(before: AbstractValue) -> tuple[AbstractValue, int]:
        array = before.array
        if array is None:
            return BOTTOM, FAILS
        item = join(get_item(array), value) if array.maximum else value
        return array_range(array.minimum + 1, array.maximum + 1, item), FAILS if before.kinds != ARRAY else 0

    return write


def _write_pop(_value: AbstractValue) -> _Write:
    def write(before: AbstractValue) -> tuple[AbstractValue, int]:
        array = before.array
        if array is None or not array.maximum:
            return BOTTOM, FAILS
        fails = FAILS if before.kinds != ARRAY or not array.minimum else 0
        return array_range(max(array.minimum - 1, 0), array.maximum - 1, array.item), fails

    return write


_OPERATIONS: dict[str, Callable[[AbstractValue], _Write]] = {
    "set": _write_value,
    "inc": _write_calculated(add),
    "dec": _write_calculated(subtract),
    "mul": _write_calculated(multiply),
    "patch": _write_patch,
    "push": _write_push,
    "pop": _write_pop,
}

"""Effects over abstract states: the resulting states, and the possible errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.sim._pure import durations
from peripety.sim._pure.paths import Path, parse_path
from peripety.sim.proofs.arithmetic import difference, product, total
from peripety.sim.proofs.domain import (
    ABSENT,
    ARRAY,
    BOTTOM,
    NUMBER,
    OBJECT,
    Object,
    Value,
    array_of,
    item_of,
    join,
    literal,
    member_of,
    replaced_member,
)
from peripety.sim.proofs.readings import FAILS

if TYPE_CHECKING:
    from peripety.sim.proofs.budget import Budget

__all__ = ["Later", "Moment", "Outcome", "apply_effects"]

_Write = Callable[[Value], tuple[Value, int]]
"""Write to the values at a path: the new values (`BOTTOM` if it always fails), and the possible errors."""
_NOT_AN_AMOUNT = 255 & ~NUMBER


class Later(NamedTuple):
    """Scheduled effects that may be due in a turn, with the values of derived names.

    Attributes:
        place: JSON Pointer of the scheduling effect.
        id: id of the schedule.
    """

    place: str
    id: str
    effects: list[Any]
    derives: dict[str, Value]


class Outcome(NamedTuple):
    """Result of a list of effects.

    Attributes:
        tree: the states afterwards; `BOTTOM` if it always fails.
        fails: possible errors, as bits.
        failing: index of the first effect that may fail.
        later: scheduled effects, with their due turns.
    """

    tree: Value
    fails: int
    failing: int | None
    later: list[tuple[int, Later]]


class Moment(NamedTuple):
    """Time of effects: the turn, and the length of a turn in minutes."""

    turn: int
    minutes: int


def apply_effects(
    tree: Value, effects: list[Any], derives: dict[str, Value], moment: Moment, place: str, budget: Budget
) -> Outcome:
    """Apply a list of effects to all states of a set at once.

    Args:
        tree: the states.
        effects: the effects of the document.
        derives: values of derived names.
        moment: the time.
        place: JSON Pointer of the list.
        budget: pays for the work.
    """
    fails = 0
    failing: int | None = None
    later: list[tuple[int, Later]] = []
    for index, effect in enumerate(effects):
        budget.spend()
        operation = effect["op"]
        if operation == "schedule":
            due = _due(effect, moment)
            later.append((due, Later(f"{place}/{index}", effect["id"], effect["effects"], derives)))
        elif operation != "addlog":
            path = parse_path(effect["path"])
            write = _OPERATIONS[operation](_resolved(effect.get("value"), derives))
            tree, why = _written(tree, path[1:], write)
            fails |= why
            failing = index if why and failing is None else failing
            if not tree.kinds:
                return Outcome(BOTTOM, fails, index, [])
    return Outcome(tree, fails, failing, later)


def _due(effect: dict[str, Any], moment: Moment) -> int:
    if "at" in effect:
        return max(durations.turns(effect["at"], moment.minutes), moment.turn + 1)
    return moment.turn + durations.turns(effect["after"], moment.minutes)


def _resolved(value: Any, derives: dict[str, Value]) -> Value:
    """Return a literal, or the derived value that a string refers to."""
    if isinstance(value, str) and value in derives:
        return derives[value]
    return literal(value)


# --- paths ---


def _written(value: Value, path: Path, write: _Write) -> tuple[Value, int]:
    """Write at a path; values without that path fail and are dropped."""
    if not path:
        return write(value)
    key, *below = path
    if isinstance(key, str):
        holder = value.object
        if holder is None:
            return BOTTOM, FAILS
        item, fails = _written(member_of(holder, key), tuple(below), write)
        fails |= FAILS if value.kinds != OBJECT else 0
        return (replaced_member(holder, key, item) if item.kinds else BOTTOM), fails
    array = value.array
    if array is None or key >= array.most:
        return BOTTOM, FAILS
    item, fails = _written(item_of(array), tuple(below), write)
    fails |= FAILS if value.kinds != ARRAY or key >= array.least else 0
    if not item.kinds:
        return BOTTOM, fails
    items = item if array.least == array.most == 1 else join(item_of(array), item)
    return array_of(max(array.least, key + 1), array.most, items), fails


# --- operations ---


def _set(value: Value) -> _Write:
    return lambda _before: (value, 0)


def _calculated(step: Callable[[Value, Value], tuple[Value, int]]) -> Callable[[Value], _Write]:
    def operation(amount: Value) -> _Write:
        def write(before: Value) -> tuple[Value, int]:
            if not before.kinds & NUMBER or not amount.kinds & NUMBER:
                return BOTTOM, FAILS
            fails = FAILS if (before.kinds | amount.kinds) & _NOT_AN_AMOUNT else 0
            after, outgrows = step(before, amount)
            return after, fails | outgrows

        return write

    return operation


def _patch(value: Value) -> _Write:
    def write(before: Value) -> tuple[Value, int]:
        target, patch = before.object, value.object
        if target is None or patch is None:
            return BOTTOM, FAILS
        fails = FAILS if before.kinds != OBJECT or value.kinds != OBJECT else 0
        if patch.rest is None or patch.rest.kinds:
            return Value(OBJECT, object=Object({}, None)), fails
        fields = dict(target.fields)
        for key, item in patch.fields.items():
            there = item._replace(kinds=item.kinds & ~ABSENT)
            fields[key] = join(member_of(target, key), there) if item.kinds & ABSENT else item
        return Value(OBJECT, object=Object(fields, target.rest)), fails

    return write


def _push(value: Value) -> _Write:
    def write(before: Value) -> tuple[Value, int]:
        array = before.array
        if array is None:
            return BOTTOM, FAILS
        item = join(item_of(array), value) if array.most else value
        return array_of(array.least + 1, array.most + 1, item), FAILS if before.kinds != ARRAY else 0

    return write


def _pop(_value: Value) -> _Write:
    def write(before: Value) -> tuple[Value, int]:
        array = before.array
        if array is None or not array.most:
            return BOTTOM, FAILS
        fails = FAILS if before.kinds != ARRAY or not array.least else 0
        return array_of(max(array.least - 1, 0), array.most - 1, array.item), fails

    return write


_OPERATIONS: dict[str, Callable[[Value], _Write]] = {
    "set": _set,
    "inc": _calculated(total),
    "dec": _calculated(difference),
    "mul": _calculated(product),
    "patch": _patch,
    "push": _push,
    "pop": _pop,
}

"""JSONLogic over abstract data: the values that an expression may have, and the data for which it holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.sim._pure.canonical import number_text
from peripety.sim._pure.logic import FUEL, OUTPUT_LIMIT
from peripety.sim._pure.paths import split_variable
from peripety.sim.proofs.conditions import CHOOSING, CONDITIONS, Split, plain_path
from peripety.sim.proofs.domain import (
    ANY,
    ARRAY,
    BOTTOM,
    FEW,
    TEXT,
    Value,
    array_of,
    booleans,
    item_of,
    join,
    literal,
    member,
    present,
)
from peripety.sim.proofs.narrowing import narrowed
from peripety.sim.proofs.operators import OPERATIONS
from peripety.sim.proofs.readings import (
    FAILS,
    OUTGROWS,
    may_be_false,
    may_be_true,
    only_false,
    only_true,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim.proofs.budget import Budget

__all__ = ["Evaluation"]

_DIGITS = re.compile(r"0|[1-9][0-9]{0,9}")


class Evaluation:
    """The evaluation of one expression over all data of a set at once.

    Attributes:
        fails: why it may fail for some of the data: `FAILS`, `OUTGROWS`.
    """

    def __init__(self, budget: Budget) -> None:
        self.fails = 0
        self._budget = budget
        self._fuel = 0
        self._output = 0
        # How often what is evaluated now is evaluated in one run, at most.
        self._times = 1

    def result(self, logic: Any, data: Value) -> Value:
        """The values that a whole expression may have; `BOTTOM` when it always fails."""
        value = self.value(logic, data)
        self._check_fuel()
        return value

    def condition(self, logic: Any, data: Value) -> Split:
        """The data for which a whole condition holds, and for which it does not; neither where it fails."""
        both = self.split(logic, data)
        self._check_fuel()
        return both

    def _check_fuel(self) -> None:
        if self._fuel > FUEL or self._output > OUTPUT_LIMIT:
            self.fails |= OUTGROWS

    def burn(self, steps: int) -> None:
        """Count steps of fuel."""
        self._fuel += steps * self._times

    def write(self, length: int) -> None:
        """Count characters and items that are made."""
        self._output += length * self._times

    def fail(self, why: int) -> Value:
        """Give no value, because the evaluation fails."""
        self.fails |= why
        return BOTTOM

    # --- values ---

    def value(self, logic: Any, data: Value) -> Value:
        """The values that an expression may have."""
        self._budget.spend()
        self.burn(1)
        if isinstance(logic, list):
            return self.listed([self.value(item, data) for item in logic])
        if not isinstance(logic, dict) or not logic:
            return literal(logic)
        name, operand = next(iter(logic.items()))
        if name in CONDITIONS and name not in CHOOSING:
            true, false = CONDITIONS[name](self, name, operand, data)
            return booleans(true=true is not None, false=false is not None)
        return OPERATIONS[name](self, operand, data)

    def listed(self, items: list[Value]) -> Value:
        """An array of such items."""
        common = BOTTOM
        for item in items:
            if not item.kinds:
                return BOTTOM
            common = join(common, item)
        return self.made(array_of(len(items), len(items), common))

    def made(self, value: Value) -> Value:
        """An array that an evaluation makes, which must not be too large."""
        array = value.array
        self.write(array.most if array is not None else 0)
        if array is not None and array.most and (array.most > FEW or not _is_small(item_of(array))):
            self.fails |= OUTGROWS
        return value

    def arguments(self, operand: Any, data: Value) -> list[Value]:
        """The values of all arguments; an operand that is not a list is the only one."""
        items = operand if isinstance(operand, list) else [operand]
        return [self.value(item, data) for item in items]

    def spread(self, operand: Any, data: Value) -> list[Value] | None:
        """As `arguments`, but an array that an operation yields provides them all; None when not known."""
        if isinstance(operand, list):
            return self.arguments(operand, data)
        value = self.value(operand, data)
        array = value.array
        if array is None or not isinstance(operand, dict):
            return [value]
        self.burn(array.most)
        if value.kinds == ARRAY and array.least == array.most <= FEW:
            return [present(item_of(array))] * array.most
        return None

    def variable(self, path: Any, data: Value) -> Value:
        """What a variable may find, or nothing."""
        if path is None:
            return data
        if isinstance(path, float):
            path = number_text(path)
        if not isinstance(path, str):
            self.fails |= FAILS | OUTGROWS
            return ANY
        value = data
        for segment in split_variable(path):
            value = _step(value, segment)
        return value

    def repeated(self, times: int, work: Callable[[], Value | Split]) -> Any:
        """What some work gives that a run does so often."""
        before = self._times
        self._times *= max(times, 1)
        result = work()
        self._times = before
        return result

    # --- conditions ---

    def split(self, logic: Any, data: Value) -> Split:
        """The data for which a condition may hold, and for which it may not."""
        if isinstance(logic, dict) and logic:
            name, operand = next(iter(logic.items()))
            if name in CONDITIONS:
                self._budget.spend()
                self.burn(1)
                return CONDITIONS[name](self, name, operand, data)
        value = self.value(logic, data)
        true = data if may_be_true(value) else None
        false = data if may_be_false(value) else None
        path = plain_path(logic)
        if path is not None:
            true = true and narrowed(true, path, only_true)
            false = false and narrowed(false, path, only_false)
        return true, false


def _is_small(item: Value) -> bool:
    """Whether few enough items of a kind are surely within what an evaluation may make."""
    return item.array is None and item.object is None and not (item.kinds & TEXT and item.texts is None)


def _step(value: Value, segment: str | int) -> Value:
    """One step of a variable: a segment of digits is an index where the value is an array."""
    if value.array is None or isinstance(segment, int) or not _DIGITS.fullmatch(segment):
        return member(value, segment)
    found = member(value, int(segment))
    return found if value.kinds == ARRAY else join(found, member(value, segment))

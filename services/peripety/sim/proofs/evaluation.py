"""Abstract evaluation of JSONLogic: possible values, and the data that satisfies conditions."""

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
    """Evaluation of one expression over all data of a set at once.

    Attributes:
        fails: possible errors: `FAILS`, `OUTGROWS`.
    """

    def __init__(self, budget: Budget) -> None:
        self.fails = 0
        self._budget = budget
        self._fuel = 0
        self._output = 0
        # Maximum number of evaluations of the current part in one run.
        self._times = 1

    def result(self, logic: Any, data: Value) -> Value:
        """Return the possible values of a whole expression; `BOTTOM` if it always fails."""
        value = self.value(logic, data)
        self._check_fuel()
        return value

    def condition(self, logic: Any, data: Value) -> Split:
        """Split the data by a whole condition; data for which it fails is on neither side."""
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
        """Count produced characters and items."""
        self._output += length * self._times

    def fail(self, why: int) -> Value:
        """Record an error and return no value."""
        self.fails |= why
        return BOTTOM

    # --- values ---

    def value(self, logic: Any, data: Value) -> Value:
        """Return the possible values of an expression."""
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
        """Return an array of the given items."""
        common = BOTTOM
        for item in items:
            if not item.kinds:
                return BOTTOM
            common = join(common, item)
        return self.made(array_of(len(items), len(items), common))

    def made(self, value: Value) -> Value:
        """Charge for a produced array, which may exceed the limits."""
        array = value.array
        self.write(array.most if array is not None else 0)
        if array is not None and array.most and (array.most > FEW or not _is_small(item_of(array))):
            self.fails |= OUTGROWS
        return value

    def arguments(self, operand: Any, data: Value) -> list[Value]:
        """Return the values of all arguments; an operand that is not a list is the only one."""
        items = operand if isinstance(operand, list) else [operand]
        return [self.value(item, data) for item in items]

    def spread(self, operand: Any, data: Value) -> list[Value] | None:
        """Return the values of all arguments, with an array from an operation expanded.

        None if the length of the array is unknown.
        """
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
        """Return the possible values of a variable, including absence."""
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
        """Return the result of work that a run performs up to so many times."""
        before = self._times
        self._times *= max(times, 1)
        result = work()
        self._times = before
        return result

    # --- conditions ---

    def split(self, logic: Any, data: Value) -> Split:
        """Split the data into those for which a condition may hold, and those for which it may not."""
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
    """Return True if a few items of this kind are certainly within the output limit."""
    return item.array is None and item.object is None and not (item.kinds & TEXT and item.texts is None)


def _step(value: Value, segment: str | int) -> Value:
    """Follow one segment of a variable; digits are an index if the value is an array."""
    if value.array is None or isinstance(segment, int) or not _DIGITS.fullmatch(segment):
        return member(value, segment)
    found = member(value, int(segment))
    return found if value.kinds == ARRAY else join(found, member(value, segment))

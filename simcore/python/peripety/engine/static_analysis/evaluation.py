"""Abstract evaluation of JSONLogic: possible values, and the data that satisfies conditions.

It uses the facts that a scenario declares: domains of parameters, the order of derived values, dependence
on time. The sign analysis of derived values holds for any state.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.engine import strict_json
from peripety.engine._reference.effects import find_derive_names
from peripety.engine._reference.jsonlogic import FUEL, OUTPUT_LIMIT
from peripety.engine.canonical_json import canonicalize, format_number
from peripety.engine.paths import split_variable
from peripety.engine.static_analysis.abstract_domain import (
    ANY,
    ANY_TEXT,
    ARRAY,
    BOTTOM,
    FALSE,
    MAX_ENUMERATED,
    MAX_NUMBER,
    NUMBER,
    OBJECT,
    TEXT,
    TRUE,
    AbstractObject,
    AbstractValue,
    BudgetSpentError,
    StepBudget,
    array_range,
    boolean_set,
    from_literal,
    get_child,
    get_item,
    join,
    number_range,
    read_absent_as_null,
)
from peripety.engine.static_analysis.arithmetic import (
    EXCEEDS,
    FAILS,
    may_be_false,
    may_be_true,
    restrict_to_false,
    restrict_to_true,
)
from peripety.engine.static_analysis.conditions import (
    CONDITIONS,
    OPERAND_RETURNING,
    Split,
    get_plain_path,
    refine_path,
)
from peripety.engine.static_analysis.operators import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.engine._reference.state import Rules


def get_param_domains(declared: dict[str, Any]) -> AbstractValue:
    """Return the domains of the parameters of an action."""
    fields = {name: _get_domain(schema) for name, schema in declared.items()}
    return AbstractValue(OBJECT, object=AbstractObject(fields, BOTTOM))


def _get_domain(schema: dict[str, Any]) -> AbstractValue:
    if "enum" in schema:
        options = BOTTOM
        for option in schema["enum"]:
            options = join(options, from_literal(option))
        return options
    match schema["type"]:
        case "boolean":
            return AbstractValue(FALSE | TRUE)
        case "string":
            return ANY_TEXT
        case kind:
            return number_range(schema["minimum"], schema["maximum"], whole=kind == "integer")


def sort_derives(derives: dict[str, Any]) -> list[str]:
    """Return the names of derived values in dependency order."""
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        for other in sorted(find_derive_names(derives[name]) & derives.keys()):
            visit(other)
        order[name] = None

    for name in sorted(derives):
        visit(name)
    return [*order]


def is_time_dependent(rules: Rules) -> bool:
    """Return True if equal states may behave differently in different turns."""
    written = [*rules.actions, *rules.events, *rules.losses, *rules.wins]
    return any(map(_mentions_time, written))


def _mentions_time(logic: Any) -> bool:
    if isinstance(logic, str):
        return logic.startswith("turn")
    if isinstance(logic, list):
        return any(map(_mentions_time, logic))
    if isinstance(logic, dict):
        return logic.get("op") == "schedule" or any(map(_mentions_time, logic.values()))
    return False


_DIGITS = re.compile(r"0|[1-9][0-9]{0,9}")


class AbstractEvaluation:
    """Evaluation of one expression over all data of a set at once.

    Attributes:
        fails: possible errors: `FAILS`, `EXCEEDS`.
    """

    def __init__(self, budget: StepBudget) -> None:
        self.fails = 0
        self._budget = budget
        self._fuel = 0
        self._output = 0
        # Maximum number of evaluations of the current part in one run.
        self._times = 1

    def evaluate_whole(self, logic: Any, data: AbstractValue) -> AbstractValue:
        """Return the possible values of a whole expression; `BOTTOM` if it always fails."""
        value = self.evaluate(logic, data)
        self._check_fuel()
        return value

    def split_whole(self, logic: Any, data: AbstractValue) -> Split:
        """Split the data by a whole condition; data for which it fails is on neither side."""
        both = self.split(logic, data)
        self._check_fuel()
        return both

    def _check_fuel(self) -> None:
        if self._fuel > FUEL or self._output > OUTPUT_LIMIT:
            self.fails |= EXCEEDS

    def spend_fuel(self, steps: int) -> None:
        """Count steps of fuel."""
        self._fuel += steps * self._times

    def spend_output(self, length: int) -> None:
        """Count produced characters and items."""
        self._output += length * self._times

    def fail(self, why: int) -> AbstractValue:
        """Record an error and return no value."""
        self.fails |= why
        return BOTTOM

    # --- values ---

    def evaluate(self, logic: Any, data: AbstractValue) -> AbstractValue:
        """Return the possible values of an expression."""
        self._budget.spend()
        self.spend_fuel(1)
        if isinstance(logic, list):
            return self.make_array([self.evaluate(item, data) for item in logic])
        if not isinstance(logic, dict) or not logic:
            return from_literal(logic)
        name, operand = next(iter(logic.items()))
        if name in CONDITIONS and name not in OPERAND_RETURNING:
            true, false = CONDITIONS[name](self, name, operand, data)
            return boolean_set(true=true is not None, false=false is not None)
        return OPERATIONS[name](self, operand, data)

    def make_array(self, items: list[AbstractValue]) -> AbstractValue:
        """Return an array of the given items."""
        common = BOTTOM
        for item in items:
            if not item.kinds:
                return BOTTOM
            common = join(common, item)
        return self.charge_array(array_range(len(items), len(items), common))

    def charge_array(self, value: AbstractValue) -> AbstractValue:
        """Charge for a produced array, which may exceed the limits."""
        array = value.array
        self.spend_output(array.maximum if array is not None else 0)
        if (
            array is not None
            and array.maximum
            and (array.maximum > MAX_ENUMERATED or not _is_small(get_item(array)))
        ):
            self.fails |= EXCEEDS
        return value

    def evaluate_arguments(self, operand: Any, data: AbstractValue) -> list[AbstractValue]:
        """Return the values of all arguments; an operand that is not a list is the only one."""
        items = operand if isinstance(operand, list) else [operand]
        return [self.evaluate(item, data) for item in items]

    def expand_arguments(self, operand: Any, data: AbstractValue) -> list[AbstractValue] | None:
        """Return the values of all arguments, with an array from an operation expanded.

        None if the length of the array is unknown.
        """
        if isinstance(operand, list):
            return self.evaluate_arguments(operand, data)
        value = self.evaluate(operand, data)
        array = value.array
        if array is None or not isinstance(operand, dict):
            return [value]
        self.spend_fuel(array.maximum)
        if value.kinds == ARRAY and array.minimum == array.maximum <= MAX_ENUMERATED:
            return [read_absent_as_null(get_item(array))] * array.maximum
        return None

    def look_up(self, path: Any, data: AbstractValue) -> AbstractValue:
        """Return the possible values of a variable, including absence."""
        if path is None:
            return data
        if isinstance(path, float):
            path = format_number(path)
        if not isinstance(path, str):
            self.fails |= FAILS | EXCEEDS
            return ANY
        value = data
        for segment in split_variable(path):
            value = _follow_segment(value, segment)
        return value

    def repeat(self, times: int, work: Callable[[], AbstractValue | Split]) -> Any:
        """Return the result of work that a run performs up to so many times."""
        before = self._times
        self._times *= max(times, 1)
        result = work()
        self._times = before
        return result

    # --- conditions ---

    def split(self, logic: Any, data: AbstractValue) -> Split:
        """Split the data into those for which a condition may hold, and those for which it may not."""
        if isinstance(logic, dict) and logic:
            name, operand = next(iter(logic.items()))
            if name in CONDITIONS:
                self._budget.spend()
                self.spend_fuel(1)
                return CONDITIONS[name](self, name, operand, data)
        value = self.evaluate(logic, data)
        true = data if may_be_true(value) else None
        false = data if may_be_false(value) else None
        path = get_plain_path(logic)
        if path is not None:
            true = true and refine_path(true, path, restrict_to_true)
            false = false and refine_path(false, path, restrict_to_false)
        return true, false


def _is_small(item: AbstractValue) -> bool:
    """Return True if a few items of this kind are certainly within the output limit."""
    return item.array is None and item.object is None and not (item.kinds & TEXT and item.texts is None)


def _follow_segment(value: AbstractValue, segment: str | int) -> AbstractValue:
    """Follow one segment of a variable; digits are an index if the value is an array."""
    if value.array is None or isinstance(segment, int) or not _DIGITS.fullmatch(segment):
        return get_child(value, segment)
    found = get_child(value, int(segment))
    return found if value.kinds == ARRAY else join(found, get_child(value, segment))


_MAX_STEPS = 100_000


def find_signs(rule: Mapping[str, Any]) -> dict[str, int]:
    """Return the sign of each derived value of an action or event: 1, -1, or 0 if unknown.

    The state is not restricted. A value that may be 0 has the sign of its other values.
    """
    # Parsed as the engine parses it, so that every number is a float.
    derives, params = strict_json.parse(canonicalize([rule.get("derives", {}), rule.get("params", {})]))
    budget = StepBudget(_MAX_STEPS)
    known: dict[str, AbstractValue] = {}
    try:
        for name in sort_derives(derives):
            known[name] = AbstractEvaluation(budget).evaluate_whole(derives[name], _build_data(params, known))
    except BudgetSpentError:
        pass
    return {name: _get_sign(known.get(name, ANY)) for name in derives}


def _build_data(params: dict[str, Any], known: dict[str, AbstractValue]) -> AbstractValue:
    fields = {
        "state": ANY,
        "params": get_param_domains(params),
        "derives": AbstractValue(OBJECT, object=AbstractObject(dict(known), BOTTOM)),
        "turn": number_range(1, MAX_NUMBER, whole=True),
        "entities": ANY,
    }
    return AbstractValue(OBJECT, object=AbstractObject(fields, BOTTOM))


def _get_sign(value: AbstractValue) -> int:
    if value.kinds != NUMBER:
        return 0
    return 1 if value.low >= 0 else -1 if value.high <= 0 else 0

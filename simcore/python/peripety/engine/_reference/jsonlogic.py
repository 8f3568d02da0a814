"""JSONLogic interpreter, written for clarity, and stand-alone rules with their data.

Values are JSON values whose numbers are floats. The dialect follows the community test suites; where these
are silent, docs/reference/semantics.md decides. Fuel bounds every evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.engine._reference.jsonlogic_operators import OPERATORS, check_depth
from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import from_python, to_python
from peripety.engine.paths import Path, split_variable

if TYPE_CHECKING:
    from peripety.engine.backend_protocol import ErrorFactory


FUEL = 10_000
OUTPUT_LIMIT = 1 << 16
_ITEMS_PER_STEP = 16


def evaluate(logic: Any, data: Any) -> Any:
    """Evaluate a JSONLogic expression over data.

    Raises:
        EngineError: `UNKNOWN_OPERATOR`, `INVALID_ARGUMENTS`, `NOT_A_NUMBER`, `DIVISION_BY_ZERO`,
            `NUMERIC_RANGE` or `FUEL_EXHAUSTED`.
    """
    return Evaluation().evaluate_whole(logic, data)


class Evaluation:
    """One evaluation with its remaining fuel and output."""

    def __init__(self) -> None:
        self.fuel = FUEL
        self.output = OUTPUT_LIMIT
        self.checked_items = 0
        self._paths: dict[str, Path] = {}

    @property
    def total_cost(self) -> int:
        """Cost charged to the call: the fuel, and a step for every 16 values made or checked."""
        made = OUTPUT_LIMIT - max(self.output, 0)
        return FUEL - max(self.fuel, 0) + made // _ITEMS_PER_STEP + self.checked_items // _ITEMS_PER_STEP

    def evaluate_whole(self, logic: Any, data: Any) -> Any:
        """Evaluate a whole expression, whose value may enter a state."""
        value = self.evaluate(logic, data)
        level = [value]
        depth = looked_at = 0
        while level := [item for item in level if isinstance(item, list | dict)]:
            depth += 1
            check_depth(depth)
            level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
            looked_at += len(level)
        self.checked_items = looked_at
        return value

    def evaluate(self, logic: Any, data: Any) -> Any:
        """Evaluate an expression, for one step of fuel."""
        self.spend_fuel(1)
        if isinstance(logic, list):
            return self.charge_array([self.evaluate(item, data) for item in logic])
        if not isinstance(logic, dict) or not logic:
            return logic
        if len(logic) > 1:
            raise EngineError("UNKNOWN_OPERATOR", "an operation has exactly one key, its operator")
        ((name, operand),) = logic.items()
        operator = OPERATORS.get(name)
        if operator is None:
            raise EngineError("UNKNOWN_OPERATOR", f"'{name[:40]}' is not a JSONLogic operator")
        return operator(self, operand, data)

    def split_path(self, text: str) -> Path:
        """Return the segments of a variable, cached: iterators read the same one for each element."""
        if text not in self._paths:
            self._paths[text] = split_variable(text)
        return self._paths[text]

    def spend_fuel(self, amount: int) -> None:
        """Spend fuel."""
        self.fuel -= amount
        if self.fuel < 0:
            raise EngineError("FUEL_EXHAUSTED", f"the expression needs more than {FUEL} steps")

    def spend_output(self, amount: int) -> None:
        """Spend output."""
        self.output -= amount
        if self.output < 0:
            raise EngineError(
                "FUEL_EXHAUSTED",
                f"the expression makes more than {OUTPUT_LIMIT} characters or items",
            )

    def charge_array(self, items: list[Any]) -> list[Any]:
        """Charge a new array for everything in it, recursively: each item and each character."""
        pending = [items]
        while pending:
            for item in pending.pop():
                self.spend_output(1 + (len(item) if isinstance(item, str) else 0))
                if isinstance(item, list):
                    pending.append(item)
                elif isinstance(item, dict):
                    pending.append([item[key] for key in sorted(item)])
        return items

    def evaluate_arguments(self, operand: Any, data: Any) -> list[Any]:
        """Evaluate all arguments; an operand that is not a list is the only argument."""
        items = operand if isinstance(operand, list) else [operand]
        return [self.evaluate(item, data) for item in items]

    def expand_arguments(self, operand: Any, data: Any) -> list[Any]:
        """Evaluate arguments as `arguments`, but expand an array that an operation yields."""
        if isinstance(operand, list):
            return self.evaluate_arguments(operand, data)
        value = self.evaluate(operand, data)
        if not isinstance(operand, dict) or not isinstance(value, list):
            return [value]
        self.spend_fuel(len(value))
        return value

    def is_equal(self, a: Any, b: Any, depth: int = 0) -> bool:
        """Compare strictly and structurally."""
        self.spend_fuel(1)
        check_depth(depth)
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(self.is_equal(x, y, depth + 1) for x, y in zip(a, b, strict=True))
        if isinstance(a, dict) and isinstance(b, dict):
            return len(a) == len(b) and all(
                k in b and self.is_equal(a[k], b[k], depth + 1) for k in sorted(a)
            )
        return type(a) is type(b) and bool(a == b)


class ReferenceData:
    """Data for rules, parsed once."""

    __slots__ = ("value",)

    def __init__(self, source: Any, make_error: ErrorFactory) -> None:
        try:
            self.value = from_python(source)
        except EngineError as error:
            raise make_error(error.code, error.message, error.path) from None


class ReferenceRule:
    """Compiled expression."""

    __slots__ = ("_logic", "_refusal")

    def __init__(self, logic: Any, make_error: ErrorFactory) -> None:
        self._logic = ReferenceData(logic, make_error).value
        self._refusal = make_error

    def evaluate(self, data: Any, /) -> Any:
        parsed = data if isinstance(data, ReferenceData) else ReferenceData(data, self._refusal)
        try:
            return to_python(evaluate(self._logic, parsed.value))
        except EngineError as error:
            raise self._refusal(error.code, error.message, error.path) from None

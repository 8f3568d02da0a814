"""Stand-alone JSONLogic rules and their data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.logic import evaluate
from peripety.sim._pure.plain import plain_of, value_of

if TYPE_CHECKING:
    from peripety.sim._core import Refusal

__all__ = ["Data", "Rule"]


class Data:
    """Data for rules, parsed once."""

    __slots__ = ("value",)

    def __init__(self, plain: Any, refusal: Refusal) -> None:
        try:
            self.value = value_of(plain)
        except CoreError as error:
            raise refusal(error.code, error.message, error.path) from None


class Rule:
    """Compiled expression."""

    __slots__ = ("_logic", "_refusal")

    def __init__(self, logic: Any, refusal: Refusal) -> None:
        self._logic = Data(logic, refusal).value
        self._refusal = refusal

    def evaluate(self, data: Any, /) -> Any:
        parsed = data if isinstance(data, Data) else Data(data, self._refusal)
        try:
            return plain_of(evaluate(self._logic, parsed.value))
        except CoreError as error:
            raise self._refusal(error.code, error.message, error.path) from None

"""Mistakes in JSONLogic expressions: off by one, the opposite, one thing forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.mutations.changes import GONE, Change
from peripety.mutations.steps import shifted, some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from peripety.mutations.changes import Place

__all__ = ["OPERATORS"]

_COMPARISONS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "===": "!==",
    "!==": "===",
}
_CONNECTIVES = {"and": "or", "or": "and"}


def _operations(part: Any, place: Place = ()) -> Iterator[tuple[Place, str, Any]]:
    """All operations of an expression with a list of operands: where, which operator, and the operands."""
    if isinstance(part, list):
        for index, item in enumerate(part):
            yield from _operations(item, (*place, index))
    elif isinstance(part, dict) and len(part) == 1:
        ((name, operands),) = part.items()
        if isinstance(operands, list):
            yield place, name, operands
        yield from _operations(operands, (*place, name))


def _swap(pairs: Mapping[str, str]) -> Callable[[Any], Iterator[Change]]:
    """An operator is the other one of a pair."""

    def operator(logic: Any) -> Iterator[Change]:
        for place, name, operands in _operations(logic):
            if name in pairs:
                yield Change(place, {name: operands}, {pairs[name]: operands})

    return operator


def _shift_number(logic: Any) -> Iterator[Change]:
    """A number that something is compared with is the next one, or the one before."""
    for place, name, operands in _operations(logic):
        if name in _COMPARISONS:
            for index, operand in enumerate(operands):
                if isinstance(operand, int | float) and not isinstance(operand, bool):
                    for other in shifted(operand):
                        yield Change((*place, name, index), operand, other)


def _drop_operand(logic: Any) -> Iterator[Change]:
    for place, name, operands in _operations(logic):
        if name in _CONNECTIVES and len(operands) > 1:
            for index, operand in some(operands):
                yield Change((*place, name, index), operand, GONE)


def _negate(logic: Any) -> Iterator[Change]:
    """The whole expression is turned round, or something that it connects."""
    if logic:
        yield Change((), logic, _negated(logic))
    for place, name, operands in _operations(logic):
        for index, operand in some(operands) if name in _CONNECTIVES else ():
            yield Change((*place, name, index), operand, _negated(operand))


def _negated(part: Any) -> Any:
    """The opposite, an operation one level deeper only: a rule may be as deep as documents can be."""
    return {"!": part if isinstance(part, dict) else [part]}


def _drop_element(logic: Any) -> Iterator[Change]:
    """One of the values that something may be is missing."""
    for place, name, operands in _operations(logic):
        elements = operands[1] if name == "in" else ()
        if isinstance(elements, list) and len(elements) > 1:
            for index, element in some(elements):
                yield Change((*place, name, 1, index), element, GONE)


OPERATORS: dict[str, Callable[[Any], Iterable[Change]]] = {
    "swap_comparison": _swap(_COMPARISONS),
    "swap_connective": _swap(_CONNECTIVES),
    "shift_number": _shift_number,
    "drop_operand": _drop_operand,
    "negate_logic": _negate,
    "drop_element": _drop_element,
}
"""The operators by their names; each takes an expression, and says what to change from there on."""

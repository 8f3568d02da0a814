"""Mistakes in expressions: off by one, the opposite, one thing forgotten."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from peripety.policies.entries import LARGEST_INTEGER, smallest_step, some
from peripety.policies.mutating.changes import GONE, Change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from peripety.policies.places import Place

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


def _operations(rule: Mapping[str, Any]) -> Iterator[tuple[Place, str, Any]]:
    """All operations of a rule's logic with a list of operands: where, which operator, and the operands."""
    if "logic" in rule["when"]:
        yield from _within(rule["when"]["logic"], ("when", "logic"))


def _within(part: Any, place: Place) -> Iterator[tuple[Place, str, Any]]:
    if isinstance(part, list):
        for index, item in enumerate(part):
            yield from _within(item, (*place, index))
    elif isinstance(part, dict) and len(part) == 1:
        ((name, operands),) = part.items()
        if isinstance(operands, list):
            yield place, name, operands
        yield from _within(operands, (*place, name))


def _swap(pairs: Mapping[str, str]) -> Callable[[Mapping[str, Any]], Iterator[Change]]:
    """An operator is the other one of a pair."""

    def operator(rule: Mapping[str, Any]) -> Iterator[Change]:
        for place, name, operands in _operations(rule):
            if name in pairs:
                yield Change(place, {name: operands}, {pairs[name]: operands})

    return operator


def _shift_number(rule: Mapping[str, Any]) -> Iterator[Change]:
    """A number that something is compared with is the next one, or the one before."""
    for place, name, operands in _operations(rule):
        if name in _COMPARISONS:
            for index, operand in enumerate(operands):
                if isinstance(operand, int | float) and not isinstance(operand, bool):
                    for shifted in _shifted(operand):
                        yield Change((*place, name, index), operand, shifted)


def _shifted(number: float) -> Iterator[float]:
    step = Decimal(repr(smallest_step(number)))
    for shifted in (Decimal(repr(number)) - step, Decimal(repr(number)) + step):
        if abs(shifted) <= LARGEST_INTEGER:
            yield int(shifted) if shifted == shifted.to_integral_value() else float(shifted)


def _drop_operand(rule: Mapping[str, Any]) -> Iterator[Change]:
    for place, name, operands in _operations(rule):
        if name in _CONNECTIVES and len(operands) > 1:
            for index, operand in some(operands):
                yield Change((*place, name, index), operand, GONE)


def _negate(rule: Mapping[str, Any]) -> Iterator[Change]:
    """The whole expression is turned round, or something that it connects."""
    logic = rule["when"].get("logic")
    if logic:
        yield Change(("when", "logic"), logic, _negated(logic))
    for place, name, operands in _operations(rule):
        for index, operand in some(operands) if name in _CONNECTIVES else ():
            yield Change((*place, name, index), operand, _negated(operand))


def _negated(part: Any) -> Any:
    """The opposite, an operation one level deeper only: a rule may be as deep as documents can be."""
    return {"!": part if isinstance(part, dict) else [part]}


def _drop_element(rule: Mapping[str, Any]) -> Iterator[Change]:
    """One of the values that something may be is missing."""
    for place, name, operands in _operations(rule):
        elements = operands[1] if name == "in" else ()
        if isinstance(elements, list) and len(elements) > 1:
            for index, element in some(elements):
                yield Change((*place, name, 1, index), element, GONE)


OPERATORS: dict[str, Callable[[Mapping[str, Any]], Iterable[Change]]] = {
    "swap_comparison": _swap(_COMPARISONS),
    "swap_connective": _swap(_CONNECTIVES),
    "shift_number": _shift_number,
    "drop_operand": _drop_operand,
    "negate_logic": _negate,
    "drop_element": _drop_element,
}
"""The operators by their names."""

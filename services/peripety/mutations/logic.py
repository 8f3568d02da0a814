"""Mutation operators of JSONLogic: off-by-one, negation, swapped operators, dropped operands."""

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
    """Yield every operation with a list of operands, as (path, operator, operands)."""
    if isinstance(part, list):
        for index, item in enumerate(part):
            yield from _operations(item, (*place, index))
    elif isinstance(part, dict) and len(part) == 1:
        ((name, operands),) = part.items()
        if isinstance(operands, list):
            yield place, name, operands
        yield from _operations(operands, (*place, name))


def _swap(pairs: Mapping[str, str]) -> Callable[[Any], Iterator[Change]]:
    """Return an operator that replaces each operation by its partner in the pairs."""

    def operator(logic: Any) -> Iterator[Change]:
        for place, name, operands in _operations(logic):
            if name in pairs:
                yield Change(place, {name: operands}, {pairs[name]: operands})

    return operator


def _shift_number(logic: Any) -> Iterator[Change]:
    """Yield edits that shift the numbers in comparisons by one step up or down."""
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
    """Yield edits that negate the whole expression or one operand of a connective."""
    if logic:
        yield Change((), logic, _negated(logic))
    for place, name, operands in _operations(logic):
        for index, operand in some(operands) if name in _CONNECTIVES else ():
            yield Change((*place, name, index), operand, _negated(operand))


def _negated(part: Any) -> Any:
    """Return the negation, one level deeper only.

    A rule may already have the maximum depth of a document.
    """
    return {"!": part if isinstance(part, dict) else [part]}


def _drop_element(logic: Any) -> Iterator[Change]:
    """Yield edits that drop one element from the list of an `in`."""
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
"""Operators by name; each yields edits of an expression, with paths from its root."""

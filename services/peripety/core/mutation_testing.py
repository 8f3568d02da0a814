"""Mutation testing: edits of a document, operators for JSONLogic, sampling, coverage and score."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


REMOVED: Final = object()
"""Marker for a removed part."""

DocumentPath = tuple["str | int", ...]
"""Path to a part of a document: keys and indices."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Edit of one part.

    Attributes:
        path: path of the part, from the root.
        before: the part before.
        after: the part after, or `GONE`.
    """

    path: DocumentPath
    before: Any
    after: Any


def apply_edit(part: Any, path: DocumentPath, after: Any) -> Any:
    """Return a copy with the value at a path replaced or removed; unchanged parts are shared."""
    first, *rest = path
    inner = apply_edit(part[first], tuple(rest), after) if rest else after
    if isinstance(first, int):
        kept = [] if inner is REMOVED else [inner]
        return [*part[:first], *kept, *part[first + 1 :]]
    others = {key: value for key, value in part.items() if key != first}
    return others if inner is REMOVED else others | {first: inner}


MAX_SAMPLE = 32
"""Entries of one list that are examined; longer lists are sampled."""

MAX_INTEGER = 2**53 - 1
"""Largest magnitude of an integer in a document."""

_Item = TypeVar("_Item")


def sample(items: Sequence[_Item]) -> list[tuple[int, _Item]]:
    """Return items with their indices: all, or a sample.

    A sample has `MAX_SAMPLE` items, evenly spread from the first to the last.
    """
    last = len(items) - 1
    if last < MAX_SAMPLE:
        return [*enumerate(items)]
    steps = MAX_SAMPLE - 1
    return [(index, items[index]) for index in (last * step // steps for step in range(MAX_SAMPLE))]


def smallest_step(number: float) -> int | float:
    """Return 1 for an integer, else one unit of the last decimal place of the number."""
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return float(Decimal(1).scaleb(exponent)) if isinstance(exponent, int) and exponent < 0 else 1


def shift_number(number: float) -> Iterator[float]:
    """Yield the numbers one step below and above, if they are in the range of documents."""
    step = Decimal(repr(smallest_step(number)))
    for other in (Decimal(repr(number)) - step, Decimal(repr(number)) + step):
        if abs(other) <= MAX_INTEGER:
            yield int(other) if other == other.to_integral_value() else float(other)


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


def _iter_operations(part: Any, path: DocumentPath = ()) -> Iterator[tuple[DocumentPath, str, Any]]:
    """Yield every operation with a list of operands, as (path, operator, operands)."""
    if isinstance(part, list):
        for index, item in enumerate(part):
            yield from _iter_operations(item, (*path, index))
    elif isinstance(part, dict) and len(part) == 1:
        ((name, operands),) = part.items()
        if isinstance(operands, list):
            yield path, name, operands
        yield from _iter_operations(operands, (*path, name))


def _swap_operators(pairs: Mapping[str, str]) -> Callable[[Any], Iterator[Edit]]:
    """Return an operator that replaces each operation by its partner in the pairs."""

    def operator(logic: Any) -> Iterator[Edit]:
        for place, name, operands in _iter_operations(logic):
            if name in pairs:
                yield Edit(place, {name: operands}, {pairs[name]: operands})

    return operator


def _shift_comparands(logic: Any) -> Iterator[Edit]:
    """Yield edits that shift the numbers in comparisons by one step up or down."""
    for place, name, operands in _iter_operations(logic):
        if name in _COMPARISONS:
            for index, operand in enumerate(operands):
                if isinstance(operand, int | float) and not isinstance(operand, bool):
                    for other in shift_number(operand):
                        yield Edit((*place, name, index), operand, other)


def _drop_operands(logic: Any) -> Iterator[Edit]:
    for place, name, operands in _iter_operations(logic):
        if name in _CONNECTIVES and len(operands) > 1:
            for index, operand in sample(operands):
                yield Edit((*place, name, index), operand, REMOVED)


def _negate_conditions(logic: Any) -> Iterator[Edit]:
    """Yield edits that negate the whole expression or one operand of a connective."""
    if logic:
        yield Edit((), logic, _negate_part(logic))
    for place, name, operands in _iter_operations(logic):
        for index, operand in sample(operands) if name in _CONNECTIVES else ():
            yield Edit((*place, name, index), operand, _negate_part(operand))


def _negate_part(part: Any) -> Any:
    """Return the negation, one level deeper only.

    A rule may already have the maximum depth of a document.
    """
    return {"!": part if isinstance(part, dict) else [part]}


def _drop_elements(logic: Any) -> Iterator[Edit]:
    """Yield edits that drop one element from the list of an `in`."""
    for place, name, operands in _iter_operations(logic):
        elements = operands[1] if name == "in" else ()
        if isinstance(elements, list) and len(elements) > 1:
            for index, element in sample(elements):
                yield Edit((*place, name, 1, index), element, REMOVED)


OPERATORS: dict[str, Callable[[Any], Iterable[Edit]]] = {
    "swap_comparison": _swap_operators(_COMPARISONS),
    "swap_connective": _swap_operators(_CONNECTIVES),
    "shift_number": _shift_comparands,
    "drop_operand": _drop_operands,
    "negate_logic": _negate_conditions,
    "drop_element": _drop_elements,
}
"""Operators by name; each yields edits of an expression, with paths from its root."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of the targets of one kind.

    Attributes:
        kind: stable lower_snake_case name of the kind, such as `rule`.
        covered: number of targets that are reached.
        reachable: number of targets that can be reached.
        uncovered: JSON Pointers of reachable targets that are not reached.
        unreachable: JSON Pointers of targets that cannot be reached; they do not count.
    """

    kind: str
    covered: int
    reachable: int
    uncovered: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()


class MutantOutcome(Enum):
    """Outcome of running the tests against a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"
    """Proved to mean the same as the original; does not count."""
    INVALID = "invalid"
    """Could not be run; does not count."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """Small change of a document that its tests should detect.

    Attributes:
        mutant_id: unique within the document and the version of the operators.
        operator: stable lower_snake_case name of the operator, such as `swap_comparison`.
        path: JSON Pointer of the changed part.
        before: the part before, as JSON; None if the operator added it.
        after: the part after, as JSON; None if the operator removed it.
        outcome: the result of running the tests.
        killed_by: names of the tests that kill the mutant.
        target: path of the target that a test covers if it executes the changed part; empty if there is none.
    """

    mutant_id: str
    operator: str
    path: str
    before: bytes | None
    after: bytes | None
    outcome: MutantOutcome
    killed_by: tuple[str, ...] = ()
    target: str = ""


@dataclass(frozen=True, slots=True)
class MutationScore:
    """Mutation score: the numbers of killed and surviving mutants.

    Attributes:
        killed: mutants that at least one test kills.
        survived: mutants that no test kills.
        equivalent: mutants with the meaning of the original.
        survivors: the surviving mutants.
    """

    killed: int
    survived: int
    equivalent: int
    survivors: tuple[Mutant, ...] = ()

    @property
    def score(self) -> float:
        """Killed mutants as a share of the killed and surviving ones; 0 without any."""
        counted = self.killed + self.survived
        return self.killed / counted if counted else 0.0

"""Partition of the values of an argument into regions that no condition distinguishes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain, count, islice, product
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from peripety import engine
from peripety.policy.analysis.argument_schema import JSON_TYPES
from peripety.policy.analysis.breakpoints import numbers_between, to_json_number
from peripety.policy.analysis.decision_diagram import TooLargeError
from peripety.policy.analysis.string_partitions import NUMERAL, UNREADABLE, StringClasses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.policy.analysis.argument_schema import ArgumentConstraint, ArgumentSchema


MISSING: Final = object()
"""The example of a missing value."""

NO_VALUE = -2
"""The class of values that give a matcher nothing to read: missing, and null."""

_INVALID_COST = 100.0
_UNKNOWN_COST = 1000.0
_MAX_REGION_EXAMPLES = 4
_MAX_CELLS = 2000
_MAX_TRIED_VALUES = 256
_MAX_LISTED_VALUES = 1000
_MAX_NUMBERS = 1000
_NUMERIC = re.compile(r"[ \t\n\r]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t\n\r]*")
# Pairs of kinds that no string has at once.
_EXCLUSIVE_KINDS = ({"path", "domain"}, {"domain", "email"}, {"path", "number"}, {"email", "number"})

ClassVector: TypeAlias = tuple[int, ...]


@dataclass(slots=True)
class Predicates:
    """All predicates that distinguish the values at one path.

    Attributes:
        classes: the string classes of each kind of matchers.
        literals: strings and numbers that are compared with the value, each with the positions of the
            comparisons.
            Literals with the same positions are not distinguished.
        needles: strings that are searched for in strings.
        reads_numbers: True if strings are coerced to numbers.
        logic: the results of the logic for a value; equal for all values of a region.
    """

    classes: tuple[StringClasses, ...] = ()
    literals: dict[Any, set[str]] = field(default_factory=dict)
    needles: tuple[str, ...] = ()
    reads_numbers: bool = False
    logic: Callable[[Any], tuple[Any, ...]] = lambda _value: ()

    def class_vector(self, text: str) -> ClassVector:
        """Return the class of a string for each kind of matchers."""
        return tuple(one.class_of(text) for one in self.classes)

    def constant_class_vector(self, outcome: int) -> ClassVector:
        """Return the same class for each kind of matchers."""
        return (outcome,) * len(self.classes)


@dataclass(frozen=True, slots=True)
class Region:
    """Values that no condition distinguishes.

    Attributes:
        classes: its class for each kind of matchers; `NO_VALUE` for missing and null.
        logic: the results of the logic for its values.
        examples: some of its values; empty if none is known.
        cost: the cost of the region in an example.
        is_array: True if all of them are arrays.
    """

    classes: ClassVector
    logic: tuple[Any, ...]
    examples: tuple[Any, ...]
    cost: float
    is_array: bool = False

    @property
    def is_missing(self) -> bool:
        """Return True if the value is missing, and conditions read the object that would contain it."""
        return any(one is MISSING for one in self.examples)

    @property
    def is_object(self) -> bool:
        """Return True if the values are objects, and conditions read their parts."""
        return bool(self.examples) and isinstance(self.examples[0], dict)


@dataclass(frozen=True, slots=True)
class _Cell:
    """Values of one type in one region, with its classes.

    Attributes:
        values: some of them, or all.
        is_complete: True if these are all of them.
        is_empty: True if the schema is known to accept none of them.
        similar_value: a value that the logic treats alike, for a cell without known values.
    """

    classes: ClassVector
    values: tuple[Any, ...]
    cost: float
    is_complete: bool = False
    is_empty: bool = False
    similar_value: Any = None


def partition_values(
    predicates: Predicates,
    constraint: ArgumentConstraint,
    schema: ArgumentSchema,
    *,
    all_values: bool,
    elements: bool = False,
) -> list[Region]:
    """Return the regions of the values at a path, cheapest first.

    Args:
        predicates: the predicates that distinguish values.
        constraint: the part of the schema at the path.
        schema: the schema of the tool.
        all_values: True to include values that the schema rejects.
        elements: True for elements of an array, which are never missing and may be null.

    Raises:
        TooLargeError: there are too many regions.
    """
    builder = _RegionBuilder(predicates, constraint, schema, all_values=all_values, elements=elements)
    merged: dict[tuple[Any, ...], Region] = {}
    for region in builder.regions():
        key = (region.classes, region.logic, region.is_array)
        known = merged.get(key)
        if known is None:
            merged[key] = region
        else:
            better, other = sorted((known, region), key=lambda one: one.cost)
            examples = better.examples
            if other.cost < _INVALID_COST:
                examples = (*examples, *other.examples)[:_MAX_REGION_EXAMPLES]
            merged[key] = Region(*key[:2], examples, better.cost, region.is_array)
    return sorted(merged.values(), key=lambda one: one.cost)


class _RegionBuilder:
    """Builder of the regions at one path."""

    def __init__(
        self,
        predicates: Predicates,
        constraint: ArgumentConstraint,
        schema: ArgumentSchema,
        *,
        all_values: bool,
        elements: bool,
    ) -> None:
        self._predicates = predicates
        self._constraint = constraint
        self._schema = schema
        self._all = all_values
        self._elements = elements
        self._types = schema.accepted_types(constraint.schema)
        self._wanted_types = frozenset(JSON_TYPES) if all_values else self._types
        listed = schema.list_values(constraint.schema)
        self._listed = listed if listed is not None and len(listed) <= _MAX_LISTED_VALUES else None
        numbers = {0.0, *(one for one in map(_to_number_or_none, predicates.literals) if one is not None)}
        if len(numbers) > _MAX_NUMBERS:
            raise TooLargeError
        self._thresholds = sorted(numbers)

    def regions(self) -> Iterator[Region]:
        if not self._elements and (self._constraint.optional or self._all):
            yield self._to_region(self._cell_without_value(MISSING, 0.5), certain=self._constraint.optional)
        for cell in self._iter_cells():
            region = self._to_accepted_region(cell)
            if region is not None:
                yield region
        if "array" in self._wanted_types and not self._elements:
            cost = 0.2 if "array" in self._types else _INVALID_COST
            yield Region(self._predicates.constant_class_vector(NO_VALUE), (), (), cost, is_array=True)

    def _iter_cells(self) -> Iterator[_Cell]:
        if self._listed is not None and not self._all:
            for value in self._listed:
                if self._elements or not isinstance(value, list):
                    yield self._cell_of_value(value)
            return
        for name, cells in self._cells_by_type().items():
            if name in self._wanted_types:
                yield from cells()

    def _cells_by_type(self) -> dict[str, Callable[[], Iterable[_Cell]]]:
        return {
            "null": lambda: [self._cell_of_value(None)],
            "boolean": lambda: [self._cell_of_value(truth) for truth in (False, True)],
            "number": self._number_cells,
            "string": self._string_cells,
            "object": lambda: [
                self._unreadable_cell(self._sample_objects(), 3.0, empty="object" not in self._types),
            ],
            "array": lambda: [self._unreadable_cell(([],), 3.0, empty="array" not in self._types)][
                : self._elements
            ],
        }

    def _sample_objects(self) -> tuple[Any, ...]:
        samples = islice(
            self._schema.iter_samples(self._schema.narrow_to_type(self._constraint.schema, "object")),
            2,
        )
        return (*(one for one in samples if isinstance(one, dict)), {})

    def _cell_of_value(self, value: Any) -> _Cell:
        if value is None and not self._elements:
            return self._cell_without_value(None, 2.0)
        if isinstance(value, str):
            return _Cell(self._predicates.class_vector(value), (value,), 0.0, is_complete=True)
        return self._unreadable_cell((value,), 3.0 if isinstance(value, list | dict) else 0.0, whole=True)

    def _cell_without_value(self, value: Any, cost: float) -> _Cell:
        return _Cell(self._predicates.constant_class_vector(NO_VALUE), (value,), cost, is_complete=True)

    def _unreadable_cell(
        self,
        values: tuple[Any, ...],
        cost: float,
        *,
        whole: bool = False,
        empty: bool = False,
    ) -> _Cell:
        return _Cell(
            self._predicates.constant_class_vector(UNREADABLE),
            values,
            cost,
            is_complete=whole,
            is_empty=empty,
        )

    def _to_accepted_region(self, cell: _Cell) -> Region | None:
        """Return a cell as a region, limited to accepted values; None if no value is accepted."""
        accepted = [
            value
            for value in cell.values[:_MAX_TRIED_VALUES]
            if self._schema.accepts(self._constraint.schema, value)
        ]
        if accepted:
            chosen = _Cell(cell.classes, tuple(accepted), cell.cost)
            return self._to_region(chosen, certain=True)
        impossible = cell.is_empty or (cell.is_complete and len(cell.values) <= _MAX_TRIED_VALUES)
        if self._all:
            return self._to_region(cell, certain=False)
        return None if impossible else self._to_region(cell, certain=False)

    def _to_region(self, cell: _Cell, *, certain: bool) -> Region:
        cost = (
            cell.cost
            if certain
            else cell.cost + (_INVALID_COST if self._all and cell.values else _UNKNOWN_COST)
        )
        logic = self._predicates.logic(cell.values[0] if cell.values else cell.similar_value)
        return Region(cell.classes, logic, cell.values[:_MAX_REGION_EXAMPLES], cost)

    # --- numbers ---

    def _number_cells(self) -> Iterator[_Cell]:
        possible = "number" in self._types
        part = self._schema.narrow_to_type(self._constraint.schema, "number")
        whole = self._schema.accepts_only_integers(self._constraint.schema)
        cost = 0.0 if possible else 3.0
        for low, high in zip((-inf, *self._thresholds), (*self._thresholds, inf), strict=True):
            fitting = numbers_between(low, high, part, whole=whole) if possible else ()
            values = fitting or numbers_between(low, high, {}, whole=False)
            if values:
                yield self._unreadable_cell(values, cost, empty=not fitting)
            if high < inf:
                yield self._unreadable_cell((to_json_number(high),), cost, whole=True)

    def _interval(self, text: str) -> int:
        """Return the position of a numeric string among the thresholds; -1 for any other string."""
        number = _to_number_or_none(text)
        if number is None:
            return -1
        below = sum(one < number for one in self._thresholds)
        return 2 * below + (number in self._thresholds)

    # --- texts ---

    def _string_cells(self) -> Iterator[_Cell]:
        axes = [*self._iter_axes()]
        points: dict[tuple[Any, ...], list[str]] = {}
        mentioned = {"", *(one for one in self._predicates.literals if isinstance(one, str))}
        mentioned |= {one for one in self._listed or () if isinstance(one, str)}
        for kind in self._predicates.classes:
            if kind.kind == "identifier":
                mentioned |= kind.mentioned
        for text in sorted(mentioned):
            places = frozenset(self._predicates.literals.get(text, ())) or None
            key = (
                places,
                text == "",
                *(axis.outcome_of(text) for axis in axes),
                *self._predicates.class_vector(text),
            )
            points.setdefault(key, []).append(text)
        for texts in points.values():
            yield self._string_cell(self._predicates.class_vector(texts[0]), tuple(texts), whole=True)
        yield from self._unmentioned_string_cells(axes, mentioned)

    def _string_cell(
        self,
        classes: ClassVector,
        values: tuple[str, ...],
        *,
        whole: bool = False,
        like: Any = None,
    ) -> _Cell:
        cost = 3.0 if "string" not in self._types or UNREADABLE in classes else 0.0
        return _Cell(
            classes,
            values,
            cost,
            is_complete=whole,
            is_empty="string" not in self._types,
            similar_value=like,
        )

    def _iter_axes(self) -> Iterator[_StringCriterion]:
        for one in self._predicates.classes:
            if one.kind != "identifier":
                yield _StringCriterion(one.kind, one.class_of, one.examples, one.may_be_numbers)
        if self._predicates.reads_numbers:
            yield _StringCriterion("number", self._interval, self._numeric_strings())
        if self._predicates.needles:
            yield _StringCriterion("needle", self._needle_mask, self._strings_by_needles())

    def _unmentioned_string_cells(
        self,
        axes: Sequence[_StringCriterion],
        mentioned: set[str],
    ) -> Iterator[_Cell]:
        """Yield cells of strings that no condition mentions, one per combination of axis outcomes."""
        found: dict[ClassVector, list[str]] = {}
        words = (word for word in _meaningless_words() if word not in mentioned)
        candidates = chain(islice(words, 3), (text for axis in axes for text in axis.texts()))
        for text in candidates:
            if text not in mentioned:
                found.setdefault(tuple(axis.outcome_of(text) for axis in axes), []).append(text)
        size = 1
        for axis in axes:
            size *= len(axis.examples)
        if size > _MAX_CELLS:
            raise TooLargeError
        for point in product(*(axis.examples for axis in axes)):
            texts = found.get(point, [])
            if not texts and _is_impossible(axes, point, self._predicates.needles):
                continue
            like = None if texts else self._similar_string(axes, point, found)
            yield self._string_cell(self._class_vector_at(axes, point), tuple(texts), like=like)

    def _class_vector_at(self, axes: Sequence[_StringCriterion], point: ClassVector) -> ClassVector:
        known = {axis.name: outcome for axis, outcome in zip(axes, point, strict=True)}
        return tuple(known.get(one.kind, 0) for one in self._predicates.classes)

    def _similar_string(
        self,
        axes: Sequence[_StringCriterion],
        point: ClassVector,
        found: Mapping[ClassVector, list[str]],
    ) -> str:
        """Return a string that the logic treats like those at a point without a known string."""
        logical = [number for number, axis in enumerate(axes) if axis.name in {"number", "needle"}]
        for other, texts in found.items():
            if all(other[number] == point[number] for number in logical):
                return texts[0]
        raise TooLargeError

    def _numeric_strings(self) -> dict[int, tuple[str, ...]]:
        found: dict[int, list[str]] = {-1: [*islice(_meaningless_words(), 2)]}
        for low, high in zip((-inf, *self._thresholds), (*self._thresholds, inf), strict=True):
            for number in (
                *numbers_between(low, high, {}, whole=False)[:2],
                *((high,) if high < inf else ()),
            ):
                text = engine.canonicalize(to_json_number(number)).decode()
                spelled = (text, f" {text}", f"{text} ", *([text.replace("+", "")] if "+" in text else ()))
                found.setdefault(self._interval(text), []).extend(spelled)
        return {interval: tuple(texts) for interval, texts in found.items()}

    def _needle_mask(self, text: str) -> int:
        return sum(1 << number for number, needle in enumerate(self._predicates.needles) if needle in text)

    def _strings_by_needles(self) -> dict[int, tuple[str, ...]]:
        if len(self._predicates.needles) > 6:  # noqa: PLR2004 - 64 classes of texts
            raise TooLargeError
        found: dict[int, list[str]] = {}
        for chosen in product((False, True), repeat=len(self._predicates.needles)):
            parts = [one for one, wanted in zip(self._predicates.needles, chosen, strict=True) if wanted]
            for separator in (" ", "\u0001", "~"):
                text = separator.join(("", *parts, ""))
                found.setdefault(self._needle_mask(text), []).append(text)
        return {outcome: tuple(texts) for outcome, texts in found.items()}


@dataclass(frozen=True, slots=True)
class _StringCriterion:
    """One criterion that distinguishes strings.

    Attributes:
        name: its unique name.
        outcome_of: returns the outcome for a string.
        examples: strings for each outcome.
        may_be_numbers: returns True if strings with an outcome may also be numeric.
    """

    name: str
    outcome_of: Callable[[str], int]
    examples: Mapping[int, tuple[str, ...]]
    may_be_numbers: Callable[[int], bool] = lambda _outcome: True

    def texts(self) -> Iterable[str]:
        return (text for texts in self.examples.values() for text in texts)


def _is_impossible(axes: Sequence[_StringCriterion], point: ClassVector, needles: Sequence[str]) -> bool:
    """Return True if no string has all these outcomes at once."""
    readable = {
        axis.name: outcome for axis, outcome in zip(axes, point, strict=True) if outcome != UNREADABLE
    }
    if any(apart <= readable.keys() for apart in _EXCLUSIVE_KINDS):
        return True
    if "number" not in readable:
        return False
    contained = readable.get("needle", 0)
    among = (needle for number, needle in enumerate(needles) if contained >> number & 1)
    return not (
        all(axis.may_be_numbers(outcome) for axis, outcome in zip(axes, point, strict=True))
        and all(map(NUMERAL.fullmatch, among))
    )


def _meaningless_words() -> Iterator[str]:
    """Yield an endless sequence of meaningless words."""
    return chain(("other", "another"), (f"z{number}" for number in count()))


def _to_number_or_none(value: Any) -> float | None:
    """Return the number that a literal or a string is coerced to; None if it is not numeric."""
    if isinstance(value, bool) or value is None:
        return float(value or 0)
    if isinstance(value, int | float):
        return float(value)
    if not value.strip(" \t\n\r"):
        return 0.0
    numeral = _NUMERIC.fullmatch(value)
    number = float(numeral.group(1)) if numeral else inf
    return number if abs(number) < inf else None

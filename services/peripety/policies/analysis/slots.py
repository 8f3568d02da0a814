"""Diagram variables for one argument path: the region of the value, and the contents of an array."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.policies.analysis.diagrams import NO, YES
from peripety.policies.analysis.logic import truth
from peripety.policies.analysis.regions import MISSING, Observers, regions_of
from peripety.policies.analysis.schemas import ANYTHING, Place
from peripety.policies.analysis.texts import UNREADABLE, Classes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from peripety.policies.analysis.diagrams import Diagrams
    from peripety.policies.analysis.logic import Leaf
    from peripety.policies.analysis.paths import Path
    from peripety.policies.analysis.regions import Region
    from peripety.policies.analysis.schemas import Schema
    from peripety.policies.analysis.terms import Entries

__all__ = ["Memory", "Seen", "Slot"]

_MOST_ADDED = 64
# Limit for padding an array to the `minItems` of its schema, which may be a billion.
_MOST_PADDED = 1000
_OUTCOMES = (True, None)


class Memory:
    """Cache of engine results and string classes, shared by all tools of a policy."""

    def __init__(self) -> None:
        self._truths: dict[tuple[str, Any], bool | None] = {}
        self._classes: dict[tuple[str, tuple[Entries, ...]], Classes] = {}

    def truth(self, leaf: Leaf, value: Any) -> bool | None:
        """Return whether a leaf holds for a value of its argument; None if it cannot be evaluated."""
        key = (leaf.key, _named(value))
        if key not in self._truths:
            self._truths[key] = truth(leaf.logic, {"arguments": _nested(leaf.path, value)})
        return self._truths[key]

    def classes(self, kind: str, entries: Iterable[Entries]) -> Classes:
        """Return the classes of strings that the matchers with some entries distinguish."""
        key = (kind, tuple(entries))
        if key not in self._classes:
            self._classes[key] = Classes(kind, [one.values for one in key[1]])
        return self._classes[key]


def _nested(path: Path, value: Any) -> dict[str, Any]:
    if value is MISSING:
        return {}
    for segment in reversed(path):
        value = {segment: value}
    found: dict[str, Any] = value
    return found


@dataclass(slots=True)
class Seen:
    """The conditions on the value at one path.

    Attributes:
        matchers: the entries of each kind of matcher, with their numbers.
        leaves: the leaves of the logic, by their canonical text.
        has_outer: True if conditions also read a value that contains this one.
        has_inner: True if conditions also read parts of the value.
        is_listed: True if each value is a region of its own, because the schema lists the values.
    """

    matchers: dict[str, dict[Entries, int]] = field(default_factory=dict)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    has_outer: bool = False
    has_inner: bool = False
    is_listed: bool = False

    def match(self, kind: str, entries: Entries) -> None:
        """Record the entries of a matcher."""
        numbers = self.matchers.setdefault(kind, {})
        numbers.setdefault(entries, len(numbers))


class Slot:
    """An argument path as variables of diagrams.

    Args:
        path: segments of the path.
        seen: the conditions on the value.
        place: the constraints of the schema on the value.
        schema: the schema of the tool.
        diagrams: the store that creates the variables.
        memory: the cache of engine results.
        all_values: True to include values that the schema rejects.
    """

    def __init__(
        self,
        path: Path,
        seen: Seen,
        place: Place,
        schema: Schema,
        diagrams: Diagrams,
        memory: Memory,
        *,
        all_values: bool,
    ) -> None:
        self.path = path
        self._seen = seen
        self._diagrams = diagrams
        self._memory = memory
        self._all = all_values
        self._leaves = [*seen.leaves.values()]
        self._needles = [*dict.fromkeys(_strict(one) for leaf in self._leaves for one in leaf.needles)]
        self._kinds = [*seen.matchers]
        classes = tuple(memory.classes(kind, numbers) for kind, numbers in seen.matchers.items())
        self.regions = regions_of(self._observers(classes), place, schema, all_values=all_values)
        self.variable = diagrams.variable([one.cost for one in self.regions])
        self._array = self._mask(lambda one: one.is_array)
        self.elements: list[Region] = []
        self._has: list[int] = []
        self._array_schema = schema.only(place.schema, "array")
        if self._array:
            items = self._array_schema.get("items", ANYTHING)
            inner = Place(items if isinstance(items, dict) else ANYTHING, optional=False)
            elements = self._element_observers(classes)
            self.elements = regions_of(elements, inner, schema, all_values=all_values, elements=True)
            self._has = [diagrams.variable((0.0, 0.1 + one.cost)) for one in self.elements]
        self._known: dict[Any, tuple[int, ...]] = {}

    def _observers(self, classes: tuple[Classes, ...]) -> Observers:
        literals: dict[Any, set[str]] = {}
        for leaf in self._leaves:
            for where, literal in leaf.literals:
                literals.setdefault(literal, set()).add(where)
        return Observers(
            classes,
            literals,
            tuple(
                dict.fromkeys(one for leaf in self._leaves for one in leaf.needles if isinstance(one, str))
            ),
            any(leaf.reads_numbers for leaf in self._leaves),
            self._logic,
        )

    def _logic(self, value: Any) -> tuple[Any, ...]:
        told: tuple[Any, ...] = tuple(self._memory.truth(leaf, value) for leaf in self._leaves)
        if self._seen.is_listed:
            told = (*told, _named(value))
        if self._seen.has_inner:
            told = (*told, isinstance(value, dict))
        return (*told, value is MISSING) if self._seen.has_outer else told

    def _element_observers(self, classes: tuple[Classes, ...]) -> Observers:
        literals = {literal: {repr(literal)} for _, literal in self._needles}
        return Observers(
            classes, literals, logic=lambda value: tuple(_strict(value) == one for one in self._needles)
        )

    def _mask(self, wanted: Callable[[Region], bool]) -> int:
        return sum(1 << number for number, one in enumerate(self.regions) if wanted(one))

    def _in(self, wanted: Callable[[Region], bool]) -> int:
        return self._diagrams.among(self.variable, self._mask(wanted))

    def _has_any(self, wanted: Callable[[Region], bool]) -> int:
        chosen = (
            self._diagrams.among(has, 2)
            for has, one in zip(reversed(self._has), reversed(self.elements), strict=True)
            if wanted(one)
        )
        return self._diagrams.both(self._is_array, self._diagrams.any_of(chosen))

    @property
    def _is_array(self) -> int:
        return self._diagrams.among(self.variable, self._array)

    def is_value(self, value: Any) -> int:
        """Return the set in which the argument has a value that the schema lists."""
        return self._in(lambda one: any(_named(example) == _named(value) for example in one.examples))

    def texts(self, kind: str, entries: Entries) -> tuple[int, int, int]:
        """Return three sets: a matcher cannot read a value, matches some value, fails on some value."""
        key = (kind, entries)
        known = self._known.get(key)
        if known is None:
            at, bit = self._kinds.index(kind), 1 << self._seen.matchers[kind][entries]
            wanted: tuple[Callable[[Region], bool], ...] = (
                lambda one: one.classes[at] == UNREADABLE,
                lambda one: one.classes[at] >= 0 and bool(one.classes[at] & bit),
                lambda one: one.classes[at] >= 0 and not one.classes[at] & bit,
            )
            known = self._known[key] = tuple(
                self._diagrams.either(self._in(one), self._has_any(one)) for one in wanted
            )
        unreadable, matching, other = known
        return unreadable, matching, other

    def leaf(self, leaf: Leaf) -> tuple[int, int]:
        """Return the sets in which a leaf holds, and in which it cannot be evaluated."""
        known = self._known.get(leaf.key)
        if known is None:
            known = self._known[leaf.key] = tuple(
                self._diagrams.either(self._of_others(leaf, outcome), self._of_arrays(leaf, outcome))
                for outcome in _OUTCOMES
            )
        holds, fails = known
        return holds, fails

    def _of_others(self, leaf: Leaf, outcome: object) -> int:
        """Return the set of values other than arrays for which a leaf has an outcome."""
        at = [one.key for one in self._leaves].index(leaf.key)
        return self._in(lambda one: not one.is_array and one.logic[at] is outcome)

    def _of_arrays(self, leaf: Leaf, outcome: object) -> int:
        """Return the set of arrays for which a leaf has an outcome, by their elements or by being empty."""
        if not self._array:
            return NO
        if leaf.needles:
            at = self._needles.index(_strict(leaf.needles[0]))
            return self._has_any(lambda one: one.logic[at]) if outcome else NO
        some = self._has_any(lambda _one: True)
        return self._diagrams.choose(
            some,
            self._is_array if self._memory.truth(leaf, ["some"]) is outcome else NO,
            self._is_array if self._memory.truth(leaf, []) is outcome else NO,
        )

    def possible(self, outer: Slot | None) -> int:
        """Return the constraints that every accepted request fulfils.

        Args:
            outer: the variables of the value that contains this one, if there are any.
        """
        diagrams = self._diagrams
        found = YES
        if outer is not None:
            index = self.path[len(outer.path)].isdecimal()
            inside = outer._in(lambda one: one.is_object or (one.is_array and index))  # noqa: SLF001 - same class
            found = diagrams.either(self._in(lambda one: one.is_missing), inside)
        if not self.regions:
            return NO
        if self._array and not self._all:
            some = self._has_any(lambda _one: True)
            if self._array_schema.get("minItems", 0) > 0:
                found = diagrams.both(found, diagrams.choose(self._is_array, some, YES))
            most = self._array_schema.get("maxItems")
            if most is not None and most < len(self._has) <= _MOST_ADDED:
                found = diagrams.both(found, diagrams.choose(self._is_array, self._at_most(int(most)), YES))
        return found

    def _at_most(self, most: int) -> int:
        rows = [YES] * (most + 1)
        for has in reversed(self._has):
            present = self._diagrams.among(has, 2)
            rows = [
                self._diagrams.choose(present, rows[left - 1] if left else NO, rows[left])
                for left in range(most + 1)
            ]
        return rows[most]

    def examples(self) -> Iterator[Any]:
        """Yield example values of all regions."""
        for region in self.regions:
            yield from (one for one in region.examples if one is not MISSING)
        for element in self.elements:
            yield from ([one] for one in element.examples)

    def value(self, chosen: Mapping[int, int], attempt: int) -> Any:
        """Return a value in the chosen regions, or `MISSING`.

        Args:
            chosen: the values of variables; variables that are not in it may have any value.
            attempt: index of the example to return, from 0.

        Raises:
            LookupError: no example is known.
        """
        region = self.regions[chosen.get(self.variable, 0)]
        if not region.is_array:
            return _example(region, attempt)
        present = [one for one, has in zip(self.elements, self._has, strict=True) if chosen.get(has)]
        values = [_example(one, attempt) for one in present]
        missing = int(self._array_schema.get("minItems", 0)) - len(values)
        if missing > _MOST_PADDED:
            raise LookupError
        if missing > 0 and present:
            more = [example for one in present for example in one.examples if example not in values]
            values += (more + values * missing)[:missing]
        return values


def _example(region: Region, attempt: int) -> Any:
    if not region.examples:
        raise LookupError
    value = region.examples[attempt % len(region.examples)]
    return value if value is MISSING else deepcopy(value)


def _named(value: Any) -> str:
    return "" if value is MISSING else repr(value)


def _strict(value: Any) -> tuple[str, Any]:
    """Return a scalar in a form whose equality is strict equality in JSONLogic."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return type(value).__name__, value if isinstance(value, str | bool) else None
    return "number", float(value)
